use std::time::Duration;

use telegram_standin::{Fault, Standin};
use tokio::net::TcpListener;

use super::*;
use crate::channels::telegram::text::{Text, TextPart};

const ADA: i64 = 1815;

fn api(standin: &Standin) -> BotApi {
    api_at(&standin.url())
}

fn api_at(url: &str) -> BotApi {
    let config = TelegramConfig {
        token: Some(Secret::new(Standin::TOKEN)),
        api_url: Some(url.to_owned()),
        answer_seconds: 1,
        ..crate::Config::default().telegram
    };
    BotApi::new(&config).expect("the settings are right").expect("Telegram is on")
}

fn standin() -> Standin {
    let standin = Standin::start();
    standin.open_chat(ADA);
    standin
}

fn part() -> TextPart {
    Text::plain("hello").split().remove(0)
}

async fn send(api: &BotApi) -> Result<SentMessage, CallError> {
    let part = part();
    api.send_message(&TextMessage { chat_id: ADA, part: &part, reply_to: None, buttons: &[] }).await
}

#[tokio::test]
async fn a_message_goes_out_and_its_id_comes_back() {
    let standin = standin();
    let api = api(&standin);
    assert_eq!(api.get_me().await.expect("it is there").username, Standin::USERNAME);
    assert_eq!(api.bot_id(), Standin::BOT_ID);
    let sent = send(&api).await.expect("it goes out");
    assert_eq!(standin.sent(ADA)[0].message_id, sent.message_id);
    assert_eq!(standin.calls_of("sendMessage")[0].parameters["link_preview_options"]["is_disabled"], true);
    api.set_reaction(ADA, sent.message_id, "👍").await.expect("it is allowed");
    api.edit_message(ADA, sent.message_id, &Text::plain("bye").split()[0]).await.expect("it is ours");
    assert_eq!((standin.sent(ADA)[0].text.as_str(), standin.sent(ADA)[0].reaction.as_deref()), ("bye", Some("👍")));
}

#[tokio::test]
async fn calls_share_connections() {
    let standin = standin();
    let api = api(&standin);
    for _ in 0..3 {
        api.get_me().await.expect("it is there");
    }
    assert_eq!(api.http.idle_count(), 1);
}

#[tokio::test]
async fn a_refusal_says_what_telegram_says() {
    let standin = standin();
    let api = api(&standin);
    standin.fail_next("sendMessage", Fault::TooManyRequests(7));
    let error = send(&api).await.expect_err("429");
    assert_eq!(error.refusal(429).expect("a refusal").retry_after, Some(Duration::from_secs(7)));
    standin.blocks(ADA);
    let error = send(&api).await.expect_err("403");
    assert_eq!(error.to_string(), "Telegram answered 403: Forbidden: bot was blocked by the user");
    standin.fail_next("sendMessage", Fault::error(500, "Internal Server Error"));
    assert!(send(&api).await.expect_err("500").refusal(500).is_some());
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_a_refused_connection_is_not_sent() {
    let standin = standin();
    let api = api(&standin);
    for fault in [Fault::CloseAfterAccepting, Fault::CloseUnread, Fault::Garbage, Fault::error(502, "Bad Gateway")] {
        standin.fail_next("sendMessage", fault.clone());
        let error = send(&api).await.expect_err("no answer");
        assert!(matches!(error, CallError::Unknown { .. }), "{fault:?}: {error:?}");
    }
    let hold = standin.hold("sendMessage");
    assert!(matches!(send(&api).await, Err(CallError::Unknown { .. })));
    drop(hold);
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let error = send(&api_at(&format!("http://{closed}"))).await.expect_err("nobody listens");
    assert!(matches!(error, CallError::NotSent { is_timeout: false, .. }), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
    let standin = standin();
    let api = api(&standin);
    api.get_me().await.expect("it is there");
    standin.fail_next("getMe", Fault::CloseAfterAccepting);
    assert!(api.get_me().await.is_err());
    // Nothing is left of the closed connection.
    send(&api).await.expect("over a new one");
}

#[tokio::test]
async fn the_token_stands_in_no_error_and_in_no_debug_output() {
    let standin = standin();
    let echo = format!("no bot{} here", Standin::TOKEN);
    for code in [400, 401, 502] {
        standin.fail_next("sendMessage", Fault::error(code, &echo));
    }
    let api = api(&standin);
    assert!(!format!("{api:?}").contains("Token_"));
    for _ in 0..3 {
        let error = send(&api).await.expect_err("refused");
        let said = format!("{error} {error:?}");
        assert!(said.contains("(hidden)") && !said.contains("Token_"), "{said}");
    }
    let wrong = TelegramConfig {
        token: Some(Secret::new("1:wrong")),
        api_url: Some(standin.url()),
        ..crate::Config::default().telegram
    };
    let wrong = BotApi::new(&wrong).expect("the settings are right").expect("Telegram is on");
    let error = wrong.get_me().await.expect_err("401");
    assert!(matches!(&error, CallError::Misconfigured { reason } if reason.contains("telegram.token")), "{error:?}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_read() {
    let standin = standin();
    standin.fail_next("getMe", Fault::Status(200, " ".repeat(ANSWER_BYTES_MAX + 1)));
    assert!(matches!(api(&standin).get_me().await, Err(CallError::Unknown { .. })));
}
