//! Parses a template's output, in which every interpolated value is still marked.
//!
//! Structure comes only from the template's literal text: `key:`, `key[N]:` and `key[N]{a,b}:` at the start of a line,
//! and commas below such a header. Values are not searched for structure, so no data can add a row, a key or a line.

use serde_json::Number;

use super::toon::{Document, Field, Scalar, Shape, Table};

/// Delimit an interpolated value in a template's output. Templates cannot contain these characters themselves.
pub(crate) const OPEN: char = '\u{1}';
pub(crate) const CLOSE: char = '\u{2}';

/// A part of a line: the template's literal text, or a value.
#[derive(Clone, Debug, PartialEq)]
enum Piece<'a> {
    Literal(&'a str),
    Value(Scalar),
}

type MarkedLine<'a> = Vec<Piece<'a>>;

/// Parses a template's output into a document; the error says what is wrong with it.
pub(crate) fn parse(output: &str) -> Result<Document, String> {
    let lines = lines(output)?;
    let Some(first) = lines.iter().find(|line| !is_blank(line)) else {
        return Err(NOTHING.into());
    };
    if Header::parse(first).is_none() {
        return Ok(Document::Text(root_text(&lines)));
    }
    let mut lines = lines.into_iter().filter(|line| !is_blank(line)).peekable();
    let mut fields = Vec::new();
    while let Some(line) = lines.next() {
        let header = Header::parse(&line)
            .ok_or_else(|| format!("the line `{}` is neither `key: …` nor a row", shape_of(&line)))?;
        let rows = std::iter::from_fn(|| lines.next_if(|line| header.columns.is_some() && is_indented(line)));
        let value = header.shape(rows)?;
        fields.push(Field { key: header.key.to_owned(), value });
    }
    let document = Document::Fields(fields);
    document.problem().map_or(Ok(document), Err)
}

/// A template's output as plain text; the error says what is wrong with it.
pub(crate) fn plain_text(output: &str) -> Result<String, String> {
    let lines = lines(output)?;
    match lines.iter().all(is_blank) {
        true => Err(NOTHING.into()),
        false => Ok(root_text(&lines)),
    }
}

const NOTHING: &str = "the template printed nothing";

/// Writes a value between its delimiters: a letter for its type, then its text.
pub(crate) fn write_value(scalar: &Scalar, out: &mut dyn std::fmt::Write) -> std::fmt::Result {
    out.write_char(OPEN)?;
    match scalar {
        Scalar::Null => out.write_char('z')?,
        Scalar::Bool(bit) => out.write_str(if *bit { "t" } else { "f" })?,
        Scalar::Number(number) => write!(out, "n{number}")?,
        Scalar::Text(text) => {
            out.write_char('s')?;
            // These two characters would end the value. The guard removes them anyway.
            text.split([OPEN, CLOSE]).try_for_each(|part| out.write_str(part))?;
        }
    }
    out.write_char(CLOSE)
}

fn read_value(text: &str) -> Option<Scalar> {
    let mut characters = text.chars();
    match characters.next()? {
        'z' => Some(Scalar::Null),
        't' => Some(Scalar::Bool(true)),
        'f' => Some(Scalar::Bool(false)),
        'n' => characters.as_str().parse::<Number>().ok().map(Scalar::Number),
        's' => Some(Scalar::Text(characters.as_str().to_owned())),
        _ => None,
    }
}

fn lines(output: &str) -> Result<Vec<MarkedLine<'_>>, String> {
    let mut lines = vec![Vec::new()];
    let mut rest = output;
    while !rest.is_empty() {
        let (literal, behind) = rest.split_once(OPEN).unwrap_or((rest, ""));
        for (number, part) in literal.split('\n').enumerate() {
            if number > 0 {
                lines.push(Vec::new());
            }
            if !part.is_empty() {
                lines.last_mut().expect("there is always a line").push(Piece::Literal(part));
            }
        }
        rest = "";
        if literal.len() < output.len() && !behind.is_empty() {
            let (value, after) = behind.split_once(CLOSE).ok_or("a value has no end")?;
            let value = read_value(value).ok_or("a value cannot be read")?;
            lines.last_mut().expect("there is always a line").push(Piece::Value(value));
            rest = after;
        }
    }
    Ok(lines)
}

/// `key:`, `key[N]:` or `key[N]{a,b}:`, and the rest of the line.
struct Header<'a> {
    key: &'a str,
    /// The declared number of rows or elements.
    declared: Option<Scalar>,
    columns: Option<Vec<&'a str>>,
    rest: MarkedLine<'a>,
}

impl<'a> Header<'a> {
    /// A header consists of literal text; only the number may be a value.
    fn parse(line: &MarkedLine<'a>) -> Option<Self> {
        let (Piece::Literal(first), behind) = line.split_first()? else { return None };
        let key_end = first.find(|c: char| !(c.is_ascii_alphanumeric() || "_.!".contains(c))).unwrap_or(first.len());
        let (key, after) = first.split_at(key_end);
        if !is_key(key) {
            return None;
        }
        if let Some(rest) = after.strip_prefix(':') {
            return Some(Self { key, declared: None, columns: None, rest: with_front(rest, behind) });
        }
        let inside = after.strip_prefix('[')?;
        let (declared, after, behind) = if inside.is_empty() {
            // The number is a value: `key[`, value, `]…`.
            let (Piece::Value(number), behind) = behind.split_first()? else { return None };
            let (Piece::Literal(next), behind) = behind.split_first()? else { return None };
            (number.clone(), next.strip_prefix(']')?, behind)
        } else {
            let (digits, after) = inside.split_once(']')?;
            (Scalar::Number(digits.parse::<u32>().ok()?.into()), after, behind)
        };
        let (columns, after) = match after.strip_prefix('{') {
            Some(inner) => {
                let (columns, after) = inner.split_once('}')?;
                (Some(columns.split(',').map(str::trim).collect()), after)
            }
            None => (None, after),
        };
        let rest = after.strip_prefix(':')?;
        Some(Self { key, declared: Some(declared), columns, rest: with_front(rest, behind) })
    }

    fn shape(&self, rows: impl Iterator<Item = MarkedLine<'a>>) -> Result<Shape, String> {
        let Some(declared) = &self.declared else {
            return Ok(Shape::Scalar(cell(&self.rest)));
        };
        let (shape, found) = match &self.columns {
            Some(columns) => self.table(columns, rows)?,
            None => {
                let cells = if is_blank(&self.rest) { Vec::new() } else { cells(&self.rest) };
                let found = cells.len();
                (Shape::List(cells), found)
            }
        };
        match declared {
            Scalar::Number(number) if number.as_u64() == Some(found as u64) => Ok(shape),
            Scalar::Number(number) => Err(format!("{}[{number}] has {found}", self.key)),
            _ => Err(format!("{}[…] has {found}", self.key)),
        }
    }

    fn table(&self, columns: &[&str], rows: impl Iterator<Item = MarkedLine<'a>>) -> Result<(Shape, usize), String> {
        if !is_blank(&self.rest) {
            return Err(format!("nothing may stand behind the header of {}", self.key));
        }
        if let Some(column) = columns.iter().find(|column| !is_key(column)) {
            return Err(format!("the column name {column:?} of {} is not allowed", self.key));
        }
        let mut all = Vec::new();
        let mut found = 0;
        for row in rows {
            let cells = cells(&row);
            found += 1;
            if cells.len() != columns.len() {
                let (has, wanted) = (cells.len(), columns.len());
                return Err(format!("row {found} of {} has {has} cells and not {wanted}", self.key));
            }
            all.extend(cells);
        }
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        let table = Table::new(columns, all).ok_or("a table needs a column")?;
        Ok((Shape::Table(table), found))
    }
}

fn with_front<'a>(front: &'a str, behind: &[Piece<'a>]) -> MarkedLine<'a> {
    std::iter::once(Piece::Literal(front)).chain(behind.iter().cloned()).collect()
}

fn is_key(text: &str) -> bool {
    let name = text.strip_prefix('!').unwrap_or(text);
    super::toon::is_plain_key(name)
}

fn is_blank(line: &MarkedLine<'_>) -> bool {
    line.iter().all(|piece| matches!(piece, Piece::Literal(text) if text.trim().is_empty()))
}

fn is_indented(line: &MarkedLine<'_>) -> bool {
    matches!(line.first(), Some(Piece::Literal(text)) if text.starts_with([' ', '\t']))
}

/// Commas in the literal text separate cells.
fn cells(line: &MarkedLine<'_>) -> Vec<Scalar> {
    let mut cells: Vec<MarkedLine<'_>> = vec![Vec::new()];
    for piece in line {
        match piece {
            Piece::Literal(text) => {
                for (number, part) in text.split(',').enumerate() {
                    if number > 0 {
                        cells.push(Vec::new());
                    }
                    cells.last_mut().expect("there is always a cell").push(Piece::Literal(part));
                }
            }
            value => cells.last_mut().expect("there is always a cell").push(value.clone()),
        }
    }
    cells.iter().map(cell).collect()
}

/// A cell with a single value keeps its type; any other becomes text.
fn cell(line: &MarkedLine<'_>) -> Scalar {
    let mut telling = line.iter().filter(|piece| !matches!(piece, Piece::Literal(text) if text.trim().is_empty()));
    match (telling.next(), telling.next()) {
        (Some(Piece::Value(value)), None) => value.clone(),
        _ => Scalar::Text(trimmed(line)),
    }
}

/// The text of a line, without the template's own leading and trailing blanks; blanks in values stay.
fn trimmed(line: &MarkedLine<'_>) -> String {
    let text = plain(line);
    let lead = match line.first() {
        Some(Piece::Literal(first)) => first.len() - first.trim_start().len(),
        _ => 0,
    };
    let trail = match line.last() {
        Some(Piece::Literal(last)) => last.len() - last.trim_end().len(),
        _ => 0,
    };
    text.get(lead..text.len().saturating_sub(trail)).unwrap_or_default().to_owned()
}

fn plain(line: &MarkedLine<'_>) -> String {
    line.iter()
        .map(|piece| match piece {
            Piece::Literal(text) => (*text).to_owned(),
            Piece::Value(value) => scalar_text(value),
        })
        .collect()
}

/// The line for an error message: values of events must not appear there.
fn shape_of(line: &MarkedLine<'_>) -> String {
    let pieces = line.iter().map(|piece| match piece {
        Piece::Literal(text) => *text,
        Piece::Value(_) => "{{ … }}",
    });
    pieces.collect()
}

fn scalar_text(value: &Scalar) -> String {
    match value {
        Scalar::Null => "null".into(),
        Scalar::Bool(bit) => bit.to_string(),
        Scalar::Number(number) => number.to_string(),
        Scalar::Text(text) => text.clone(),
    }
}

/// The whole output as one text, without the blank lines that the template's tags leave around it.
fn root_text(lines: &[MarkedLine<'_>]) -> String {
    let first = lines.iter().position(|line| !is_blank(line)).unwrap_or(0);
    let last = lines.iter().rposition(|line| !is_blank(line)).unwrap_or(0);
    lines[first..=last].iter().map(trimmed).collect::<Vec<_>>().join("\n")
}
