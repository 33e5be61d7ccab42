//! Email: when it is sent, how often, and its headers.

use std::sync::atomic::Ordering;

use bellwire_core::Time;
use bellwire_core::person::{ChannelChange, SettingsChange};
use bellwire_store::{AttemptOutcome, DeliveryState};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::email::peer::{MailServer, listener};
use crate::mailed;
use crate::outbox::{Post, time};
use crate::people::{send, tool};
use crate::scripted_channel::email;

/// There, the text became the subject unescaped, and the mail had neither `Date` nor `Message-ID`.
#[tokio::test]
async fn a_message_cannot_break_out_of_the_subject_and_a_mail_has_date_and_message_id() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = mailed::Post::open(&server, "x").await;
    send(&post.hub, &post.agent, "Grüße\r\nBcc: eve@example.org\r\n\r\nhello").await;
    let mail = post.received(2).await.remove(1);
    assert_eq!(mailed::header(&mail, "Subject"), "[butler] Info: Grüße Bcc: eve@example.org hello");
    assert_eq!((&mail["to"], &mail["defects"]), (&json!(["ada@example.org"]), &json!([])));
    let names = |name: &str| {
        let headers = mail["headers"].as_array().unwrap().iter();
        headers.filter(|header| header[0].as_str().unwrap().eq_ignore_ascii_case(name)).count()
    };
    assert_eq!(["Bcc", "Date", "Message-ID", "Subject"].map(names), [0, 1, 1, 1]);
    assert!(mail["date"].as_str().unwrap().starts_with("20"), "{mail}");
}

/// There, the window included both ends, and its end was computed by adding hours across a clock change.
#[tokio::test]
async fn quiet_hours_include_their_start_and_exclude_their_end_across_clock_changes() {
    // Germany, the night of 29 March 2026: 02:00 is followed by 03:00, so the window is an hour shorter.
    let post = Post::open(true, "2026-03-28T20:59:59.999Z").await;
    post.quiet("22:00", "07:00", "Europe/Berlin").await;
    let outbox = post.outbox(AttemptOutcome::Sent);
    post.tell("just before").await;
    assert_eq!(outbox.step().await, 1);
    post.set(time("2026-03-28T21:00:00Z"));
    post.tell("at the first moment").await;
    assert_eq!(outbox.step().await, 0);
    post.set(time("2026-03-29T04:59:59.999Z"));
    assert_eq!(outbox.step().await, 0, "07:00 is 05:00 UTC from this night on, and not 06:00");
    post.set(time("2026-03-29T05:00:00Z"));
    assert_eq!(outbox.step().await, 1);
    post.tell("at the last").await;
    assert_eq!(outbox.step().await, 1);
    assert_eq!(post.sent(), [["just before"], ["at the first moment"], ["at the last"]]);
}

/// There, held mail was sent whatever the person had done in the meantime.
#[tokio::test]
async fn held_mail_is_not_sent_after_a_read_a_dismissal_or_disabling_mail() {
    let held = || async {
        let post = Post::open(false, "2026-01-03T23:00:00Z").await;
        post.quiet("22:00", "07:00", "UTC").await;
        let id = post.tell("news").await;
        (post, id)
    };
    let (read, id) = held().await;
    read.store.mark("ada".into(), id, true).await.unwrap();
    let (dismissed, id) = held().await;
    dismissed.store.dismiss("ada".into(), id).await.unwrap();
    let (off, _) = held().await;
    let switched_off = ChannelChange { enabled: Some(false), target: None };
    off.change(SettingsChange::of_channel(email(), switched_off)).await;
    let (moved, _) = held().await;
    moved.quiet("22:00", "09:00", "UTC").await;
    for (post, state) in [
        (read, DeliveryState::Skipped),
        (dismissed, DeliveryState::Skipped),
        (off, DeliveryState::Skipped),
        (moved, DeliveryState::Waiting),
    ] {
        post.set(time("2026-01-04T07:00:00Z"));
        assert_eq!((post.outbox(AttemptOutcome::Sent).step().await, post.states().await), (0, vec![state]));
    }
}

/// There, workers claimed nothing, so that two of them sent everything twice.
#[tokio::test]
async fn two_workers_do_not_double_send() {
    let post = Post::open(true, "2026-01-03T12:00:00Z").await;
    for number in 0..20 {
        post.tell(&format!("{number:02}")).await;
        let (one, other) = (post.outbox(AttemptOutcome::Sent), post.outbox(AttemptOutcome::Sent));
        let begun = tokio::join!(one.step(), other.step());
        assert_eq!(begun.0 + begun.1, 1, "one of them has it");
    }
    assert_eq!(post.sent().concat(), (0..20).map(|number| format!("{number:02}")).collect::<Vec<_>>());
}

/// There, a failed attempt was never retried.
#[tokio::test]
async fn a_failed_attempt_is_retried() {
    let post = Post::open(true, "2026-01-03T12:00:00Z").await;
    post.tell("news").await;
    let busy = || AttemptOutcome::TryAgain { reason: "451 busy".into(), retry_after_ms: None };
    assert_eq!(post.outbox(busy()).step().await, 1);
    assert_eq!(post.states().await, [DeliveryState::Waiting]);
    post.clock.fetch_add(6_000, Ordering::SeqCst);
    assert_eq!(post.outbox(AttemptOutcome::Sent).step().await, 1);
    assert_eq!(post.states().await, [DeliveryState::Sent]);
}

/// There, immediate mail was a task in memory: a crash lost it without a trace.
#[tokio::test]
async fn immediate_mail_is_not_lost_in_a_crash() {
    let mut post = Post::open(true, "2026-01-03T12:00:00Z").await;
    post.tell("news").await;
    post.restart().await;
    assert_eq!(post.states().await, [DeliveryState::Waiting], "that it is due is on disk");
    assert_eq!(post.outbox(AttemptOutcome::Sent).step().await, 1);
    assert_eq!(post.sent(), [["news"]]);
}

/// There, the time of the last digest was only in memory, so that each start sent it again.
#[tokio::test]
async fn a_restart_does_not_send_a_digest_again() {
    let mut post = Post::open(true, "2026-01-03T23:00:00Z").await;
    post.quiet("22:00", "07:00", "UTC").await;
    for text in ["first", "second", "third"] {
        post.tell(text).await;
    }
    post.restart().await;
    post.set(time("2026-01-04T07:00:00Z"));
    assert_eq!(post.outbox(AttemptOutcome::Sent).step().await, 1);
    assert_eq!(post.sent(), [["first", "second", "third"]]);
    for hour in 1..=24 {
        post.restart().await;
        post.set(Time::from_millis(time("2026-01-04T07:00:00Z").as_millis() + hour * 3_600_000));
        assert_eq!(post.outbox(AttemptOutcome::Sent).step().await, 0);
    }
    assert_eq!(post.states().await, [DeliveryState::Sent; 3]);
}

/// There, acknowledging a delivered message failed with 404.
#[tokio::test]
async fn a_delivered_notification_can_be_marked_as_read() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = mailed::Post::open(&server, "x").await;
    let button = json!({"label": "Got it", "action": "prompt", "prompt": "I have read it"});
    let toast = json!({"message": "Look", "severity": "info", "actions": [button]});
    let shown = tool(&post.hub, &post.agent, "show_notification", toast).await;
    post.until("sent", 1).await;
    let path = format!("/v1/users/ada/notifications/{}", shown["notification"]["id"].as_str().unwrap());
    let read = Some(json!({"read": true}));
    let answers: [(StatusCode, Value); 3] = [
        post.hub.call(&post.ada, Method::PATCH, &path, read).await,
        post.hub.post(&post.ada, &format!("{path}/actions/0"), json!({})).await,
        post.hub.call(&post.ada, Method::DELETE, &path, None).await,
    ];
    assert!(answers.iter().all(|(status, _)| *status == StatusCode::OK), "{answers:?}");
}
