//! TOON writing speed: a table of 100 rows and 8 columns by our writer, by the reference encoder, and as JSON.
//!
//! JSON repeats every key in every row and so writes more bytes for the same data. Compare the time per table, not the
//! bytes per second.

use bellwire_core::render::toon::{Document, Field, Scalar, Shape, Table};
use serde_json::Number;

use crate::measure::{Laps, RunMode, TableRow, grouped, print_section};

const ROWS: usize = 100;
const TABLES: usize = 100;
const COLUMNS: [&str; 8] = ["id", "tool", "error", "ts", "duration_ms", "share", "retried", "message"];

pub(crate) fn run(mode: RunMode) {
    print_section("toon", "a table of 100 rows and 8 columns, in bytes written a second");
    let document = document();
    let json = document.to_json();
    let reference = || toon_format::encode_default(&json).expect("a table can be encoded");
    let (toon, in_json) = (document.to_toon(), json.to_string());
    assert_eq!(toon, reference(), "both encoders must write the same");

    let mut buffer = String::new();
    let [mut again, mut fresh, mut theirs, mut serde] = [(); 4].map(|()| Laps::of(TABLES));
    for _ in 0..mode.laps(25) {
        again.time(|| {
            repeated(|| {
                buffer.clear();
                document.write(&mut buffer);
                buffer.len()
            })
        });
        fresh.time(|| repeated(|| document.to_toon().len()));
        serde.time(|| repeated(|| serde_json::to_string(&json).map_or(0, |text| text.len())));
        theirs.time(|| repeated(|| reference().len()));
    }
    let row = |what, laps: &Laps, text: &str| {
        let table = format!("{:.1} µs a table, {:.2} of JSON's", laps.best() / 1e3, laps.best() / serde.best());
        TableRow::of(what, laps, megabytes(text.len())).against(table)
    };
    row("ours, into a text that is used again", &again, &toon).aim("at least 300 MB/s").print();
    row("ours, into a new text", &fresh, &toon).print();
    row("the reference encoder", &theirs, &toon).print();
    row("serde_json::to_string", &serde, &in_json).print();
}

fn repeated(mut write: impl FnMut() -> usize) -> usize {
    (0..TABLES).map(|_| write()).sum()
}

fn megabytes(bytes: usize) -> impl Fn(f64) -> String {
    move |nanos| format!("{} MB/s", grouped(bytes as f64 * 1e3 / nanos))
}

fn document() -> Document {
    let columns = COLUMNS.map(str::to_owned).to_vec();
    let table = Table::new(columns, (0..ROWS).flat_map(row).collect()).expect("every row is complete");
    Document::Fields(vec![Field { key: "tool_fails".to_owned(), value: Shape::Table(table) }])
}

/// A row with every type of cell: numbers, plain and quoted texts, a boolean or null.
fn row(number: usize) -> [Scalar; 8] {
    let text = |text: &str| Scalar::Text(text.to_owned());
    let share = Number::from_f64(number as f64 / 64.0).expect("a small quotient is finite");
    [
        Scalar::Number(number.into()),
        text(["vault_search", "vault_write", "run_tests", "read_file"][number % 4]),
        text(["timeout", "permission_denied", "not_found"][number % 3]),
        text(&format!("15:{:02}:{:02}", number / 60, number % 60)),
        Scalar::Number((number * 37 % 5_000).into()),
        Scalar::Number(share),
        if number.is_multiple_of(5) { Scalar::Null } else { Scalar::Bool(number.is_multiple_of(2)) },
        text(&format!("no answer from the index within {number} ms, tried again")),
    ]
}
