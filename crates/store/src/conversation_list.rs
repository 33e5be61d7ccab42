//! Lists of conversations, the most recently used first.

use bellwire_core::Time;

use crate::command::ConversationView;
use crate::rows::{ConversationKey, ConversationRow};

/// Which conversations to list.
#[derive(Clone, Debug, Default)]
pub struct ConversationQuery {
    /// Only those of this person.
    pub user_id: Option<String>,
    /// Only those with this id. They are in the order of their owners, and `since` is ignored.
    pub conversation_id: Option<String>,
    /// Only those that were used at this time or later.
    pub since: Option<Time>,
    /// Only those after this one: the position that the page before returned.
    pub after: Option<ConversationPosition>,
    /// At most so many.
    pub limit: usize,
}

/// The place of a conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationPosition {
    /// When it was last used.
    pub last_used_at: Time,
    /// Its owner.
    pub user_id: String,
    /// Its id.
    pub id: String,
}

/// A conversation of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedConversation {
    /// Its state.
    pub view: ConversationView,
    /// When it was created.
    pub created_at: Time,
    /// When it was created, or when an injection, a stream or a PUT last used it. It is written once a minute.
    pub last_used_at: Time,
}

impl ListedConversation {
    pub(crate) fn key(&self) -> ConversationKey {
        ConversationKey::new(&self.view.user_id, &self.view.id)
    }

    pub(crate) fn position(&self) -> ConversationPosition {
        let ConversationView { id, user_id, .. } = &self.view;
        ConversationPosition { last_used_at: self.last_used_at, user_id: user_id.clone(), id: id.clone() }
    }
}

impl ConversationRow {
    pub(crate) fn last_used_at(&self) -> Time {
        self.created_at.max(self.seen_at)
    }
}

/// The row says nothing about the mailbox; the writer adds that.
impl From<ConversationRow> for ListedConversation {
    fn from(row: ConversationRow) -> Self {
        Self {
            created_at: row.created_at,
            last_used_at: row.last_used_at(),
            view: ConversationView {
                id: row.key.id.to_string(),
                user_id: row.key.owner.to_string(),
                title: row.title,
                folder: row.folder,
                working: false,
                pending: 0,
                boundary: row.boundary,
            },
        }
    }
}
