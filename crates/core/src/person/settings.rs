use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::older_settings::StoredSettings;
use super::{ChannelChange, ChannelName, ChannelSettings};
use crate::event::excerpt;
use crate::quiet::{QuietError, QuietHours};
use crate::{Time, ValidationError};

const MUTED_MAX: usize = 1000;
const ORIGIN_MAX: usize = 128;

/// The settings of a person. They are validated when they are changed, so that uses need no checks.
///
/// ```
/// use bellwire_core::person::{QuietChange, PersonSettings, SettingsChange};
///
/// let night = QuietChange {
///     start: Some("22:00".into()),
///     end: Some("07:00".into()),
///     timezone: Some("Europe/Berlin".into()),
/// };
/// let change = SettingsChange { quiet_hours: Some(Some(night)), ..SettingsChange::default() };
/// let settings = PersonSettings::default().apply(&change)?;
///
/// // Later only the end is named; the rest stays.
/// let longer = QuietChange { end: Some("08:30".into()), ..QuietChange::default() };
/// let change = SettingsChange { quiet_hours: Some(Some(longer)), ..SettingsChange::default() };
/// let quiet = settings.apply(&change)?.quiet_hours.map(|quiet| (quiet.start, quiet.end));
/// assert_eq!(quiet, Some(("22:00".into(), "08:30".into())));
/// # Ok::<(), bellwire_core::ValidationError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredSettings")]
pub struct PersonSettings {
    /// The ids of the subscribers switched off.
    pub disabled_subscribers: Vec<String>,
    /// Agents whose notifications go only to the inbox.
    pub muted_origins: Vec<String>,
    /// The channels that the person has set up. A missing one is off.
    pub channels: BTreeMap<ChannelName, ChannelSettings>,
    /// When nothing is sent; `None` = never.
    pub quiet_hours: Option<QuietSettings>,
    /// Display as toasts.
    pub toasts: ToastSettings,
}

/// The daily hours in which nothing is sent, as entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietSettings {
    /// `22:00`.
    pub start: String,
    /// `07:00`.
    pub end: String,
    /// `Europe/Berlin`.
    pub timezone: String,
}

/// Whether a person wants toasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToastSettings {
    /// Whether toasts are shown. The inbox gets the notification either way.
    pub enabled: bool,
}

impl Default for ToastSettings {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// A change of settings, as a JSON merge patch: `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// The new list of switched-off subscribers; the caller checks which of them can be switched off.
    pub disabled_subscribers: Option<Vec<String>>,
    /// The new list of muted origins.
    pub muted_origins: Option<Vec<String>>,
    /// The channels to change. The caller has checked that they exist and has parsed their targets.
    pub channels: BTreeMap<ChannelName, ChannelChange>,
    /// The new quiet hours; `Some(None)` removes them.
    pub quiet_hours: Option<Option<QuietChange>>,
    /// Whether the person wants toasts.
    pub toasts_enabled: Option<bool>,
}

/// A partial change of quiet hours; `None` leaves a part as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuietChange {
    /// When they start, `22:00`.
    pub start: Option<String>,
    /// When they end, `07:00`.
    pub end: Option<String>,
    /// The IANA time zone of start and end.
    pub timezone: Option<String>,
}

impl PersonSettings {
    /// Returns the changed settings, or an error for the first invalid field.
    pub fn apply(&self, change: &SettingsChange) -> Result<Self, ValidationError> {
        let mut next = self.clone();
        if let Some(ids) = &change.disabled_subscribers {
            next.disabled_subscribers = ids.clone();
        }
        if let Some(origins) = &change.muted_origins {
            next.muted_origins = muted(origins)?;
        }
        for (name, change) in &change.channels {
            next.channels.entry(name.clone()).or_default().apply(change);
        }
        next.toasts.enabled = change.toasts_enabled.unwrap_or(next.toasts.enabled);
        if let Some(quiet) = &change.quiet_hours {
            next.quiet_hours = quiet.as_ref().map(|quiet| quiet.over(self.quiet_hours.as_ref())).transpose()?;
        }
        Ok(next)
    }

    /// The settings of a channel; the default for one that the person has not set up.
    pub fn channel(&self, name: &str) -> ChannelSettings {
        self.channels.get(name).cloned().unwrap_or_default()
    }

    /// The person's target on a channel, if the channel is switched on and the target is verified.
    pub fn usable_target(&self, name: &str) -> Option<&str> {
        self.channels.get(name)?.usable_target()
    }

    /// Whether this origin's notifications go only to the inbox.
    pub fn mutes(&self, origin: &str) -> bool {
        self.muted_origins.iter().any(|muted| muted == origin)
    }

    /// Adds an origin whose notifications go only to the inbox.
    pub fn mute(&mut self, origin: &str) -> Result<(), ValidationError> {
        let origins: Vec<String> = self.muted_origins.iter().cloned().chain([origin.to_owned()]).collect();
        self.muted_origins = muted(&origins)?;
        Ok(())
    }

    /// The person's time zone, by its IANA name, if it is known.
    pub fn timezone(&self) -> Option<String> {
        self.quiet_hours.as_ref().map(|quiet| quiet.timezone.clone())
    }

    /// When messages may be sent again; `None` = now.
    pub fn quiet_until(&self, now: Time) -> Option<Time> {
        let QuietSettings { start, end, timezone } = self.quiet_hours.as_ref()?;
        // The values were validated when they were set. A zone that a later time zone database lacks holds nothing
        // back.
        QuietHours::parse(start, end, timezone).ok()?.quiet_until(now)
    }
}

impl SettingsChange {
    /// A change of one channel and nothing else.
    pub fn of_channel(name: ChannelName, change: ChannelChange) -> Self {
        Self { channels: BTreeMap::from([(name, change)]), ..Self::default() }
    }
}

impl QuietChange {
    fn over(&self, current: Option<&QuietSettings>) -> Result<QuietSettings, ValidationError> {
        type Part = fn(&QuietSettings) -> &String;
        let part = |given: &Option<String>, field: &'static str, current_part: Part| {
            let text = given.clone().or_else(|| current.map(|current| current_part(current).clone()));
            text.ok_or_else(|| ValidationError::new(field, "is missing; quiet hours need start, end and timezone"))
        };
        let start = part(&self.start, "quiet_hours.start", |quiet| &quiet.start)?;
        let end = part(&self.end, "quiet_hours.end", |quiet| &quiet.end)?;
        let timezone = part(&self.timezone, "quiet_hours.timezone", |quiet| &quiet.timezone)?;
        let hours = QuietHours::parse(&start, &end, &timezone).map_err(|error| refusal(&error))?;
        Ok(QuietSettings { start, end, timezone: hours.timezone().to_owned() })
    }
}

fn refusal(error: &QuietError) -> ValidationError {
    let field = match error.field() {
        "start" => "quiet_hours.start",
        "end" => "quiet_hours.end",
        _ => "quiet_hours.timezone",
    };
    let text = error.to_string();
    let message = text.split_once(": ").map_or(text.as_str(), |(_, message)| message);
    ValidationError::new(field, message)
}

fn muted(origins: &[String]) -> Result<Vec<String>, ValidationError> {
    const FIELD: &str = "muted_origins";
    if origins.len() > MUTED_MAX {
        return Err(ValidationError::new(
            FIELD,
            format!("names {} origins; at most {MUTED_MAX} are allowed", origins.len()),
        ));
    }
    let fits = |origin: &String| (1..=ORIGIN_MAX).contains(&origin.chars().count());
    if let Some(origin) = origins.iter().find(|origin| !fits(origin)) {
        let message = format!("has '{}'; an origin has 1 to {ORIGIN_MAX} characters", excerpt(origin));
        return Err(ValidationError::new(FIELD, message));
    }
    let mut origins = origins.to_vec();
    origins.sort();
    origins.dedup();
    Ok(origins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pigeon() -> ChannelName {
        ChannelName::parse("pigeon").expect("a name")
    }

    fn target(text: &str) -> SettingsChange {
        let change = ChannelChange { target: Some(Some(text.to_owned())), ..ChannelChange::default() };
        SettingsChange::of_channel(pigeon(), change)
    }

    #[test]
    fn a_change_affects_only_the_given_fields() {
        let quiet = QuietSettings { start: "22:00".into(), end: "07:00".into(), timezone: "UTC".into() };
        let before = PersonSettings {
            muted_origins: vec!["butler".into()],
            quiet_hours: Some(quiet),
            ..PersonSettings::default()
        };
        assert_eq!(before.apply(&SettingsChange::default()), Ok(before.clone()));
        let change = SettingsChange { toasts_enabled: Some(false), ..SettingsChange::default() };
        let after = before.apply(&change);
        assert_eq!(after, Ok(PersonSettings { toasts: ToastSettings { enabled: false }, ..before }));
    }

    #[test]
    fn a_new_target_is_unverified_and_the_same_one_stays_verified() {
        let verified = ChannelSettings { enabled: true, target: Some("roof 1".into()), verified: true };
        let before = PersonSettings { channels: BTreeMap::from([(pigeon(), verified)]), ..PersonSettings::default() };
        assert_eq!(before.usable_target("pigeon"), Some("roof 1"));
        assert_eq!(before.usable_target("owl"), None);
        assert_eq!(before.apply(&target("roof 1")), Ok(before.clone()));
        let other = before.apply(&target("roof 2")).expect("it is valid");
        assert_eq!(other.channel("pigeon").target.as_deref(), Some("roof 2"));
        assert_eq!(other.usable_target("pigeon"), None);
        let off = ChannelChange { enabled: Some(false), ..ChannelChange::default() };
        let off = before.apply(&SettingsChange::of_channel(pigeon(), off)).expect("it is valid");
        assert_eq!(off.usable_target("pigeon"), None);
        assert!(off.channel("pigeon").verified, "it can be switched on again");
    }

    #[test]
    fn quiet_hours_need_all_parts_and_a_known_zone() {
        let change = |start: Option<&str>, end: Option<&str>, timezone: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let quiet = QuietChange { start: owned(start), end: owned(end), timezone: owned(timezone) };
            SettingsChange { quiet_hours: Some(Some(quiet)), ..SettingsChange::default() }
        };
        let field =
            |change: SettingsChange| PersonSettings::default().apply(&change).err().map(|refused| refused.field);
        assert_eq!(field(change(Some("22:00"), Some("07:00"), Some("europe/berlin"))), None);
        assert_eq!(field(change(Some("22:00"), None, None)), Some("quiet_hours.end"));
        assert_eq!(field(change(Some("22:00"), Some("07:00"), None)), Some("quiet_hours.timezone"));
        assert_eq!(field(change(Some("22:00"), Some("22:00"), Some("UTC"))), Some("quiet_hours.end"));
        assert_eq!(field(change(Some("10 pm"), Some("07:00"), Some("UTC"))), Some("quiet_hours.start"));
        assert_eq!(field(change(Some("22:00"), Some("07:00"), Some("CEST"))), Some("quiet_hours.timezone"));
    }
}
