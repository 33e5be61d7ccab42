//! The subset of Jinja that templates may use. Constructs whose memory or time could grow without limit are refused at
//! load time, with the line and an alternative.
//!
//! Tags are tokenized as the engine does it: string literals are skipped, and a tag ends where no bracket is open.
//! Every `{{` and `{%` counts as the start of a tag, even in a comment or a literal; that only makes the rules
//! stricter.

use super::template::TemplateError;

/// In bytes.
const SOURCE_MAX: usize = 16 * 1024;
/// In bytes. It also limits how deeply an expression can nest.
const TAG_MAX: usize = 512;
/// How often a template may join texts; each join can double the memory.
const JOINS_MAX: usize = 4;
/// How often it may slice; each slice adds a layer to the iteration.
const SLICES_MAX: usize = 4;
/// How often it may use `elif`; each one nests an `if` in the previous one.
const ELIFS_MAX: usize = 32;
/// The tags that are available.
const TAGS: [&str; 9] = ["for", "else", "endfor", "if", "elif", "endif", "set", "break", "continue"];
/// The keywords after which a value begins.
const KEYWORDS: [&str; 10] = ["and", "or", "not", "in", "is", "if", "elif", "else", "for", "set"];
/// The names that a list may contain.
const CONSTANTS: [&str; 6] = ["true", "false", "none", "True", "False", "None"];

/// Refuses constructs that could take memory or time without limit.
pub(super) fn check(source: &str) -> Result<(), TemplateError> {
    let whole = |message: String| Err(TemplateError { line: 0, message });
    if source.len() > SOURCE_MAX {
        return whole(format!("has {} bytes; at most {SOURCE_MAX} are allowed", source.len()));
    }
    if let Some(control) = source.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return whole(format!("contains the control character {control:?}"));
    }
    let mut uses = Uses::default();
    for at in starts(source) {
        let tag = Tag::read(&source[at..]);
        let checked = tag.and_then(|tag| tag.check(&mut uses)).and_then(|()| uses.check());
        checked.map_err(|message| TemplateError { line: source[..at].matches('\n').count() + 1, message })?;
    }
    Ok(())
}

/// The tags of a checked template, in order.
pub(super) fn tags(source: &str) -> impl Iterator<Item = Tag<'_>> {
    starts(source).into_iter().filter_map(|at| Tag::read(&source[at..]).ok())
}

/// Where tags begin.
fn starts(source: &str) -> Vec<usize> {
    let mut starts: Vec<usize> =
        ["{%", "{{"].iter().flat_map(|open| source.match_indices(open)).map(|(at, _)| at).collect();
    starts.sort_unstable();
    starts
}

/// Counts the constructs that may be used only a few times.
#[derive(Default)]
struct Uses {
    joins: usize,
    slices: usize,
    elifs: usize,
}

impl Uses {
    fn check(&self) -> Result<(), String> {
        let found =
            [(self.joins, JOINS_MAX, "~ and +"), (self.slices, SLICES_MAX, "slices"), (self.elifs, ELIFS_MAX, "elif")];
        match found.into_iter().find(|(uses, max, _)| uses > max) {
            Some((_, max, what)) => Err(format!("{what} may be used {max} times in a template")),
            None => Ok(()),
        }
    }
}

#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum TemplateToken<'a> {
    Name(&'a str),
    Number,
    /// A string literal with its quotes.
    Text(&'a str),
    Sign(char),
}

use TemplateToken::{Name, Number, Sign, Text};

/// What an open bracket encloses.
#[derive(Copy, Clone, PartialEq)]
enum Bracket {
    Group,
    Arguments,
    List,
    Index { is_slice: bool },
}

/// The tokens of one tag.
pub(super) struct Tag<'a> {
    pub(super) is_block: bool,
    pub(super) tokens: Vec<TemplateToken<'a>>,
}

impl<'a> Tag<'a> {
    /// Tokenizes the tag at the start of `source`.
    fn read(source: &'a str) -> Result<Self, String> {
        let is_block = source.starts_with("{%");
        let end = if is_block { "%}" } else { "}}" };
        let code = &source[2..source.floor_char_boundary(2 + TAG_MAX)];
        let mut rest = code.strip_prefix(['-', '+']).unwrap_or(code);
        let (mut tokens, mut open) = (Vec::new(), 0_i32);
        loop {
            rest = rest.trim_ascii_start();
            if open == 0 && (rest.starts_with(end) || rest.strip_prefix(['-', '+']).is_some_and(|s| s.starts_with(end)))
            {
                return Ok(Self { is_block, tokens });
            }
            let token;
            (token, rest) = next_token(rest).ok_or_else(|| match source.len() > TAG_MAX {
                true => format!("a tag has no end within {TAG_MAX} bytes; use several"),
                false => "a tag has no end".to_owned(),
            })?;
            match token {
                Sign('(' | '[' | '{') => open += 1,
                Sign(')' | ']' | '}') => open -= 1,
                _ => {}
            }
            if open < 0 {
                return Err("a bracket is closed that was not opened".into());
            }
            tokens.push(token);
        }
    }

    fn check(&self, uses: &mut Uses) -> Result<(), String> {
        if self.is_block {
            self.check_block(uses)?;
        }
        let mut open: Vec<Bracket> = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            if open.last() == Some(&Bracket::List) && !may_stand_in_list(token) {
                return Err("a list may hold constants only".into());
            }
            match token {
                Sign('(' | '[') => open.push(self.bracket(at)?),
                Sign(')' | ']') => drop(open.pop()),
                Sign('{' | '}') => return Err("maps are not available".into()),
                Sign('*') => {
                    return Err("multiplication is not available; for a share use {{ part|percent(whole) }}".into());
                }
                Sign('~') => uses.joins += 1,
                Sign('+') if self.is_number(at + 1) || at.checked_sub(1).is_some_and(|at| self.is_number(at)) => {
                    uses.joins += 1;
                }
                Sign('+') => {
                    return Err("+ adds a written number, as in {{ count + 1 }}; texts are joined with ~".into());
                }
                Sign(',') if open.last() == Some(&Bracket::Group) || (open.is_empty() && self.is_assigned(at)) => {
                    return Err("tuples are not available".into());
                }
                Sign(':') => match open.last_mut() {
                    Some(Bracket::Index { is_slice: true }) => return Err("a slice has no step".into()),
                    Some(Bracket::Index { is_slice }) => {
                        *is_slice = true;
                        uses.slices += 1;
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(())
    }

    fn check_block(&self, uses: &mut Uses) -> Result<(), String> {
        let word = match self.tokens.first() {
            Some(Name(word)) => *word,
            _ => "",
        };
        if !TAGS.contains(&word) {
            return Err(format!("the tag '{word}' is not available; there are {}", TAGS.join(", ")));
        }
        if word == "set" && !self.is_assigned(self.tokens.len()) {
            return Err("a set block is not available; write {% set name = value %}".into());
        }
        if word == "for" && self.tokens.last() == Some(&Name("recursive")) {
            return Err("recursive loops are not available".into());
        }
        uses.elifs += usize::from(word == "elif");
        Ok(())
    }

    /// What the bracket at this position opens. After a value it is an index or, for filters and tests only, arguments.
    fn bracket(&self, at: usize) -> Result<Bracket, String> {
        let before = at.checked_sub(1).map(|before| self.tokens[before]);
        let behind_value = match before {
            Some(Name(name)) => !KEYWORDS.contains(&name),
            Some(Number | Text(_) | Sign(')' | ']')) => true,
            _ => false,
        };
        match (self.tokens[at], behind_value) {
            (Sign('['), true) => Ok(Bracket::Index { is_slice: false }),
            (Sign('['), false) => Ok(Bracket::List),
            (_, false) => Ok(Bracket::Group),
            (_, true) => match &self.tokens[..at] {
                [.., Sign('|') | Name("is"), Name(_)] | [.., Name("is"), Name("not"), Name(_)] => {
                    Ok(Bracket::Arguments)
                }
                _ => Err("calls are not available; filters are written {{ value|filter }}".into()),
            },
        }
    }

    /// Whether this token is a number, and not an index as in `events.0`.
    fn is_number(&self, at: usize) -> bool {
        let is_index = at.checked_sub(1).is_some_and(|before| self.tokens[before] == Sign('.'));
        self.tokens.get(at) == Some(&Number) && !is_index
    }

    /// Whether this position of a `set` tag is after its `=`.
    fn is_assigned(&self, at: usize) -> bool {
        self.is_block && self.tokens.first() == Some(&Name("set")) && self.tokens[..at].contains(&Sign('='))
    }
}

fn may_stand_in_list(token: &TemplateToken<'_>) -> bool {
    match token {
        Text(_) | Number | Sign(',' | '-' | ']') => true,
        Name(word) => CONSTANTS.contains(word),
        Sign(_) => false,
    }
}

/// The first token of a text that does not start with a blank, and the rest of the text.
fn next_token(text: &str) -> Option<(TemplateToken<'_>, &str)> {
    let first = text.chars().next()?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word_end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    Some(match first {
        '"' | '\'' => {
            let (text, rest) = text.split_at(text_end(text)?);
            (Text(text), rest)
        }
        '0'..='9' => (Number, after_number(text, word_end)),
        c if is_word(c) => (Name(&text[..word_end]), &text[word_end..]),
        c => (Sign(c), &text[c.len_utf8()..]),
    })
}

/// Where a string literal ends; a backslash escapes the next character.
fn text_end(text: &str) -> Option<usize> {
    let (quote, mut escaped) = (text.as_bytes()[0], false);
    let length = text.bytes().skip(1).position(|byte| match (escaped, byte) {
        (true, _) => {
            escaped = false;
            false
        }
        (false, b'\\') => {
            escaped = true;
            false
        }
        (false, byte) => byte == quote,
    })?;
    Some(length + 2)
}

/// The rest of the text after a number and its fraction.
fn after_number(text: &str, digits_end: usize) -> &str {
    let rest = &text[digits_end..];
    match rest.strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            let end = fraction.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(fraction.len());
            &fraction[end..]
        }
        _ => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(source: &str) -> Option<String> {
        check(source).err().map(|error| error.to_string())
    }

    #[test]
    fn the_template_language_is_accepted() {
        let allowed = [
            "{% for key, value in p %}{% if not loop.last %},{% endif %}{% endfor %}",
            "{% set a, b = pair %}{{- (a or b)|cut(300) -}}",
            "{{ x|default(\"timeout\" if e.type in ['a', -1, 1.5, none] else \"error\") }}",
            "{{ count + 1 }} {{ 1.5 + count }} {{ a ~ b }} {{ events[0].payload.list.0[1:3] }}",
            "{{ events|counts(by=\"payload.tool_name\") }} {{ x is not none }} 100% {of} it",
            "{# a comment #} {% set a = x == y %} {{ \"it's * ~ + [a, a] (b, b) here\" }}",
        ];
        for source in allowed {
            assert_eq!(refusal(source), None, "{source}");
        }
    }

    #[test]
    fn a_false_end_of_a_tag_hides_no_refused_construct() {
        let hidden = [
            "{{ '}}' * 9 }}",
            "{{ '\\'}}' * 9 }}",
            "{% set a = '%}' * 9 %}",
            "{{ {'a': {}}|length * 9 }}",
            "{{ (a }} * 9) }}",
            "{{ \"{# \" * 9 }} #}",
            "{# #}{{- x*9 -}}",
            "{% if x %}{{ 2 ** 9 }}{% endif %}",
            "{{ x|default(*events) }}",
        ];
        for source in hidden {
            assert!(refusal(source).is_some(), "{source}");
        }
    }

    #[test]
    fn lists_cannot_be_nested_or_chained() {
        let refused = [
            "{% set a = [a, a] %}",
            "{% set a = (a, a) %}",
            "{% set a = a, a %}",
            "{% if x in [[a]] %}",
            "{% set a = a + a %}",
            "{% set a = events.0 + events.0 %}",
            "{% set a = [1][:] + b %}",
            "{{ {'a': a} }}",
            "{{ a[::2] }}",
        ];
        for source in refused {
            assert!(refusal(source).is_some(), "{source}");
        }
    }

    #[test]
    fn every_refusal_names_the_line_and_what_to_do_instead() {
        let long = format!("\n{{{{ {}1 }}}}", "-".repeat(16_000));
        let sources = [
            "{% include 'x' %}",
            "\n{%- raw -%}",
            "{% set x %}{% endset %}",
            "{% for x in (y)recursive %}",
            "{% for e in events %}\n{{ loop.cycle() }}",
            "{{ a ~ b ~ c ~ d ~ e ~ f }}",
            "{{ a[:][:][:][:][:] }}",
            "{{ a * b }}",
            "{{ a + b }}",
            "{{ (a, b) }}",
            "{{ [a] }}",
            "{{ {} }}",
            "{{ a ] }}",
            "{{ a",
            "{{ a \u{1} }}",
            long.as_str(),
        ];
        let refusals: Vec<String> = sources.iter().filter_map(|source| refusal(source)).collect();
        assert_eq!(refusals.len(), sources.len());
        insta::assert_snapshot!(refusals.join("\n"));
    }
}
