//! What the stand-in knows: chats and their messages, updates, callback queries, recorded calls.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::fault::Faults;
use crate::webhook::Webhook;
use crate::{Standin, keyboard};

/// The updates that a bot does not get unless it asks for them by name.
const NOT_BY_DEFAULT: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

/// One call of the API.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method, as the caller wrote it.
    pub method: String,
    /// The parameters, from the query, the form or the JSON object.
    pub parameters: Map<String, Value>,
    /// The status of the answer.
    pub status: u16,
    /// What the answer says, where it is an error.
    pub description: Option<String>,
}

impl Call {
    /// Whether this is a call of `method`.
    pub fn is(&self, method: &str) -> bool {
        self.method.eq_ignore_ascii_case(method)
    }
}

/// A message of a chat.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Its id in the chat.
    pub message_id: i64,
    /// The id of its sender.
    pub from: i64,
    /// The text.
    pub text: String,
    /// The entities of the text.
    pub entities: Vec<Value>,
    /// The message that it answers.
    pub reply_to: Option<i64>,
    /// The inline keyboard.
    pub reply_markup: Option<Value>,
    /// The bot's reaction to it.
    pub reaction: Option<Reaction>,
    /// The number of times it was edited.
    pub edits: usize,
    /// Fields that a client sends besides, such as `photo`.
    pub(crate) extra: Map<String, Value>,
    pub(crate) date: u64,
}

/// A reaction: an emoji.
pub type Reaction = String;

impl Message {
    /// The labels of the inline buttons.
    pub fn buttons(&self) -> Vec<String> {
        keyboard::labels(self.reply_markup.as_ref())
    }
}

/// A chat of the bot.
#[derive(Default)]
pub(crate) struct Chat {
    pub(crate) blocked: bool,
    pub(crate) messages: BTreeMap<i64, Message>,
    pub(crate) last_sent: Option<Instant>,
}

pub(crate) struct Update {
    pub(crate) id: i64,
    pub(crate) body: Value,
}

/// Everything, behind one lock.
pub(crate) struct World {
    /// Chats by id. A group has a negative id.
    pub(crate) chats: HashMap<i64, Chat>,
    next_message_id: i64,
    next_update_id: i64,
    /// Updates that the bot has not confirmed, oldest first.
    pub(crate) updates: VecDeque<Update>,
    /// The kinds of updates that the bot wants; none = all but those of [`NOT_BY_DEFAULT`].
    pub(crate) allowed_updates: Option<Vec<String>>,
    /// Callback queries that are not answered: id and chat.
    pub(crate) queries: HashMap<String, i64>,
    /// The number of callback queries so far.
    pub(crate) query_count: u64,
    pub(crate) webhook: Option<Webhook>,
    /// Counts calls of getUpdates: a newer one ends the older ones.
    pub(crate) poll: u64,
    /// The long polls that wait.
    pub(crate) waiting_polls: usize,
    pub(crate) calls: Vec<Call>,
    pub(crate) faults: Faults,
    /// The least time between two messages to one chat.
    pub(crate) chat_interval: Duration,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            chats: HashMap::new(),
            next_message_id: 1,
            next_update_id: 810_000_001,
            updates: VecDeque::new(),
            allowed_updates: None,
            queries: HashMap::new(),
            query_count: 0,
            webhook: None,
            poll: 0,
            waiting_polls: 0,
            calls: Vec::new(),
            faults: Faults::default(),
            chat_interval: Duration::ZERO,
        }
    }

    pub(crate) fn messages(&self, chat: i64) -> Vec<Message> {
        self.chats.get(&chat).map(|chat| chat.messages.values().cloned().collect()).unwrap_or_default()
    }

    /// Adds a message to a chat, with a new id.
    pub(crate) fn add_message(&mut self, chat: i64, mut message: Message) -> Message {
        message.message_id = self.next_message_id;
        message.date = unix_now();
        self.next_message_id += 1;
        self.chats.entry(chat).or_default().messages.insert(message.message_id, message.clone());
        message
    }

    /// Adds an update of this kind, unless the bot did not ask for that kind.
    pub(crate) fn add_update(&mut self, kind: &str, content: Value) {
        let wanted = match &self.allowed_updates {
            Some(kinds) => kinds.iter().any(|wanted| wanted == kind),
            None => !NOT_BY_DEFAULT.contains(&kind),
        };
        if wanted {
            let id = self.next_update_id;
            self.next_update_id += 1;
            self.updates.push_back(Update { id, body: json!({"update_id": id, kind: content}) });
        }
    }

    /// A message as the API returns it.
    pub(crate) fn message_json(&self, chat: i64, message: &Message) -> Value {
        let mut value = json!({
            "message_id": message.message_id,
            "from": user_json(message.from),
            "chat": chat_json(chat),
            "date": message.date,
        });
        if !message.text.is_empty() {
            value["text"] = json!(message.text);
        }
        if !message.entities.is_empty() {
            value["entities"] = json!(message.entities);
        }
        if let Some(markup) = &message.reply_markup {
            value["reply_markup"] = markup.clone();
        }
        let replied = message.reply_to.and_then(|id| self.chats.get(&chat)?.messages.get(&id));
        if let Some(replied) = replied {
            // Telegram shows one level: the replied-to message has no reply_to_message of its own.
            value["reply_to_message"] = self.message_json(chat, &Message { reply_to: None, ..replied.clone() });
        }
        if let Some(object) = value.as_object_mut() {
            object.extend(message.extra.clone());
        }
        value
    }
}

/// A user as the API shows one.
pub(crate) fn user_json(id: i64) -> Value {
    match id {
        Standin::BOT_ID => {
            json!({"id": id, "is_bot": true, "first_name": "Stand-in", "username": Standin::USERNAME})
        }
        id => json!({"id": id, "is_bot": false, "first_name": format!("User {id}"), "language_code": "en"}),
    }
}

pub(crate) fn chat_json(id: i64) -> Value {
    match id {
        id if id < 0 => json!({"id": id, "type": "group", "title": format!("Group {id}")}),
        id => json!({"id": id, "type": "private", "first_name": format!("User {id}")}),
    }
}

pub(crate) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
