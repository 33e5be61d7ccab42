use std::time::{Duration, Instant};

use bellwire_server::channels::email::{EmailAddress, SmtpOutcome, SmtpStep};
use bellwire_server::config::{EmailConfig, EmailTls, Secret};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::note;
use super::peer::{MailServer, listener, smtp, unencrypted};

/// The SMTP steps before the final dot: (the server's name for it, the outcome's name for it).
const STEPS: [(&str, &str); 6] = [
    ("greeting", "its greeting"),
    ("ehlo", "EHLO"),
    ("starttls", "STARTTLS"),
    ("mail", "MAIL FROM"),
    ("rcpt", "RCPT TO"),
    ("data", "DATA"),
];

/// The SMTP timeout of these tests: long enough for a busy machine, short enough to wait for.
const SILENCE_SECONDS: u64 = 5;

fn reason(outcome: &SmtpOutcome) -> &str {
    match outcome {
        SmtpOutcome::TryAgain { reason, .. }
        | SmtpOutcome::Unknown { reason }
        | SmtpOutcome::Misconfigured { reason } => reason,
        other => panic!("{other:?}"),
    }
}

fn big_message() -> Vec<u8> {
    [b"Subject: big\r\n\r\n".to_vec(), b"0123456789\r\n".repeat(1_500_000)].concat()
}

async fn send_big(settings: &EmailConfig) -> SmtpOutcome {
    let address = |text| EmailAddress::parse(text).expect("an address");
    smtp(settings).send(&address("bell@example.org"), &address("ada@example.org"), &big_message()).await
}

#[tokio::test]
async fn temporary_refusals_are_retried_and_permanent_ones_are_not() {
    let cases = [
        ("mail", SmtpStep::Sender),
        ("rcpt", SmtpStep::Recipient),
        ("data", SmtpStep::Data),
        ("end", SmtpStep::Answer),
    ];
    let faults = |code: &str| {
        let named = |at: &str| listener(&format!("{at}-{code}"), json!([{"at": at, "do": format!("{code} 9.9.9 no")}]));
        cases.iter().map(|(at, _)| named(at)).collect::<Vec<Value>>()
    };
    let server = MailServer::start(&[faults("451"), faults("452"), faults("550"), faults("554")].concat());
    for (at, step) in cases {
        for code in ["451", "452"] {
            let outcome = server.smtp(&format!("{at}-{code}")).deliver(&note("x")).await;
            let expected = format!("the server said {code} 9.9.9 no at {step}");
            assert_eq!(outcome, SmtpOutcome::TryAgain { reason: expected, retry_after: None });
        }
        for code in [550, 554] {
            let outcome = server.smtp(&format!("{at}-{code}")).deliver(&note("x")).await;
            assert_eq!(outcome, SmtpOutcome::Refused { step, code, enhanced: None, text: "9.9.9 no".into() });
        }
        for code in ["451", "452", "550", "554"] {
            assert_eq!(server.received(&format!("{at}-{code}")).len(), 0, "{at} {code}");
        }
    }
}

#[tokio::test]
async fn refusals_before_mail_from_are_configuration_errors() {
    let faults = ["greeting", "ehlo", "starttls"].map(|at| listener(at, json!([{"at": at, "do": "554 5.3.2 closed"}])));
    let server = MailServer::start(&faults);
    for at in ["greeting", "ehlo", "starttls"] {
        let outcome = server.smtp(at).deliver(&note("x")).await;
        assert!(matches!(outcome, SmtpOutcome::Misconfigured { .. }), "{at}: {outcome:?}");
        assert!(reason(&outcome).contains("554 5.3.2 closed"), "{outcome:?}");
    }
}

/// Regression: the mail library's own timeout covered only the connect.
#[tokio::test]
async fn every_step_times_out_and_only_after_the_dot_the_outcome_is_unknown() {
    let mut listeners: Vec<Value> =
        STEPS.iter().map(|(at, _)| listener(at, json!([{"at": at, "do": "hang"}]))).collect();
    listeners.push(listener("end", json!([{"at": "end", "do": "hang", "take": true}])));
    listeners.push(listener("drip", json!([{"at": "greeting", "do": "drip"}])));
    listeners
        .push(json!({"name": "auth", "tls": "starttls", "login": "a:b", "faults": [{"at": "auth", "do": "hang"}]}));
    listeners.push(json!({"name": "tls", "tls": "none", "faults": [{"at": "greeting", "do": "hang"}]}));
    let server = MailServer::start(&listeners);
    let steps = STEPS.into_iter().chain([("end", "the end of the mail"), ("drip", "its greeting")]);
    let steps: Vec<_> = steps.chain([("auth", "AUTH"), ("tls", "the TLS handshake")]).collect();
    let attempts = steps.iter().map(|(at, _)| {
        let settings =
            EmailConfig { step_seconds: SILENCE_SECONDS, answer_seconds: SILENCE_SECONDS, ..server.settings(at) };
        let settings = match *at {
            "auth" => EmailConfig { username: "a".into(), password: Some(Secret::new("b")), ..settings },
            "tls" => EmailConfig { tls: EmailTls::Implicit, ..settings },
            _ => settings,
        };
        async move { smtp(&settings).deliver(&note("x")).await }
    });
    let began = Instant::now();
    let outcomes = tokio::time::timeout(Duration::from_secs(60), join_all(attempts)).await.expect("all of them end");
    assert!(began.elapsed() >= Duration::from_secs(SILENCE_SECONDS));
    for ((at, step), outcome) in steps.iter().zip(outcomes) {
        let expected = format!("no answer within {SILENCE_SECONDS} s at {step}");
        let expected = match *at {
            "end" => SmtpOutcome::Unknown { reason: expected },
            _ => SmtpOutcome::TryAgain { reason: expected, retry_after: None },
        };
        assert_eq!(outcome, expected);
        assert_eq!(server.received(at).len(), usize::from(*at == "end"), "{at}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_retried() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let settings =
        EmailConfig { host: "127.0.0.1".into(), port: closed.port(), ..bellwire_server::Config::default().email };
    let refused = smtp(&settings).deliver(&note("x")).await;
    assert!(matches!(&refused, SmtpOutcome::TryAgain { retry_after: None, .. }), "{refused:?}");
    assert!(reason(&refused).starts_with("the connection broke at connecting: "), "{refused:?}");

    // A full accept queue neither accepts nor refuses connections.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let full = socket.listen(1).expect("it listens");
    let address = full.local_addr().expect("its address");
    let mut waiting = Vec::new();
    while let Ok(connected) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
        waiting.push(connected);
        assert!(waiting.len() < 100, "the queue never fills");
    }
    let settings = EmailConfig { port: address.port(), step_seconds: 1, ..settings };
    let hung = smtp(&settings).deliver(&note("x")).await;
    let expected = SmtpOutcome::TryAgain { reason: "no answer within 1 s at connecting".into(), retry_after: None };
    assert_eq!(hung, expected);
}

#[tokio::test]
async fn a_connection_lost_before_the_dot_is_retried() {
    for deed in ["drop", "close"] {
        let listeners: Vec<Value> = STEPS.iter().map(|(at, _)| listener(at, json!([{"at": at, "do": deed}]))).collect();
        let server = MailServer::start(&listeners);
        for (at, step) in STEPS {
            let outcome = server.smtp(at).deliver(&note("x")).await;
            assert!(matches!(outcome, SmtpOutcome::TryAgain { .. }), "{at}: {outcome:?}");
            assert!(reason(&outcome).starts_with(&format!("the connection broke at {step}: ")), "{outcome:?}");
            assert_eq!(server.received(at).len(), 0);
        }
    }
}

#[tokio::test]
async fn a_connection_lost_during_data_is_retried() {
    let lost = |name: &str, tls: &str| json!({"name": name, "tls": tls, "faults": [{"at": "body", "do": "drop"}]});
    let server = MailServer::start(&[lost("open", "none"), lost("encrypted", "starttls")]);
    for settings in [unencrypted(server.settings("open")), server.settings("encrypted")] {
        let outcome = send_big(&settings).await;
        assert!(matches!(outcome, SmtpOutcome::TryAgain { .. }), "{outcome:?}");
        assert!(reason(&outcome).starts_with("the connection broke at the text of the mail: "), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_server_that_refuses_in_the_middle_of_a_mail_does_not_get_its_end() {
    let server = MailServer::start(&[listener("x", json!([{"at": "body", "do": "552 5.3.4 too big"}]))]);
    let outcome = send_big(&server.settings("x")).await;
    let text = "5.3.4 too big".to_owned();
    assert_eq!(outcome, SmtpOutcome::Refused { step: SmtpStep::Body, code: 552, enhanced: Some("5.3.4".into()), text });
    assert_eq!(server.received("x").len(), 0);
}

#[tokio::test]
async fn a_connection_lost_after_the_dot_leaves_the_outcome_unknown_whether_it_arrived_or_not() {
    let lost = |name: &str, deed: &str, take: bool| listener(name, json!([{"at": "end", "do": deed, "take": take}]));
    let server = MailServer::start(&[
        lost("drop-taken", "drop", true),
        lost("close-taken", "close", true),
        lost("drop-not", "drop", false),
        lost("close-not", "close", false),
    ]);
    for (name, arrived) in [("drop-taken", 1), ("close-taken", 1), ("drop-not", 0), ("close-not", 0)] {
        let outcome = server.smtp(name).deliver(&note("x")).await;
        assert!(matches!(outcome, SmtpOutcome::Unknown { .. }), "{name}: {outcome:?}");
        assert!(reason(&outcome).starts_with("the connection broke at the end of the mail: "), "{outcome:?}");
        assert_eq!(server.received(name).len(), arrived, "{name}");
    }
}

#[tokio::test]
async fn invalid_smtp_replies_never_count_as_success() {
    let fault = |at: &str, deed: &str| listener(&format!("{at}-{deed}"), json!([{"at": at, "do": deed, "take": true}]));
    let server = MailServer::start(&[
        fault("greeting", "garbage"),
        fault("rcpt", "garbage"),
        fault("ehlo", "endless"),
        fault("end", "garbage"),
        fault("end", "endless"),
        fault("end", "354 go on"),
    ]);
    for name in ["greeting-garbage", "rcpt-garbage", "ehlo-endless"] {
        let outcome = server.smtp(name).deliver(&note("x")).await;
        assert!(matches!(outcome, SmtpOutcome::TryAgain { .. }), "{name}: {outcome:?}");
        assert!(reason(&outcome).chars().all(|c| !c.is_control()), "{outcome:?}");
    }
    for name in ["end-garbage", "end-endless", "end-354 go on"] {
        let outcome = server.smtp(name).deliver(&note("x")).await;
        assert!(matches!(outcome, SmtpOutcome::Unknown { .. }), "{name}: {outcome:?}");
        assert_eq!(server.received(name).len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_very_long_reply_is_parsed_and_truncated() {
    let server = MailServer::start(&[listener("x", json!([{"at": "end", "do": "long", "take": true}]))]);
    let outcome = server.smtp("x").deliver(&note("x")).await;
    let SmtpOutcome::Sent { reply } = outcome else { panic!("{outcome:?}") };
    assert_eq!(reply, format!("250 {}", "x".repeat(300)));
}

#[tokio::test]
async fn a_greylisted_mail_arrives_once_at_the_third_attempt() {
    let fault = json!([{"at": "rcpt", "do": "451 4.7.1 Greylisted, come back in 90 seconds", "times": 2}]);
    let server = MailServer::start(&[listener("x", fault)]);
    let smtp = server.smtp("x");
    for _ in 0..2 {
        let SmtpOutcome::TryAgain { retry_after, .. } = smtp.deliver(&note("x")).await else {
            panic!("it is greylisted")
        };
        assert_eq!(retry_after, Some(Duration::from_secs(90)));
    }
    assert!(matches!(smtp.deliver(&note("x")).await, SmtpOutcome::Sent { .. }));
    assert_eq!(server.received("x").len(), 1);
}

#[tokio::test]
async fn every_attempt_sends_the_same_bytes() {
    let server = MailServer::start(&[listener("x", json!([{"at": "end", "do": "drop", "take": true, "times": 1}]))]);
    let smtp = server.smtp("x");
    assert!(matches!(smtp.deliver(&note("x")).await, SmtpOutcome::Unknown { .. }));
    assert!(matches!(smtp.deliver(&note("x")).await, SmtpOutcome::Sent { .. }));
    let received = server.received("x");
    assert_eq!((received.len(), &received[0]["raw"]), (2, &received[1]["raw"]), "a copy can be known as one");
}

/// Regression: a connection pool reported a refused mail as sent, because it read the reply to the mail before.
#[tokio::test]
async fn the_reply_to_a_timed_out_mail_is_not_used_for_the_next() {
    let faults = json!([{"at": "data", "do": "hang", "times": 1}, {"at": "end", "do": "554 5.7.1 spam"}]);
    let server = MailServer::start(&[listener("x", faults)]);
    let smtp = smtp(&EmailConfig { step_seconds: SILENCE_SECONDS, ..server.settings("x") });
    assert!(matches!(smtp.deliver(&note("first")).await, SmtpOutcome::TryAgain { .. }));
    let second = smtp.deliver(&note("second")).await;
    assert!(matches!(second, SmtpOutcome::Refused { step: SmtpStep::Answer, code: 554, .. }), "{second:?}");
    assert_eq!(server.received("x").len(), 0);
}

/// The same if the attempt's future is dropped.
#[tokio::test]
async fn an_attempt_that_was_abandoned_leaves_nothing_behind() {
    let faults = json!([{"at": "data", "do": "hang", "times": 1}]);
    let server = MailServer::start(&[listener("x", faults)]);
    let smtp = server.smtp("x");
    let given_up = tokio::time::timeout(Duration::from_secs(SILENCE_SECONDS), smtp.deliver(&note("first"))).await;
    assert!(given_up.is_err(), "the server hangs");
    assert!(matches!(smtp.deliver(&note("second")).await, SmtpOutcome::Sent { .. }));
    let received = server.received("x");
    assert_eq!((received.len(), &received[0]["to"]), (1, &json!(["ada@example.org"])));
    assert_eq!(received[0]["headers"][3], json!(["Subject", "[butler] Reminder: second"]));
}

#[tokio::test]
async fn a_server_that_does_not_say_goodbye_changes_nothing() {
    let server = MailServer::start(&[listener("x", json!([{"at": "quit", "do": "hang"}]))]);
    let sent = tokio::time::timeout(Duration::from_secs(30), server.smtp("x").deliver(&note("x"))).await;
    assert!(matches!(sent, Ok(SmtpOutcome::Sent { .. })), "{sent:?}");
    assert_eq!(server.received("x").len(), 1);
}
