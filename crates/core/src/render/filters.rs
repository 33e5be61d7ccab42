//! What a template can do with a value. No filter gives back more than it was given.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, filters, tests};
use serde_json::Number;

use super::render_budget::RenderBudget;
use super::toon::Scalar;
use super::view::clipped;
use crate::event::{cut, cut_display};

/// Adds every filter and test there is.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    environment.add_filter("default", default);
    environment.add_filter("length", filters::length);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("round", filters::round);
    environment.add_filter("upper", |state: &State, value: Value| Ok(text(state, &value)?.to_uppercase()));
    environment.add_filter("lower", |state: &State, value: Value| Ok(text(state, &value)?.to_lowercase()));
    environment.add_filter("trim", |state: &State, value: Value| Ok(text(state, &value)?.trim().to_owned()));
    environment.add_filter("cut", |state: &State, value: Value, length: usize| Ok(cut(&text(state, &value)?, length)));
    environment.add_filter("join", join);
    environment.add_filter("percent", percent);
    environment.add_filter("plural", plural);
    environment.add_filter("counts", counts);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("none", tests::is_none);
}

/// What an interpolated value is in a cell: scalars keep their type, everything else is its JSON as text.
pub(super) fn scalar(state: &State<'_, '_>, value: &Value) -> Result<Scalar, Error> {
    Ok(match value.kind() {
        ValueKind::None => Scalar::Null,
        ValueKind::Bool => Scalar::Bool(value.is_true()),
        ValueKind::Number => {
            let unsigned = || u64::try_from(value.clone()).ok().map(Number::from);
            let float = || f64::try_from(value.clone()).ok().and_then(Number::from_f64);
            value.as_i64().map(Number::from).or_else(unsigned).or_else(float).map_or(Scalar::Null, Scalar::Number)
        }
        _ => Scalar::Text(text(state, value)?),
    })
}

/// A value as text, no longer than is shown; looking at it is counted.
fn text(state: &State<'_, '_>, value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(ErrorKind::UndefinedError.into());
    }
    let budget = RenderBudget::of(state);
    let text = match value.as_str() {
        Some(text) => clipped(text, budget.text_max),
        None => cut_display(value, budget.text_max),
    };
    budget.try_read(text.len())?;
    Ok(text)
}

/// The value, or what stands in for it where it is missing; null is as good as missing.
fn default(value: Value, instead: Value) -> Value {
    if value.is_undefined() || value.is_none() { instead } else { value }
}

/// The elements with a separator between them, cut where it gets long.
fn join(state: &State<'_, '_>, values: Value, separator: &str) -> Result<String, Error> {
    let (mut joined, max) = (String::new(), RenderBudget::of(state).text_max);
    for (number, value) in values.try_iter()?.enumerate() {
        if number > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&text(state, &value)?);
        if joined.len() > max {
            return Ok(cut(&joined, max));
        }
    }
    Ok(joined)
}

/// How many percent of the whole a part is, rounded down.
fn percent(part: f64, whole: f64) -> Result<i64, Error> {
    match whole > 0.0 && part >= 0.0 {
        true => Ok((part * 100.0 / whole) as i64),
        false => Err(Error::new(ErrorKind::InvalidOperation, "percent needs a whole above zero")),
    }
}

/// `1 file`, `2 files`.
fn plural(state: &State<'_, '_>, count: i64, one: &str, many: &str) -> String {
    format!("{count} {}", cut(if count == 1 { one } else { many }, RenderBudget::of(state).text_max))
}

/// How often each value of a field occurs among the events, as `[name, times]`, most frequent first.
fn counts(state: &State<'_, '_>, values: Value, options: Kwargs) -> Result<Vec<Value>, Error> {
    let path: &str = options.get("by")?;
    options.assert_all_used()?;
    let mut counted: Vec<(String, u64)> = Vec::new();
    for value in values.try_iter()? {
        let repeats = value.get_attr("repeats").ok().and_then(|repeats| repeats.as_i64()).unwrap_or(0);
        let times = 1 + u64::try_from(repeats).unwrap_or(0);
        let field = path.split('.').try_fold(value, |value, part| value.get_attr(part))?;
        let name = if field.is_undefined() { "other".to_owned() } else { text(state, &field)? };
        // Every name known so far is compared with it.
        RenderBudget::of(state).try_read(16 * counted.len())?;
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count = count.saturating_add(times),
            None => counted.push((name, times)),
        }
    }
    counted.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    Ok(counted.into_iter().map(|(name, times)| Value::from(vec![Value::from(name), Value::from(times)])).collect())
}
