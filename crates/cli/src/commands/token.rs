use std::io::Write as _;

use anyhow::Result;
use bellwire_server::auth::sign_in_path;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::when;
use crate::authority;
use crate::client::{Connection, segment};
use crate::output::{STRONG, paint, print_json, printable, text};

/// Create, list and revoke tokens, and make sign-in links
#[derive(Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    Create(CreateArgs),
    Link(LinkArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Create a token and print its secret, once
///
/// Only the secret goes to standard output: token=$(bellwire token create --scope agent --user ada --origin butler)
#[derive(Args)]
struct CreateArgs {
    /// admin, agent, user, ingest or daemon
    #[arg(long)]
    scope: String,
    /// The id of the person it is bound to; "*" for an agent that serves everyone
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The agent's name, as people see it
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,
    /// The id of the conversation it is bound to
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// A name by which you recognise the token in the list
    #[arg(long)]
    name: Option<String>,
    /// When it expires: after 12h, 30d, 1y, or at a time such as 2027-01-01T00:00:00Z
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Make a link with which a person signs in to the hub's pages
///
/// It works once, for ten minutes. Send it only to that person: the link signs in as them.
#[derive(Args)]
struct LinkArgs {
    /// The id of the person
    user: String,
    /// The session may do everything, as the operator's
    #[arg(long)]
    admin: bool,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// List the tokens, without secrets
#[derive(Args)]
struct ListArgs {
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Revoke a token at once; its streams end
#[derive(Args)]
struct RevokeArgs {
    /// The token's id
    id: String,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &TokenArgs) -> Result<bool> {
    match &arguments.command {
        TokenCommand::Create(create) => create.run(),
        TokenCommand::Link(link) => link.run(),
        TokenCommand::List(list) => list.run(),
        TokenCommand::Revoke(RevokeArgs { id, connection }) => {
            authority::client(connection)?.call(Method::DELETE, &format!("/v1/tokens/{}", segment(id)), None)?;
            anstream::eprintln!("revoked {}", printable(id));
            Ok(true)
        }
    }
}

impl CreateArgs {
    fn run(&self) -> Result<bool> {
        let expires =
            self.expires.as_deref().map(|when| when::parse_time("--expires", when, Timestamp::now())).transpose()?;
        let optional = [
            ("user_id", &self.user),
            ("origin", &self.origin),
            ("conversation_id", &self.conversation),
            ("name", &self.name),
            ("expires_at", &expires),
        ];
        let mut body = Map::from_iter([("scope".to_owned(), json!(self.scope))]);
        body.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))));
        let created = authority::client(&self.connection)?.post("/v1/tokens", &Value::Object(body))?;
        if self.json {
            return print_json(&created);
        }
        let until = expires.map(|at| format!(", valid until {at}")).unwrap_or_default();
        anstream::eprintln!("token {}{until}; its secret is shown once:", text(&created, "id"));
        anstream::println!("{}", text(&created, "token"));
        Ok(true)
    }
}

impl LinkArgs {
    fn run(&self) -> Result<bool> {
        let client = authority::client(&self.connection)?;
        let scope = if self.admin { "admin" } else { "user" };
        let mut made = client.post("/v1/sign_in_codes", &json!({ "user_id": self.user, "scope": scope }))?;
        if made["link"].is_null() {
            // Without a public URL, the hub is reached at the address of this command.
            made["link"] = json!(format!("{}{}", client.url(), sign_in_path(&text(&made, "code"))));
        }
        if self.json {
            return print_json(&made);
        }
        let who = printable(&self.user);
        let role = if self.admin { " as operator" } else { "" };
        anstream::eprintln!("signs in {who}{role}, once, until {}:", text(&made, "expires_at"));
        anstream::println!("{}", text(&made, "link"));
        Ok(true)
    }
}

impl ListArgs {
    fn run(&self) -> Result<bool> {
        let list = authority::client(&self.connection)?.get("/v1/tokens")?;
        if self.json {
            return print_json(&list);
        }
        let mut out = anstream::stdout().lock();
        let head = format!("{:38}{:8}{:12}{:16}STATE", "ID", "SCOPE", "USER", "NAME");
        writeln!(out, "{}", paint(STRONG, head))?;
        for token in list["items"].as_array().into_iter().flatten() {
            let cell = |key: &str| text(token, key);
            let name = Some(cell("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| cell("origin"));
            let line = format!("{:38}{:8}{:12}{name:16}", cell("id"), cell("scope"), cell("user_id"));
            writeln!(out, "{line}{}", state(token, Timestamp::now()))?;
        }
        Ok(true)
    }
}

fn state(token: &Value, now: Timestamp) -> String {
    let time = |key: &str| token[key].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    match (time("revoked_at"), time("expires_at")) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) if at <= now => format!("expired {at}"),
        (None, Some(at)) => format!("valid until {at}"),
        (None, None) => "valid".to_owned(),
    }
}
