//! setWebhook, deleteWebhook and getWebhookInfo.

use serde_json::{Value, json};

use crate::answer::{Answer, Outcome};
use crate::parameters::Parameters;
use crate::webhook::Webhook;
use crate::world::World;

/// The longest `secret_token`.
const SECRET_MAX: usize = 256;

pub(super) fn set(world: &mut World, parameters: &Parameters) -> Outcome {
    let url = parameters.text("url").unwrap_or_default();
    if url.is_empty() {
        return delete(world, parameters);
    }
    let secret = parameters.text("secret_token").unwrap_or_default();
    if secret.len() > SECRET_MAX {
        return Err(Answer::bad_request("secret token is too long"));
    }
    if !secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return Err(Answer::bad_request("secret token contains unallowed characters"));
    }
    world.webhook = Some(Webhook::new(url, secret)?);
    // A long poll that waits ends with a conflict.
    world.poll += 1;
    updates_wanted(world, parameters)?;
    drop_pending(world, parameters);
    Ok(Value::Bool(true))
}

pub(super) fn delete(world: &mut World, parameters: &Parameters) -> Outcome {
    world.webhook = None;
    drop_pending(world, parameters);
    Ok(Value::Bool(true))
}

pub(super) fn info(world: &World) -> Value {
    let url = world.webhook.as_ref().map_or("", |webhook| webhook.url.as_str());
    json!({"url": url, "has_custom_certificate": false, "pending_update_count": world.updates.len()})
}

/// Keeps the kinds of updates that the bot asks for; without the parameter, the last ones hold.
pub(super) fn updates_wanted(world: &mut World, parameters: &Parameters) -> Result<(), Answer> {
    let Some(kinds) = parameters.json("allowed_updates")? else { return Ok(()) };
    let kinds = kinds.as_array().ok_or_else(|| Answer::bad_request("expected an Array of String"))?;
    let kinds: Vec<String> = kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    world.allowed_updates = Some(kinds).filter(|kinds| !kinds.is_empty());
    Ok(())
}

fn drop_pending(world: &mut World, parameters: &Parameters) {
    let drop = parameters.0.get("drop_pending_updates");
    if drop.is_some_and(|drop| drop == &Value::Bool(true) || drop == "true") {
        world.updates.clear();
    }
}
