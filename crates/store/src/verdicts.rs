//! The verdicts on an event. Their JSON is serialized once, for the row and for the response.

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
        self.json.get_or_init(|| to_raw_value(&self.list).expect("these types always serialize to JSON"))
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

/// JSON only: reuses the cached text.
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

/// A verdict as it is stored with its event and sent in responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The subscriber.
    pub subscriber: Arc<str>,
    /// The conversation of the agent's mailbox; none = it was decided for the person, or no mailbox decided.
    #[serde(deserialize_with = "id_or_empty")]
    pub conversation_id: Option<Arc<str>>,
    /// The agent of that mailbox.
    #[serde(deserialize_with = "id_or_empty")]
    pub agent: Option<Arc<str>>,
    /// queued, held, duplicate, filtered or suppressed.
    pub verdict: Cow<'static, str>,
    /// The reason, for people.
    pub reason: Cow<'static, str>,
    /// Why the event was filtered, for programs. Rows of older versions do not have it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub filter: Option<FilterKind>,
    /// The notification it became part of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub notification_id: Option<Uuid>,
    /// The event it repeats.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<Uuid>,
    /// How many repeats have been counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repeats: Option<u32>,
    /// What the sender of the event should know.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<Arc<str>>,
}

impl Decision {
    pub(crate) fn new(subscriber: &SubscriberId, mailbox: &MailboxKey, verdict: &Verdict) -> Self {
        let (of, repeats) = match verdict {
            Verdict::Duplicate { of, repeats } => (Some(of.0), Some(*repeats)),
            _ => (None, None),
        };
        Self {
            subscriber: subscriber.shared(),
            conversation_id: mailbox.conversation().map(|conversation| conversation.id.clone()),
            agent: mailbox.agent().cloned(),
            verdict: verdict.name().into(),
            reason: verdict.reason(),
            filter: verdict.filter(),
            notification_id: verdict.notification().map(|id| id.0),
            of,
            repeats,
            hint: None,
        }
    }

    /// Whether a notification contains the event, so that the event is needed until it is shown.
    pub(crate) fn has_notification(&self) -> bool {
        self.notification_id.is_some()
    }

    /// The verdict on an event that would reach a person, if its sender had an origin.
    pub(crate) fn without_origin(subscriber: &SubscriberId) -> Self {
        let reason = "no_origin: the token has no origin, so nothing it sends reaches a person";
        Self { subscriber: subscriber.shared(), reason: reason.into(), ..Self::filtered(String::new()) }
    }

    /// The verdict on an event whose type no subscriber listens for.
    pub(crate) fn no_listener(hint: Option<Arc<str>>) -> Self {
        let reason = "no_listener: no subscriber listens for this type";
        Self { reason: reason.into(), hint, ..Self::filtered(String::new()) }
    }

    /// The verdict on an event for a person that does not reach any of their conversations, or not all.
    pub(crate) fn filtered(reason: String) -> Self {
        Self {
            subscriber: "*".into(),
            conversation_id: None,
            agent: None,
            verdict: "filtered".into(),
            reason: reason.into(),
            filter: None,
            notification_id: None,
            of: None,
            repeats: None,
            hint: None,
        }
    }
}

/// Reads an id. Rows of older versions have an empty text instead of null.
fn id_or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
    Ok(Option::<Arc<str>>::deserialize(deserializer)?.filter(|id| !id.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_json_is_rebuilt_after_new_verdicts() {
        let mut verdicts = Verdicts::from(vec![Decision::filtered("first".to_owned())]);
        assert!(verdicts.json().get().contains("first"));
        verdicts.extend([Decision::filtered("second".to_owned())]);
        assert!(verdicts.json().get().contains("second"));
    }

    #[test]
    fn verdicts_are_read_with_null_and_with_the_older_empty_text() -> serde_json::Result<()> {
        let verdicts = Verdicts::from(vec![Decision::filtered("why".to_owned())]);
        let written = serde_json::to_string(&verdicts)?;
        assert!(written.contains(r#""conversation_id":null,"agent":null"#), "{written}");
        assert_eq!(serde_json::from_str::<Verdicts>(&written)?, verdicts);
        let older = serde_json::from_str::<Verdicts>(&written.replace("null", r#""""#))?;
        assert_eq!(older, verdicts);
        assert_eq!((&older[0].conversation_id, &older[0].agent), (&None, &None));
        let of_agent = written.replace("null", r#""chat""#);
        let of_agent = serde_json::from_str::<Verdicts>(&of_agent)?;
        assert_eq!(of_agent[0].agent.as_deref(), Some("chat"));
        Ok(())
    }
}
