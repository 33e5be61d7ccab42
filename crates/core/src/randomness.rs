//! Random bytes for secrets, from a source that the driver passes in.

use std::fmt;
use std::sync::Arc;

use crate::ids::{STEP, mix};

/// The source of all secrets: boundaries, the hash keys of mailboxes, the seed of ids.
///
/// A hub passes in the operating system's random source. Secrets never come from [`Ids`](crate::Ids): ids are public,
/// and a few of them reveal the state of their generator.
///
/// ```
/// use bellwire_core::Randomness;
///
/// let mut randomness = Randomness::new(|| [7; 16]); // In a program: bytes of the operating system.
/// assert_eq!(randomness.draw(), [7; 16]);
///
/// let [mut one, mut other] = [Randomness::repeatable(1), Randomness::repeatable(1)];
/// assert_eq!([one.draw(), one.draw()], [other.draw(), other.draw()]);
/// ```
#[derive(Clone)]
pub struct Randomness {
    /// The argument is the number of the draw.
    source: Arc<dyn Fn(u64) -> [u8; 16] + Send + Sync>,
    drawn: u64,
}

impl Randomness {
    /// Draws from this source. Each call must return 16 bytes that cannot be predicted from earlier ones.
    pub fn new(source: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        Self { source: Arc::new(move |_| source()), drawn: 0 }
    }

    /// The same bytes for the same seed, for tests and timelines. Not secret: they can be computed from the seed.
    pub fn repeatable(seed: u64) -> Self {
        let nth = move |number: u64| {
            let [high, low] = [seed, STEP].map(|start| mix(start.wrapping_add(STEP.wrapping_mul(number))));
            (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
        };
        Self { source: Arc::new(nth), drawn: 0 }
    }

    /// Returns 16 new bytes, for one secret.
    pub fn draw(&mut self) -> [u8; 16] {
        self.drawn += 1;
        (self.source)(self.drawn)
    }
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness(…)")
    }
}
