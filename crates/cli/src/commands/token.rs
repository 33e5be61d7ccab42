use std::io::Write as _;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::args::{Token, TokenCommand};
use crate::client::{Client, segment};
use crate::output::printable;

pub(crate) fn run(arguments: &Token) -> Result<bool> {
    match &arguments.command {
        TokenCommand::Create { scope, user, origin, conversation, name, connection } => {
            let mut body = Map::from_iter([("scope".to_owned(), json!(scope))]);
            let optional = [("user_id", user), ("origin", origin), ("conversation_id", conversation), ("name", name)];
            body.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))));
            let made = Client::new(connection)?.call(Method::POST, "/v1/tokens", Some(&Value::Object(body)))?;
            anstream::eprintln!("token {}; its secret is shown once:", made["id"].as_str().unwrap_or(""));
            writeln!(anstream::stdout(), "{}", made["token"].as_str().unwrap_or(""))?;
        }
        TokenCommand::List { json, connection } => {
            let list = Client::new(connection)?.call(Method::GET, "/v1/tokens", None)?;
            let mut out = anstream::stdout().lock();
            if *json {
                writeln!(out, "{list}")?;
                return Ok(true);
            }
            writeln!(out, "{:38}{:8}{:16}{:16}STATE", "ID", "SCOPE", "USER", "NAME")?;
            for token in list["items"].as_array().into_iter().flatten() {
                let text = |key: &str| printable(token[key].as_str().unwrap_or(""));
                let state = if token["revoked_at"].is_null() { "valid" } else { "revoked" };
                writeln!(out, "{:38}{:8}{:16}{:16}{state}", text("id"), text("scope"), text("user_id"), text("name"))?;
            }
        }
        TokenCommand::Revoke { id, connection } => {
            Client::new(connection)?.call(Method::DELETE, &format!("/v1/tokens/{}", segment(id)), None)?;
            anstream::eprintln!("revoked {}", printable(id));
        }
    }
    Ok(true)
}
