//! One operation of the API as HTML: summary, scopes, parameters, body and responses.

use serde_json::Value;

use super::{add, escape, example, inline, list, resolved, schema, text};

/// The operation's entry in the table of contents.
pub(super) fn link(path: &str, method: &str, operation: &Value) -> String {
    let id = text(&operation["operationId"]);
    let words = filter_text(path, method, operation);
    format!(
        "<li data-words=\"{words}\"><a href=\"#{id}\"><span class=\"method {method}\">{}</span> {}</a></li>",
        method.to_ascii_uppercase(),
        escape(path).replace('/', "<wbr>/")
    )
}

/// The operation's section of the page.
pub(super) fn article(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let id = text(&operation["operationId"]);
    let mut html = format!(
        "<article id=\"{id}\" data-words=\"{}\"><h3><a href=\"#{id}\"><span class=\"method {method}\">{}</span> \
         <code>{}</code></a></h3><p>{}.</p>",
        filter_text(path, method, operation),
        method.to_ascii_uppercase(),
        escape(path),
        inline(text(&operation["summary"]))
    );
    html += &who(operation);
    html += &parameters(document, operation);
    html += &bodies(document, operation);
    html += &answers(document, operation);
    html + "</article>\n"
}

/// The text that the page's filter searches.
fn filter_text(path: &str, method: &str, operation: &Value) -> String {
    let summary = text(&operation["summary"]);
    let scopes: Vec<&str> = list(&operation["x-scopes"]).map(text).collect();
    escape(&format!("{method} {path} {summary} {}", scopes.join(" ")).to_lowercase())
}

fn who(operation: &Value) -> String {
    let scopes: String = list(&operation["x-scopes"]).map(|scope| format!("<li>{}</li>", text(scope))).collect();
    match scopes.is_empty() {
        true => "<p class=\"who\">Anyone may call it, without a token</p>".to_owned(),
        false => format!("<ul class=\"who\" aria-label=\"Scopes that may call it\">{scopes}</ul>"),
    }
}

fn parameters(document: &Value, operation: &Value) -> String {
    let mut rows = String::new();
    for parameter in list(&operation["parameters"]).map(|one| resolved(document, one)) {
        let place = text(&parameter["in"]);
        let need = if parameter["required"] == true { "required" } else { "optional" };
        add(
            &mut rows,
            format_args!(
                "<tr><th scope=\"row\"><code>{}</code><span class=\"need\">{place}, {need}</span></th>\
                 <td class=\"kind\">{}</td><td>{}</td></tr>",
                escape(text(&parameter["name"])),
                schema::kind(&parameter["schema"]),
                inline(text(&parameter["description"]))
            ),
        );
    }
    match rows.is_empty() {
        true => rows,
        false => format!("<h4>Parameters</h4>{}", schema::table(["Name", "Value", "Meaning"], &rows, "Parameters")),
    }
}

fn bodies(document: &Value, operation: &Value) -> String {
    let mut html = String::new();
    for (media_type, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
        let shape = &content["schema"];
        let mut body = format!("<p>{}</p>", schema::kind(shape));
        if let Some(about) = resolved(document, shape)["description"].as_str() {
            add(&mut body, format_args!("<p>{}</p>", inline(about)));
        }
        body += &schema::fields(object(document, shape), "Fields of the body");
        body += &content.get("example").map(|one| shown(media_type, one)).unwrap_or_default();
        let title = format!("Body <code>{}</code>", escape(media_type));
        // The first media type is shown; the others are in a collapsed section.
        match html.is_empty() {
            true => add(&mut html, format_args!("<h4>{title}</h4>{body}")),
            false => add(&mut html, format_args!("<details><summary>{title}</summary>{body}</details>")),
        }
    }
    html
}

/// The object schema of a body: that of its first alternative, or of its array items.
fn object<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = resolved(document, schema);
    let inner = schema["allOf"].get(0).or(schema["anyOf"].get(0)).or(schema.get("items"));
    match inner {
        Some(inner) if schema.get("properties").is_none() => object(document, inner),
        _ => schema,
    }
}

/// An example in the format of its media type.
fn shown(media_type: &str, value: &Value) -> String {
    match value.as_array().filter(|_| media_type.ends_with("ndjson")) {
        Some(lines) => example(&lines.iter().map(|line| format!("{line}\n")).collect::<String>().into()),
        None => example(value),
    }
}

fn answers(document: &Value, operation: &Value) -> String {
    let (mut good, mut bad, mut statuses) = (String::new(), String::new(), Vec::new());
    let mut examples = String::new();
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let answer = resolved(document, answer);
        let row = row(status, answer);
        match status.starts_with('2') {
            true => good += &row,
            false => {
                bad += &row;
                statuses.push(status.as_str());
            }
        }
        for (media_type, one) in answer["content"].as_object().into_iter().flatten() {
            examples += &one.get("example").map(|one| shown(media_type, one)).unwrap_or_default();
        }
    }
    let columns = ["Status", "Body", "Meaning"];
    let mut html = format!("<h4>Answer</h4>{}{examples}", schema::table(columns, &good, "Answer"));
    if !bad.is_empty() {
        let table = schema::table(columns, &bad, "Errors");
        add(&mut html, format_args!("<details><summary>Errors {}</summary>{table}</details>", statuses.join(", ")));
    }
    html
}

fn row(status: &str, answer: &Value) -> String {
    let contents = answer["content"].as_object().into_iter().flatten();
    let kinds = contents.map(|(media_type, content)| {
        let media_type = if media_type == "application/json" { "" } else { media_type };
        format!("{} {}", schema::kind(&content["schema"]), escape(media_type))
    });
    let kinds: Vec<String> = kinds.collect();
    let kinds = if kinds.is_empty() { "no body".to_owned() } else { kinds.join(" or ") };
    let meaning = inline(text(&answer["description"]));
    format!("<tr><th scope=\"row\">{status}</th><td class=\"kind\">{kinds}</td><td>{meaning}</td></tr>")
}
