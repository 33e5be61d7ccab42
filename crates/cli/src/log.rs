//! What a hub says about itself, on standard error.

use std::io::IsTerminal as _;

use bellwire_server::config::{Log, LogFormat};

/// From here on, what happens is written down.
pub(crate) fn start(log: &Log) {
    let text = match log.format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    // The library of MCP tells of every session; whoever wants to know says rmcp=info behind the level.
    let level = match log.level.as_str() {
        silent @ ("off" | "error") => silent.to_owned(),
        level => format!("rmcp=warn,{level}"),
    };
    let filter = tracing_subscriber::EnvFilter::new(level);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match text {
        true => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        false => builder.json().with_span_list(false).init(),
    }
}
