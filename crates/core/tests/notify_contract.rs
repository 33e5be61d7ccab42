//! The scenarios of the notify contract that are decided without I/O. Each test has the name of its scenario; those that
//! need a hub are in `crates/server/tests/it/notify`.

use bellwire_core::notify::{ChannelFacts, Intent, NotifyCall, RequestContext};
use bellwire_core::person::{ChannelName, Form, ToolArguments};
use serde_json::{Value, json};

fn channels() -> [ChannelFacts; 2] {
    let name = |name: &str| ChannelName::parse(name).expect("the name is valid");
    [
        ChannelFacts { name: name("telegram"), configured: true, reacts: true, needs_thread: true },
        ChannelFacts { name: name("email"), configured: true, reacts: false, needs_thread: false },
    ]
}

fn notify(arguments: Value) -> Result<NotifyCall, String> {
    NotifyCall::parse(&ToolArguments::parse(arguments)?, &channels()).map_err(|invalid| invalid.message)
}

fn refusal(arguments: Value) -> String {
    notify(arguments).expect_err("the call is refused")
}

fn context() -> Value {
    json!({
        "request_id": "0190a3c2-7b1e-7000-8000-000000000001",
        "source_channel": "telegram",
        "source_endpoint_identity": "telegram:42",
        "source_sender_identity": "7",
        "source_thread_identity": "12:34",
    })
}

fn context_without(field: &str) -> Value {
    let mut context = context();
    context.as_object_mut().expect("it is an object").remove(field);
    context
}

#[test]
fn send_intent() {
    let sent = notify(json!({"channel": "telegram", "message": " Hello\u{202e} ", "intent": "send"})).unwrap();
    assert_eq!((sent.intent, sent.message.as_deref()), (Intent::Send, Some("Hello")));
    assert_eq!(sent.request_context, None);
    let default = notify(json!({"channel": "telegram", "message": "Hello"})).unwrap();
    assert_eq!(default, sent);
    let linked = notify(json!({"channel": "email", "message": "Hello", "request_context": context()})).unwrap();
    assert!(linked.request_context.is_some(), "the context of a send is only its lineage");
}

#[test]
fn reply_intent_requires_request_context() {
    let call = |context: Value| json!({"channel": "telegram", "intent": "reply", "message": "Yes", "request_context": context});
    assert!(notify(call(context())).is_ok());
    let no_message = json!({"channel": "telegram", "intent": "reply", "request_context": context()});
    assert!(refusal(no_message).starts_with("Missing required 'message' parameter"));
    let required = [
        "request_id",
        "source_channel",
        "source_endpoint_identity",
        "source_sender_identity",
        "source_thread_identity",
    ];
    for field in required {
        let expected = format!("Missing required request_context field '{field}'");
        assert!(refusal(call(context_without(field))).starts_with(&expected), "{field}");
    }
    assert!(refusal(call(json!({}))).starts_with("Missing required request_context field 'request_id'"));
    // Email has no such thread: a reply without one is a new message to the sender.
    let mut email = call(context_without("source_thread_identity"));
    email["channel"] = json!("email");
    email["request_context"]["source_channel"] = json!("email");
    assert!(notify(email).is_ok());
}

#[test]
fn react_intent_requires_emoji_and_thread_identity() {
    let react = json!({"channel": "telegram", "intent": "react", "emoji": "\u{1f44d}", "request_context": context()});
    let reaction = notify(react.clone()).unwrap();
    assert_eq!((reaction.emoji.as_deref(), reaction.message), (Some("\u{1f44d}"), None));
    for emoji in [Value::Null, json!(""), json!(" ")] {
        let mut without = react.clone();
        without["emoji"] = emoji;
        assert!(refusal(without).starts_with("Missing required 'emoji' parameter"));
    }
    let mut without = react.clone();
    without["request_context"] = context_without("source_thread_identity");
    assert!(refusal(without).starts_with("Missing required request_context field 'source_thread_identity'"));
    let mut empty = react.clone();
    empty["message"] = json!("");
    assert_eq!(notify(empty), notify(react.clone()));
    let mut text = react;
    text["message"] = json!("well done");
    assert!(refusal(text).contains("Use intent 'reply'"), "a text that nobody would see is not dropped");
}

#[test]
fn missing_message_for_send_reply() {
    for intent in ["send", "reply"] {
        for message in [Value::Null, json!(""), json!(" \n\t"), json!("\u{200b}")] {
            let call = json!({"channel": "telegram", "intent": intent, "message": message});
            assert!(refusal(call).starts_with("Missing required 'message' parameter"), "{message}");
        }
    }
}

#[test]
fn unsupported_intent() {
    let refused = refusal(json!({"channel": "telegram", "message": "x", "intent": "insight"}));
    assert_eq!(refused, "Unsupported intent 'insight'. Must be one of: send, reply, react");
    let email = refusal(json!({"channel": "email", "intent": "react", "emoji": "\u{1f44d}"}));
    assert!(email.starts_with("Unsupported intent 'react' on channel 'email'"), "{email}");
}

#[test]
fn supported_channel() {
    for channel in ["telegram", "email"] {
        assert_eq!(
            notify(json!({"channel": channel, "message": "x"})).map(|call| call.channel.to_string()),
            Ok(channel.to_owned())
        );
    }
}

#[test]
fn unsupported_channel() {
    let refused = refusal(json!({"channel": "sms", "message": "x"}));
    assert_eq!(refused, "Unsupported channel 'sms'. Must be one of: telegram, email");
    assert!(refusal(json!({"message": "x"})).starts_with("Missing required 'channel' parameter"));
    let parse = |channels: &[ChannelFacts]| {
        let arguments = ToolArguments::parse(json!({"channel": "telegram", "message": "x"})).unwrap();
        NotifyCall::parse(&arguments, channels).unwrap_err().message
    };
    let [telegram, email] = channels();
    let off = ChannelFacts { configured: false, ..telegram };
    assert_eq!(parse(&[off.clone(), email]), "Channel 'telegram' is not configured on this hub. Configured: email");
    assert_eq!(parse(&[off]), "Channel 'telegram' is not configured on this hub, nor is any other");
}

#[test]
fn request_context_forwarded_to_envelope() {
    for given in [context(), json!(context().to_string())] {
        let call = json!({"channel": "telegram", "intent": "reply", "message": "Yes", "request_context": given});
        let kept = notify(call).unwrap().request_context;
        assert_eq!(kept, RequestContext::parse(&context()).ok());
    }
}

#[test]
fn request_context_from_runtime_session() {
    let call = notify(json!({"channel": "telegram", "intent": "reply", "message": "Yes"})).unwrap();
    assert_eq!(call.request_context, None, "it is left to the session");
    let inbound = RequestContext::parse(&context()).unwrap();
    let answer = call.clone().answering(inbound.clone(), &channels()).unwrap();
    assert_eq!(answer.request_context, Some(inbound.clone()));
    let by_mail = RequestContext { source_channel: "email".to_owned(), ..inbound };
    assert!(call.answering(by_mail, &channels()).unwrap_err().message.contains("'source_channel' is 'email'"));
}

#[test]
fn valid_request_context() {
    let minimal = context_without("source_thread_identity");
    assert!(notify(json!({"channel": "telegram", "message": "x", "request_context": minimal})).is_ok());
    let mut whole = context();
    whole["received_at"] = json!("2026-01-03T15:30:00Z");
    assert!(notify(json!({"channel": "telegram", "message": "x", "request_context": whole})).is_ok());
}

#[test]
fn missing_required_context_field_for_reply() {
    let call = json!({
        "channel": "telegram", "intent": "reply", "message": "x", "request_context": context_without("request_id"),
    });
    assert!(refusal(call).starts_with("Missing required request_context field 'request_id'"));
}

#[test]
fn checks_are_made_in_the_documented_order() {
    let mut call = json!({
        "channel": "sms", "intent": "shout", "message": "", "emoji": 5, "request_context": {}, "recipient": "x",
        "colour": 1,
    });
    let corrections = [
        ("Unknown argument 'colour'", "colour", None),
        ("Unsupported channel", "channel", Some(json!("telegram"))),
        ("Unsupported intent", "intent", Some(json!("reply"))),
        ("Missing required 'message'", "message", Some(json!("x"))),
        ("emoji must be text", "emoji", None),
        ("Missing required request_context", "request_context", Some(context())),
        ("'recipient' is not allowed with intent 'reply'", "recipient", None),
    ];
    for (expected, name, value) in corrections {
        let refused = refusal(call.clone());
        assert!(refused.contains(expected), "{expected}: {refused}");
        let call = call.as_object_mut().expect("it is an object");
        call.remove(name);
        call.extend(value.map(|value| (name.to_owned(), value)));
    }
    assert!(notify(call).is_ok());
}

#[test]
fn lengths_are_counted_in_characters() {
    let call = |message: usize, subject: usize| {
        notify(json!({"channel": "email", "message": "é".repeat(message), "subject": "é".repeat(subject)}))
    };
    assert!(call(16_000, 150).is_ok());
    assert_eq!(call(16_001, 1), Err("message has 16001 characters; at most 16000 are allowed".to_owned()));
    assert_eq!(call(1, 151), Err("subject has 151 characters; at most 150 are allowed".to_owned()));
    let subject = notify(json!({"channel": "email", "message": "x", "subject": "a\r\nBcc: eve@example.org"})).unwrap();
    assert_eq!(subject.subject.as_deref(), Some("a Bcc: eve@example.org"));
    let recipient = |text: String| notify(json!({"channel": "email", "message": "x", "recipient": text}));
    assert!(recipient("x".repeat(320)).is_ok());
    assert!(recipient("x".repeat(321)).is_err());
    assert!(recipient("a@b\r\nc".to_owned()).unwrap_err().contains("control character"));
    assert_eq!(recipient("  ".to_owned()).unwrap().recipient, None);
}

#[test]
fn a_reply_never_goes_elsewhere() {
    let call = |change: (&str, Value)| {
        let mut call = json!({"channel": "telegram", "intent": "reply", "message": "x", "request_context": context()});
        call[change.0] = change.1;
        notify(call)
    };
    assert!(call(("recipient", json!("99"))).unwrap_err().contains("leave it out"));
    let other = call(("channel", json!("email"))).unwrap_err();
    assert!(other.contains("'source_channel' is 'telegram', and channel is 'email'"), "{other}");
    assert!(call(("emoji", json!("\u{1f44d}"))).unwrap_err().contains("'emoji' is not allowed with intent 'reply'"));
}

#[test]
fn a_blank_context_of_a_model_means_none() {
    for blank in [json!(""), json!(" "), json!("null"), Value::Null] {
        let call = json!({"channel": "telegram", "intent": "reply", "message": "x", "request_context": blank});
        assert_eq!(notify(call).unwrap().request_context, None);
    }
}

#[test]
fn the_arguments_describe_what_is_accepted() {
    let names: Vec<&str> = NotifyCall::ARGUMENTS.iter().map(|argument| argument.name).collect();
    assert_eq!(names, ["channel", "message", "recipient", "subject", "intent", "emoji", "request_context"]);
    let least = json!({"channel": "telegram", "message": "x"});
    for argument in NotifyCall::ARGUMENTS {
        let fits = |value: Value| {
            let mut call = least.clone();
            call[argument.name] = value;
            if argument.name == "emoji" {
                call["intent"] = json!("react");
                call["message"] = Value::Null;
                call["request_context"] = context();
            }
            notify(call).is_ok()
        };
        match argument.form {
            Form::Text { max, .. } if argument.name != "channel" => {
                assert!(fits(json!("x".repeat(max))), "{}", argument.name);
                assert!(!fits(json!("x".repeat(max + 1))), "{}", argument.name);
            }
            Form::Object { .. } => assert!(fits(context())),
            _ => {}
        }
    }
}
