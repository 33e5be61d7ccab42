//! Random traffic is byte-identical except for the added blocks.

use std::time::Instant;

use proptest::prelude::*;
use serde_json::Value;

use super::calls::Calls;
use super::splice::insert;

/// The block that stands for notifications. Its text needs every kind of escape.
const NEWS: &str = "Notifications: \"a\" \\ \n\u{0}\u{2028}é😀 </notifications>";

fn spaces() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "", "", " ", "\t", "  \r", "\n "])
}

/// A key or a string as it may be written, also with escapes where none is needed, and with a lone surrogate.
fn string() -> impl Strategy<Value = String> {
    let known =
        ["content", "c\\u006fntent", "id", "result", "method", "isError", "structuredContent", "text", "]", "\\\"]}"];
    let known = prop::sample::select(known.map(str::to_owned).to_vec());
    let written =
        prop_oneof![known, "[a-zé😀 ]{0,6}", Just("\\ud83d\\ude00\\/".to_owned()), Just("\\u0000".to_owned())];
    written.prop_map(|text| format!("\"{text}\""))
}

fn scalar() -> impl Strategy<Value = String> {
    let known = ["true", "false", "null", "0", "-0.0", "1E+400", "1.0", "1.50", "123456789012345678901234567890"];
    prop_oneof![string(), prop::sample::select(known.to_vec()).prop_map(str::to_owned), Just("\"\\udc00\"".to_owned())]
}

/// A JSON text with any spacing, duplicate keys and nesting.
fn json() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let array =
            (prop::collection::vec((spaces(), inner.clone(), spaces()), 0..4), spaces()).prop_map(|(all, rest)| {
                let all: Vec<String> =
                    all.into_iter().map(|(before, value, after)| format!("{before}{value}{after}")).collect();
                format!("[{}{rest}]", all.join(","))
            });
        prop_oneof![array, object(inner, Vec::new())]
    })
}

/// An object of random members, and of these at random places.
fn object(value: impl Strategy<Value = String>, members: Vec<(String, String)>) -> impl Strategy<Value = String> {
    let random = prop::collection::vec((string(), value), 0..4);
    (random, prop::collection::vec((spaces(), spaces(), spaces(), any::<prop::sample::Index>()), 8)).prop_map(
        move |(mut all, layout)| {
            // Those that are given come last among equal keys, so that they are the ones that count.
            let mut layout = layout.into_iter().cycle();
            all.retain(|(key, _)| {
                let key = serde_json::from_str::<String>(key);
                !members.iter().any(|(given, _)| key.as_ref().is_ok_and(|key| key == given))
            });
            for (key, value) in &members {
                let place = layout.next().map_or(0, |(.., index)| index.index(all.len() + 1));
                all.insert(place, (format!("\"{key}\""), value.clone()));
            }
            let each = all.into_iter().zip(layout);
            let each: Vec<String> =
                each.map(|((key, value), (a, b, c, _))| format!("{a}{key}{b}:{c}{value}{b}")).collect();
            format!("{{{}}}", each.join(","))
        },
    )
}

fn content() -> impl Strategy<Value = String> {
    prop::collection::vec(json(), 0..3).prop_map(|all| format!("[ {} ]", all.join(" ,")))
}

/// The response to a request with this id, with content that can carry a block.
fn response(id: usize) -> impl Strategy<Value = String> {
    content()
        .prop_flat_map(|content| {
            object(json(), vec![("content".into(), content), ("resultType".into(), "\"complete\"".into())])
        })
        .prop_flat_map(move |result| {
            let members = vec![("id".to_owned(), id.to_string()), ("result".to_owned(), result)];
            object(json(), members).prop_filter("a message with a method is a request", |text| !names_method(text))
        })
}

fn names_method(text: &str) -> bool {
    super::message::fields(text, ["method"]).is_none_or(|[method]| method.is_some())
}

/// What a server says: answers, and anything else.
fn server_text() -> impl Strategy<Value = String> {
    let batch = (response(0), json(), response(1)).prop_map(|(a, b, c)| format!("[{a} , {b},\t{c}]"));
    prop_oneof![response(0), response(1), batch, json(), "\\PC{0,20}"]
}

fn client_text(id: usize) -> String {
    format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{}}}}}}"#)
}

fn with_news(text: &str) -> (Vec<u8>, usize) {
    let calls = Calls::default();
    for id in 0..2 {
        calls.client_said(&client_text(id), Instant::now());
    }
    let places: Vec<_> = calls.server_said(text, Instant::now()).into_iter().filter_map(|call| call.place).collect();
    let insertions: Vec<_> = places.iter().map(|place| (place.end, place.insertion(NEWS))).collect();
    let mut bytes = text.as_bytes().to_vec();
    insert(&mut bytes, &insertions);
    // Without the insertions it is what it was.
    let mut without = bytes.clone();
    for (index, (at, inserted)) in insertions.iter().enumerate() {
        let removed: Vec<u8> = without.drain(*at..at + inserted.len()).collect();
        assert_eq!(removed, inserted.as_bytes(), "insertion {index}");
    }
    assert_eq!(without, text.as_bytes());
    (bytes, places.len())
}

/// Serde reads no lone surrogates; they are written as something else for the comparison.
fn parsed(bytes: &[u8]) -> Option<Value> {
    let text = String::from_utf8(bytes.to_vec()).ok()?.replace("\"\\udc00\"", "\"lone\"").replace("1E+400", "1E+4");
    serde_json::from_str(&text).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_server_says_is_unchanged_except_for_the_block(text in server_text()) {
        let (bytes, count) = with_news(&text);
        let (before, after) = (parsed(text.as_bytes()), parsed(&bytes));
        prop_assert_eq!(before.is_some(), after.is_some(), "it stays JSON, or stays none");
        if count == 0 {
            prop_assert_eq!(bytes, text.as_bytes());
        }
    }

    #[test]
    fn every_answer_gets_its_block_as_the_last_of_its_content(text in response(1)) {
        let (bytes, count) = with_news(&text);
        prop_assert_eq!(count, 1, "{}", text);
        let (before, mut after) = (parsed(text.as_bytes()).expect("JSON"), parsed(&bytes).expect("JSON"));
        let added = after["result"]["content"].as_array_mut().expect("content").pop().expect("the block");
        prop_assert_eq!(&added["text"], NEWS);
        prop_assert_eq!(before, after);
    }

    #[test]
    fn what_a_client_says_is_never_touched_and_never_panics(text in prop_oneof![json(), "\\PC{0,40}"]) {
        let calls = Calls::default();
        calls.client_said(&text, Instant::now());
        calls.server_said(&text, Instant::now());
    }
}
