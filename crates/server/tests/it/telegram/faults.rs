//! What goes wrong at Telegram, and what the hub makes of it.

use std::time::{Duration, Instant};

use telegram_standin::{Fault, Standin};
use tokio::net::TcpListener;

use super::{ADA, Chat, config};
use crate::hub::TestHub;

#[tokio::test]
async fn a_429_is_obeyed_and_the_message_comes_once() {
    let chat = Chat::paired().await;
    let before = Instant::now();
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(1));
    chat.send("chat", "hello").await;
    let waiting = chat.until("waiting").await;
    assert!(waiting["reason"].as_str().unwrap().contains("429"), "{waiting}");
    assert_eq!(chat.count(), 1);
    chat.said(ADA, 2).await;
    assert!(before.elapsed() >= Duration::from_secs(1), "{:?}", before.elapsed());
    chat.until("sent").await;
}

#[tokio::test]
async fn a_429_holds_back_everything_for_that_chat() {
    let chat = Chat::paired().await;
    let before = Instant::now();
    chat.telegram.fail_next("sendMessage", Fault::TooManyRequests(2));
    chat.send("one", "first").await;
    chat.until("waiting").await;
    // Another conversation, and so another message.
    chat.send("two", "second").await;
    chat.said(ADA, 2).await;
    assert!(before.elapsed() >= Duration::from_secs(2), "{:?}", before.elapsed());
    chat.said(ADA, 3).await;
    let refused = chat.telegram.calls_of("sendMessage").iter().filter(|call| call.status == 429).count();
    assert_eq!((refused, chat.count()), (1, 3));
}

#[tokio::test]
async fn a_slow_answer_is_awaited_and_one_that_is_too_slow_is_unknown() {
    let chat = Chat::paired_with(|config| config.telegram.answer_seconds = 1).await;
    chat.telegram.fail_next("sendMessage", Fault::Delay(Duration::from_millis(300)));
    chat.send("chat", "slow").await;
    chat.until("sent").await;
    let gate = chat.telegram.hold("sendMessage");
    chat.send("chat", "too slow").await;
    let unknown = chat.until("unknown").await;
    assert!(unknown["reason"].as_str().unwrap().contains("did not answer within 1 s"), "{unknown}");
    drop(gate);
    chat.send("chat", "after").await;
    chat.until("sent").await;
    assert_eq!(chat.count(), 4, "it is not sent again");
    assert!(chat.inbox().await.iter().any(|one| one["kind"] == "note"), "the person is told");
}

#[tokio::test]
async fn a_400_ends_the_delivery_and_is_told() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::error(400, "Bad Request: message is too long"));
    chat.send("chat", "hello").await;
    let failed = chat.until("failed").await;
    assert!(failed["reason"].as_str().unwrap().contains("message is too long"), "{failed}");
    assert_eq!(chat.settings().await["enabled"], true);
    assert_eq!(chat.inbox().await.len(), 2, "the notification, and the note about it");
}

#[tokio::test]
async fn a_person_who_blocked_the_bot_is_told_in_the_inbox_and_the_channel_is_off() {
    let chat = Chat::paired().await;
    // The update about it is lost, so that the first message finds out.
    chat.telegram.fail_next("sendMessage", Fault::error(403, "Forbidden: bot was blocked by the user"));
    chat.send("chat", "hello").await;
    chat.until("failed").await;
    assert_eq!(chat.settings().await["enabled"], false);
    let notes: Vec<String> = chat.inbox().await.iter().map(|one| one["message"].as_str().unwrap().to_owned()).collect();
    assert!(notes.iter().any(|note| note.contains("Telegram")), "{notes:?}");
    chat.send("chat", "to the inbox only").await;
    assert_eq!(chat.deliveries().await.len(), 1);
    chat.telegram.types(ADA, "/start");
    assert!(chat.said(ADA, 2).await.text.contains("connected"));
    assert_eq!(chat.settings().await["enabled"], true);
}

#[tokio::test]
async fn blocking_the_bot_switches_the_channel_off_at_once() {
    let chat = Chat::paired().await;
    chat.telegram.blocks(ADA);
    crate::mailed::wait_for("the channel to be off", || async { chat.settings().await["enabled"] == false }).await;
    assert_eq!(chat.inbox().await.len(), 1);
}

#[tokio::test]
async fn a_500_is_tried_again() {
    let chat = Chat::paired().await;
    chat.telegram.fail_next("sendMessage", Fault::error(500, "Internal Server Error"));
    chat.send("chat", "hello").await;
    chat.until("waiting").await;
    let id = chat.deliveries().await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(chat.deliveries().await[0]["attempts"], 1, "{id}");
    assert_eq!(chat.count(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_is_not_sent_again() {
    for fault in [Fault::CloseAfterAccepting, Fault::CloseUnread, Fault::Garbage, Fault::error(502, "Bad Gateway")] {
        let chat = Chat::paired().await;
        chat.telegram.fail_next("sendMessage", fault.clone());
        chat.send("chat", "hello").await;
        let unknown = chat.until("unknown").await;
        assert_eq!(unknown["attempts"], 1, "{fault:?}");
        chat.send("chat", "after").await;
        chat.until("sent").await;
        let texts: Vec<String> = chat.telegram.sent(ADA)[1..].iter().map(|one| one.text.clone()).collect();
        let hello = texts.iter().filter(|text| text.contains("hello")).count();
        assert!(hello <= 1, "{texts:?}");
    }
}

#[tokio::test]
async fn a_telegram_that_is_away_loses_nothing() {
    let telegram = Standin::start();
    let hub = TestHub::start_with(config(&telegram, |_| {})).await;
    let chat = Chat::of(telegram, hub).await;
    chat.pair(ADA).await;
    let folder = chat.hub.stop().await;
    // Nobody listens at this port any more.
    let away = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let telegram = chat.telegram;
    let hub =
        TestHub::start_as(config(&telegram, |config| config.telegram.api_url = Some(format!("http://{away}"))), folder)
            .await;
    let chat = Chat::of(telegram, hub).await;
    chat.send("chat", "hello").await;
    let waiting = chat.until("waiting").await;
    assert!(waiting["reason"].as_str().unwrap().contains("cannot be reached"), "{waiting}");
    let folder = chat.hub.stop().await;
    let chat = Chat::resume(chat.telegram, folder).await;
    assert!(chat.said(ADA, 2).await.text.contains("hello"));
}

#[tokio::test]
async fn another_poller_is_reported_and_the_hub_goes_on() {
    let chat = Chat::paired().await;
    let url = format!("{}/bot{}/getUpdates", chat.telegram.url(), chat.telegram.token());
    // It ends the poll of the hub.
    chat.telegram.wait_until("the hub's poll", |telegram| (telegram.waiting_polls() == 1).then_some(())).await;
    chat.hub.client.get(&url).send().await.unwrap();
    let conflict = |telegram: &Standin| telegram.calls_of("getUpdates").into_iter().find(|call| call.status == 409);
    chat.telegram.wait_until("the conflict", conflict).await;
    chat.open("only", None).await;
    chat.telegram.types(ADA, "/help");
    assert!(chat.said(ADA, 2).await.text.contains("/mute"));
}

#[tokio::test]
async fn polling_goes_on_after_errors() {
    let chat = Chat::paired().await;
    for fault in [Fault::error(500, "Internal Server Error"), Fault::Garbage, Fault::CloseUnread] {
        chat.telegram.fail_next("getUpdates", fault);
    }
    chat.telegram.types(ADA, "/help");
    // The poll that waits brings it; the next three fail.
    chat.said(ADA, 2).await;
    chat.telegram.types(ADA, "/help");
    chat.said(ADA, 3).await;
}

#[tokio::test]
async fn an_update_that_was_not_confirmed_is_handled_once() {
    let chat = Chat::paired().await;
    chat.open("only", None).await;
    // Telegram gives the update, and the hub does not hear of it: it gets it again.
    chat.telegram.fail_next("getUpdates", Fault::CloseAfterAccepting);
    chat.telegram.types(ADA, "/help");
    chat.said(ADA, 2).await;
    chat.telegram.types(ADA, "once");
    chat.confirmed().await;
    let folder = chat.hub.stop().await;
    let chat = Chat::resume(chat.telegram, folder).await;
    chat.telegram.types(ADA, "/help");
    chat.said(ADA, 3).await;
    let block = chat.block("only", "1").await;
    assert_eq!(block.matches("once").count(), 1, "{block}");
}

#[tokio::test]
async fn an_old_query_that_cannot_be_answered_is_no_fault() {
    let chat = Chat::paired().await;
    chat.open("chat", None).await;
    chat.ask("chat").await;
    let asked = chat.said(ADA, 2).await;
    chat.telegram.fail_next("answerCallbackQuery", Fault::error(400, "Bad Request: query is too old"));
    chat.telegram.presses(ADA, asked.message_id, "Go");
    let edited = |telegram: &Standin| telegram.sent(ADA).into_iter().find(|one| one.edits > 0);
    chat.telegram.wait_until("the edit", edited).await;
}

#[tokio::test]
async fn an_edit_that_fails_is_tried_again() {
    let chat = Chat::paired().await;
    chat.open("chat", None).await;
    chat.ask("chat").await;
    let asked = chat.said(ADA, 2).await;
    chat.telegram.fail_next("editMessageText", Fault::error(500, "Internal Server Error"));
    chat.telegram.presses(ADA, asked.message_id, "Go");
    let edited = |telegram: &Standin| telegram.sent(ADA).into_iter().find(|one| one.edits > 0);
    tokio::time::timeout(Duration::from_secs(30), chat.telegram.wait_until("the edit", edited)).await.unwrap();
}
