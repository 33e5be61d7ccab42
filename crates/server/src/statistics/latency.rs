use std::time::Duration;

/// The upper bound of the first bucket.
const FIRST_US: f64 = 50.0;
/// The ratio of two bounds: a quantile is exact to a quarter.
const RATIO: f64 = 1.25;
const BUCKETS: usize = 56;

/// A histogram of durations, from 50 microseconds to about ten seconds.
#[derive(Clone, Debug)]
pub(crate) struct Latencies([u32; BUCKETS]);

impl Default for Latencies {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Latencies {
    pub(super) fn add(&mut self, took: Duration) {
        let steps = (took.as_secs_f64() * 1e6 / FIRST_US).max(1.0).log(RATIO).ceil();
        // A float that is too large becomes the largest number.
        let bucket = (steps as usize).min(BUCKETS - 1);
        self.0[bucket] = self.0[bucket].saturating_add(1);
    }

    /// The duration that this part of all did not exceed, in milliseconds; none = there is none.
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let wanted = (all as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.0.iter().position(|count| {
            seen += u64::from(*count);
            all > 0 && seen >= wanted
        })?;
        let millis = FIRST_US * RATIO.powi(i32::try_from(bucket).unwrap_or(0)) / 1_000.0;
        Some((millis * 100.0).round() / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_a_quarter() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        (1..=100).for_each(|millis| latencies.add(Duration::from_millis(millis)));
        latencies.add(Duration::from_secs(3600));
        let near = |part: f64, wanted: f64| {
            let found = latencies.quantile(part).expect("there are some");
            assert!((wanted..wanted * 1.3).contains(&found), "{part}: {found}");
        };
        near(0.5, 50.0);
        near(0.98, 98.0);
        assert!(latencies.quantile(1.0).is_some_and(|most| most > 5_000.0));
        latencies = Latencies::default();
        latencies.add(Duration::ZERO);
        assert_eq!(latencies.quantile(0.99), Some(0.05));
    }
}
