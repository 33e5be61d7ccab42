use std::fmt;

/// The mark of one conversation's genuine blocks: random, told to the agent in its system prompt, and removed from
/// every text that goes out, so that a forged block in a fetched page is recognisable.
#[derive(Clone, PartialEq, Eq)]
pub struct Boundary(String);

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH: usize = 8;

impl Boundary {
    /// A boundary from random bits the driver brings. New at every session start and after a compaction.
    pub fn from_seed(mut seed: u128) -> Self {
        let letter = |_| {
            let letter = ALPHABET[(seed % 62) as usize];
            seed /= 62;
            char::from(letter)
        };
        Self((0..LENGTH).map(letter).collect())
    }

    /// A boundary read back from where it was stored: 4 to 16 letters and digits.
    pub fn parse(text: &str) -> Option<Self> {
        let legal = (4..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        legal.then(|| Self(text.to_owned()))
    }

    /// The mark as it stands in `id="…"`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whoever knows the mark can forge a block, so it does not go into logs.
impl fmt::Debug for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Boundary(…)")
    }
}
