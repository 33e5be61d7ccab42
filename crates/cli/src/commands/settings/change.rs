//! The flags of `bellwire settings set`, as a merge patch.

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::output::printable;

/// Change settings; what is not named stays
///
/// Lists are changed entry by entry: --mute adds an origin, --unmute removes it. A core subscriber cannot be disabled.
#[derive(Args)]
pub(super) struct SetArgs {
    /// Send emails to this address and switch email on; the hub mails a code to it. "none" removes the address
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Switch email on or off; the address stays
    #[arg(long, value_name = "on|off")]
    email_enabled: Option<Switch>,
    /// Switch Telegram on or off; the chat stays connected. `bellwire telegram pair` connects one
    #[arg(long, value_name = "on|off")]
    telegram: Option<Switch>,
    /// The hours in which no email and no Telegram message is sent, such as 22:00-07:00; "none" removes them
    #[arg(long, value_name = "START-END")]
    quiet_hours: Option<String>,
    /// The time zone of the quiet hours, such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Switch toasts on or off; the inbox gets their notifications in any case
    #[arg(long, value_name = "on|off")]
    toasts: Option<Switch>,
    /// Show no toasts and send no messages of this origin; may be given several times
    #[arg(long, value_name = "ORIGIN")]
    mute: Vec<String>,
    /// No longer mute this origin
    #[arg(long, value_name = "ORIGIN")]
    unmute: Vec<String>,
    /// Switch this subscriber off for the person's agents; may be given several times
    #[arg(long, value_name = "SUBSCRIBER")]
    disable: Vec<String>,
    /// Switch this subscriber on again
    #[arg(long, value_name = "SUBSCRIBER")]
    enable: Vec<String>,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// The value of a flag that removes a setting.
const NONE: &str = "none";

impl SetArgs {
    /// The merge patch for these settings.
    pub(super) fn patch(&self, settings: &Value) -> Result<Value> {
        let mut patch = Map::new();
        if let Some(email) = self.email_patch() {
            patch.insert("email".to_owned(), email);
        }
        if let Some(telegram) = self.telegram {
            patch.insert("telegram".to_owned(), json!({ "enabled": telegram == Switch::On }));
        }
        if let Some(quiet) = self.quiet_patch(&settings["quiet_hours"])? {
            patch.insert("quiet_hours".to_owned(), quiet);
        }
        if let Some(toasts) = self.toasts {
            patch.insert("toasts".to_owned(), json!({ "enabled": toasts == Switch::On }));
        }
        let lists = [
            ("muted_origins", "--unmute", &self.mute, &self.unmute),
            ("disabled_subscribers", "--enable", &self.disable, &self.enable),
        ];
        for (name, flag, added, removed) in lists {
            if !added.is_empty() || !removed.is_empty() {
                let list = changed(&settings[name], added, removed);
                let list = list.map_err(|absent| anyhow::anyhow!("{flag} {absent} of {name}"))?;
                patch.insert(name.to_owned(), list);
            }
        }
        if patch.is_empty() {
            bail!("nothing to change: name a setting, such as --toasts off; --help lists them");
        }
        Ok(Value::Object(patch))
    }

    fn email_patch(&self) -> Option<Value> {
        let mut email = Map::new();
        match self.email.as_deref() {
            Some(NONE) => email.extend([("address".to_owned(), Value::Null), ("enabled".to_owned(), json!(false))]),
            Some(address) => {
                email.extend([("address".to_owned(), json!(address)), ("enabled".to_owned(), json!(true))])
            }
            None => {}
        }
        if let Some(enabled) = self.email_enabled {
            email.insert("enabled".to_owned(), json!(enabled == Switch::On));
        }
        (!email.is_empty()).then_some(Value::Object(email))
    }

    fn quiet_patch(&self, current: &Value) -> Result<Option<Value>> {
        let mut quiet = Map::new();
        match self.quiet_hours.as_deref() {
            Some(NONE) if self.timezone.is_some() => {
                bail!("--timezone belongs to quiet hours, which --quiet-hours none removes")
            }
            Some(NONE) => return Ok(Some(Value::Null)),
            Some(hours) => {
                let (start, end) = hours.split_once('-').with_context(|| {
                    format!("--quiet-hours is '{}'; write START-END, such as 22:00-07:00, or none", printable(hours))
                })?;
                quiet.extend([("start".to_owned(), json!(start.trim())), ("end".to_owned(), json!(end.trim()))]);
            }
            None => {}
        }
        quiet.extend(self.timezone.as_ref().map(|zone| ("timezone".to_owned(), json!(zone))));
        if current.is_null() && !quiet.is_empty() && quiet.len() < 3 {
            bail!("quiet hours need both: --quiet-hours 22:00-07:00 and --timezone Europe/Berlin");
        }
        Ok((!quiet.is_empty()).then_some(Value::Object(quiet)))
    }
}

/// A list with entries removed and added. Fails with a removed entry that is not in the list, which is probably mistyped.
fn changed(current: &Value, added: &[String], removed: &[String]) -> Result<Value, String> {
    let mut names: Vec<&str> = current.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for name in removed {
        let Some(at) = names.iter().position(|one| one == name) else {
            let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(printable(&format!("{name}: it is not in the list ({list})")));
        };
        names.remove(at);
    }
    for name in added {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    Ok(json!(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        set: SetArgs,
    }

    fn patch(settings: &Value, flags: &str) -> Result<Value> {
        let words = std::iter::once("set").chain(flags.split_whitespace());
        let matches = Line::command().try_get_matches_from(words)?;
        Line::from_arg_matches(&matches)?.set.patch(settings)
    }

    #[test]
    fn a_patch_names_only_what_changes() {
        let blank = json!({ "quiet_hours": null, "muted_origins": ["ci", "cron"], "disabled_subscribers": [] });
        let cases = [
            ("--email a@b.org", json!({ "email": { "address": "a@b.org", "enabled": true } })),
            ("--telegram off", json!({ "telegram": { "enabled": false } })),
            ("--email a@b.org --email-enabled off", json!({ "email": { "address": "a@b.org", "enabled": false } })),
            ("--email none", json!({ "email": { "address": null, "enabled": false } })),
            (
                "--email-enabled on --toasts off",
                json!({ "email": { "enabled": true }, "toasts": { "enabled": false } }),
            ),
            (
                "--quiet-hours 22:00-07:00 --timezone UTC",
                json!({ "quiet_hours": { "start": "22:00", "end": "07:00", "timezone": "UTC" } }),
            ),
            ("--quiet-hours none", json!({ "quiet_hours": null })),
            ("--mute bot --mute ci --unmute cron", json!({ "muted_origins": ["ci", "bot"] })),
            ("--disable source_stale", json!({ "disabled_subscribers": ["source_stale"] })),
        ];
        for (flags, expected) in cases {
            assert_eq!(patch(&blank, flags).expect(flags), expected, "{flags}");
        }
    }

    #[test]
    fn a_part_of_quiet_hours_changes_only_existing_ones() {
        let night = json!({ "quiet_hours": { "start": "22:00", "end": "07:00", "timezone": "UTC" } });
        let moved = json!({ "quiet_hours": { "timezone": "Europe/Berlin" } });
        assert_eq!(patch(&night, "--timezone Europe/Berlin").expect("a zone"), moved);
        for flags in ["--timezone UTC", "--quiet-hours 22:00-07:00", "--quiet-hours 22:00", "--unmute ci", ""] {
            assert!(patch(&json!({}), flags).is_err(), "{flags}");
        }
    }
}
