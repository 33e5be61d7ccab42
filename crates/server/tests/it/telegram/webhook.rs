use bellwire_server::config::TelegramMode;
use reqwest::StatusCode;
use serde_json::json;
use telegram_standin::Standin;

use super::{ADA, Chat, config};
use crate::hub::TestHub;

const SECRET: &str = "0123456789abcdef_secret";

/// A hub that Telegram calls. Its port must be known before it starts.
async fn start() -> Chat {
    let telegram = Standin::start();
    let folder = tempfile::tempdir().unwrap();
    let secret_file = folder.path().join("secret");
    std::fs::write(&secret_file, format!("{SECRET}\n")).unwrap();
    let config = config(&telegram, |config| {
        config.telegram.mode = TelegramMode::Webhook;
        config.telegram.webhook_secret_file = Some(secret_file);
    });
    let hub = TestHub::start_with(config).await;
    drop(folder);
    let chat = Chat::of(telegram, hub).await;
    chat.telegram.wait_for_calls("setWebhook", 1).await;
    chat
}

#[tokio::test]
async fn updates_arrive_by_the_webhook() {
    let chat = start().await;
    let set = &chat.telegram.calls_of("setWebhook")[0];
    assert_eq!(set.parameters["secret_token"], SECRET);
    assert_eq!(set.parameters["url"], json!(format!("{}/telegram/webhook", chat.hub.base)));
    chat.pair(ADA).await;
    chat.open("only", None).await;
    chat.telegram.types(ADA, "hello");
    chat.confirmed().await;
    crate::mailed::wait_for("the words to arrive", || async {
        let (_, events) = chat.hub.get(&chat.hub.admin, "/v1/events?type=user.message&user_id=ada").await;
        events["items"].as_array().is_some_and(|items| items.len() == 1)
    })
    .await;
    assert!(chat.telegram.calls_of("getUpdates").is_empty());
}

#[tokio::test]
async fn a_call_without_the_secret_is_refused() {
    let chat = start().await;
    let url = format!("{}/telegram/webhook", chat.hub.base);
    let update = json!({"update_id": 1, "message": {"message_id": 1, "chat": {"id": 7, "type": "private"},
        "from": {"id": 7}, "text": "hi"}});
    let post = |secret: Option<&str>, body: String| {
        let request = chat.hub.client.post(&url).header("content-type", "application/json").body(body);
        let request = match secret {
            Some(secret) => request.header("X-Telegram-Bot-Api-Secret-Token", secret),
            None => request,
        };
        async move { request.send().await.unwrap().status() }
    };
    for wrong in [None, Some(""), Some("0123456789abcdef_secreT"), Some(&SECRET[1..])] {
        assert_eq!(post(wrong, update.to_string()).await, StatusCode::UNAUTHORIZED, "{wrong:?}");
    }
    assert_eq!(post(Some(SECRET), "{}".to_owned()).await, StatusCode::BAD_REQUEST);
    assert_eq!(post(Some(SECRET), update.to_string()).await, StatusCode::NO_CONTENT);
    // The same update again is stored once and answered alike.
    assert_eq!(post(Some(SECRET), update.to_string()).await, StatusCode::NO_CONTENT);
    let unknown = chat.hub.client.post(format!("{}/fax/webhook", chat.hub.base)).json(&update).send().await.unwrap();
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_replayed_call_with_another_text_changes_nothing() {
    let chat = start().await;
    chat.pair(ADA).await;
    chat.open("only", None).await;
    let post = |text: &str| {
        let message =
            json!({"message_id": 900, "chat": {"id": ADA, "type": "private"}, "from": {"id": ADA}, "text": text});
        let request = chat.hub.client.post(format!("{}/telegram/webhook", chat.hub.base));
        let request = request.header("X-Telegram-Bot-Api-Secret-Token", SECRET);
        let request = request.json(&json!({"update_id": 5, "message": message}));
        async move { request.send().await.unwrap().status() }
    };
    assert_eq!(post("once").await, StatusCode::NO_CONTENT);
    assert!(chat.wait_for_block("only").await.contains("once"));
    assert_eq!(post("replayed").await, StatusCode::NO_CONTENT);
    chat.telegram.types(ADA, "last");
    let block = chat.wait_for_block("only").await;
    assert!(block.contains("last") && !block.contains("replayed"), "{block}");
}

#[tokio::test]
async fn a_process_that_only_sends_does_not_take_the_updates_of_the_hub() {
    let chat = Chat::paired().await;
    let sender = TestHub::start_with(config(&chat.telegram, |config| {
        config.telegram.mode = TelegramMode::Send;
        let target = bellwire_server::config::AllowedTarget::parse(&format!("telegram:{ADA}")).unwrap();
        config.notify.allow.insert("butler".into(), vec![target]);
    }))
    .await;
    let agent = sender.token("agent", "eve").await;
    let arguments = json!({"channel": "telegram", "message": "from elsewhere", "recipient": ADA.to_string()});
    let (_, answer) = sender.post(&agent, "/v1/tools/notify", json!({ "arguments": arguments })).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    assert_eq!(chat.said(ADA, 2).await.text, "[butler] from elsewhere");
    chat.telegram.types(ADA, "/help");
    chat.said(ADA, 3).await;
    let calls = chat.telegram.calls();
    let of = |method: &str| calls.iter().filter(|call| call.is(method)).count();
    assert_eq!((of("deleteWebhook"), of("setWebhook")), (1, 0), "only the hub's");
    assert!(calls.iter().all(|call| call.status != 409), "{calls:?}");
}

#[tokio::test]
async fn a_hub_that_polls_takes_no_calls_and_removes_an_older_webhook() {
    let telegram = Standin::start();
    let url = format!("{}/bot{}/setWebhook", telegram.url(), telegram.token());
    let hub = TestHub::start_with(config(&telegram, |config| config.telegram.token = None)).await;
    let set = hub.client.post(url).json(&json!({"url": "http://127.0.0.1:1/x"})).send().await.unwrap();
    assert_eq!(set.status(), StatusCode::OK);
    hub.stop().await;
    let hub = TestHub::start_with(config(&telegram, |_| {})).await;
    let chat = Chat::of(telegram, hub).await;
    chat.pair(ADA).await;
    let answer = chat.hub.client.post(format!("{}/telegram/webhook", chat.hub.base)).json(&json!({})).send().await;
    assert_eq!(answer.unwrap().status(), StatusCode::NOT_FOUND);
}
