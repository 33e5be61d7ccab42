use bellwire_core::render::toon::Document;
use serde_json::Value;

/// A document that was accepted means the same to every reader: what it says, spelled the same again.
pub fn assert_reads_back(document: &Document) {
    assert_eq!(document.problem(), None, "an accepted document has no problem");
    let toon = document.to_toon();
    assert_eq!(read_back(&toon), document.to_json(), "{toon}");
}

/// What a reader makes of TOON of ours; panics if it reads differently written again.
pub fn read_back(toon: &str) -> Value {
    let read: Value = toon_format::decode_default(toon).unwrap_or_else(|error| panic!("{error}: {toon:?}"));
    let again = toon_format::encode_default(&read).unwrap_or_else(|error| panic!("{error}: {toon:?}"));
    assert_eq!(again, toon, "read and written again it is another text");
    read
}
