//! Shared by the fuzz targets: hostile texts and payloads, and the checks of the output.
//!
//! `make fuzz` runs every target for a while; one of them for an hour, from the root of the project:
//!
//! ```sh
//! cargo +nightly fuzz run template -- -dict=fuzz/dictionaries/template.dict -len_control=0 -max_len=8192 \
//!     -timeout=20 -malloc_limit_mb=256 -max_total_time=3600
//! ```

mod hostile;
pub use hostile::{Hostile, HostileJson, Payload};

mod round_trip;
pub use round_trip::{assert_reads_back, read_back};

mod reader;
pub use reader::{Item, read_block, read_elements, read_synthetic};

mod words;
pub use words::TemplateText;
