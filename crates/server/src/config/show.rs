use serde_json::{Map, json};
use toml::Value;

use super::load::LoadedConfig;
use super::setting::SETTINGS;

impl LoadedConfig {
    /// The settings in the form of a configuration file, with the source of each value as a comment.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for setting in SETTINGS {
            let (of, key) = setting.key.split_once('.').unwrap_or(("", setting.key));
            if of != section {
                let gap = if section.is_empty() { "" } else { "\n" };
                text.push_str(&format!("{gap}[{of}]\n"));
                section = of;
            }
            let line = format!("{key} = {}", setting.read(&self.config));
            text.push_str(&format!("{line:40}  # from: {}\n", self.origin(setting.key)));
        }
        text.push_str(&self.sources_to_toml());
        text
    }

    /// The sources of webhooks, without their secrets.
    fn sources_to_toml(&self) -> String {
        let sources = self.config.ingest.values().map(|source| (source.name.clone(), Value::Table(source.to_toml())));
        let sources: toml::Table = sources.collect();
        if sources.is_empty() {
            return String::new();
        }
        let whole = toml::Table::from_iter([("ingest".to_owned(), Value::Table(sources))]);
        format!("\n{}", toml::to_string(&whole).expect("texts, numbers and lists can be written"))
    }

    /// The same as JSON: `{"limits.streams": {"value": 10000, "from": "default"}, …}`.
    pub fn to_json(&self) -> serde_json::Value {
        let entry = |setting: &super::setting::Setting| {
            let from = self.origin(setting.key).to_string();
            (setting.key.to_owned(), json!({ "value": plain(setting.read(&self.config)), "from": from }))
        };
        let source = |source: &super::IngestSource| {
            let value = plain(Value::Table(source.to_toml()));
            (format!("ingest.{}", source.name), json!({ "value": value, "from": "file" }))
        };
        let sources = self.config.ingest.values().map(source);
        serde_json::Value::Object(SETTINGS.iter().map(entry).chain(sources).collect::<Map<_, _>>())
    }
}

fn plain(value: Value) -> serde_json::Value {
    match value {
        Value::Integer(number) => json!(number),
        Value::Array(list) => list.into_iter().map(plain).collect(),
        Value::String(text) => json!(text),
        Value::Table(table) => table.into_iter().map(|(key, value)| (key, plain(value))).collect(),
        other => json!(other.to_string()),
    }
}
