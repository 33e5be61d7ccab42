//! `notify` by email, from the call to a real SMTP server: send, reply in its thread, and no reactions.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Post, header, plain, wait_for};
use crate::email::peer::{MailServer, listener};
use crate::people::tool;

async fn notify(post: &Post<'_>, arguments: Value) -> Value {
    let mut call = arguments;
    call["channel"] = json!("email");
    tool(&post.hub, &post.agent, "notify", call).await
}

/// The context of a mail that Ada has sent.
fn context(thread: Option<&str>) -> Value {
    let mut context = json!({
        "request_id": uuid::Uuid::from_u128(1), "source_channel": "email",
        "source_endpoint_identity": "email:bell@example.org", "source_sender_identity": "Ada@example.org",
    });
    if let Some(thread) = thread {
        context["source_thread_identity"] = json!(thread);
    }
    context
}

fn headers<'a>(mail: &'a Value, name: &str) -> Vec<&'a Value> {
    let all = mail["headers"].as_array().unwrap().iter();
    all.filter(|header| header[0] == name).map(|header| &header[1]).collect()
}

#[tokio::test]
async fn a_send_arrives_with_the_origin_in_its_subject_and_its_message_id_is_the_delivery_id() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = Post::open(&server, "x").await;
    let text = "The backup of 3 May failed:\n\nthe disk is full.";
    let sent = notify(&post, json!({"message": text, "subject": "Backup failed"})).await;
    assert_eq!(sent["status"], "ok", "{sent}");
    let mail = post.received(2).await.remove(1);
    assert_eq!(header(&mail, "Subject"), "[butler] Backup failed");
    assert_eq!(
        (&sent["delivery"]["channel"], header(&mail, "Message-ID")),
        (&json!("email"), sent["delivery"]["delivery_id"].as_str().unwrap())
    );
    assert!(plain(&mail).contains("| the disk is full."), "{}", plain(&mail));
    assert_eq!(mail["recipients"], json!([["", "ada@example.org"]]));
    assert!(!headers(&mail, "List-Unsubscribe").is_empty() && headers(&mail, "In-Reply-To").is_empty());
    let plain_subject = notify(&post, json!({"message": "Hello"})).await;
    assert_eq!(plain_subject["status"], "ok", "{plain_subject}");
    assert_eq!(header(&post.received(3).await[2], "Subject"), "[butler] Notification");
    assert_eq!((post.inbox().await.len(), post.deliveries().await.len()), (2, 0), "one item each, no second delivery");
}

#[tokio::test]
async fn a_reply_goes_to_the_sender_in_the_thread_of_its_message_id_or_is_refused() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = Post::open(&server, "x").await;
    let reply = |context: Value| json!({"intent": "reply", "message": "Done.", "subject": "Re: Help", "request_context": context});
    assert_eq!(notify(&post, reply(context(Some("<a.1@mail.example>")))).await["status"], "ok");
    assert_eq!(notify(&post, reply(context(None))).await["status"], "ok");
    let mails = post.received(3).await;
    assert_eq!(headers(&mails[1], "In-Reply-To"), [&json!("<a.1@mail.example>")]);
    assert_eq!(headers(&mails[1], "References"), [&json!("<a.1@mail.example>")]);
    assert!(headers(&mails[2], "In-Reply-To").is_empty() && headers(&mails[2], "References").is_empty());
    assert!(
        mails[1..].iter().all(|mail| mail["recipients"] == json!([["", "ada@example.org"]])),
        "as she confirmed it"
    );
    assert_eq!(post.inbox().await.len(), 0, "a reply adds no inbox item");
    let mut foreign = context(Some("<a.1@mail.example>"));
    foreign["source_sender_identity"] = json!("eve@example.org");
    let wrong_threads = ["a.1@mail.example", "<a@b> <c@d>", "<a@b>\r\nBcc: eve@example.org", ""];
    let wrong = wrong_threads.map(|thread| reply(context(Some(thread))));
    for call in wrong.into_iter().chain([reply(foreign)]) {
        let refused = notify(&post, call.clone()).await;
        assert_eq!(
            (&refused["status"], &refused["error_class"]),
            (&json!("error"), &json!("validation_error")),
            "{call}"
        );
    }
    let elsewhere =
        json!({"intent": "reply", "message": "x", "recipient": "eve@example.org", "request_context": context(None)});
    assert_eq!(notify(&post, elsewhere).await["error_class"], "validation_error");
    assert_eq!(server.received("x").len(), 3, "nothing went elsewhere");
}

#[tokio::test]
async fn a_reaction_is_refused_with_the_reason() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = Post::open(&server, "x").await;
    let react =
        json!({"intent": "react", "emoji": "\u{1f44d}", "request_context": context(Some("<a.1@mail.example>"))});
    let refused = notify(&post, react).await;
    let expected = "Unsupported intent 'react' on channel 'email', which has no reactions. Use intent 'reply'";
    assert_eq!((refused["error"].as_str(), &refused["retryable"]), (Some(expected), &json!(false)));
    assert_eq!(server.received("x").len(), 1);
}

#[tokio::test]
async fn a_deferred_message_is_one_mail_with_its_whole_text_and_can_be_cancelled() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = Post::open(&server, "x").await;
    let quiet =
        json!({"quiet_hours": {"start": crate::notify::clock(-1), "end": crate::notify::clock(3), "timezone": "UTC"}});
    post.change(quiet).await;
    let text = format!("{}the very end", "All work and no play. ".repeat(700));
    let deferred = notify(&post, json!({"message": text, "subject": "A novel"})).await;
    assert_eq!(deferred["status"], "deferred", "{deferred}");
    let cancelled = notify(&post, json!({"message": "never", "subject": "Never"})).await;
    let held = post.deliveries().await;
    assert_eq!(
        held.iter().map(|one| &one["notification_id"]).collect::<Vec<_>>(),
        [&cancelled["notification_id"], &deferred["notification_id"]]
    );
    let path = format!("/v1/deliveries/{}/cancel", held[0]["id"].as_str().unwrap());
    assert_eq!(post.hub.post(&post.ada, &path, json!({})).await.0, StatusCode::OK);
    post.change(json!({"quiet_hours": null})).await;
    let mail = post.received(2).await.remove(1);
    assert_eq!(header(&mail, "Subject"), "[butler] A novel");
    assert!(plain(&mail).contains("the very end"), "the whole text");
    wait_for("both to end", || async { post.deliveries().await.iter().all(|one| one["ended_at"].is_string()) }).await;
    assert_eq!(server.received("x").len(), 2);
    let (_, ledger) = post.hub.get(&post.agent, "/v1/ledger").await;
    let decisions: Vec<&Value> = ledger["items"].as_array().unwrap().iter().map(|one| &one["decision"]).collect();
    assert_eq!(decisions, ["delivered", "refused", "deferred", "deferred"]);
}

#[tokio::test]
async fn every_way_in_which_a_mail_server_fails_has_its_class_and_only_what_was_not_sent_can_be_retried() {
    let cases = [
        ("busy", json!({"at": "rcpt", "do": "451 4.3.0 later", "after": 1}), "target_unavailable", true, 0),
        ("spam", json!({"at": "end", "do": "554 5.7.1 spam", "after": 1}), "validation_error", false, 0),
        (
            "gone",
            json!({"at": "rcpt", "do": "550 5.1.1 no <ada@example.org>", "after": 1}),
            "validation_error",
            false,
            0,
        ),
        ("lost", json!({"at": "end", "do": "drop", "after": 1, "take": true}), "timeout", false, 1),
    ];
    let ports: Vec<Value> = cases.iter().map(|(name, fault, ..)| listener(name, json!([fault]))).collect();
    let server = MailServer::start(&ports);
    for (name, _, class, retryable, copies) in cases {
        let post = Post::open(&server, name).await;
        let body = json!({
            "arguments": {"channel": "email", "message": "Hello"}, "context": {"idempotency_key": "k"},
        });
        let (_, failed) = post.hub.post(&post.agent, "/v1/tools/notify", body.clone()).await;
        let error = &failed["error"];
        assert_eq!((&error["class"], &error["retryable"]), (&json!(class), &json!(retryable)), "{name}: {failed}");
        assert!(!failed.to_string().contains("ada@"), "{name}: {failed}");
        if name == "lost" {
            assert!(error["message"].as_str().unwrap().starts_with("Delivery outcome unknown"), "{failed}");
            let (_, again) = post.hub.post(&post.agent, "/v1/tools/notify", body).await;
            assert_eq!(&again["error"], error, "it is never sent again");
        }
        assert_eq!(server.received(name).len() - 1, copies, "{name}");
        let (_, settings) = post.hub.get(&post.ada, "/v1/users/ada/settings").await;
        assert_eq!(settings["email"]["enabled"], name != "gone", "{name}");
    }
}
