//! A TOON document limited to simple forms, and its writer.
//!
//! A notification is a text, or a few fields that each hold a value, a list or a table. Nested objects and mixed lists
//! cannot be expressed, on purpose: every document has exactly one encoding, written in a single pass without
//! lookahead.
//!
//! The encoding equals the reference encoder's, byte for byte, for the JSON that [`Document::to_json`] returns;
//! `tests/toon.rs` compares the two. This module does not parse TOON, and it only quotes values: making text harmless
//! is the task of `guard`.
//!
//! ```
//! use bellwire_core::render::toon::{Document, Field, Scalar, Shape, Table};
//!
//! let columns = vec!["tool".to_owned(), "exit".to_owned()];
//! let cells = vec![Scalar::Text("cargo test".to_owned()), Scalar::Number(101.into())];
//! let document = Document::Fields(vec![Field {
//!     key: "failures".to_owned(),
//!     value: Shape::Table(Table::new(columns, cells).expect("one row of two cells")),
//! }]);
//! assert_eq!(document.to_toon(), "failures[1]{tool,exit}:\n  cargo test,101");
//! ```

use std::collections::BTreeSet;
use std::fmt::{Display, Write};

use serde_json::{Map, Number, Value};

/// The content of one notification.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// One string that is the whole document.
    Text(String),
    /// Named values, in the order of reading.
    Fields(Vec<Field>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Any string; quoted unless [`is_plain_key`] accepts it.
    pub key: String,
    /// The value of the key.
    pub value: Shape,
}

/// The forms that a field's value can take.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// `key: value`
    Scalar(Scalar),
    /// `key[2]: a,b`
    List(Vec<Scalar>),
    /// `key[2]{column,column}:` and a line for every row.
    Table(Table),
}

/// Rows of the same columns, with at least one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    columns: Vec<String>,
    /// Row by row in one vector, so that a table takes two allocations however long it is.
    cells: Vec<Scalar>,
}

/// A single value.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Written without exponent and trailing zeros.
    Number(Number),
    /// Quoted only where it would otherwise be read as something else.
    Text(String),
}

impl Document {
    /// Appends the document to `out`, without a trailing line break.
    pub fn write(&self, out: &mut String) {
        match self {
            // Readers drop an unquoted byte-order mark at the start of a document.
            Self::Text(text) if text.starts_with('\u{FEFF}') => write_quoted(text, out),
            Self::Text(text) => write_text(text, out),
            Self::Fields(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push('\n');
                    }
                    field.write(out);
                }
            }
        }
    }

    /// The document as a TOON string.
    pub fn to_toon(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// The JSON that a reader of [`Document::to_toon`] gets: `3.0` becomes `3`, and a table without rows becomes an
    /// empty array.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.clone()),
            Self::Fields(fields) => {
                fields.iter().map(|field| (field.key.clone(), field.value.to_json())).collect::<Map<_, _>>().into()
            }
        }
    }

    /// Why this document must not be sent, if there is a reason: a duplicate key or column, which no reader accepts, or
    /// no content. A document without a problem survives decoding and encoding unchanged.
    pub fn problem(&self) -> Option<String> {
        let Self::Fields(fields) = self else {
            return None;
        };
        if fields.is_empty() {
            return Some("the document has no fields".to_owned());
        }
        if let Some(key) = first_repeated(fields.iter().map(|field| field.key.as_str())) {
            return Some(format!("the key {key:?} occurs twice"));
        }
        fields.iter().find_map(Field::problem)
    }
}

impl Table {
    /// `cells` holds the rows one after another. `None` if there are no columns or the last row is incomplete.
    pub fn new(columns: Vec<String>, cells: Vec<Scalar>) -> Option<Self> {
        let fits = !columns.is_empty() && cells.len().is_multiple_of(columns.len());
        fits.then_some(Self { columns, cells })
    }

    /// The column names.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows from top to bottom, each as wide as the header.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[Scalar]> {
        self.cells.chunks_exact(self.columns.len())
    }

    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.cells.len() / self.columns.len()
    }

    /// Every cell, row by row, for guarding in place.
    pub(crate) fn cells_mut(&mut self) -> &mut [Scalar] {
        &mut self.cells
    }

    /// A table of the first `count` rows.
    pub(crate) fn first_rows(&self, count: usize) -> Self {
        let cells = count.saturating_mul(self.columns.len()).min(self.cells.len());
        Self { columns: self.columns.clone(), cells: self.cells[..cells].to_vec() }
    }
}

/// Whether a key or column name stands without quotes: `[A-Za-z_][A-Za-z0-9_.]*`.
pub fn is_plain_key(key: &str) -> bool {
    let is_head = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_tail = |byte: u8| is_head(byte) || byte.is_ascii_digit() || byte == b'.';
    key.bytes().next().is_some_and(is_head) && key.bytes().all(is_tail)
}

impl Field {
    fn write(&self, out: &mut String) {
        write_key(&self.key, out);
        match &self.value {
            Shape::Scalar(scalar) => {
                out.push_str(": ");
                scalar.write(out);
            }
            // TOON has no header for an empty table, so its columns are not written.
            Shape::List(items) if items.is_empty() => out.push_str(": []"),
            Shape::Table(table) if table.cells.is_empty() => out.push_str(": []"),
            Shape::List(items) => {
                write_length(items.len(), out);
                out.push_str(": ");
                write_cells(items, out);
            }
            Shape::Table(table) => table.write(out),
        }
    }

    fn problem(&self) -> Option<String> {
        let Shape::Table(table) = &self.value else {
            return None;
        };
        let column = first_repeated(table.columns.iter().map(String::as_str))?;
        Some(format!("the column {column:?} of {:?} occurs twice", self.key))
    }
}

impl Shape {
    fn to_json(&self) -> Value {
        match self {
            Self::Scalar(scalar) => scalar.to_json(),
            Self::List(items) => items.iter().map(Scalar::to_json).collect(),
            Self::Table(table) => table.rows().map(|row| table.row_to_json(row)).collect(),
        }
    }
}

impl Table {
    fn write(&self, out: &mut String) {
        write_length(self.row_count(), out);
        out.push('{');
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_key(column, out);
        }
        out.push_str("}:");
        for row in self.rows() {
            out.push_str("\n  ");
            write_cells(row, out);
        }
    }

    fn row_to_json(&self, row: &[Scalar]) -> Value {
        let cells = row.iter().map(Scalar::to_json);
        Value::Object(self.columns.iter().cloned().zip(cells).collect())
    }
}

impl Scalar {
    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(number) => write_number(number, out),
            Self::Text(text) => write_text(text, out),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(canonical(number)),
            Self::Text(text) => Value::String(text.clone()),
        }
    }
}

fn write_key(key: &str, out: &mut String) {
    if is_plain_key(key) {
        out.push_str(key);
    } else {
        write_quoted(key, out);
    }
}

fn write_length(length: usize, out: &mut String) {
    out.push('[');
    write_display(length, out);
    out.push(']');
}

fn write_cells(cells: &[Scalar], out: &mut String) {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        cell.write(out);
    }
}

fn write_text(text: &str, out: &mut String) {
    if needs_quotes(text) {
        write_quoted(text, out);
    } else {
        out.push_str(text);
    }
}

/// The text in double quotes, with quotes, backslashes and control characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_quoted(text, &mut out);
    out
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        if CLASSES[usize::from(byte)] & ESCAPED != 0 {
            out.push_str(&text[copied..at]);
            write_escape(byte, out);
            copied = at + 1;
        }
    }
    out.push_str(&text[copied..]);
    out.push('"');
}

fn write_escape(byte: u8, out: &mut String) {
    out.push('\\');
    match byte {
        b'\n' => out.push('n'),
        b'\r' => out.push('r'),
        b'\t' => out.push('t'),
        b'"' | b'\\' => out.push(char::from(byte)),
        control => write_display(format_args!("u{control:04x}"), out),
    }
}

fn write_number(number: &Number, out: &mut String) {
    let number = canonical(number);
    if let Some(natural) = number.as_u64() {
        write_display(natural, out);
    } else if let Some(negative) = number.as_i64() {
        write_display(negative, out);
    } else if let Some(float) = number.as_f64() {
        // The standard library formats floats without an exponent, as TOON requires.
        write_display(float, out);
    } else {
        // Numbers beyond f64 exist only if serde_json keeps arbitrary precision, a feature that any crate of the build
        // can switch on. The reference encoder writes null as well.
        out.push_str("null");
    }
}

fn write_display(value: impl Display, out: &mut String) {
    write!(out, "{value}").expect("writing to a String cannot fail");
}

/// TOON has one encoding per number: a float without a fraction becomes an integer if 64 bits can hold it, and zero has
/// no sign.
fn canonical(number: &Number) -> Number {
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    let whole = |float: &f64| number.is_f64() && float.fract() == 0.0;
    match number.as_f64().filter(whole) {
        Some(float) if (-TWO_POW_63..TWO_POW_63).contains(&float) => (float as i64).into(),
        Some(float) if (TWO_POW_63..2.0 * TWO_POW_63).contains(&float) => (float as u64).into(),
        _ => number.clone(),
    }
}

/// The byte forces quotes anywhere in a text.
const QUOTES: u8 = 1;
/// The byte forces quotes at the start of a text.
const QUOTES_AT_START: u8 = 2;
/// A text that begins with the byte may be a number or a keyword.
const MAY_BE_LITERAL: u8 = 4;
/// The byte needs a backslash between quotes.
const ESCAPED: u8 = 8;

/// How the quoting rules class each byte. Non-ASCII bytes have no class.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            0..=0x1f | b'"' | b'\\' => QUOTES | ESCAPED,
            b',' | b':' | b'[' | b']' | b'{' | b'}' => QUOTES,
            b' ' | b'-' | b'#' => QUOTES_AT_START,
            b'0'..=b'9' | b'+' | b't' | b'f' | b'n' => MAY_BE_LITERAL,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

fn needs_quotes(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else {
        return true;
    };
    let class = |byte: u8| CLASSES[usize::from(byte)];
    // Folding over every byte is faster than branching after each.
    let all = bytes.iter().fold(0, |all, &byte| all | class(byte));
    all & QUOTES != 0
        || class(first) & QUOTES_AT_START != 0
        || last == b' '
        || (class(first) & MAY_BE_LITERAL != 0 && is_literal(text))
}

fn is_literal(text: &str) -> bool {
    matches!(text, "true" | "false" | "null") || is_numeric(text.as_bytes())
}

/// Matches `[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?`, which is more than readers accept as a number: `+1` and `007`
/// are quoted too.
fn is_numeric(text: &[u8]) -> bool {
    let Some(mut rest) = after_digits(after_sign(text)) else {
        return false;
    };
    if let [b'.', fraction @ ..] = rest {
        let Some(after) = after_digits(fraction) else {
            return false;
        };
        rest = after;
    }
    match rest {
        [] => true,
        [b'e' | b'E', exponent @ ..] => after_digits(after_sign(exponent)) == Some(&[]),
        _ => false,
    }
}

fn after_sign(text: &[u8]) -> &[u8] {
    match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    }
}

/// The rest after one or more digits; `None` without a digit.
fn after_digits(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| &text[digits..])
}

fn first_repeated<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str) -> Scalar {
        Scalar::Text(text.to_owned())
    }

    fn field(key: &str, value: Shape) -> Document {
        Document::Fields(vec![Field { key: key.to_owned(), value }])
    }

    fn table(columns: &[&str], cells: Vec<Scalar>) -> Option<Table> {
        Table::new(columns.iter().map(|&name| name.to_owned()).collect(), cells)
    }

    fn spelled(value: &str) -> String {
        Document::Text(value.to_owned()).to_toon()
    }

    fn number(number: impl Into<Value>) -> String {
        let Value::Number(number) = number.into() else {
            panic!("a number in JSON is finite");
        };
        let mut out = String::new();
        write_number(&number, &mut out);
        out
    }

    #[test]
    fn a_table_is_a_header_and_a_line_for_every_row() {
        let cells = vec![text("vault_search"), text("15:30:01"), Scalar::Null, text("a,b")];
        let table = table(&["tool", "at time"], cells).expect("two whole rows");
        assert_eq!(
            field("tool_fails", Shape::Table(table)).to_toon(),
            "tool_fails[2]{tool,\"at time\"}:\n  vault_search,\"15:30:01\"\n  null,\"a,b\""
        );
    }

    #[test]
    fn fields_follow_each_other_line_by_line() {
        let document = Document::Fields(vec![
            Field { key: "done".to_owned(), value: Shape::Scalar(Scalar::Bool(true)) },
            Field { key: "files".to_owned(), value: Shape::List(vec![text("src/lib.rs"), text("7")]) },
        ]);
        assert_eq!(document.to_toon(), "done: true\nfiles[2]: src/lib.rs,\"7\"");
        assert_eq!(document.to_json(), json!({"done": true, "files": ["src/lib.rs", "7"]}));
    }

    #[test]
    fn lists_and_tables_without_content_are_written_alike() {
        let empty = table(&["a"], vec![]).expect("no rows are whole rows");
        assert_eq!(field("k", Shape::List(vec![])).to_toon(), "k: []");
        assert_eq!(field("k", Shape::Table(empty)).to_toon(), "k: []");
    }

    #[test]
    fn text_is_quoted_only_where_it_would_be_misread() {
        for plain in ["what next?", "a|b", "a-b", "x#", "1.", ".5", "1e", "é", "True", "nullx"] {
            assert_eq!(spelled(plain), plain);
        }
        for quoted in ["", " a", "a ", "-", "-a", "#a", "a:", "[", "a,b", "007", "+1", "1e5"] {
            assert_eq!(spelled(quoted), format!("\"{quoted}\""));
        }
        for keyword in ["true", "false", "null"] {
            assert_eq!(spelled(keyword), format!("\"{keyword}\""));
        }
        assert_eq!(spelled("a\n\r\t\"\\\0"), r#""a\n\r\t\"\\\u0000""#);
        assert_eq!(spelled("\u{FEFF}a"), "\"\u{FEFF}a\"");
    }

    #[test]
    fn numbers_have_neither_exponent_nor_needless_digits() {
        assert_eq!(number(i64::MIN), "-9223372036854775808");
        assert_eq!(number(u64::MAX), "18446744073709551615");
        assert_eq!(number(-0.0), "0");
        assert_eq!(number(3.0), "3");
        assert_eq!(number(1e-7), "0.0000001");
        assert_eq!(number(1e21), "1000000000000000000000");
        assert_eq!(number(1e300), format!("1{}", "0".repeat(300)));
        assert_eq!(number(5e-324), format!("0.{}5", "0".repeat(323)));
        assert_eq!(number(2f64.powi(60)), "1152921504606846976");
        assert_eq!(number(1.2345678901234567e19), "12345678901234567168");
    }

    #[test]
    fn keys_are_plain_only_as_identifiers_with_dots() {
        assert!(["a", "_", "a.b", "A9_"].into_iter().all(is_plain_key));
        assert!(!["", "9", ".a", "a-b", "a b", "é"].into_iter().any(is_plain_key));
    }

    #[test]
    fn a_table_is_as_wide_as_its_header() {
        assert_eq!(table(&[], vec![]), None);
        assert_eq!(table(&["a", "b"], vec![Scalar::Null]), None);
    }

    #[test]
    fn a_table_keeps_its_first_rows() {
        let table = table(&["a", "b"], vec![Scalar::Null; 6]).expect("three whole rows");
        assert_eq!(table.first_rows(usize::MAX).row_count(), 3);
        assert_eq!(table.first_rows(1).rows().collect::<Vec<_>>(), [[Scalar::Null, Scalar::Null]]);
    }

    #[test]
    fn a_problem_is_named() {
        let twice = table(&["a", "a"], vec![]).expect("no rows are whole rows");
        let problem = field("k", Shape::Table(twice)).problem();
        assert_eq!(problem.as_deref(), Some("the column \"a\" of \"k\" occurs twice"));

        let field = Field { key: "k".to_owned(), value: Shape::List(vec![]) };
        let problem = Document::Fields(vec![field.clone(), field.clone()]).problem();
        assert_eq!(problem.as_deref(), Some("the key \"k\" occurs twice"));

        assert!(Document::Fields(vec![]).problem().is_some());
        assert_eq!(Document::Fields(vec![field]).problem(), None);
        assert_eq!(Document::Text(String::new()).problem(), None);
    }
}
