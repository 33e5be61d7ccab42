//! Random bits for secrets, from a source that the driver hands in.

use std::fmt;
use std::sync::Arc;

use crate::ids::{STEP, mix};

/// Where secrets come from: boundaries, the keys of mailboxes' hashes, the seed of ids.
///
/// A hub hands in the operating system's randomness. Secrets never come from [`Ids`](crate::Ids): ids are shown to
/// everyone, and the state of their generator follows from a few of them.
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
    /// Given the number of the draw.
    source: Arc<dyn Fn(u64) -> [u8; 16] + Send + Sync>,
    drawn: u64,
}

impl Randomness {
    /// Secrets from this source. Each call must give 16 bytes that nobody can predict from earlier ones.
    pub fn new(source: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        Self { source: Arc::new(move |_| source()), drawn: 0 }
    }

    /// The same bytes for the same seed, for tests and timelines. Whoever knows the seed knows them all.
    pub fn repeatable(seed: u64) -> Self {
        let nth = move |number: u64| {
            let [high, low] = [seed, STEP].map(|start| mix(start.wrapping_add(STEP.wrapping_mul(number))));
            (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
        };
        Self { source: Arc::new(nth), drawn: 0 }
    }

    /// 16 bytes for one secret.
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
