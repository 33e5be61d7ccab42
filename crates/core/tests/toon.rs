//! Our TOON equals the reference encoder's, byte for byte, and the reference decoder can read it.
//!
//! Every case has its own seed, counted up from the first, so that a failure can be replayed with the two variables it
//! prints. `BELLWIRE_TOON_CASES=5000000` runs more cases.

use std::collections::BTreeSet;

use bellwire_core::render::toon::{Document, Field, Scalar, Shape, Table};
use serde_json::{Number, Value, json};

const CASES: u64 = 50_000;

#[test]
fn documents_are_spelled_and_read_as_the_reference_does() {
    let first = setting("BELLWIRE_TOON_SEED").unwrap_or(0);
    let cases = setting("BELLWIRE_TOON_CASES").unwrap_or(CASES);
    for seed in first..first.saturating_add(cases) {
        let document = Dice::new(seed).document();
        if let Err(difference) = compare(&document) {
            panic!(
                "BELLWIRE_TOON_SEED={seed} BELLWIRE_TOON_CASES=1 shows this again: \
                 {difference}\n{document:#?}"
            );
        }
    }
}

/// [`Document::to_json`] already canonicalizes numbers, so this test compares the raw ones.
#[test]
fn numbers_are_spelled_as_the_reference_does() {
    let mut dice = Dice::new(0);
    let drawn = (0..2_000).map(|_| dice.number());
    for number in EDGE_FLOATS.into_iter().map(float).chain(drawn) {
        let ours =
            Document::Fields(vec![Field { key: "n".to_owned(), value: Shape::Scalar(Scalar::Number(number.clone())) }]);
        let theirs = toon_format::encode_default(&json!({ "n": number }));
        assert_eq!(ours.to_toon(), theirs.expect("numbers can be encoded"));
    }
}

#[test]
fn documents_with_a_name_twice_are_refused_by_the_reference() {
    let twice = |name: &str| vec![name.to_owned(), name.to_owned()];
    let table = Table::new(twice("a"), vec![Scalar::Null; 2]).expect("one whole row");
    let columns = Document::Fields(vec![Field { key: "k".to_owned(), value: Shape::Table(table) }]);
    let keys = Document::Fields(twice("k").into_iter().map(|key| Field { key, value: Shape::List(vec![]) }).collect());
    for document in [columns, keys] {
        assert!(document.problem().is_some());
        assert!(toon_format::decode_default::<Value>(&document.to_toon()).is_err());
    }
}

#[expect(clippy::disallowed_methods, reason = "the core has no environment; how long a test runs comes from it")]
fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("the setting is a whole number"))
}

fn compare(document: &Document) -> Result<(), String> {
    if let Some(problem) = document.problem() {
        return Err(format!("the generator made a document with a problem: {problem}"));
    }
    let (ours, json) = (document.to_toon(), document.to_json());
    let theirs = toon_format::encode_default(&json).map_err(|error| error.to_string())?;
    if ours != theirs {
        return Err(format!("we wrote\n{ours}\nthe reference wrote\n{theirs}"));
    }
    let read: Value = toon_format::decode_default(&ours).map_err(|error| error.to_string())?;
    if read != json {
        return Err(format!("of\n{ours}\nthe reference read\n{read}\ninstead of\n{json}"));
    }
    let again = toon_format::encode_default(&read).map_err(|error| error.to_string())?;
    if ours != again {
        return Err(format!("we wrote\n{ours}\nwhich came back as\n{again}"));
    }
    Ok(())
}

/// Fragments that have broken encoders, or might. Texts and names are assembled from them.
#[rustfmt::skip]
const FRAGMENTS: [&str; 60] = [
    "", " ", "  ", "\t", "\n", "\r", "\r\n", "\0", "\u{1}", "\u{b}", "\u{1f}", "\u{7f}", "\u{85}",
    "\u{a0}", "\u{ad}", "\u{200b}", "\u{2028}", "\u{2029}", "\u{3000}", "\u{feff}", "\u{fffe}",
    "🙂", "👩‍👩‍👧", "é", "日本", ",", ";", "|", ":", "::", "\"", "'", "\\", "\\n", "\\u0041", "[", "]",
    "[]", "[2]:", "{", "}", "{a,b}:", "-", "- ", "#", "# x", "+", ".", "_", "a", "Z", "word",
    "two words", "true", "false", "null", "True", "nul", "0", "1e5",
];

const NUMERIC: &[u8] = b"0123456789+-.eE";

const EDGE_FLOATS: [f64; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1e-7,
    1e21,
    -1e21,
    1e300,
    5e-324,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    9_007_199_254_740_993.0,
    9_223_372_036_854_775_807.0,
    -9_223_372_036_854_775_808.0,
    -9_223_372_036_854_777_856.0,
    12_345_678_901_234_567_000.0,
    18_446_744_073_709_551_615.0,
    18_446_744_073_709_555_712.0,
];

fn float(value: f64) -> Number {
    Number::from_f64(value).expect("the value is finite")
}

/// A splitmix64 generator, so that a seed gives the same document on every machine and with every version of every
/// crate.
struct Dice {
    state: u64,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn document(&mut self) -> Document {
        if self.below(8) == 0 {
            return Document::Text(self.text());
        }
        let count = 1 + self.below(3);
        let fields = self.names(count).into_iter().map(|key| Field { key, value: self.shape() });
        Document::Fields(fields.collect())
    }

    fn shape(&mut self) -> Shape {
        match self.below(8) {
            0 => Shape::Scalar(self.scalar()),
            1 => {
                let count = self.below(4);
                Shape::List(self.scalars(count))
            }
            _ => Shape::Table(self.table()),
        }
    }

    fn table(&mut self) -> Table {
        let (width, height) = (1 + self.below(4), self.below(5));
        let columns = self.names(width);
        let cells = self.scalars(columns.len() * height);
        Table::new(columns, cells).expect("the cells fill whole rows")
    }

    fn scalars(&mut self, count: usize) -> Vec<Scalar> {
        (0..count).map(|_| self.scalar()).collect()
    }

    fn scalar(&mut self) -> Scalar {
        match self.below(12) {
            0 => Scalar::Null,
            1 => Scalar::Bool(self.below(2) == 0),
            2..=4 => Scalar::Number(self.number()),
            _ => Scalar::Text(self.text()),
        }
    }

    fn number(&mut self) -> Number {
        let bits = self.roll();
        match self.below(6) {
            0 => (bits % 1000).into(),
            1 => bits.into(),
            2 => bits.cast_signed().into(),
            3 => float(self.pick(&EDGE_FLOATS)),
            4 => float((bits % 100_000) as f64 / 100.0),
            _ => Number::from_f64(f64::from_bits(bits)).unwrap_or_else(|| bits.into()),
        }
    }

    /// Up to `count` distinct names, at least one.
    fn names(&mut self, count: usize) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let drawn: Vec<String> = (0..count).map(|_| self.name()).collect();
        drawn.into_iter().filter(|name| seen.insert(name.clone())).collect()
    }

    fn name(&mut self) -> String {
        match self.below(2) {
            0 => self.pick(&["id", "tool", "error", "a.b", "_x9", "true"]).to_owned(),
            _ => self.text(),
        }
    }

    fn text(&mut self) -> String {
        let length = 1 + self.below(4);
        match self.below(8) {
            0 => (0..=length).map(|_| char::from(self.pick(NUMERIC))).collect(),
            1 => (0..length).map(|_| self.character()).collect(),
            _ => (0..length).map(|_| self.pick(&FRAGMENTS)).collect(),
        }
    }

    /// Any character, half of the time an ASCII one.
    fn character(&mut self) -> char {
        let end = self.pick(&[0x80, 0x11_0000]);
        char::from_u32(self.below(end) as u32).unwrap_or('\u{d7ff}')
    }
}
