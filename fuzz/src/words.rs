//! Templates built from fragments of the language, so that more of them compile than random text would.

use arbitrary::{Arbitrary, Result, Unstructured};

#[rustfmt::skip]
const TAGS: [&str; 40] = [
    "x: ", "\n", "  ", ",", "k[{{ count }}]{a,b}:\n", "k[2]: ", "!critical: ", "# ", "{# {{ #}", "{% for e in events %}",
    "{% for e in events if @ %}", "{% for k in @ %}", "{% for k, v in @ %}", "{% endfor %}", "{% for c in @|upper %}",
    "{% if @ %}", "{% elif @ %}", "{% else %}", "{% endif %}", "{% set a = @ %}", "{% set a = @ %}", "{% set b = @ %}",
    "{% set a, b = @ %}", "{%- set a = a ~ a -%}", "{% break %}", "{% continue %}", "{{ @ }}", "{{ @ }}", "{{- @ -}}",
    "{{ @|join(@) }}", "{{ @|counts(by=@) }}", "{{ @ ~ @ }}", "{{ @ == @ }}", "{% raw %}", "{% endraw %}",
    "{% for x in [1]recursive %}", "{{ loop(@) }}", "{% set a %}", "{% endset %}", "{% with a = @ %}",
];

#[rustfmt::skip]
const VALUES: [&str; 64] = [
    "a", "a", "b", "e", "events", "events[0]", "events[-1]", "events[0:2]", "events[::-1]", "e.payload", "e.payload.a",
    "e.payload.list", "e.payload.map.deep", "e.message", "e.time", "e.repeats", "events[0].payload.text", "subscriber",
    "count", "duplicates", "loop", "loop.index", "loop.last", "loop.cycle(@)", "loop.changed(@)", "@[0]", "@.x", "@[@]",
    "(@)", "(@, @)", "[@, @]", "[1, \"a\"]", "{\"a\": @}", "{\"a\": {}}", "\"}}\"", "'%}'", "\"\\u0001s\\u0002\"", "\"x\"",
    "0", "-1", "1.5", "1e308", "9223372036854775807", "18446744073709551615", "true", "none", "not @", "-@", "@ + 1", "@ + @",
    "@ ~ @", "@ - @", "@ / @", "@ // @", "@ % @", "@ ** @", "@ * @", "@ < @", "@ in @", "@ if @ else @", "@ is defined",
    "@|default(@)", "@ and @ or @", "missing",
];

#[rustfmt::skip]
const FILTERS: [&str; 16] = [
    "|length", "|upper", "|lower", "|trim", "|first", "|last", "|round", "|round(@)", "|join(@)", "|join(\"\")", "|cut(@)",
    "|percent(@)", "|plural(@, @)", "|counts(by=@)", "|counts(by=\"payload.a\")", "|counts(by=\"type\")",
];

/// A template's text.
#[derive(Debug)]
pub struct TemplateText(pub String);

impl<'a> Arbitrary<'a> for TemplateText {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        if u.ratio(1, 4)? {
            let bytes = u.bytes(u.len())?;
            return Ok(Self(String::from_utf8_lossy(bytes).into_owned()));
        }
        let mut text = String::new();
        for _ in 0..u.int_in_range(1..=24)? {
            let piece = fill(u.choose(&TAGS)?, u, 4)?;
            let times = if u.ratio(1, 16)? { u.int_in_range(1..=64)? } else { 1 };
            text.push_str(&piece.repeat(times));
        }
        Ok(Self(text))
    }
}

/// Fills every placeholder with a value.
fn fill(piece: &str, u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    let mut text = String::new();
    for (number, part) in piece.split('@').enumerate() {
        if number > 0 {
            let value = if depth == 0 { "a" } else { u.choose(&VALUES)? };
            text.push_str(&fill(value, u, depth.saturating_sub(1))?);
            if depth > 0 && u.ratio(1, 4)? {
                text.push_str(&fill(u.choose(&FILTERS)?, u, depth - 1)?);
            }
        }
        text.push_str(part);
    }
    Ok(text)
}
