//! What users do: they type, reply, press buttons, react, block the bot. A private chat has its user's id.

use serde_json::{Map, Value, json};

use crate::Standin;
use crate::keyboard;
use crate::world::{Message, World, chat_json, unix_now, user_json};

impl Standin {
    /// Opens the private chat of a user without an update, as if the user had started the bot long ago.
    pub fn open_chat(&self, user: i64) {
        self.shared.change(|world| world.chats.entry(user).or_default().blocked = false);
    }

    /// A user types a text in the private chat. Returns the id of the message.
    pub fn types(&self, user: i64, text: &str) -> i64 {
        self.shared.change(|world| type_text(world, user, user, text, None))
    }

    /// A user replies to a message of the private chat.
    pub fn replies(&self, user: i64, to: i64, text: &str) -> i64 {
        self.shared.change(|world| type_text(world, user, user, text, Some(to)))
    }

    /// A user types a text in a group, whose id is negative.
    pub fn types_in_group(&self, group: i64, user: i64, text: &str) -> i64 {
        self.shared.change(|world| type_text(world, group, user, text, None))
    }

    /// A user sends something that is not a text, or more than a text: `fields` are added to the message.
    pub fn sends(&self, user: i64, fields: Value) -> i64 {
        let extra = fields.as_object().cloned().unwrap_or_default();
        self.shared.change(|world| {
            world.chats.entry(user).or_default();
            add(world, user, Message { from: user, extra, ..Message::default() })
        })
    }

    /// A user edits a message. The bot gets `edited_message`.
    pub fn edits(&self, user: i64, message_id: i64, text: &str) {
        self.shared.change(|world| {
            let Some(message) = world.chats.get_mut(&user).and_then(|chat| chat.messages.get_mut(&message_id)) else {
                return;
            };
            message.text = text.to_owned();
            let message = message.clone();
            let mut content = world.message_json(user, &message);
            content["edit_date"] = json!(unix_now());
            world.add_update("edited_message", content);
        });
    }

    /// A user presses the button with this label. Returns the id of the callback query.
    ///
    /// # Panics
    /// If the message has no such button.
    pub fn presses(&self, user: i64, message_id: i64, label: &str) -> String {
        self.shared.change(|world| press(world, user, message_id, label)).expect("the message has this button")
    }

    /// A callback query with data of the caller's choice, as a changed client could send it.
    pub fn forges_press(&self, user: i64, message_id: i64, data: &str) -> String {
        self.shared.change(|world| query(world, user, user, message_id, data))
    }

    /// A callback query in one private chat that comes from another user.
    pub fn presses_as(&self, user: i64, chat: i64, message_id: i64, label: &str) -> String {
        let press = |world: &mut World| {
            let message = world.chats.get(&chat)?.messages.get(&message_id)?;
            let data = keyboard::data_of(message.reply_markup.as_ref(), label)?;
            Some(query(world, chat, user, message_id, &data))
        };
        self.shared.change(press).expect("the message has this button")
    }

    /// Whether the bot has answered a callback query. Until then, the client shows a spinner.
    pub fn is_answered(&self, query: &str) -> bool {
        self.shared.read(|world| !world.queries.contains_key(query))
    }

    /// Forgets a callback query, as Telegram does after some time.
    pub fn expires(&self, query: &str) {
        self.shared.change(|world| world.queries.remove(query));
    }

    /// A user reacts to a message. The bot gets it if it asked for `message_reaction`.
    pub fn reacts(&self, user: i64, message_id: i64, emoji: &str) {
        let content = json!({
            "chat": chat_json(user), "message_id": message_id, "user": user_json(user), "date": unix_now(),
            "old_reaction": [], "new_reaction": [{"type": "emoji", "emoji": emoji}],
        });
        self.shared.change(|world| world.add_update("message_reaction", content));
    }

    /// A user blocks the bot: messages to the chat are refused with 403.
    pub fn blocks(&self, user: i64) {
        self.shared.change(|world| set_blocked(world, user, true));
    }

    /// A user unblocks the bot.
    pub fn unblocks(&self, user: i64) {
        self.shared.change(|world| set_blocked(world, user, false));
    }

    /// Adds an update as it is, such as one of a kind that does not exist yet.
    pub fn pushes(&self, kind: &str, content: Value) {
        self.shared.change(|world| world.add_update(kind, content));
    }
}

pub(crate) fn type_text(world: &mut World, chat: i64, user: i64, text: &str, reply_to: Option<i64>) -> i64 {
    world.chats.entry(chat).or_default().blocked = false;
    let command = text.strip_prefix('/').map(|rest| 1 + rest.split_whitespace().next().unwrap_or_default().len());
    let entities = command.map(|length| json!({"type": "bot_command", "offset": 0, "length": length}));
    let entities = entities.into_iter().collect();
    add(world, chat, Message { from: user, text: text.to_owned(), entities, reply_to, ..Message::default() })
}

fn add(world: &mut World, chat: i64, message: Message) -> i64 {
    let message = world.add_message(chat, message);
    let content = world.message_json(chat, &message);
    world.add_update("message", content);
    message.message_id
}

pub(crate) fn press(world: &mut World, user: i64, message_id: i64, label: &str) -> Option<String> {
    let message = world.chats.get(&user)?.messages.get(&message_id)?;
    let data = keyboard::data_of(message.reply_markup.as_ref(), label)?;
    Some(query(world, user, user, message_id, &data))
}

fn query(world: &mut World, chat: i64, user: i64, message_id: i64, data: &str) -> String {
    let message = world.chats.get(&chat).and_then(|chat| chat.messages.get(&message_id)).cloned();
    // The message of an old query is inaccessible: its date is 0.
    let message = message.map_or_else(
        || json!({"chat": chat_json(chat), "message_id": message_id, "date": 0}),
        |message| world.message_json(chat, &message),
    );
    world.query_count += 1;
    let id = format!("{user}{:09}", world.query_count);
    world.queries.insert(id.clone(), chat);
    let instance = format!("-{user}");
    let content =
        json!({"id": id, "from": user_json(user), "message": message, "chat_instance": instance, "data": data});
    world.add_update("callback_query", content);
    id
}

fn set_blocked(world: &mut World, user: i64, blocked: bool) {
    world.chats.entry(user).or_default().blocked = blocked;
    let member = |status: &str| {
        let mut member = Map::new();
        member.insert("user".to_owned(), user_json(Standin::BOT_ID));
        member.insert("status".to_owned(), json!(status));
        Value::Object(member)
    };
    let (old, new) = if blocked { ("member", "kicked") } else { ("kicked", "member") };
    let content = json!({
        "chat": chat_json(user), "from": user_json(user), "date": unix_now(),
        "old_chat_member": member(old), "new_chat_member": member(new),
    });
    world.add_update("my_chat_member", content);
}
