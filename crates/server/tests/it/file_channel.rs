//! A third channel, which appends each message to a file. It shows that a new channel needs no change elsewhere: the hub plans,
//! holds, sends, retries and reports its deliveries, and shows it in settings, readiness, metrics and the API description.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwire_core::notify::Intent;
use bellwire_core::person::ChannelName;
use bellwire_server::Config;
use bellwire_server::channels::{
    Channel, ChannelHub, ChannelStatus, ChannelTask, Grouping, NotifyDelivery, NotifyMessage, NotifyOutcome,
    NotifyTarget, OutboundContent, OutboundMessage, Sending, SettingsShape, TargetField, TargetKind, Verification,
    VerifiedField,
};
use bellwire_store::AttemptOutcome;
use futures_util::future::BoxFuture;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;
use crate::people::{send, tool};

static SHAPE: SettingsShape = SettingsShape {
    display_name: "file",
    description: "A file.",
    target: TargetField {
        name: "name",
        description: "The name of the file.",
        kind: TargetKind::Text { max: 40 },
        is_writable: true,
        example: "ada.txt",
        parse: |text| match text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.') {
            true => Ok(text.to_ascii_lowercase()),
            false => Err(format!("'{text}' is no name of a file; write letters, digits and dots")),
        },
    },
    verified: VerifiedField { name: "read", description: "Whether the person has read the file." },
    verification: Verification::Code,
};

/// Appends messages to files of a folder, unless an outcome is queued.
#[derive(Default)]
struct FileChannel {
    folder: PathBuf,
    /// The outcomes of the next attempts; nothing is written for them.
    faults: Mutex<VecDeque<AttemptOutcome>>,
    status: Mutex<Option<String>>,
}

impl FileChannel {
    fn append(&self, target: &str, line: &str) -> Result<(), String> {
        let file = std::fs::File::options().create(true).append(true).open(self.folder.join(target));
        file.and_then(|mut file| writeln!(file, "{line}")).map_err(|error| error.to_string())
    }
}

impl Channel for FileChannel {
    fn name(&self) -> ChannelName {
        ChannelName::parse("file").unwrap()
    }

    fn settings(&self) -> &SettingsShape {
        &SHAPE
    }

    fn sending(&self) -> Sending {
        Sending { grouping: Grouping::Digest, concurrency: 2, attempt_max: Duration::from_secs(5) }
    }

    fn status(&self) -> ChannelStatus {
        match self.status.lock().unwrap().clone() {
            Some(reason) => ChannelStatus::Failing { reason },
            None => ChannelStatus::Ready,
        }
    }

    fn start(&self, _: ChannelHub) -> Vec<ChannelTask> {
        Vec::new()
    }

    fn deliver(&self, message: OutboundMessage) -> BoxFuture<'_, AttemptOutcome> {
        Box::pin(async move {
            if let Some(fault) = self.faults.lock().unwrap().pop_front() {
                return fault;
            }
            let line = match &message.content {
                OutboundContent::Code(code) => format!("code {code}"),
                OutboundContent::Direct(_, direct) => {
                    format!("{}: {}", direct.subject.as_deref().unwrap_or_default(), direct.message)
                }
                OutboundContent::Notifications(items) => {
                    items.iter().map(|item| item.message.as_str()).collect::<Vec<_>>().join(" + ")
                }
            };
            match self.append(&message.target, &line) {
                Ok(()) => AttemptOutcome::Sent,
                Err(reason) => AttemptOutcome::TryAgain { reason, retry_after_ms: None },
            }
        })
    }

    fn resolve(&self, request: &NotifyDelivery) -> Result<NotifyTarget, String> {
        match (request.intent, &request.recipient) {
            (Intent::Send, Some(name)) => {
                let target = (SHAPE.target.parse)(name)?;
                Ok(NotifyTarget { target, thread: None, reaction: None })
            }
            _ => Err("a file takes only new messages".to_owned()),
        }
    }

    fn notify(&self, message: NotifyMessage) -> BoxFuture<'_, NotifyOutcome> {
        Box::pin(async move {
            match self.append(&message.target.target, message.message.as_deref().unwrap_or_default()) {
                Ok(()) => NotifyOutcome::delivered(message.id.to_string()),
                Err(reason) => NotifyOutcome::Refused { reason },
            }
        })
    }
}

/// A hub with the file channel, and Ada, who has read the code in her file.
struct Filed {
    hub: TestHub,
    channel: Arc<FileChannel>,
    ada: String,
    agent: String,
    _folder: tempfile::TempDir,
}

impl Filed {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let channel = Arc::new(FileChannel { folder: folder.path().to_owned(), ..FileChannel::default() });
        let hub = TestHub::start_with_channels(Config::default(), vec![channel.clone()]).await;
        let (ada, agent) = (hub.token("user", "ada").await, hub.token("agent", "ada").await);
        Self { hub, channel, ada, agent, _folder: folder }
    }

    async fn verified() -> Self {
        let filed = Self::open().await;
        filed.change(json!({"file": {"enabled": true, "name": "Ada.txt"}})).await;
        let code = filed.until_lines(1).await[0].strip_prefix("code ").unwrap().to_owned();
        let confirm = "/v1/users/ada/file/confirm";
        let (status, _) = filed.hub.post(&filed.ada, confirm, json!({"code": "x"})).await;
        assert_eq!(status, StatusCode::CONFLICT, "a wrong code");
        let (status, settings) = filed.hub.post(&filed.ada, confirm, json!({"code": code})).await;
        let expected = json!({"enabled": true, "name": "ada.txt", "read": true});
        assert_eq!((status, &settings["file"]), (StatusCode::OK, &expected));
        filed
    }

    async fn change(&self, patch: Value) -> Value {
        let (status, settings) = self.hub.call(&self.ada, Method::PATCH, "/v1/users/ada/settings", Some(patch)).await;
        assert_eq!(status, StatusCode::OK, "{settings}");
        settings
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.channel.folder.join("ada.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn until_lines(&self, count: usize) -> Vec<String> {
        until(async || self.lines().len() >= count).await;
        self.lines()
    }

    /// The newest delivery, once it has this state.
    async fn until_state(&self, state: &str) -> Value {
        let newest = async || self.hub.get(&self.ada, "/v1/deliveries?limit=1").await.1["items"][0].clone();
        until(async || newest().await["state"] == state).await;
        newest().await
    }

    fn fail_with(&self, outcome: AttemptOutcome) {
        self.channel.faults.lock().unwrap().push_back(outcome);
    }

    async fn note(&self) -> String {
        let (_, inbox) = self.hub.get(&self.ada, "/v1/users/ada/notifications").await;
        let note = inbox["items"].as_array().unwrap().iter().find(|item| item["kind"] == "note").cloned();
        note.unwrap()["message"].as_str().unwrap().to_owned()
    }
}

/// Polls until the condition holds: the outbox works beside the test.
async fn until(is_so: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("it becomes so within 30 seconds");
}

#[tokio::test]
async fn its_settings_are_shown_described_and_checked_by_its_shape() {
    let filed = Filed::open().await;
    let (_, settings) = filed.hub.get(&filed.ada, "/v1/users/ada/settings").await;
    assert_eq!(settings["file"], json!({"enabled": false, "name": null, "read": false}));
    assert_eq!(settings["email"], json!({"enabled": false, "address": null, "confirmed": false}));
    assert_eq!(settings["telegram"], json!({"enabled": false, "chat_id": null, "paired": false}));
    for (patch, field) in [
        (json!({"file": {"name": "../passwd"}}), "file.name"),
        (json!({"file": {"read": true}}), "file.read"),
        (json!({"file": {"address": "x"}}), "file.address"),
        (json!({"fax": {"enabled": true}}), "fax"),
    ] {
        let (status, answer) = filed.hub.call(&filed.ada, Method::PATCH, "/v1/users/ada/settings", Some(patch)).await;
        assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!(field)), "{answer}");
    }
    let (_, document) = filed.hub.get(&filed.hub.admin, "/openapi.json").await;
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Settings"]["properties"]["file"]["$ref"], "#/components/schemas/FileSettings");
    assert_eq!(schemas["FileChange"]["properties"]["name"]["maxLength"], 40);
    let (status, _) = filed.hub.post(&filed.ada, "/v1/users/ada/fax/confirm", json!({"code": "1"})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = filed.hub.post(&filed.hub.admin, "/v1/file/test", json!({"address": "ada.txt"})).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "it offers no test");
}

#[tokio::test]
async fn its_deliveries_are_planned_held_by_quiet_hours_and_sent() {
    let filed = Filed::verified().await;
    send(&filed.hub, &filed.agent, "Buy milk").await;
    assert_eq!(filed.until_lines(2).await[1], "Buy milk");
    let delivery = filed.until_state("sent").await;
    assert_eq!((&delivery["channel"], &delivery["target"]), (&json!("file"), &json!("ada.txt")));
    let hour = bellwire_server::clock::system().now().as_millis() / 3_600_000;
    let at = |hour: i64| format!("{:02}:30", hour.rem_euclid(24));
    filed.change(json!({"quiet_hours": {"start": at(hour - 2), "end": at(hour + 2), "timezone": "UTC"}})).await;
    for text in ["one", "two"] {
        send(&filed.hub, &filed.agent, text).await;
    }
    assert_eq!(filed.until_state("waiting").await["reason"], "quiet hours");
    assert_eq!(filed.lines().len(), 2);
    filed.change(json!({"quiet_hours": null})).await;
    assert_eq!(filed.until_lines(3).await[2], "one + two", "as one message");
}

#[tokio::test]
async fn its_failures_are_retried_or_reported_by_its_name() {
    let filed = Filed::verified().await;
    filed.fail_with(AttemptOutcome::TryAgain { reason: "the disk sleeps".into(), retry_after_ms: Some(1) });
    send(&filed.hub, &filed.agent, "Buy milk").await;
    assert_eq!(filed.until_state("sent").await["attempts"], 2);
    filed.fail_with(AttemptOutcome::Refused { reason: "it is read-only".into() });
    send(&filed.hub, &filed.agent, "Buy bread").await;
    assert_eq!(filed.until_state("failed").await["reason"], "it is read-only");
    let note = "A message to you by file could not be delivered (ada.txt): it is read-only";
    assert_eq!(filed.note().await, note);
    let turn = json!({"point": "turn_start", "call_id": "turn"});
    let (_, answer) = filed.hub.post(&filed.agent, "/v1/conversations/chat/inject", turn).await;
    let block = answer["block"].as_str().unwrap();
    assert!(block.contains("delivery_failed: file (Buy bread) - it is read-only"), "{block}");
    filed.fail_with(AttemptOutcome::Unreachable { reason: "it was deleted".into() });
    send(&filed.hub, &filed.agent, "Buy eggs").await;
    filed.until_state("failed").await;
    let (_, settings) = filed.hub.get(&filed.ada, "/v1/users/ada/settings").await;
    assert_eq!(settings["file"], json!({"enabled": false, "name": "ada.txt", "read": true}));
}

#[tokio::test]
async fn a_held_message_with_its_own_text_is_listed_can_be_cancelled_and_is_sent_alone() {
    let filed = Filed::verified().await;
    let hour = bellwire_server::clock::system().now().as_millis() / 3_600_000;
    let at = |hour: i64| format!("{:02}:30", hour.rem_euclid(24));
    filed.change(json!({"quiet_hours": {"start": at(hour - 2), "end": at(hour + 2), "timezone": "UTC"}})).await;
    send(&filed.hub, &filed.agent, "Buy milk").await;
    let long = "x".repeat(9_000);
    for text in [long.as_str(), "never sent"] {
        let call = json!({"channel": "file", "message": text, "subject": "Results"});
        assert_eq!(tool(&filed.hub, &filed.agent, "notify", call).await["status"], "deferred");
    }
    let second = filed.until_state("waiting").await;
    assert_eq!((&second["channel"], &second["reason"]), (&json!("file"), &json!("quiet hours")));
    let cancel = format!("/v1/deliveries/{}/cancel", second["id"].as_str().unwrap());
    assert_eq!(filed.hub.post(&filed.ada, &cancel, json!({})).await.1["state"], "cancelled");
    filed.change(json!({"quiet_hours": null})).await;
    let mut lines = filed.until_lines(3).await.split_off(1);
    lines.sort();
    assert_eq!(lines, ["Buy milk".to_owned(), format!("Results: {long}")]);
}

#[tokio::test]
async fn readiness_and_metrics_name_it() {
    let filed = Filed::verified().await;
    let channels = async || filed.hub.get(&filed.hub.admin, "/readyz").await.1;
    let off = |name: &str| json!({"name": name, "status": "off"});
    let expected = json!([off("email"), off("telegram"), {"name": "file", "status": "ready"}]);
    assert_eq!(channels().await["channels"], expected);
    *filed.channel.status.lock().unwrap() = Some("the disk is gone".to_owned());
    let failing = channels().await;
    assert_eq!(failing["channels"][2], json!({"name": "file", "status": "failing"}));
    assert_eq!(failing["degraded"], json!(["file does not work; the log says why"]));
    let metrics = filed.hub.get(&filed.hub.admin, "/metrics").await.1;
    let metrics = metrics.as_str().unwrap();
    for line in [
        "bellwire_deliveries_waiting{channel=\"file\"} 0",
        "bellwire_deliveries_late_seconds{channel=\"file\"} 0.0",
        "bellwire_channel_up{channel=\"file\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }
    assert!(!metrics.contains("channel=\"email\""), "it is not configured");
}

#[tokio::test]
async fn two_channels_of_the_same_name_are_refused_at_start() {
    let twice = || -> Arc<dyn Channel> { Arc::new(FileChannel::default()) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let started =
        bellwire_server::App::start_with_channels(Config::default(), listener, async {}, vec![twice(), twice()]).await;
    let error = started.err().expect("it does not start").to_string();
    assert_eq!(error, "cannot set up the channel file: another channel has the same name");
}
