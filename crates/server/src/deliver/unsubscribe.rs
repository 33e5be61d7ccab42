use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// How much of a hash and of a signature a link carries: nobody guesses 16 bytes, and links stay short.
const PART: usize = 16;

/// Signs and reads the links that end mail to a person: whoever holds one may do that and nothing else.
///
/// A link names the person and the address it was mailed to, the latter as a hash: a link of an old address does not end
/// mail to a new one, and no log reads an address from it.
#[derive(Clone)]
pub struct UnsubscribeLinks {
    key: Vec<u8>,
}

impl UnsubscribeLinks {
    /// Links signed with this key.
    pub fn new(key: Vec<u8>) -> Self {
        Self { key }
    }

    /// What stands behind `/u/` for this person and address.
    pub fn sign(&self, user_id: &str, address: &str) -> String {
        let mut bytes = self.signature(user_id, &digest(address)).to_vec();
        bytes.extend(digest(address));
        bytes.extend(user_id.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The person a link is of, and the hash of its address; none where we did not sign it.
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
        let whole = whole.expect("a key of any length signs");
        <[u8; PART]>::try_from(&whole[..PART]).expect("a signature is longer than its part")
    }

    fn mac(&self, user_id: &str, hash: &[u8; PART]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(b"unsubscribe");
        mac.update(hash);
        mac.update(user_id.as_bytes());
        Some(mac)
    }
}

/// The address a link was mailed to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressHash([u8; PART]);

impl AddressHash {
    /// Whether it is this one.
    pub(crate) fn is(self, address: &str) -> bool {
        self.0 == digest(address)
    }
}

fn digest(address: &str) -> [u8; PART] {
    let whole = Sha256::digest(address.as_bytes());
    <[u8; PART]>::try_from(&whole[..PART]).expect("a hash is longer than its part")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_signed_is_read_and_only_for_its_address() {
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
