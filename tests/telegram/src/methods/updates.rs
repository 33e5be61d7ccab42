//! getUpdates: a long poll. An offset confirms the updates before it; a second poller ends the first one with 409.

use std::time::Duration;

use serde_json::Value;

use crate::answer::{Answer, Outcome};
use crate::parameters::Parameters;
use crate::server::Shared;
use crate::world::World;

/// The longest wait that the API grants, in seconds.
const TIMEOUT_MAX: i64 = 50;

pub(crate) async fn run(shared: &Shared, parameters: &Parameters) -> Outcome {
    let mut changes = shared.changes();
    let poll = shared.change(|world| begin(world, parameters))?;
    let _waiting = Waiting(shared);
    let seconds = parameters.integer("timeout").unwrap_or(0).clamp(0, TIMEOUT_MAX);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    loop {
        changes.borrow_and_update();
        let found = shared.read(|world| take(world, poll, parameters))?;
        let late = tokio::time::Instant::now() >= deadline;
        if late || found.as_array().is_some_and(|list| !list.is_empty()) {
            return Ok(found);
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}

/// Counts a poll until it ends, also if the client goes away.
struct Waiting<'a>(&'a Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.change(|world| world.waiting_polls -= 1);
    }
}

/// Confirms updates and ends an older poll. Returns the number of this one.
fn begin(world: &mut World, parameters: &Parameters) -> Result<u64, Answer> {
    if world.webhook.is_some() {
        return Err(Answer::error(
            409,
            "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
        ));
    }
    super::webhook_settings::updates_wanted(world, parameters)?;
    let offset = parameters.integer("offset").unwrap_or(0);
    if offset < 0 {
        // The last updates, counted from the end; those before them are forgotten.
        let keep = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        let forgotten = world.updates.len().saturating_sub(keep);
        world.updates.drain(..forgotten);
    } else {
        while world.updates.front().is_some_and(|update| update.id < offset) {
            world.updates.pop_front();
        }
    }
    world.poll += 1;
    world.waiting_polls += 1;
    Ok(world.poll)
}

fn take(world: &World, poll: u64, parameters: &Parameters) -> Outcome {
    if world.webhook.is_some() {
        return Err(Answer::error(409, "Conflict: terminated by setWebhook request"));
    }
    if world.poll != poll {
        let conflict =
            "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
        return Err(Answer::error(409, conflict));
    }
    let limit = usize::try_from(parameters.integer("limit").unwrap_or(100).clamp(1, 100)).unwrap_or(100);
    Ok(Value::Array(world.updates.iter().take(limit).map(|update| update.body.clone()).collect()))
}
