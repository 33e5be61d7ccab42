use anyhow::{Context as _, Result, bail};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// A flag's value as an RFC 3339 time in the future: such a time itself, or a span after `now`.
pub(super) fn parse_time(flag: &str, when: &str, now: Timestamp) -> Result<String> {
    if let Ok(at) = when.parse::<Timestamp>() {
        if at <= now {
            bail!("{flag} {when} has passed");
        }
        return Ok(at.to_string());
    }
    shifted(flag, parse_span(flag, when)?, now)
}

/// A flag's value as an RFC 3339 time in the past: such a time itself, or a span before `now`.
pub(super) fn parse_past(flag: &str, when: &str, now: Timestamp) -> Result<String> {
    match when.parse::<Timestamp>() {
        Ok(at) if at > now => bail!("{flag} {when} has not come yet"),
        Ok(at) => Ok(at.to_string()),
        Err(_) => shifted(flag, parse_span(flag, when)?.negate(), now),
    }
}

fn parse_span(flag: &str, when: &str) -> Result<Span> {
    let span = when.parse().ok().filter(|span: &Span| span.is_positive());
    span.with_context(|| format!("{flag} is '{when}'; write 12h, 30d, 1y or a time such as 2027-01-01T00:00:00Z"))
}

fn shifted(flag: &str, span: Span, now: Timestamp) -> Result<String> {
    let at = now.to_zoned(TimeZone::UTC).checked_add(span).with_context(|| format!("{flag} is too far away"))?;
    Ok(at.timestamp().round(jiff::Unit::Second)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-03T15:30:00Z".parse().expect("a time")
    }

    #[test]
    fn a_time_is_absolute_or_a_span_from_now() {
        assert_eq!(parse_time("--at", "12h", now()).expect("a span"), "2026-01-04T03:30:00Z");
        assert_eq!(parse_time("--at", "30d", now()).expect("a span"), "2026-02-02T15:30:00Z");
        assert_eq!(parse_time("--at", "2027-01-01T00:00:00Z", now()).expect("a time"), "2027-01-01T00:00:00Z");
        for wrong in ["soon", "-1d", "2025-01-01T00:00:00Z", ""] {
            assert!(parse_time("--at", wrong, now()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_past_time_is_absolute_or_a_span_before_now() {
        assert_eq!(parse_past("--since", "1h", now()).expect("a span"), "2026-01-03T14:30:00Z");
        assert_eq!(parse_past("--since", "2d", now()).expect("a span"), "2026-01-01T15:30:00Z");
        assert_eq!(parse_past("--since", "2026-01-03T16:00:00+01:00", now()).expect("a time"), "2026-01-03T15:00:00Z");
        for wrong in ["yesterday", "-1d", "2027-01-01T00:00:00Z", "99999y", ""] {
            assert!(parse_past("--since", wrong, now()).is_err(), "{wrong}");
        }
    }
}
