//! A Messenger on another machine sends, and the hub receives what people answer.

use bellwire_server::Config;
use bellwire_server::config::{AllowedTarget, RemoteConfig, TelegramMode};
use serde_json::json;
use telegram_standin::{Fault, Standin};

use super::{ADA, Chat, config};
use crate::hub::TestHub;

/// The hub with the poller, and the two processes behind it.
struct Elsewhere {
    chat: Chat,
    _switchboard: TestHub,
    _messenger: TestHub,
}

/// Makes a token for another process, and its section of the configuration.
async fn remote(hub: &TestHub, origin: &str) -> (RemoteConfig, tempfile::NamedTempFile) {
    let (_, answer) = hub.post(&hub.admin, "/v1/tokens", json!({"scope": "daemon", "origin": origin})).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), answer["token"].as_str().unwrap()).unwrap();
    (RemoteConfig { url: Some(hub.base.clone()), token_file: Some(file.path().to_owned()) }, file)
}

impl Elsewhere {
    async fn paired() -> Self {
        let telegram = Standin::start();
        let messenger = TestHub::start_with(config(&telegram, |config| {
            config.telegram.mode = TelegramMode::Send;
            let target = AllowedTarget::parse(&format!("telegram:{ADA}")).unwrap();
            config.notify.allow.insert("butler".into(), vec![target]);
        }))
        .await;
        let (to_messenger, _file) = remote(&messenger, "switchboard").await;
        let mut settings = Config::default();
        settings.messenger.remote = to_messenger;
        let switchboard = TestHub::start_with(settings).await;
        let (to_switchboard, _file) = remote(&switchboard, "hub").await;
        let hub = TestHub::start_with(config(&telegram, |config| config.switchboard = to_switchboard)).await;
        let chat = Chat::of(telegram, hub).await;
        chat.pair(ADA).await;
        Self { chat, _switchboard: switchboard, _messenger: messenger }
    }
}

#[tokio::test]
async fn an_answer_to_any_part_of_a_message_that_was_sent_elsewhere_finds_its_conversation() {
    let Elsewhere { chat, .. } = &Elsewhere::paired().await;
    chat.open("trip", None).await;
    chat.open("other", None).await;
    let answer = chat.notify("trip", json!({"message": "word ".repeat(1500)})).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    let parts = chat.telegram.wait_for_sent(ADA, 3).await.split_off(1);
    for (number, part) in parts.iter().enumerate() {
        chat.telegram.replies(ADA, part.message_id, &format!("answer {number}"));
        assert!(chat.wait_for_block("trip").await.contains(&format!("answer {number}")));
    }
    assert_eq!((chat.block("other", "other").await.as_str(), chat.count()), ("", 3));
}

#[tokio::test]
async fn an_answer_to_a_part_of_a_message_that_arrived_in_part_finds_its_conversation() {
    let Elsewhere { chat, .. } = &Elsewhere::paired().await;
    chat.open("trip", None).await;
    chat.open("other", None).await;
    chat.telegram.fail_next("sendMessage", Fault::Delay(std::time::Duration::ZERO));
    chat.telegram.fail_next("sendMessage", Fault::error(400, "Bad Request: something"));
    let answer = chat.notify("trip", json!({"message": "word ".repeat(1500)})).await;
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("1 of 2 parts delivered"), "{answer}");
    let first = chat.said(ADA, 2).await;
    chat.telegram.replies(ADA, first.message_id, "and the rest?");
    assert!(chat.wait_for_block("trip").await.contains("and the rest?"));
}

#[tokio::test]
async fn mute_as_an_answer_to_a_message_that_was_sent_elsewhere_mutes_its_sender() {
    let Elsewhere { chat, .. } = &Elsewhere::paired().await;
    chat.notify("chat", json!({"message": "hello"})).await;
    let sent = chat.said(ADA, 2).await;
    chat.telegram.replies(ADA, sent.message_id, "/mute");
    let said = chat.said(ADA, 3).await.text;
    assert!(said.contains("butler"), "{said}");
    let refused = chat.notify("chat", json!({"message": "hello again"})).await;
    assert!(refused["error"].as_str().is_some_and(|said| said.contains("muted 'butler'")), "{refused}");
}

#[tokio::test]
async fn a_reaction_that_was_made_elsewhere_does_not_change_whose_message_it_belongs_to() {
    let Elsewhere { chat, .. } = &Elsewhere::paired().await;
    let asked = chat.writes("trip", "we leave at noon").await;
    assert_eq!(chat.notify("trip", json!({"intent": "react", "emoji": "👍"})).await["status"], "ok");
    chat.open("other", None).await;
    // The person mutes nobody by answering their own message.
    chat.telegram.replies(ADA, asked, "/mute");
    let said = chat.said(ADA, 2).await.text;
    assert!(said.starts_with("This message is not from one sender"), "{said}");
}

#[tokio::test]
async fn a_bot_that_is_blocked_at_the_messenger_is_switched_off_at_the_hub() {
    let Elsewhere { chat, .. } = &Elsewhere::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::error(403, "Forbidden: bot was blocked by the user"));
    let answer = chat.notify("chat", json!({"message": "hello"})).await;
    assert_eq!(answer["error"]["class"], "validation_error", "{answer}");
    assert_eq!(chat.settings().await["enabled"], false);
    let inbox = chat.inbox().await;
    assert_eq!(inbox.iter().filter(|item| item["kind"] == "note").count(), 1, "{inbox:?}");
}
