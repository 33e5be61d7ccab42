//! Answers each line of standard input with the result of a tool: the least that an MCP server does. The `wrap` section measures
//! it with and without `bellwire wrap`.

use std::io::{BufRead as _, Write as _};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: serde_json::Value = serde_json::from_str(&line?).unwrap_or_default();
        let id = &message["id"];
        writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"ok"}}]}}}}"#)?;
        out.flush()?;
    }
    Ok(())
}
