//! The filters and tests of templates. No filter returns more data than it was given.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, filters, tests};
use serde_json::Number;

use super::render_budget::RenderBudget;
use super::toon::Scalar;
use super::view::clipped;
use crate::event::{cut, cut_display};

/// Registers every filter and test.
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

/// An interpolated value as a table cell: scalars keep their type, everything else becomes JSON text.
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

/// A value as text, cut to the shown length. Reading it spends the budget.
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

/// The value, or `instead` if it is missing or null.
fn default(value: Value, instead: Value) -> Value {
    if value.is_undefined() || value.is_none() { instead } else { value }
}

/// Joins the elements with a separator; cuts the result at the shown length.
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

/// The part as a percentage of the whole, rounded down.
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
        // Comparing the value with every name counted so far costs budget.
        RenderBudget::of(state).try_read(16 * counted.len())?;
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count = count.saturating_add(times),
            None => counted.push((name, times)),
        }
    }
    counted.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    Ok(counted.into_iter().map(|(name, times)| Value::from(vec![Value::from(name), Value::from(times)])).collect())
}
