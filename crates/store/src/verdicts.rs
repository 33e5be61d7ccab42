//! What an event came to. Its JSON is made once, when the row is written, and the answer says the same.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bellwire_core::Verdict;
use bellwire_core::subscriber::SubscriberId;
use bellwire_core::verdict::FilterKind;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use crate::keys::MailboxKey;

/// The verdicts on one event, per conversation and listening subscriber.
#[derive(Clone, Default)]
pub struct Verdicts {
    list: Vec<Decision>,
    json: OnceLock<Box<RawValue>>,
}

impl Verdicts {
    /// The list as JSON.
    pub fn json(&self) -> &RawValue {
        self.json.get_or_init(|| to_raw_value(&self.list).expect("plain data becomes JSON"))
    }

    pub(crate) fn extend(&mut self, more: impl IntoIterator<Item = Decision>) {
        self.json.take();
        self.list.extend(more);
    }

    pub(crate) fn into_list(self) -> Vec<Decision> {
        self.list
    }
}

impl From<Vec<Decision>> for Verdicts {
    fn from(list: Vec<Decision>) -> Self {
        Self { list, json: OnceLock::new() }
    }
}

impl Deref for Verdicts {
    type Target = [Decision];

    fn deref(&self) -> &[Decision] {
        &self.list
    }
}

impl fmt::Debug for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

impl PartialEq for Verdicts {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

/// Into JSON only, as a piece that is not made again.
impl Serialize for Verdicts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Verdicts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

/// A verdict as it is kept with its event, and as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The subscriber.
    pub subscriber: Arc<str>,
    /// The conversation it decided for; empty where there is none.
    #[serde(with = "or_null")]
    pub conversation_id: Arc<str>,
    /// The agent it decided for; empty where there is none.
    #[serde(with = "or_null")]
    pub agent: Arc<str>,
    /// queued, held, duplicate, filtered or suppressed.
    pub verdict: Cow<'static, str>,
    /// Why, in words.
    pub reason: Cow<'static, str>,
    /// Why the subscriber does not want the event, for programs. Events of older versions do not have it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub filter: Option<FilterKind>,
    /// The notification it became part of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub notification_id: Option<Uuid>,
    /// The event it repeats.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<Uuid>,
    /// How many repeats there have been.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repeats: Option<u32>,
}

impl Decision {
    pub(crate) fn new(subscriber: &SubscriberId, mailbox: &MailboxKey, verdict: &Verdict) -> Self {
        let (of, repeats) = match verdict {
            Verdict::Duplicate { of, repeats } => (Some(of.0), Some(*repeats)),
            _ => (None, None),
        };
        Self {
            subscriber: subscriber.shared(),
            conversation_id: mailbox.conversation().map_or_else(|| "".into(), |conversation| conversation.id.clone()),
            agent: mailbox.agent().map_or_else(|| "".into(), Arc::clone),
            verdict: verdict.name().into(),
            reason: verdict.reason(),
            filter: verdict.filter(),
            notification_id: verdict.notification().map(|id| id.0),
            of,
            repeats,
        }
    }

    /// Whether a notification tells of the event, so that the event is needed until it is shown.
    pub(crate) fn is_told(&self) -> bool {
        self.notification_id.is_some()
    }

    /// The verdict on an event that a person would be told of, if its sender were known by a name.
    pub(crate) fn without_origin(subscriber: &SubscriberId) -> Self {
        let reason = "no_origin: the token has no origin, so nothing it sends reaches a person";
        Self { subscriber: subscriber.shared(), reason: reason.into(), ..Self::nobody(String::new()) }
    }

    /// The verdict on an event for a person where no conversation of theirs hears it, or not every one.
    pub(crate) fn nobody(reason: String) -> Self {
        Self {
            subscriber: "*".into(),
            conversation_id: "".into(),
            agent: "".into(),
            verdict: "filtered".into(),
            reason: reason.into(),
            filter: None,
            notification_id: None,
            of: None,
            repeats: None,
        }
    }
}

/// A name that is empty where there is none, and null for whoever reads it.
mod or_null {
    use super::{Arc, Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(name: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        Some(&**name).filter(|name| !name.is_empty()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or_else(|| "".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_json_is_rebuilt_after_new_verdicts() {
        let mut verdicts = Verdicts::from(vec![Decision::nobody("first".to_owned())]);
        assert!(verdicts.json().get().contains("first"));
        verdicts.extend([Decision::nobody("second".to_owned())]);
        assert!(verdicts.json().get().contains("second"));
    }

    #[test]
    fn they_are_read_as_they_are_written_and_as_they_were_written_before_null() -> serde_json::Result<()> {
        let verdicts = Verdicts::from(vec![Decision::nobody("why".to_owned())]);
        let written = serde_json::to_string(&verdicts)?;
        assert!(written.contains(r#""conversation_id":null,"agent":null"#), "{written}");
        assert_eq!(serde_json::from_str::<Verdicts>(&written)?, verdicts);
        assert_eq!(serde_json::from_str::<Verdicts>(&written.replace("null", r#""""#))?, verdicts);
        Ok(())
    }
}
