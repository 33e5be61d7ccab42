//! Cuts a document that does not fit alone. The result says how much was cut.

use super::toon::{Document, Field, Scalar, Shape};
use crate::EventId;

/// The field that counts the missing rows.
const LEFT_OUT: &str = "left_out";

impl Document {
    /// The largest part of this document that fits, and whether any part did. A text that is cut names the event
    /// `whole`, from which all of it can be read.
    pub(crate) fn shortened(&self, whole: Option<EventId>, fits: &dyn Fn(&Self) -> bool) -> (Self, bool) {
        let fewer_rows = most(self.row_count(), |rows| self.with_rows(rows), fits);
        if let Some(document) = fewer_rows {
            return (document, true);
        }
        let (text, rebuild) = self.longest_text();
        let length = text.chars().count();
        match most(length, |kept| rebuild(cut_with_note(&text, kept, length, whole)), fits) {
            Some(document) => (document, true),
            None => (Self::Text(format!("… ({length} characters left out)")), false),
        }
    }

    /// How many rows can be dropped. A list whose own key is `left_out` is cut as text instead, because no key may
    /// occur twice.
    fn row_count(&self) -> usize {
        match self.only_field().filter(|field| field.key != LEFT_OUT).map(|field| &field.value) {
            Some(Shape::List(items)) => items.len(),
            Some(Shape::Table(table)) => table.row_count(),
            _ => 0,
        }
    }

    /// The document with only its first rows, and a second field that counts the missing ones.
    fn with_rows(&self, rows: usize) -> Self {
        let Some(Field { key, value }) = self.only_field() else { return self.clone() };
        let value = match value {
            Shape::List(items) => Shape::List(items[..rows].to_vec()),
            Shape::Table(table) => Shape::Table(table.first_rows(rows)),
            Shape::Scalar(scalar) => Shape::Scalar(scalar.clone()),
        };
        let missing = Scalar::Text(format!("{} more rows", self.row_count() - rows));
        let left_out = Field { key: LEFT_OUT.into(), value: Shape::Scalar(missing) };
        Self::Fields(vec![Field { key: key.clone(), value }, left_out])
    }

    /// The text to cut, and a function that puts it back: the value of `key: value`, otherwise the whole document as
    /// one text.
    fn longest_text(&self) -> (String, Box<dyn Fn(String) -> Self + '_>) {
        match (self, self.only_field()) {
            (_, Some(Field { key, value: Shape::Scalar(Scalar::Text(text)) })) => {
                let rebuild = |text| Field { key: key.clone(), value: Shape::Scalar(Scalar::Text(text)) };
                (text.clone(), Box::new(move |text| Self::Fields(vec![rebuild(text)])))
            }
            (Self::Text(text), _) => (text.clone(), Box::new(Self::Text)),
            _ => (self.to_toon(), Box::new(Self::Text)),
        }
    }

    fn only_field(&self) -> Option<&Field> {
        match self {
            Self::Fields(fields) if fields.len() == 1 => fields.first(),
            _ => None,
        }
    }
}

fn cut_with_note(text: &str, kept: usize, length: usize, whole: Option<EventId>) -> String {
    let end = text.char_indices().nth(kept).map_or(text.len(), |(at, _)| at);
    let (kept, left_out) = (&text[..end], length - kept);
    match whole {
        Some(event) => format!("{kept}… ({left_out} characters left out; all of it: GET /v1/events/{event})"),
        None => format!("{kept}… ({left_out} characters left out)"),
    }
}

/// The document of the largest size in `1..size` that fits, assuming that a smaller size fits if a larger one does.
/// Small sizes are tried first, so that the work depends on the size that fits, not on `size`.
fn most(size: usize, make: impl Fn(usize) -> Document, fits: &dyn Fn(&Document) -> bool) -> Option<Document> {
    let (mut fitting, mut low, mut high) = (None, 1, size);
    // Doubling finds a size that does not fit; halving then finds the largest that does.
    let mut step = Some(1);
    while low < high {
        let middle = match step {
            Some(step) => (low + step - 1).min(high - 1),
            None => low + (high - low) / 2,
        };
        let document = make(middle);
        if fits(&document) {
            fitting = Some(document);
            low = middle + 1;
            step = step.map(|step| 2 * step);
        } else {
            high = middle;
            step = None;
        }
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_named_left_out_is_cut_without_a_second_key_of_that_name() {
        let items = (0..100).map(|number| Scalar::Number(number.into())).collect();
        let document = Document::Fields(vec![Field { key: "left_out".into(), value: Shape::List(items) }]);
        let (short, fitted) = document.shortened(None, &|document| document.to_toon().len() <= 64);
        assert!(fitted);
        assert_eq!(short.problem(), None);
        assert!(short.to_toon().contains("characters left out"), "{}", short.to_toon());
    }
}
