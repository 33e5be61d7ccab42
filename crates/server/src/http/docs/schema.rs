//! JSON schemas as HTML: the type, its constraints, and the fields as a table.

use serde_json::Value;

use super::super::field::{NO_CONTROLS, NOT_BLANK};
use super::{add, escape, inline, list, text};

/// The schema's entry in the table of contents.
pub(super) fn link(name: &str) -> String {
    format!("<li data-words=\"{}\"><a class=\"shape\" href=\"#shape-{name}\">{name}</a></li>", name.to_lowercase())
}

/// The section of a named schema.
pub(super) fn article(name: &str, schema: &Value) -> String {
    let mut html = format!(
        "<article id=\"shape-{name}\" data-words=\"{}\"><h3><a href=\"#shape-{name}\">{name}</a></h3><p>{}</p>",
        name.to_lowercase(),
        inline(text(&schema["description"]))
    );
    match schema.get("properties") {
        Some(_) => html += &fields(schema, &format!("Fields of {name}")),
        None => add(&mut html, format_args!("<p>{}</p>", kind(schema))),
    }
    html + "</article>\n"
}

/// The table of an object's fields; empty if the schema has none.
pub(super) fn fields(schema: &Value, label: &str) -> String {
    let required: Vec<&str> = list(&schema["required"]).map(text).collect();
    let mut rows = String::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let need = if required.contains(&name.as_str()) { "required" } else { "optional" };
        add(
            &mut rows,
            format_args!(
                "<tr><th scope=\"row\"><code>{}</code><span class=\"need\">{need}</span></th>\
                 <td class=\"kind\">{}</td><td>{}</td></tr>",
                escape(name),
                kind(field),
                inline(text(&field["description"]))
            ),
        );
    }
    if rows.is_empty() { rows } else { table(["Field", "Value", "Meaning"], &rows, label) }
}

/// A table that scrolls horizontally if it is too wide.
pub(super) fn table(columns: [&str; 3], rows: &str, label: &str) -> String {
    let [first, second, third] = columns;
    format!(
        "<div class=\"wide\" role=\"group\" tabindex=\"0\" aria-label=\"{label}\"><table><thead><tr>\
         <th scope=\"col\">{first}</th><th scope=\"col\">{second}</th><th scope=\"col\">{third}</th></tr></thead>\
         <tbody>{rows}</tbody></table></div>"
    )
}

/// A short description of a value's type and constraints.
pub(super) fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("<a href=\"#shape-{name}\">{name}</a>");
    }
    if let Some(value) = schema.get("const") {
        return format!("always <code>{}</code>", escape(&value.to_string()));
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("<code>{}</code>", escape(text(word)))).collect();
        let null = list(&schema["type"]).any(|kind| kind == "null");
        return format!("{}{}", words.join(", "), if null { " or null" } else { "" });
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return parts.iter().map(kind).collect::<Vec<_>>().join(" and ");
    }
    if let Some(choices) = schema["anyOf"].as_array().filter(|_| schema.get("type").is_none()) {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let names: Vec<String> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(|kind| named(text(kind), schema)).collect(),
        Value::String(kind) => vec![named(kind, schema)],
        _ => vec!["any JSON".to_owned()],
    };
    let rules = rules(schema);
    let rules = if rules.is_empty() { rules } else { format!("<br><span class=\"rule\">{rules}</span>") };
    format!("{}{rules}", names.join(" or "))
}

fn named(kind: &str, schema: &Value) -> String {
    match (kind, schema["format"].as_str()) {
        ("string", Some("date-time")) => "time, RFC 3339".to_owned(),
        ("string", Some("uuid")) => "UUID".to_owned(),
        ("string", _) => "text".to_owned(),
        ("integer", _) => "whole number".to_owned(),
        ("boolean", _) => "true or false".to_owned(),
        ("array", _) => format!("list of {}", kind_of_items(schema)),
        (other, _) => other.to_owned(),
    }
}

fn kind_of_items(schema: &Value) -> String {
    schema.get("items").map_or_else(|| "anything".to_owned(), kind)
}

fn rules(schema: &Value) -> String {
    let range = |low: &str, high: &str, what: &str| match (schema[low].as_u64(), schema[high].as_u64()) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}{what}")),
        (None, Some(high)) => Some(format!("at most {high}{what}")),
        (Some(low), None) if low > 0 => Some(format!("at least {low}{what}")),
        _ => None,
    };
    let pattern = schema["pattern"].as_str().map(|pattern| match pattern {
        NO_CONTROLS => "no control characters".to_owned(),
        NOT_BLANK => "not blank".to_owned(),
        pattern => format!("<code>{}</code>", escape(pattern)),
    });
    let rules = [
        range("minLength", "maxLength", " characters"),
        range("minimum", "maximum", ""),
        range("minItems", "maxItems", " entries"),
        pattern,
    ];
    rules.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
