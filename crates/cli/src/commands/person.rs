use anyhow::{Context as _, Result};

use crate::client::{Client, segment};

/// The id of the person whom a command is about: `--user`, else the person that the token is bound to.
pub(super) fn id(client: &Client, user: Option<&str>) -> Result<String> {
    if let Some(user) = user {
        return Ok(user.to_owned());
    }
    let token = client.get("/v1/token")?;
    let own = token["user_id"].as_str().map(str::to_owned);
    own.context("--user is missing: the id of the person, such as --user ada; only a person's own token needs none")
}

/// The path of one of that person's routes, such as `/settings`.
pub(super) fn path(client: &Client, user: Option<&str>, call: &str) -> Result<String> {
    Ok(format!("/v1/users/{}{call}", segment(&id(client, user)?)))
}
