//! `POST /v1/users/{id}/{channel}/test`: a test message to a person's own confirmed address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Serialize;

use super::channel_test::refused;
use super::path::ChannelPath;
use super::{ApiError, Hub};
use crate::auth::Identity;
use crate::clock;
use crate::usage::Exceeded;

/// A person may send one test message in this time: the hub sends few in all.
const EVERY: Duration = Duration::from_secs(10 * 60);
/// The maximum number of remembered people; beyond it, all are forgotten.
const PEOPLE_MAX: usize = 10_000;

/// When each person last sent a test message.
#[derive(Default)]
pub(crate) struct OwnTests(Mutex<HashMap<String, Instant>>);

/// What became of a test message. How the hub reaches the provider is the operator's business and not in it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OwnChannelTest")]
pub(super) struct OwnTestBody {
    /// `accepted` by the server; `refused` permanently; `misconfigured`: the operator has to change a setting; `not_sent`: a
    /// later attempt may succeed; `unknown`: sent without an answer, so it may have arrived.
    #[schemars(extend("enum" = ["accepted", "refused", "misconfigured", "not_sent", "unknown"]))]
    outcome: &'static str,
    /// The outcome in words.
    message: &'static str,
}

/// Sends a test message to the person's own address. Every result of the attempt is a 200 response.
pub(super) async fn send(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    ChannelPath { user_id, channel }: ChannelPath,
) -> Result<Json<OwnTestBody>, ApiError> {
    identity.check_acts_for(&user_id)?;
    let channel = hub.channels.get(&channel).ok_or_else(|| ApiError::not_found("channel"))?;
    let settings = hub.store.settings(user_id.clone()).await?.channel(channel.name().as_str());
    let Some(target) = settings.target.filter(|_| settings.verified) else {
        let message = "there is no confirmed address to send a test message to; set one and confirm it first";
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    };
    hub.own_tests.take(&user_id, Instant::now())?;
    let id = uuid::Builder::from_random_bytes(clock::random()).into_uuid();
    let report = channel.test(target, id, clock::now(), hub.channel_test_wait).await.map_err(refused)?;
    tracing::info!(channel = %channel.name(), outcome = report.outcome, "a person's test message was attempted");
    Ok(Json(OwnTestBody { outcome: report.outcome, message: in_words(report.outcome) }))
}

fn in_words(outcome: &str) -> &'static str {
    match outcome {
        "accepted" => "the message was accepted; it should arrive within a few minutes",
        "refused" => "the server of this address refuses the message; is the address still right?",
        "misconfigured" => "the hub cannot send: its operator has to correct a setting",
        "unknown" => "the message was sent without an answer; it may arrive",
        _ => "the message could not be sent now; try again later",
    }
}

impl OwnTests {
    fn take(&self, user_id: &str, now: Instant) -> Result<(), Exceeded> {
        let mut people = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = people.get(user_id).map(|last| now.saturating_duration_since(*last));
        if let Some(left) = since.and_then(|since| EVERY.checked_sub(since)).filter(|left| !left.is_zero()) {
            let message = "a person may send one test message in ten minutes";
            return Err(Exceeded { message, retry_after_seconds: left.as_secs() + 1 });
        }
        if people.len() >= PEOPLE_MAX {
            people.clear();
        }
        people.insert(user_id.to_owned(), now);
        Ok(())
    }
}
