//! Quiet hours: the daily window in which a person does not want to be reached.
//!
//! A person writes two wall-clock times and a time zone, "22:00 to 07:00 in Europe/Berlin". This module answers whether
//! an instant lies in such a night and, if so, when the night ends. It is not a policy: which channels are held, which
//! severities pass anyway and what becomes of held mail is decided by the caller.
//!
//! **The window is a pair of instants, never a comparison of wall clocks.** Each calendar day of the zone has one
//! window, `start` inclusive to `end` exclusive, ending on the next day when `start` is later than `end`. Both times
//! become instants first, by the rule of RFC 5545 and Temporal's "compatible": a time that the clock skips moves later
//! by the size of the gap, a time that occurs twice means its first occurrence. Only then is `now` compared. Hence:
//!
//! - A window lasts as long as the clocks make it: 22:00 to 07:00 is eight hours when they go forward, ten when back.
//! - A night that ended in a repeated hour does not begin again in the second occurrence of that hour.
//! - If a skipped `start` moves past `end`, that day's window is empty. A whole day that the zone skipped
//!   (Pacific/Apia, 2011-12-30) has no night of its own, and the night before runs on into the day that follows.
//! - If a skipped `end` moves past the next `start`, the two windows are one quiet time.
//!
//! The zones are compiled in, so every machine gives the same answer. They cover the years -9999 to 9999; an instant
//! outside of them is never quiet.
//!
//! ```
//! use bellwire_core::{Time, quiet::QuietHours};
//!
//! let nights = QuietHours::parse("22:00", "07:00", "Europe/Berlin")?;
//!
//! // Midnight in Berlin, in the night that loses an hour.
//! let midnight: Time = "2026-03-28T23:00:00Z".parse()?;
//! let morning: Time = "2026-03-29T05:00:00Z".parse()?;
//!
//! assert_eq!(nights.quiet_until(midnight), Some(morning));
//! assert_eq!(nights.quiet_until(morning), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{error, fmt, iter, ops::Range};

use jiff::{
    Span, Timestamp, civil,
    tz::{TimeZone, TimeZoneDatabase},
};

use crate::Time;

/// How many days before today a window may have begun and still be open: the one of yesterday, or of the day before
/// when the zone skipped the day between.
const DAYS_BACK_MAX: i64 = 2;

/// How many characters of a refused value an error repeats.
const SHOWN_MAX: usize = 40;

/// A daily window of wall-clock time in one time zone. See the [module](self) for what the window means.
///
/// Displays as `22:00 to 07:00 Europe/Berlin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietHours {
    start: civil::Time,
    end: civil::Time,
    zone: TimeZone,
}

impl QuietHours {
    /// Parses the quiet hours of a person's settings.
    ///
    /// `start` and `end` are `HH:MM` with two digits each, `00:00` to `23:59`. They must differ: equal times could mean
    /// never or always, and a wrong guess either wakes someone or silences everything. `timezone` is a name of the IANA
    /// database in any letter case, including its older names (`US/Eastern`) and its fixed zones (`UTC`, `Etc/GMT+5`);
    /// a bare offset or a POSIX rule is refused, as it cannot follow a country that changes its clocks.
    ///
    /// # Errors
    ///
    /// The first of `start`, `end`, `timezone` that cannot be used.
    pub fn parse(start: &str, end: &str, timezone: &str) -> Result<Self, QuietError> {
        let (first, last) = (time_of_day("start", start)?, time_of_day("end", end)?);
        if first == last {
            let minute_before = clock(last.wrapping_sub(Span::new().minutes(1)));
            return Err(QuietError::SameTimes { value: shown(end), minute_before });
        }
        Ok(Self { start: first, end: last, zone: zone_named(timezone)? })
    }

    /// The first instant at which the person may be reached, or `None` if that is `now`.
    ///
    /// `Some(t)` is always later than `now`, and `t` itself is not quiet: where one window runs into the next, as a
    /// clock change can make it, `t` is the end of the last one.
    pub fn quiet_until(&self, now: Time) -> Option<Time> {
        // Start and end differ, so windows join only at a clock change and the chain is short.
        let mut until = now;
        while let Some(window) = self.window_around(until) {
            until = window.end;
        }
        (until > now).then_some(until)
    }

    /// The name of the time zone as the database spells it.
    pub fn timezone(&self) -> &str {
        self.zone.iana_name().expect("zone_named accepts only zones with a name")
    }

    fn window_around(&self, now: Time) -> Option<Range<Time>> {
        self.windows_near(now).take_while(|window| window.start <= now).find(|window| window.contains(&now))
    }

    /// The windows from the earliest that can contain `now` to the end of the calendar, in the order of their starts.
    fn windows_near(&self, now: Time) -> impl Iterator<Item = Range<Time>> {
        let today = self.zone.to_datetime(timestamp(now)).date();
        let first = today.saturating_sub(Span::new().days(DAYS_BACK_MAX));
        iter::successors(Some(first), |date| date.tomorrow().ok()).filter_map(|date| self.window(date))
    }

    fn window(&self, date: civil::Date) -> Option<Range<Time>> {
        let last = if self.start < self.end { date } else { date.tomorrow().ok()? };
        let window = self.instant(date, self.start)?..self.instant(last, self.end)?;
        (!window.is_empty()).then_some(window)
    }

    fn instant(&self, date: civil::Date, time: civil::Time) -> Option<Time> {
        let instant = self.zone.to_ambiguous_timestamp(date.to_datetime(time)).compatible().ok()?;
        Some(Time::from_millis(instant.as_millisecond()))
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {} {}", clock(self.start), clock(self.end), self.timezone())
    }
}

/// Why quiet hours were refused. Displays as a sentence: the field, the refused value (cut if it is long), what is
/// allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuietError {
    /// `start` or `end` is not a time of day.
    NotATime {
        /// `start` or `end`.
        field: &'static str,
        /// The refused value.
        value: String,
    },
    /// `start` and `end` are the same time.
    SameTimes {
        /// The refused value of both.
        value: String,
        /// The `end` of the longest window that has this `start`.
        minute_before: String,
    },
    /// `timezone` names no zone of the IANA database.
    UnknownZone {
        /// The refused value.
        value: String,
    },
}

impl QuietError {
    /// The field to correct: `start`, `end` or `timezone`.
    pub fn field(&self) -> &'static str {
        match self {
            Self::NotATime { field, .. } => field,
            Self::SameTimes { .. } => "end",
            Self::UnknownZone { .. } => "timezone",
        }
    }
}

impl fmt::Display for QuietError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.field())?;
        match self {
            Self::NotATime { value, .. } => {
                write!(f, "{value:?} is not a time of day; write HH:MM, from \"00:00\" (midnight) to \"23:59\"")
            }
            Self::SameTimes { value, minute_before } => write!(
                f,
                "{value:?} is also the start, which could mean never or always; set quiet_hours to \
                 null for never, or end to {minute_before:?} for all but one minute of the day"
            ),
            Self::UnknownZone { value } => write!(
                f,
                "{value:?} is not a known time zone; write an IANA name such as \
                 \"Europe/Berlin\" or \"UTC\", not an offset or a POSIX rule"
            ),
        }
    }
}

impl error::Error for QuietError {}

fn time_of_day(field: &'static str, value: &str) -> Result<civil::Time, QuietError> {
    two_by_two_digits(value)
        .and_then(|(hour, minute)| civil::Time::new(hour, minute, 0, 0).ok())
        .ok_or_else(|| QuietError::NotATime { field, value: shown(value) })
}

fn two_by_two_digits(value: &str) -> Option<(i8, i8)> {
    let &[h1, h2, b':', m1, m2] = value.as_bytes() else {
        return None;
    };
    let pair = |tens: u8, ones: u8| {
        let both = tens.is_ascii_digit() && ones.is_ascii_digit();
        both.then(|| (10 * (tens - b'0') + (ones - b'0')) as i8)
    };
    Some((pair(h1, h2)?, pair(m1, m2)?))
}

fn zone_named(value: &str) -> Result<TimeZone, QuietError> {
    // The library has no name for "Etc/Unknown", and "Factory" is the database's entry for an unset clock. Both would be
    // treated as UTC.
    TimeZoneDatabase::bundled()
        .get(value)
        .ok()
        .filter(|zone| zone.iana_name().is_some_and(|name| name != "Factory"))
        .ok_or_else(|| QuietError::UnknownZone { value: shown(value) })
}

fn clock(time: civil::Time) -> String {
    format!("{:02}:{:02}", time.hour(), time.minute())
}

fn shown(value: &str) -> String {
    match value.char_indices().nth(SHOWN_MAX) {
        Some((cut, _)) => format!("{}...", &value[..cut]),
        None => value.to_owned(),
    }
}

/// The instant, limited to the calendar's range.
fn timestamp(time: Time) -> Timestamp {
    let nearest = if time.as_millis() < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(time.as_millis()).unwrap_or(nearest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    /// Reads `22:00 07:00 Europe/Berlin`.
    fn hours(text: &str) -> QuietHours {
        let words: Vec<&str> = text.split(' ').collect();
        QuietHours::parse(words[0], words[1], words[2]).expect("the test writes valid hours")
    }

    fn at(text: &str) -> Time {
        text.parse().expect("the test writes a valid instant")
    }

    fn before(time: Time, millis: i64) -> Time {
        Time::from_millis(time.as_millis() - millis)
    }

    /// Checks a window, its first day and the hours, and that `quiet_until` agrees with it.
    #[track_caller]
    fn check(text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let [date, start, end, zone, "ends", instant, "after", minutes, "min"] = words[..] else {
            panic!("unreadable: {text}");
        };
        let date: civil::Date = date.parse().expect("the test writes a valid date");
        let minutes: u64 = minutes.parse().expect("the test writes a valid number");
        let hours = QuietHours::parse(start, end, zone).expect("the test writes valid hours");
        let window = hours.window(date).expect("the window is not empty");

        assert_eq!(window.end.to_string(), at(instant).to_string());
        assert_eq!(window.end.millis_since(window.start), minutes * 60_000);
        assert_eq!(hours.quiet_until(before(window.start, 1)), None);
        assert_eq!(hours.quiet_until(window.start), Some(window.end));
        assert_eq!(hours.quiet_until(before(window.end, 1)), Some(window.end));
        assert_eq!(hours.quiet_until(window.end), None);
    }

    #[test]
    fn berlin_spring_night_is_an_hour_short() {
        check("2026-03-28 22:00 07:00 Europe/Berlin ends 2026-03-29T05:00Z after 480 min");
    }

    #[test]
    fn berlin_autumn_night_is_an_hour_long() {
        check("2026-10-24 22:00 07:00 Europe/Berlin ends 2026-10-25T06:00Z after 600 min");
    }

    #[test]
    fn berlin_end_in_the_gap_moves_later() {
        check("2026-03-28 22:00 02:30 Europe/Berlin ends 2026-03-29T01:30Z after 270 min");
    }

    #[test]
    fn berlin_end_in_the_fold_is_its_first_occurrence() {
        check("2026-10-24 22:00 02:30 Europe/Berlin ends 2026-10-25T00:30Z after 270 min");
    }

    #[test]
    fn new_york_end_in_the_gap_moves_later() {
        check("2026-03-07 22:00 02:30 America/New_York ends 2026-03-08T07:30Z after 270 min");
    }

    #[test]
    fn new_york_end_in_the_fold_is_its_first_occurrence() {
        check("2026-10-31 22:00 01:30 America/New_York ends 2026-11-01T05:30Z after 210 min");
    }

    #[test]
    fn lord_howe_gap_is_half_an_hour() {
        check("2026-10-03 22:00 02:15 Australia/Lord_Howe ends 2026-10-03T15:45Z after 255 min");
    }

    #[test]
    fn santiago_has_no_midnight_in_spring() {
        check("2026-09-05 20:00 00:00 America/Santiago ends 2026-09-06T04:00Z after 240 min");
    }

    #[test]
    fn santiago_end_in_the_fold_before_midnight() {
        check("2026-04-04 20:00 23:30 America/Santiago ends 2026-04-05T02:30Z after 210 min");
    }

    #[test]
    fn the_repeated_hour_is_not_quiet_again() {
        // 02:10 for the second time, when a wall clock would still say "before 02:30".
        let berlin = hours("22:00 02:30 Europe/Berlin");
        assert_eq!(berlin.quiet_until(at("2026-10-25T01:10Z")), None);
    }

    #[test]
    fn a_start_in_the_gap_moves_later() {
        check("2026-03-29 02:30 07:00 Europe/Berlin ends 2026-03-29T05:00Z after 210 min");
    }

    #[test]
    fn a_start_in_the_fold_is_its_first_occurrence() {
        check("2026-10-25 02:30 07:00 Europe/Berlin ends 2026-10-25T06:00Z after 330 min");
    }

    #[test]
    fn a_window_that_lies_in_the_gap_moves_as_a_whole() {
        check("2026-03-29 02:10 02:50 Europe/Berlin ends 2026-03-29T01:50Z after 40 min");
    }

    #[test]
    fn a_start_that_moves_past_the_end_empties_the_night() {
        let berlin = hours("02:30 03:15 Europe/Berlin");
        assert_eq!(berlin.window(civil::date(2026, 3, 29)), None);
        assert_eq!(berlin.quiet_until(at("2026-03-29T01:10Z")), None);
    }

    #[test]
    fn an_end_that_moves_past_the_next_start_joins_two_windows() {
        // The window of the 28th ends at 02:30, which becomes 03:30; the next begins at 03:00.
        let berlin = hours("03:00 02:30 Europe/Berlin");
        let noon = at("2026-03-28T11:00Z");
        assert_eq!(berlin.quiet_until(noon), Some(at("2026-03-30T00:30Z")));
    }

    #[test]
    fn a_skipped_day_has_no_night_and_the_one_before_runs_on() {
        // Apia went from the end of the 29th straight to the 31st.
        check("2011-12-29 22:00 07:00 Pacific/Apia ends 2011-12-30T17:00Z after 540 min");
        assert_eq!(hours("22:00 07:00 Pacific/Apia").window(civil::date(2011, 12, 30)), None);
        check("2011-12-31 22:00 07:00 Pacific/Apia ends 2011-12-31T17:00Z after 540 min");
    }

    #[test]
    fn a_window_by_day_moves_from_a_skipped_day_to_the_next() {
        check("2011-12-30 09:00 17:00 Pacific/Apia ends 2011-12-31T03:00Z after 480 min");
        check("2011-12-31 09:00 17:00 Pacific/Apia ends 2011-12-31T03:00Z after 480 min");
    }

    #[test]
    fn a_night_that_begins_in_a_repeated_day_lasts_through_the_repetition() {
        // Kwajalein crossed the date line at the end of 1969-09-30 and lived most of it again.
        check("1969-09-29 22:00 07:00 Pacific/Kwajalein ends 1969-09-29T20:00Z after 540 min");
        check("1969-09-30 22:00 07:00 Pacific/Kwajalein ends 1969-10-01T19:00Z after 1920 min");
        check("1969-10-01 22:00 07:00 Pacific/Kwajalein ends 1969-10-02T19:00Z after 540 min");
    }

    #[test]
    fn a_window_within_one_day_leaves_the_night_alone() {
        check("2026-07-01 13:00 15:30 Europe/Madrid ends 2026-07-01T13:30Z after 150 min");
        let siesta = hours("13:00 15:30 Europe/Madrid");
        assert_eq!(siesta.quiet_until(at("2026-07-01T23:00Z")), None);
    }

    #[test]
    fn instants_outside_the_calendar_are_never_quiet() {
        let berlin = hours("00:01 00:00 Europe/Berlin");
        for millis in [i64::MAX, i64::MAX - 1, 400_000_000_000_000] {
            let now = Time::from_millis(millis);
            assert_eq!(berlin.quiet_until(now), None);
        }
        let dawn = Time::from_millis(i64::MIN);
        assert_eq!(berlin.quiet_until(dawn), None);
    }

    #[test]
    fn times_of_day_have_two_digits_each_and_no_seconds() {
        let long = ["07:00:00", "07:00 ", " 07:00", "07:000", "007:00"];
        let short = ["", "7:00", "07:0", "0700"];
        let wrong = ["24:00", "07:60", "07-00", "+7:00", " 7:00", "0a:00"];
        for value in long.iter().chain(&short).chain(&wrong) {
            let start = QuietHours::parse(value, "07:00", "UTC").expect_err(value);
            let end = QuietHours::parse("22:00", value, "UTC").expect_err(value);
            assert_eq!((start.field(), end.field()), ("start", "end"));
        }
    }

    #[test]
    fn a_zone_must_be_in_the_iana_database() {
        let offsets = ["+02:00", "-05", "UTC+2", "Z"];
        let rules = ["CET-1CEST,M3.5.0,M10.5.0/3", "<+02>-2", ":UTC"];
        let unknown = ["Europe/Bonn", "Etc/Unknown", "Factory", "", " UTC"];
        for value in offsets.iter().chain(&rules).chain(&unknown) {
            let refused = QuietHours::parse("22:00", "07:00", value).expect_err(value);
            assert_eq!(refused.field(), "timezone");
        }
        for value in ["UTC", "US/Eastern", "Etc/GMT+5", "Asia/Kathmandu"] {
            assert_eq!(hours(&format!("22:00 07:00 {value}")).timezone(), value);
        }
        assert_eq!(hours("22:00 07:00 europe/BERLIN").timezone(), "Europe/Berlin");
    }

    #[test]
    fn it_displays_as_start_to_end_and_zone() {
        let text = hours("22:00 07:05 Asia/Tokyo").to_string();
        assert_eq!(text, "22:00 to 07:05 Asia/Tokyo");
    }

    #[test]
    fn errors_name_the_field_the_value_and_what_is_allowed() {
        let message = |start, end, zone| {
            let refused = QuietHours::parse(start, end, zone);
            refused.expect_err("the test writes wrong hours").to_string()
        };
        assert_eq!(
            message("24:00", "07:00", "UTC"),
            "start: \"24:00\" is not a time of day; \
             write HH:MM, from \"00:00\" (midnight) to \"23:59\""
        );
        assert_eq!(
            message("00:00", "00:00", "UTC"),
            "end: \"00:00\" is also the start, which could mean never or always; set quiet_hours \
             to null for never, or end to \"23:59\" for all but one minute of the day"
        );
        assert_eq!(
            message("22:00", "07:00", "+02:00"),
            "timezone: \"+02:00\" is not a known time zone; write an IANA name such as \
             \"Europe/Berlin\" or \"UTC\", not an offset or a POSIX rule"
        );
    }

    #[test]
    fn errors_repeat_only_the_beginning_of_a_long_value() {
        let refused = QuietHours::parse("22:00", "07:00", &"é".repeat(10_000));
        let value = format!("{}...", "é".repeat(SHOWN_MAX));
        assert_eq!(refused, Err(QuietError::UnknownZone { value }));
    }

    /// Zones with changes at midnight, of half an hour, of two hours, of a day, and none at all.
    fn any_zone() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            Just("UTC"),
            Just("Africa/Cairo"),
            Just("Africa/Casablanca"),
            Just("America/New_York"),
            Just("America/Santiago"),
            Just("America/Sao_Paulo"),
            Just("America/St_Johns"),
            Just("Antarctica/Troll"),
            Just("Asia/Kathmandu"),
            Just("Asia/Pyongyang"),
            Just("Asia/Tehran"),
            Just("Australia/Lord_Howe"),
            Just("Europe/Berlin"),
            Just("Europe/Dublin"),
            Just("Pacific/Apia"),
        ]
    }

    /// Half of the windows begin or end in the small hours, where most clocks change.
    fn any_hours() -> impl Strategy<Value = QuietHours> {
        let minute = || prop_oneof![0..1440, 0..240];
        let parts = (minute(), minute(), any_zone());
        parts.prop_filter_map("start equals end", |(start, end, zone)| {
            let clock = |minute: i32| format!("{:02}:{:02}", minute / 60, minute % 60);
            QuietHours::parse(&clock(start), &clock(end), zone).ok()
        })
    }

    /// An instant of the years 2000 to 2040, half of the time within two days of a clock change.
    fn hours_and_now() -> impl Strategy<Value = (QuietHours, Time)> {
        let years = at("2000-01-01T00:00Z").as_millis()..at("2041-01-01T00:00Z").as_millis();
        let nearness = proptest::option::of(-48 * HOUR_MS..48 * HOUR_MS);
        (any_hours(), years, nearness).prop_map(|(hours, millis, nearness)| {
            let now = Time::from_millis(millis);
            let change = hours.zone.following(timestamp(now)).next();
            let change = change.map(|change| change.timestamp().as_millisecond());
            let near = change.zip(nearness).map(|(change, by)| change + by);
            (hours, near.map_or(now, Time::from_millis))
        })
    }

    fn windows_around(hours: &QuietHours, now: Time) -> Vec<Range<Time>> {
        let today = hours.zone.to_datetime(timestamp(now)).date();
        let date = |days: i32| today.saturating_add(Span::new().days(days));
        (-5..=5).filter_map(|days| hours.window(date(days))).collect()
    }

    fn between(a: Time, b: Time) -> Time {
        Time::from_millis(a.as_millis().midpoint(b.as_millis()))
    }

    proptest! {
        #[test]
        fn it_is_quiet_exactly_inside_the_windows((hours, now) in hours_and_now()) {
            let inside = windows_around(&hours, now).iter().any(|window| window.contains(&now));
            prop_assert_eq!(hours.quiet_until(now).is_some(), inside);
        }

        #[test]
        fn quiet_ends_at_the_first_instant_that_is_not_quiet((hours, now) in hours_and_now()) {
            if let Some(until) = hours.quiet_until(now) {
                prop_assert!(until > now);
                prop_assert_eq!(hours.quiet_until(until), None);
                prop_assert_eq!(hours.quiet_until(before(until, 1)), Some(until));
                prop_assert_eq!(hours.quiet_until(between(now, until)), Some(until));
            }
        }

        #[test]
        fn windows_begin_in_the_order_of_their_days((hours, now) in hours_and_now()) {
            prop_assert!(windows_around(&hours, now).is_sorted_by_key(|window| window.start));
        }

        #[test]
        fn edges_are_exact_unless_windows_overlap((hours, now) in hours_and_now()) {
            for pair in windows_around(&hours, now).windows(2) {
                let (window, next) = (&pair[0], &pair[1]);
                prop_assert!(hours.quiet_until(window.start) >= Some(window.end));
                if window.end < next.start {
                    prop_assert_eq!(hours.quiet_until(before(window.end, 1)), Some(window.end));
                    prop_assert_eq!(hours.quiet_until(window.end), None);
                    prop_assert_eq!(hours.quiet_until(before(next.start, 1)), None);
                }
            }
        }

        #[test]
        fn far_from_a_clock_change_a_wall_clock_agrees((hours, now) in hours_and_now()) {
            let days_ago = |days: i64| timestamp(before(now, days * 24 * HOUR_MS));
            let offset = |days| hours.zone.to_offset(days_ago(days));
            if (-3..=3).all(|days| offset(days) == offset(0)) {
                let wall = hours.zone.to_datetime(timestamp(now)).time();
                let (begun, ended) = (hours.start <= wall, hours.end <= wall);
                let one_day = hours.start < hours.end;
                let quiet = if one_day { begun && !ended } else { begun || !ended };
                prop_assert_eq!(hours.quiet_until(now).is_some(), quiet);
            }
        }

        #[test]
        fn no_instant_panics(hours in any_hours(), now in any::<i64>()) {
            let now = Time::from_millis(now);
            prop_assert!(hours.quiet_until(now).is_none_or(|until| until > now));
        }

        #[test]
        fn no_text_panics(time in ".*", zone in ".*") {
            prop_assert!(QuietHours::parse(&time, &time, "UTC").is_err());
            let _ = QuietHours::parse("22:00", "07:00", &zone);
        }
    }
}
