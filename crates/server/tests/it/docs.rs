//! docs/tokens.md shows who may use which route: its table is generated from the route table.

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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tokens.md");
    let text = std::fs::read_to_string(path).expect("docs/tokens.md");
    let (before, rest) = text.split_once(BEGIN).expect("the mark before the table");
    let (printed, after) = rest.split_once(END).expect("the mark after the table");
    if std::env::var_os("BELLWIRE_UPDATE_OPENAPI").is_some() {
        std::fs::write(path, [before, BEGIN, &table(), END, after].concat()).expect("docs/tokens.md can be written");
    } else {
        assert_eq!(printed, table(), "make openapi writes it");
    }
}
