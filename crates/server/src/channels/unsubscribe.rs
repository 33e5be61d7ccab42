use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// How many bytes of a hash and of a signature a link carries: 16 cannot be guessed, and links stay short.
const PART: usize = 16;

/// Signs and verifies unsubscribe links. A link permits its holder to stop mail to one address of one person, nothing else.
///
/// A link contains the user id and a hash of the address it was mailed to: the link of an old address does not stop mail to
/// a new one, and a log with the link does not contain the address.
#[derive(Clone)]
pub struct UnsubscribeLinks {
    key: Vec<u8>,
}

impl UnsubscribeLinks {
    /// Links signed with this key, of any length.
    pub fn new(key: Vec<u8>) -> Self {
        Self { key }
    }

    /// The path segment after `/u/` for this person and address.
    pub fn sign(&self, user_id: &str, address: &str) -> String {
        let mut bytes = self.signature(user_id, &digest(address)).to_vec();
        bytes.extend(digest(address));
        bytes.extend(user_id.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The user id and the hash of the address in a link; none if the signature is not ours.
    pub(crate) fn read(&self, signed: &str) -> Option<(String, AddressHash)> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(signed).ok()?;
        let (signature, rest) = bytes.split_at_checked(PART)?;
        let (hash, user) = rest.split_at_checked(PART)?;
        let (hash, user) = (<[u8; PART]>::try_from(hash).ok()?, std::str::from_utf8(user).ok()?);
        let mac = self.mac(user, &hash)?;
        mac.verify_truncated_left(signature).ok()?;
        Some((user.to_owned(), AddressHash(hash)))
    }

    fn signature(&self, user_id: &str, hash: &[u8; PART]) -> [u8; PART] {
        let whole = self.mac(user_id, hash).map(|mac| mac.finalize().into_bytes());
        let whole = whole.expect("HMAC takes a key of any length");
        <[u8; PART]>::try_from(&whole[..PART]).expect("an HMAC-SHA256 is longer than PART")
    }

    fn mac(&self, user_id: &str, hash: &[u8; PART]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(b"unsubscribe");
        mac.update(hash);
        mac.update(user_id.as_bytes());
        Some(mac)
    }
}

/// The address a link was mailed to, as the first bytes of its SHA-256.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressHash([u8; PART]);

impl AddressHash {
    /// Whether it is the hash of this address.
    pub(crate) fn is(self, address: &str) -> bool {
        self.0 == digest(address)
    }
}

fn digest(address: &str) -> [u8; PART] {
    let whole = Sha256::digest(address.as_bytes());
    <[u8; PART]>::try_from(&whole[..PART]).expect("a SHA-256 is longer than PART")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_link_with_our_signature_is_valid_and_only_for_its_address() {
        let links = UnsubscribeLinks::new(vec![7; 32]);
        let signed = links.sign("ada", "ada@example.org");
        let (user, address) = links.read(&signed).expect("we signed it");
        assert_eq!(user, "ada");
        assert!(address.is("ada@example.org") && !address.is("ada@example.net"));
        assert!(UnsubscribeLinks::new(vec![8; 32]).read(&signed).is_none());
        for at in 0..signed.len() {
            let mut forged: Vec<char> = signed.chars().collect();
            forged[at] = if forged[at] == 'A' { 'B' } else { 'A' };
            let forged: String = forged.into_iter().collect();
            assert!(links.read(&forged).is_none_or(|(read, hash)| read == user && hash == address), "{forged}");
        }
        for nothing in ["", "AAAA", "é", "a b"] {
            assert!(links.read(nothing).is_none(), "{nothing}");
        }
    }
}
