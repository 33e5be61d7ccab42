//! What the fuzz targets share: hostile texts and payloads, and the checks that whatever comes out must pass.

mod hostile;
pub use hostile::{Hostile, HostileJson, Payload};

mod round_trip;
pub use round_trip::{assert_reads_back, read_back};

mod reader;
pub use reader::{Item, read_block, read_elements, read_synthetic};

mod words;
pub use words::TemplateText;
