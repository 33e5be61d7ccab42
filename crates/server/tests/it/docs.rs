//! docs/tokens.md shows who may use which route, and docs/events.md the payloads of known event types. Both are generated.

use bellwire_core::EventType;
use bellwire_core::event::{HUB, KNOWN_TYPES, KnownType, PERSON};
use bellwire_core::subscriber::Subscribers;
use bellwire_server::auth::Scope;
use bellwire_server::http::router::ROUTES;

const BEGIN: &str = "<!-- begin of the generated table -->\n";
const END: &str = "<!-- end of the generated table -->\n";

/// One row per route, one column per scope.
fn table() -> String {
    let scopes = Scope::ALL.map(Scope::as_str).join(" | ");
    let mut table = format!("| call | {scopes} |\n|---|{}\n", "---|".repeat(Scope::ALL.len()));
    for route in ROUTES.iter().filter(|route| !route.scopes.is_empty()) {
        let cells = Scope::ALL.map(|scope| if route.scopes.contains(&scope) { "yes" } else { "" });
        table.push_str(&format!("| {} {} | {} |\n", route.method, route.path, cells.join(" | ")));
    }
    let open = ROUTES.iter().filter(|route| route.scopes.is_empty());
    let open: Vec<_> = open.map(|route| format!("{} {}", route.method, route.path)).collect();
    format!("{table}\nWithout a token: {}.\n", open.join(", "))
}

#[test]
fn the_table_of_scopes_is_the_one_of_the_router() {
    assert_generated("docs/tokens.md", BEGIN, END, &table());
}

#[test]
fn the_table_of_event_types_is_the_one_of_the_core() {
    assert_generated("docs/events.md", BEGIN, END, &event_table());
    assert_generated("docs/events.md", "```json\n", "```\n", &event_examples());
}

/// Compares the text between two marks of a document, or writes it anew.
fn assert_generated(document: &str, begin: &str, end: &str, generated: &str) {
    let path = format!("{}/../../{document}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(document);
    let (before, rest) = text.split_once(begin).expect("the mark before the generated text");
    let (printed, after) = rest.split_once(end).expect("the mark after the generated text");
    if std::env::var_os("BELLWIRE_UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, [before, begin, generated, end, after].concat()).expect("it can be written");
    } else {
        assert_eq!(printed, generated, "make openapi writes it");
    }
}

/// One row per type and one per field.
fn event_table() -> String {
    let subscribers = Subscribers::bundled();
    let mut table = "| type, field | meaning | example | shown |\n|---|---|---|---|\n".to_owned();
    for known in KNOWN_TYPES {
        let kind = EventType::parse(known.name).expect("known types are valid");
        let listening: Vec<_> =
            subscribers.iter().filter(|one| one.listens_for(&kind)).map(|one| one.id.as_str()).collect();
        let listening = match &listening[..] {
            [] => String::new(),
            ids => format!("by `{}`", ids.join("`, `")),
        };
        let KnownType { name, meaning, severity, .. } = known;
        table.push_str(&format!("| **{name}** | {meaning} | `{severity}` | {listening} |\n"));
        for field in known.fields {
            let shown = field.shown.describe();
            table.push_str(&format!("| `{}` | {} | `{}` | {shown} |\n", field.name, field.meaning, field.example));
        }
    }
    table
}

/// The samples of the types that anyone may publish, one JSON object a line.
fn event_examples() -> String {
    let own = KNOWN_TYPES.iter().filter(|known| ![HUB, PERSON].contains(&known.source));
    let line = |known: &KnownType| {
        let sample = known.sample(1);
        let payload = serde_json::to_string(sample.payload().as_map()).expect("a payload is JSON");
        let (kind, source, severity) = (sample.kind(), sample.source(), sample.severity());
        format!(
            "{{\"type\":\"{kind}\",\"source\":\"{source}\",\"severity\":\"{severity}\",\"conversation_id\":\"chat\",\
             \"payload\":{payload}}}\n"
        )
    };
    own.map(line).collect()
}
