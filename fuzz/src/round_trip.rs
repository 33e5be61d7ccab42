use bellwire_core::render::toon::Document;
use serde_json::Value;

/// Checks that an accepted document is decoded and encoded again without a difference.
pub fn assert_reads_back(document: &Document) {
    assert_eq!(document.problem(), None, "an accepted document has no problem");
    let toon = document.to_toon();
    assert_eq!(read_back(&toon), document.to_json(), "{toon}");
}

/// Decodes our TOON with the reference crate; panics if encoding the result gives another text.
pub fn read_back(toon: &str) -> Value {
    let read: Value = toon_format::decode_default(toon).unwrap_or_else(|error| panic!("{error}: {toon:?}"));
    let again = toon_format::encode_default(&read).unwrap_or_else(|error| panic!("{error}: {toon:?}"));
    assert_eq!(again, toon, "read and written again it is another text");
    read
}
