//! Cutting a document that alone does not fit, so that it says by how much it was cut.

use super::toon::{Document, Field, Scalar, Shape};
use crate::EventId;

/// The field that says how many rows are missing.
const LEFT_OUT: &str = "left_out";

impl Document {
    /// The most of this document that fits, and whether anything did. A text that is cut names the event `whole`, where
    /// all of it can be read.
    pub(crate) fn shortened(&self, whole: Option<EventId>, fits: &dyn Fn(&Self) -> bool) -> (Self, bool) {
        let fewer_rows = most(self.row_count(), |rows| self.with_rows(rows), fits);
        if let Some(document) = fewer_rows {
            return (document, true);
        }
        let (text, rebuild) = self.longest_text();
        let length = text.chars().count();
        match most(length, |kept| rebuild(cut_saying(&text, kept, length, whole)), fits) {
            Some(document) => (document, true),
            None => (Self::Text(format!("… ({length} characters left out)")), false),
        }
    }

    /// How many rows can be left out. A field of the name that would say so is cut as text: no key may occur twice.
    fn row_count(&self) -> usize {
        match self.only_field().filter(|field| field.key != LEFT_OUT).map(|field| &field.value) {
            Some(Shape::List(items)) => items.len(),
            Some(Shape::Table(table)) => table.row_count(),
            _ => 0,
        }
    }

    /// The same document with only its first rows, and a second field that says how many are missing.
    fn with_rows(&self, rows: usize) -> Self {
        let Some(Field { key, value }) = self.only_field() else { return self.clone() };
        let value = match value {
            Shape::List(items) => Shape::List(items[..rows].to_vec()),
            Shape::Table(table) => Shape::Table(table.first_rows(rows)),
            Shape::Scalar(scalar) => Shape::Scalar(scalar.clone()),
        };
        let said = Scalar::Text(format!("{} more rows", self.row_count() - rows));
        let left_out = Field { key: LEFT_OUT.into(), value: Shape::Scalar(said) };
        Self::Fields(vec![Field { key: key.clone(), value }, left_out])
    }

    /// The text to cut, and how to put it back: the value of `key: value`, else the whole document as one text.
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

fn cut_saying(text: &str, kept: usize, length: usize, whole: Option<EventId>) -> String {
    let end = text.char_indices().nth(kept).map_or(text.len(), |(at, _)| at);
    let (kept, left_out) = (&text[..end], length - kept);
    match whole {
        Some(event) => format!("{kept}… ({left_out} characters left out; all of it: GET /v1/events/{event})"),
        None => format!("{kept}… ({left_out} characters left out)"),
    }
}

/// The document of the largest size in `1..size` that fits; sizes are taken to fit better the smaller they are. Small
/// ones are tried first, so that the work depends on what fits and not on what there is.
fn most(size: usize, make: impl Fn(usize) -> Document, fits: &dyn Fn(&Document) -> bool) -> Option<Document> {
    let (mut fitting, mut low, mut high) = (None, 1, size);
    // Doubling finds a size that is too large; halving then finds the largest that is not.
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
    fn a_list_that_is_called_left_out_itself_is_cut_without_saying_its_name_twice() {
        let items = (0..100).map(|number| Scalar::Number(number.into())).collect();
        let document = Document::Fields(vec![Field { key: "left_out".into(), value: Shape::List(items) }]);
        let (short, fitted) = document.shortened(None, &|document| document.to_toon().len() <= 64);
        assert!(fitted);
        assert_eq!(short.problem(), None);
        assert!(short.to_toon().contains("characters left out"), "{}", short.to_toon());
    }
}
