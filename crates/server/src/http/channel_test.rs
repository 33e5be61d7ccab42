//! `POST /v1/{channel}/test`: sends one test message on a channel and reports each step.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::field::SingleLineText;
use super::idempotency::IdempotentBody;
use super::path::PathChannel;
use super::{ApiError, Hub};
use crate::channels::{TestRefusal, TestReport, TestedStep};
use crate::clock;
use crate::usage::Exceeded;

/// Where to send a test message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "address": "ada@example.org" }]))]
pub(super) struct NewChannelTest {
    /// The recipient, as the channel writes an address.
    address: SingleLineText<254>,
}

/// What became of a test message.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChannelTest")]
#[schemars(extend("examples" = [{
    "outcome": "misconfigured",
    "message": "the server said 535 5.7.8 not accepted",
    "steps": [
        { "step": "configuration", "result": "ok", "detail": "smtp.example.org:587" },
        { "step": "login", "result": "failed", "detail": "the server said 535 5.7.8 not accepted" },
        { "step": "message", "result": "not_reached", "detail": null },
    ],
}]))]
pub(super) struct ChannelTestBody {
    /// `accepted` by the server; `refused` permanently; `misconfigured`: a setting of the channel is wrong; `not_sent`: a
    /// later attempt may succeed; `unknown`: sent without an answer, so it may have arrived.
    #[schemars(extend("enum" = ["accepted", "refused", "misconfigured", "not_sent", "unknown"]))]
    outcome: String,
    /// The outcome in words.
    message: String,
    /// The steps, in order.
    steps: Vec<ChannelTestStep>,
}

/// A step of a test.
#[derive(Serialize, Deserialize, JsonSchema)]
struct ChannelTestStep {
    /// Which step, in the channel's words, such as `configuration`, `connect`, `tls`, `login` and `message`.
    step: String,
    /// `skipped` = the configuration has no such step.
    #[schemars(extend("enum" = ["ok", "failed", "unknown", "skipped", "not_reached"]))]
    result: String,
    /// What happened.
    detail: Option<String>,
}

/// Sends a test message. Every result of the attempt is a 200 response.
pub(super) async fn send(
    State(hub): State<Hub>,
    PathChannel(channel): PathChannel,
    IdempotentBody { idempotency_key, body: test }: IdempotentBody<NewChannelTest>,
) -> Result<Json<ChannelTestBody>, ApiError> {
    let channel = hub.channels.get(&channel).ok_or_else(|| ApiError::not_found("channel"))?;
    if let Some(key) = &idempotency_key
        && let Some(stored) = hub.store.recall(key.clone()).await?
    {
        return first_answer(&stored);
    }
    let id = uuid::Builder::from_random_bytes(clock::random()).into_uuid();
    let target = test.address.0.trim().to_owned();
    let report = channel.test(target, id, clock::now(), hub.channel_test_wait).await.map_err(refused)?;
    tracing::info!(channel = %channel.name(), outcome = report.outcome, "a test message was attempted");
    let body = ChannelTestBody::from(report);
    let Some(key) = idempotency_key else { return Ok(Json(body)) };
    let body = serde_json::to_string(&body).expect("strings can be serialized");
    first_answer(&hub.store.answer_once(key, body, None).await?)
}

pub(super) fn refused(refusal: TestRefusal) -> ApiError {
    match refusal {
        TestRefusal::NoTest => ApiError::not_found("test"),
        TestRefusal::InvalidTarget(why) => ApiError::invalid("address", why),
        TestRefusal::TooMany(retry_after_seconds) => {
            let message = "too many test messages; the hub sends a few at once, and then one a minute";
            Exceeded { message, retry_after_seconds }.into()
        }
    }
}

fn first_answer(stored: &str) -> Result<Json<ChannelTestBody>, ApiError> {
    let body = serde_json::from_str(stored).map_err(|_| ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    Ok(Json(body))
}

impl From<TestReport> for ChannelTestBody {
    fn from(report: TestReport) -> Self {
        let step = |TestedStep { step, result, detail }| ChannelTestStep {
            step: step.to_owned(),
            result: result.to_owned(),
            detail,
        };
        Self {
            outcome: report.outcome.to_owned(),
            message: report.message,
            steps: report.steps.into_iter().map(step).collect(),
        }
    }
}
