use serde_json::Value;

use crate::notification::Notification;
use crate::subscriber::SubscriberId;
use crate::{Ids, InjectionPoint, NotificationId, Time};

/// What an agent got at an injection point. Stored under its call id, it never changes.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The caller's name for the moment.
    pub call_id: String,
    /// Where the agent was.
    pub point: InjectionPoint,
    /// The text to put behind the tool's result; empty where there is nothing to say or the style is synthetic.
    pub block: String,
    /// Synthetic messages, in the shape asked for.
    pub messages: Vec<Value>,
    /// The notifications that were taken.
    pub notifications: Vec<NotificationId>,
    /// Showing + folded + pending, in items.
    pub count: usize,
    /// Items shown.
    pub showing: usize,
    /// Items summed up in lines.
    pub folded: usize,
    /// Items that this point takes but that did not fit.
    pub pending: usize,
    /// What was said, item by item.
    pub told: Vec<ShownItem>,
    /// The rows that were taken, for when the model never saw them.
    pub taken: Vec<Notification>,
    /// Templates that failed; the built-in form spoke for them.
    pub problems: Vec<(SubscriberId, String)>,
    /// How many items were rendered, for counting the work of an injection. At least `showing`.
    pub rendered: usize,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownItem {
    /// Who said it.
    pub source: String,
    /// What it said, as TOON.
    pub content: String,
    /// The notifications it stands for; none for a line that sums up.
    pub notifications: Vec<NotificationId>,
}

/// A notification as it stays in the conversation, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemMessage {
    /// Its name.
    pub id: uuid::Uuid,
    /// What it says.
    pub content: String,
    /// When it was shown to the agent.
    pub timestamp: Time,
    /// Who says it.
    pub source: String,
    /// The first notification it stands for.
    pub notification_id: Option<NotificationId>,
    /// The injection it came with.
    pub call_id: String,
}

impl SystemMessage {
    /// The role of every system message.
    pub const ROLE: &'static str = "system";
}

impl Injection {
    /// The tool's result with the block behind it; the result unchanged where there is nothing to say.
    ///
    /// An error's result is augmented exactly like a success's.
    pub fn content(&self, tool_result: &str) -> String {
        match (tool_result, self.block.as_str()) {
            (result, "") => result.to_owned(),
            ("", block) => block.to_owned(),
            (result, block) => format!("{result}\n\n{block}"),
        }
    }

    /// What stays in the conversation, in the order it was said.
    pub fn system_messages(&self, now: Time, ids: &mut Ids) -> Vec<SystemMessage> {
        let message = |told: &ShownItem| SystemMessage {
            id: ids.next(now),
            content: told.content.clone(),
            timestamp: now,
            source: told.source.clone(),
            notification_id: told.notifications.first().copied(),
            call_id: self.call_id.clone(),
        };
        self.told.iter().map(message).collect()
    }

    /// An answer that says nothing, because nothing waits or nothing may be taken.
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
            told: Vec::new(),
            taken: Vec::new(),
            problems: Vec::new(),
            rendered: 0,
        }
    }
}
