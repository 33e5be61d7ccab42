use std::collections::BTreeMap;
use std::ops::Range;

use toml::Value;
use toml::de::{DeTable, DeValue};

use super::setting::{SETTINGS, Setting};
use bellwire_core::nearest;

/// A value of a file and its line.
pub(super) struct ConfigEntry {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) line: usize,
    /// The lines of the fields of a table.
    pub(super) lines: BTreeMap<String, usize>,
}

/// An error in a file and its line; line 0 = the whole file.
pub(super) type Mistake = (usize, String);

/// The section of the sources of webhooks, whose keys are names that the operator chooses.
pub(super) const INGEST: &str = "ingest";

/// The largest file that is parsed, in bytes.
const FILE_MAX: usize = 1024 * 1024;

/// The entries of a file by `section.key`. An unknown key is a mistake whose text suggests the nearest known one.
pub(super) fn entries(text: &str) -> Result<(Vec<ConfigEntry>, Vec<Mistake>), Mistake> {
    if text.len() > FILE_MAX {
        return Err((0, format!("has {} bytes; at most {FILE_MAX} are allowed", text.len())));
    }
    let syntax = |error: toml::de::Error| {
        let line = error.span().map_or(0, |span| line_of(text, span.start));
        (line, error.message().trim().replace('\n', ", "))
    };
    let spans = DeTable::parse(text).map_err(syntax)?;
    let values: toml::Table = toml::from_str(text).map_err(syntax)?;
    let (mut entries, mut mistakes) = (Vec::new(), Vec::new());
    for (section, content) in spans.get_ref() {
        let name = section.get_ref().as_ref();
        let DeValue::Table(table) = content.get_ref() else {
            mistakes.push((line_at(text, section.span()), unknown(name)));
            continue;
        };
        let is_source = name == INGEST;
        let is_known = |setting: &Setting| setting.key.split_once('.').is_some_and(|(known, _)| known == name);
        if !is_source && !SETTINGS.iter().any(is_known) {
            mistakes.push((line_at(text, section.span()), unknown_section(name)));
            continue;
        }
        for (key, content) in table {
            let dotted = format!("{name}.{}", key.get_ref());
            let line = line_at(text, key.span());
            let value = values.get(name).and_then(|section| section.get(key.get_ref().as_ref()));
            match value.filter(|_| is_source || SETTINGS.iter().any(|setting| setting.key == dotted)) {
                Some(value) => {
                    let lines = field_lines(text, content.get_ref());
                    entries.push(ConfigEntry { key: dotted, value: value.clone(), line, lines });
                }
                None => mistakes.push((line, unknown(&dotted))),
            }
        }
    }
    Ok((entries, mistakes))
}

fn field_lines(text: &str, value: &DeValue<'_>) -> BTreeMap<String, usize> {
    let DeValue::Table(table) = value else { return BTreeMap::new() };
    table.keys().map(|key| (key.get_ref().to_string(), line_at(text, key.span()))).collect()
}

fn unknown(key: &str) -> String {
    let known = SETTINGS.iter().map(|setting| setting.key);
    let word = key.rsplit('.').next().unwrap_or(key);
    let same_word = || SETTINGS.iter().map(|setting| setting.key).find(|known| known.ends_with(&format!(".{word}")));
    match nearest(key, known).or_else(same_word) {
        Some(near) => format!("{key} is not a setting; did you mean {near}?"),
        None => format!("{key} is not a setting; `bellwire config --default` shows them all"),
    }
}

fn unknown_section(name: &str) -> String {
    let sections = SETTINGS.iter().filter_map(|setting| setting.key.split_once('.')).map(|(section, _)| section);
    let sections = sections.chain([INGEST]);
    match nearest(name, sections) {
        Some(near) => format!("[{name}] is not a section; did you mean [{near}]?"),
        None => format!("[{name}] is not a section; `bellwire config --default` shows them all"),
    }
}

fn line_at(text: &str, span: Range<usize>) -> usize {
    line_of(text, span.start)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
