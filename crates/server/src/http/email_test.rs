//! `POST /v1/email/test`: sends one test email and reports each step of the SMTP session.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::field::SingleLineText;
use super::idempotency::IdempotentBody;
use super::{ApiError, Hub};
use crate::channels::{TestRefusal, TestReport, TestedStep};
use crate::clock;
use crate::usage::Exceeded;

/// Where to send a test email.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "address": "ada@example.org" }]))]
pub(super) struct NewEmailTest {
    /// The recipient.
    address: SingleLineText<254>,
}

/// What became of a test email.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EmailTest")]
#[schemars(extend("examples" = [{
    "outcome": "misconfigured",
    "message": "email is not set up right: the server said 535 5.7.8 not accepted at AUTH; check the settings of [email]",
    "steps": [
        { "step": "configuration", "result": "ok", "detail": "smtp.example.org:587, tls starttls, from bell@example.org" },
        { "step": "connect", "result": "ok", "detail": "smtp.example.org:587 answers" },
        { "step": "message", "result": "not_reached", "detail": null },
    ],
}]))]
pub(super) struct EmailTestBody {
    /// `accepted` by the mail server; `refused` permanently; `misconfigured`: a setting of `[email]` is wrong; `not_sent`:
    /// a later attempt may succeed; `unknown`: sent without an answer, so it may have arrived.
    #[schemars(extend("enum" = ["accepted", "refused", "misconfigured", "not_sent", "unknown"]))]
    outcome: String,
    /// The outcome in words.
    message: String,
    /// The steps, in order.
    steps: Vec<EmailTestStep>,
}

/// A step of the SMTP session.
#[derive(Serialize, Deserialize, JsonSchema)]
struct EmailTestStep {
    /// Which step. `message` is the transfer: sender, recipient and text.
    #[schemars(extend("enum" = ["configuration", "connect", "greeting", "tls", "login", "message"]))]
    step: String,
    /// `skipped` = the configuration has no such step.
    #[schemars(extend("enum" = ["ok", "failed", "unknown", "skipped", "not_reached"]))]
    result: String,
    /// What happened.
    detail: Option<String>,
}

/// Sends a test email. Every result of the attempt is a 200 response.
pub(super) async fn send(
    State(hub): State<Hub>,
    IdempotentBody { idempotency_key, body: test }: IdempotentBody<NewEmailTest>,
) -> Result<Json<EmailTestBody>, ApiError> {
    if let Some(key) = &idempotency_key
        && let Some(stored) = hub.store.recall(key.clone()).await?
    {
        return first_answer(&stored);
    }
    let channel = hub.channels.get("email").ok_or_else(|| ApiError::not_found("channel"))?;
    let id = uuid::Builder::from_random_bytes(clock::random()).into_uuid();
    let target = test.address.0.trim().to_owned();
    let report = channel.test(target, id, clock::now(), hub.channel_test_wait).await.map_err(refused)?;
    tracing::info!(outcome = report.outcome, "a test email was attempted");
    let body = EmailTestBody::from(report);
    let Some(key) = idempotency_key else { return Ok(Json(body)) };
    let body = serde_json::to_string(&body).expect("strings can be serialized");
    first_answer(&hub.store.answer_once(key, body, None).await?)
}

fn refused(refusal: TestRefusal) -> ApiError {
    match refusal {
        TestRefusal::NoTest => ApiError::not_found("test"),
        TestRefusal::InvalidTarget(why) => ApiError::invalid("address", why),
        TestRefusal::TooMany(retry_after_seconds) => {
            let message = "the hub sends five test emails at once, and then one a minute";
            Exceeded { message, retry_after_seconds }.into()
        }
    }
}

fn first_answer(stored: &str) -> Result<Json<EmailTestBody>, ApiError> {
    let body = serde_json::from_str(stored).map_err(|_| ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    Ok(Json(body))
}

impl From<TestReport> for EmailTestBody {
    fn from(report: TestReport) -> Self {
        let step = |TestedStep { step, result, detail }| EmailTestStep {
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
