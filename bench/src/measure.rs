//! Timed laps, their best and median, and the printed table.

use std::fmt::Display;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How many laps a run makes.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum RunMode {
    Quick,
    Full,
}

impl RunMode {
    /// The number of laps; at most three in a quick run.
    pub(crate) fn laps(self, full: usize) -> usize {
        match self {
            Self::Quick => full.min(3),
            Self::Full => full,
        }
    }
}

/// The duration of each lap. One lap runs the operation `count` times.
pub(crate) struct Laps {
    count: usize,
    laps: Vec<Duration>,
}

impl Laps {
    pub(crate) fn of(count: usize) -> Self {
        Self { count, laps: Vec::new() }
    }

    pub(crate) fn add(&mut self, lap: Duration) {
        self.laps.push(lap);
    }

    /// Runs one lap. Returns the result through `black_box`, so that the compiler cannot remove the work.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.add(start.elapsed());
        std::hint::black_box(result)
    }

    /// Nanoseconds per operation in the fastest lap.
    pub(crate) fn best(&self) -> f64 {
        self.each(self.laps.iter().min())
    }

    /// Nanoseconds per operation in the median lap.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.laps.clone();
        sorted.sort_unstable();
        self.each(sorted.get(sorted.len() / 2))
    }

    fn each(&self, lap: Option<&Duration>) -> f64 {
        lap.map_or(f64::NAN, |lap| lap.as_secs_f64() * 1e9 / self.count as f64)
    }
}

/// One row of the printed table.
pub(crate) struct TableRow {
    what: String,
    best: String,
    median: String,
    against: String,
    aim: String,
}

impl TableRow {
    /// A row for a deterministic figure, which has no laps.
    pub(crate) fn exact(what: impl Display, figure: impl Display) -> Self {
        let empty = String::new;
        Self { what: what.to_string(), best: figure.to_string(), median: empty(), against: empty(), aim: empty() }
    }

    /// A row for a timed figure; `figure` formats nanoseconds per operation, for example as a rate.
    pub(crate) fn of(what: impl Display, laps: &Laps, figure: impl Fn(f64) -> String) -> Self {
        Self { median: figure(laps.median()), ..Self::exact(what, figure(laps.best())) }
    }

    pub(crate) fn against(self, comparison: impl Display) -> Self {
        Self { against: comparison.to_string(), ..self }
    }

    pub(crate) fn aim<'a>(self, aim: impl Into<Option<&'a str>>) -> Self {
        Self { aim: aim.into().map(|aim| format!("aim {aim}")).unwrap_or_default(), ..self }
    }

    pub(crate) fn print(&self) {
        let Self { what, best, median, against, aim } = self;
        let line = format!("  {what:<44} {best:>20} {median:>20}   {against:<38} {aim}");
        println!("{}", line.trim_end());
    }
}

/// Prints a section's name, what it measures, and the column titles.
pub(crate) fn print_section(name: &str, about: &str) {
    println!("\n{name}: {about}");
    TableRow { median: "median".into(), ..TableRow::exact("", "best") }.print();
}

pub(crate) fn print_header(mode: RunMode) {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split_whitespace().take(3).collect();
    let load = if load.is_empty() { "unknown".to_owned() } else { load.join(" ") };
    println!("bellwire-bench: {cores} cores; load over 1, 5 and 15 minutes: {load}");
    println!("Figures taken beside a compile are wrong: believe a run that began with a load near zero.");
    if mode == RunMode::Quick {
        println!("This is a quick run: too few laps to believe any of it.");
    }
    if cfg!(debug_assertions) {
        println!("This was built without --release: it says nothing about speed.");
    }
}

/// Formats nanoseconds per operation as `1 234 567 events/s`.
pub(crate) fn per_second(unit: &'static str) -> impl Fn(f64) -> String {
    move |nanos| format!("{} {unit}/s", grouped(1e9 / nanos))
}

/// `1 234 ns`.
pub(crate) fn nanos(nanos: f64) -> String {
    format!("{} ns", grouped(nanos))
}

/// Rounds to an integer and separates its thousands with spaces.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_is_the_shortest_lap_and_median_the_middle_one() {
        let mut laps = Laps::of(10);
        [50, 20, 900].into_iter().for_each(|micros| laps.add(Duration::from_micros(micros)));
        assert_eq!((laps.best(), laps.median()), (2_000.0, 5_000.0));
    }

    #[test]
    fn thousands_are_separated_by_spaces() {
        assert_eq!(["7", "999", "1 000", "1 234 567"], [7.0, 999.0, 1e3, 1_234_567.0].map(grouped));
    }
}
