//! Any document without a problem is spelled as the reference encoder spells it, and reads back as what it says.

#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use bellwire_core::render::toon::{Document, Field, Scalar, Shape, Table};
use bellwire_fuzz::{Hostile, HostileJson, assert_reads_back};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

#[derive(Debug)]
struct AnyDocument(Document);

fuzz_target!(|any: AnyDocument| {
    let document = any.0;
    if document.problem().is_some() {
        return;
    }
    let reference = toon_format::encode_default(&document.to_json()).expect("JSON can be encoded");
    assert_eq!(document.to_toon(), reference);
    assert_reads_back(&document);
});

impl<'a> Arbitrary<'a> for AnyDocument {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        if u.ratio(1, 8)? {
            return Ok(Self(Document::Text(text(u)?)));
        }
        let fields = (0..u.int_in_range(1..=4)?).map(|_| Ok(Field { key: text(u)?, value: shape(u)? }));
        fields.collect::<Result<_>>().map(|fields| Self(Document::Fields(fields)))
    }
}

fn shape(u: &mut Unstructured<'_>) -> Result<Shape> {
    Ok(match u.int_in_range(0..=2)? {
        0 => Shape::Scalar(scalar(u)?),
        1 => {
            let length = u.int_in_range(0..=7)?;
            Shape::List(scalars(u, length)?)
        }
        _ => {
            let columns: Vec<String> = (0..u.int_in_range(1..=4)?).map(|_| text(u)).collect::<Result<_>>()?;
            let height: usize = u.int_in_range(0..=4)?;
            let cells = scalars(u, columns.len() * height)?;
            Shape::Table(Table::new(columns, cells).expect("the rows are whole"))
        }
    })
}

fn scalars(u: &mut Unstructured<'_>, count: usize) -> Result<Vec<Scalar>> {
    (0..count).map(|_| scalar(u)).collect()
}

fn scalar(u: &mut Unstructured<'_>) -> Result<Scalar> {
    Ok(match u.arbitrary::<HostileJson>()?.0 {
        Value::Null => Scalar::Null,
        Value::Bool(bit) => Scalar::Bool(bit),
        Value::Number(number) => Scalar::Number(number),
        Value::String(text) => Scalar::Text(text),
        other => Scalar::Text(other.to_string()),
    })
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(1, 4)? { u.arbitrary() } else { Ok(u.arbitrary::<Hostile>()?.0) }
}
