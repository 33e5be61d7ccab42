use serde_json::Value;

use crate::notification::Notification;
use crate::subscriber::SubscriberId;
use crate::{Ids, InjectionPoint, NotificationId, Time};

/// The response to an injection request. It is stored under its call id and never changes.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The caller's id for the request.
    pub call_id: String,
    /// The injection point the agent reached.
    pub point: InjectionPoint,
    /// The text to append to the tool's result; empty if there is nothing to show or the style is synthetic.
    pub block: String,
    /// Synthetic messages in the requested shape; empty for other styles.
    pub messages: Vec<Value>,
    /// The notifications that were taken, shown ones first, then folded ones.
    pub notifications: Vec<NotificationId>,
    /// Showing + folded + pending, in items.
    pub count: usize,
    /// Items shown.
    pub showing: usize,
    /// Items counted in fold lines.
    pub folded: usize,
    /// Items of this point that did not fit and stay pending.
    pub pending: usize,
    /// The shown items and fold lines, for the conversation's history.
    pub shown: Vec<ShownItem>,
    /// The taken notifications, to requeue them if the model never saw the response.
    pub taken: Vec<Notification>,
    /// The shown items whose template failed; they have the built-in form. The driver reports them.
    pub template_failures: Vec<TemplateFailure>,
    /// How many items were rendered; measures the work of an injection. At least `showing`.
    pub rendered: usize,
}

/// A template that failed on the events of an item, so that the item was shown in the built-in form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateFailure {
    /// The subscriber of the template.
    pub subscriber: SubscriberId,
    /// The notifications of the item.
    pub notifications: Vec<NotificationId>,
    /// Why it failed. It quotes the template and no values of events, so that it may be logged.
    pub error: String,
}

/// One item or fold line as the agent saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownItem {
    /// The label: the event's source, or the subscriber's id.
    pub source: String,
    /// The text, as TOON.
    pub content: String,
    /// The notifications it represents; empty for a fold line.
    pub notifications: Vec<NotificationId>,
}

/// An injected item as it stays in the conversation's history, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemMessage {
    /// A new id for every message.
    pub id: uuid::Uuid,
    /// The text, as TOON.
    pub content: String,
    /// When it was shown to the agent.
    pub timestamp: Time,
    /// The label of the item.
    pub source: String,
    /// The first notification it represents; `None` for a fold line.
    pub notification_id: Option<NotificationId>,
    /// The injection it came with.
    pub call_id: String,
}

impl SystemMessage {
    /// The role of every system message.
    pub const ROLE: &'static str = "system";
}

impl Injection {
    /// The tool's result with the block appended; the unchanged result if there is no block.
    ///
    /// An error result is augmented exactly like a success.
    pub fn content(&self, tool_result: &str) -> String {
        match (tool_result, self.block.as_str()) {
            (result, "") => result.to_owned(),
            ("", block) => block.to_owned(),
            (result, block) => format!("{result}\n\n{block}"),
        }
    }

    /// The shown items as messages for the conversation's history, in the order of the block.
    pub fn system_messages(&self, now: Time, ids: &mut Ids) -> Vec<SystemMessage> {
        let message = |item: &ShownItem| SystemMessage {
            id: ids.next(now),
            content: item.content.clone(),
            timestamp: now,
            source: item.source.clone(),
            notification_id: item.notifications.first().copied(),
            call_id: self.call_id.clone(),
        };
        self.shown.iter().map(message).collect()
    }

    /// A response without content: nothing is pending, or nothing may be taken.
    pub(crate) fn empty(call_id: &str, point: InjectionPoint, pending: usize) -> Self {
        Self {
            call_id: call_id.to_owned(),
            point,
            block: String::new(),
            messages: Vec::new(),
            notifications: Vec::new(),
            count: pending,
            showing: 0,
            folded: 0,
            pending,
            shown: Vec::new(),
            taken: Vec::new(),
            template_failures: Vec::new(),
            rendered: 0,
        }
    }
}
