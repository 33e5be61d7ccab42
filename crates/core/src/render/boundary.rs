use std::fmt;

use siphasher::sip128::SipHasher24;

/// The id of an agent's genuine blocks: random, named in the agent's system prompt, and removed from every
/// event text, so that the agent can recognise a forged block in a fetched page.
#[derive(Clone, PartialEq, Eq)]
pub struct Boundary(String);

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH: usize = 8;

impl Boundary {
    /// A boundary from random bits that the driver passes in. The driver creates a new one at every session start and
    /// after a compaction.
    pub fn from_seed(mut seed: u128) -> Self {
        let letter = |_| {
            let letter = ALPHABET[(seed % 62) as usize];
            seed /= 62;
            char::from(letter)
        };
        Self((0..LENGTH).map(letter).collect())
    }

    /// The boundary of a sub-agent that has not been given a new one: derived from a secret of its conversation, so that each
    /// sub-agent has its own and none has to be stored.
    pub fn of_sub_agent(secret: &[u8; 16], agent: &str) -> Self {
        let digest = SipHasher24::new_with_key(secret).hash(agent.as_bytes());
        Self::from_seed(digest.as_u128())
    }

    /// Parses a stored boundary: 4 to 16 ASCII letters and digits.
    pub fn parse(text: &str) -> Option<Self> {
        let legal = (4..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        legal.then(|| Self(text.to_owned()))
    }

    /// The value of the `id="…"` attribute.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Debug hides the value, so that it does not reach logs: it is enough to forge a block.
impl fmt::Debug for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Boundary(…)")
    }
}
