//! Resolves, creates and describes conversations.
//!
//! A conversation id is unique only per owner. For a caller that is bound to a person, an id means that person's
//! conversation. For an unbound caller that names no owner, it means the conversation that an unbound caller registered
//! under this id, or else the only one with this id. At most one conversation per id is registered.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use bellwire_core::event::AgentName;
use bellwire_core::render::Boundary;
use bellwire_core::{InjectionPoint, Notification, NotificationId, Time};

use super::{Executor, MailboxSummary, RowSource};
use crate::command::{
    Caller, ConversationDetails, ConversationView, Hint, HintKind, IdempotencyKey, PendingNotification, Seen,
};
use crate::error::{ErrorKind, StoreError};
use crate::rows::{ConversationKey, ConversationRow, MailboxKey};

/// The minimum change of `seen_at` that is written.
const SEEN_STEP_MS: u64 = 60_000;

/// The maximum number of working sub-agents in a conversation's row.
const WORKERS_MAX: usize = 64;
/// The maximum number of sub-agents of a conversation whose new boundary is stored. Beyond it, the oldest has its first
/// boundary again.
const AGENT_BOUNDARIES_MAX: usize = 64;
/// The maximum number of sub-agents whose pending notifications a new stream reports. Each mailbox may have to be
/// loaded.
const SUB_AGENTS_LISTED: usize = 20;

/// A conversation in memory, and the key of its main agent's mailbox, which most commands need.
pub(super) struct HotConversation {
    pub(super) row: ConversationRow,
    main: MailboxKey,
}

impl HotConversation {
    fn of(row: ConversationRow) -> Self {
        Self { main: MailboxKey::new(&row.key, "main"), row }
    }
}

impl Executor {
    pub(crate) async fn put_conversation(
        &mut self,
        caller: &Caller,
        id: &str,
        user_id: &str,
        details: ConversationDetails,
        source: &mut impl RowSource,
    ) -> Result<ConversationView, StoreError> {
        if !caller.may_see(id, user_id) {
            return Err(StoreError::not_found("conversation"));
        }
        let key = ConversationKey::new(user_id, id);
        let registers = caller.user_id.is_none();
        let taken = registers && self.is_registered(id, source).await?;
        match self.conversation(&key, source).await?.cloned() {
            Some(mut known) => {
                known.title = details.title.or(known.title);
                known.folder = details.folder.or(known.folder);
                known.seen_at = self.context.now;
                known.registered |= registers && !taken;
                self.names.remove(id);
                self.put(known);
            }
            None if taken => {
                return Err(StoreError::new(ErrorKind::Conflict, "the owner of a conversation never changes"));
            }
            None => self.create(&key, details, registers),
        }
        self.view_of(&key, source).await
    }

    pub(crate) async fn view(
        &mut self,
        caller: &Caller,
        id: &str,
        source: &mut impl RowSource,
    ) -> Result<ConversationView, StoreError> {
        let row = self.require_conversation(caller, id, source).await?;
        self.view_of(&row.key, source).await
    }

    async fn view_of(
        &mut self,
        key: &ConversationKey,
        source: &mut impl RowSource,
    ) -> Result<ConversationView, StoreError> {
        let MailboxSummary { working, pending } = self.summary(&MailboxKey::new(key, "main"), source).await?;
        let row = &self.conversations[key].row;
        Ok(ConversationView {
            id: row.key.id.to_string(),
            user_id: row.key.owner.to_string(),
            title: row.title.clone(),
            folder: row.folder.clone(),
            working,
            pending,
            boundary: row.boundary.clone(),
        })
    }

    /// The notifications that wait for an agent, in the order of a block.
    pub(crate) async fn pending(
        &mut self,
        caller: Caller,
        id: String,
        agent: AgentName,
        source: &mut impl RowSource,
    ) -> Result<Vec<PendingNotification>, StoreError> {
        let key = self.require_conversation(&caller, &id, source).await?.key.clone();
        let key = self.load_mailbox(&MailboxKey::new(&key, agent.as_str()), source).await?;
        let mut waiting: Vec<&Notification> = self.hot_mailboxes[&key].mailbox.pending().iter().collect();
        waiting.sort_by_key(|notification| (notification.priority, notification.sequence));
        Ok(waiting.into_iter().map(PendingNotification::from).collect())
    }

    /// What a list says of these mailboxes.
    pub(crate) async fn summaries(
        &self,
        keys: &[MailboxKey],
        source: &mut impl RowSource,
    ) -> Result<Vec<MailboxSummary>, StoreError> {
        let mut summaries = Vec::with_capacity(keys.len());
        for key in keys {
            summaries.push(self.summary(key, source).await?);
        }
        Ok(summaries)
    }

    async fn summary(&self, key: &MailboxKey, source: &mut impl RowSource) -> Result<MailboxSummary, StoreError> {
        let now = self.context.now;
        match self.hot_mailboxes.get(key).map(|hot| &hot.mailbox) {
            Some(mailbox) => Ok(MailboxSummary { working: mailbox.is_working(now), pending: mailbox.pending().len() }),
            None => Ok(source.mailbox_summary(key, now).await?.unwrap_or_default()),
        }
    }

    /// Whether a sub-agent of this conversation is working. The conversation must be in memory.
    pub(super) fn sub_agent_works(&self, key: &ConversationKey) -> bool {
        let conversation = self.conversations.get(key);
        conversation.is_some_and(|hot| hot.row.workers.iter().any(|(_, until)| *until > self.context.now))
    }

    /// Updates the conversation's row: whether the sub-agent whose mailbox was just handled is working.
    pub(super) async fn note_worker(
        &mut self,
        key: &MailboxKey,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let Some((conversation, name)) = key.conversation().zip(key.agent()).filter(|_| key.is_sub_agents()) else {
            return Ok(());
        };
        let now = self.context.now;
        let until = self.hot_mailboxes.get(key).and_then(|hot_mailbox| hot_mailbox.mailbox.works_until(now));
        let Some(row) = self.conversation(conversation, source).await? else { return Ok(()) };
        let noted = row.workers.iter().find(|(agent, _)| agent == name).map(|(_, until)| *until);
        if noted.filter(|noted| *noted > now) == until {
            return Ok(());
        }
        let mut row = row.clone();
        row.workers.retain(|(agent, until)| agent != name && *until > now);
        row.workers.extend(until.map(|until| (name.clone(), until)));
        // Beyond the bound the oldest are dropped; the others still show that a sub-agent is working.
        row.workers.drain(..row.workers.len().saturating_sub(WORKERS_MAX));
        self.put(row);
        Ok(())
    }

    /// The hints that a new stream of a conversation starts with.
    pub(crate) async fn connect(
        &mut self,
        caller: &Caller,
        id: &str,
        seen: Seen,
        source: &mut impl RowSource,
    ) -> Result<Vec<Hint>, StoreError> {
        let key = self.require_conversation(caller, id, source).await?.key;
        if seen == Seen::Now {
            self.touch_last_seen(&key);
        }
        let agents = self.sub_agents_with_mail(&key, source).await?;
        let mut hints = self.state_of(&key, "main".into(), source).await?;
        for agent in agents {
            // A sub-agent without pending notifications needs no hint.
            hints.extend(self.state_of(&key, agent, source).await?.into_iter().filter(|hint| hint.count > 0));
        }
        Ok(hints)
    }

    /// The sub-agents with pending notifications, at most [`SUB_AGENTS_LISTED`].
    async fn sub_agents_with_mail(
        &self,
        key: &ConversationKey,
        source: &mut impl RowSource,
    ) -> Result<Vec<Arc<str>>, StoreError> {
        let mut agents = source.sub_agents(key, SUB_AGENTS_LISTED).await?;
        // Include mailboxes changed by the current commit.
        let fresh = self.changes.mailboxes.iter().filter(|mailbox| mailbox.is_in(key) && mailbox.is_sub_agents());
        agents.extend(fresh.filter(|mailbox| self.has_mail(mailbox)).filter_map(|mailbox| mailbox.agent().cloned()));
        agents.sort();
        agents.dedup();
        agents.truncate(SUB_AGENTS_LISTED);
        Ok(agents)
    }

    fn has_mail(&self, key: &MailboxKey) -> bool {
        self.hot_mailboxes.get(key).is_some_and(|hot_mailbox| !hot_mailbox.mailbox.pending().is_empty())
    }

    /// The hints that describe the current state of one agent's mailbox.
    async fn state_of(
        &mut self,
        conversation: &ConversationKey,
        agent: Arc<str>,
        source: &mut impl RowSource,
    ) -> Result<Vec<Hint>, StoreError> {
        let name = AgentName::parse(&agent).unwrap_or_else(|_| AgentName::main());
        let key = MailboxKey::new(conversation, agent);
        self.load_mailbox(&key, source).await?;
        let mailbox = &self.hot_mailboxes[&key].mailbox;
        let pending: Vec<_> = mailbox.pending().iter().map(|one| one.id).collect();
        let urgent = mailbox.pending().iter().filter(|one| one.inject_at == InjectionPoint::Immediate);
        let urgent: Vec<_> = urgent.map(|one| one.id).collect();
        let wake = mailbox.waiting_wakes(self.context.now);
        let count = pending.len();
        let hint = |kind, notifications: Vec<NotificationId>| Hint {
            user_id: conversation.owner.clone(),
            conversation_id: conversation.id.clone(),
            agent: name.clone(),
            kind,
            notifications,
            count,
        };
        let mut hints = vec![hint(HintKind::Pending, pending)];
        hints.extend((!urgent.is_empty()).then(|| hint(HintKind::Immediate, urgent)));
        hints.extend((!wake.is_empty()).then(|| hint(HintKind::Wake, wake)));
        Ok(hints)
    }

    pub(crate) async fn boundary(
        &mut self,
        caller: &Caller,
        id: &str,
        agent: &AgentName,
        source: &mut impl RowSource,
    ) -> Result<Boundary, StoreError> {
        Ok(boundary_of(&self.require_conversation(caller, id, source).await?, agent))
    }

    pub(crate) async fn rotate(
        &mut self,
        caller: &Caller,
        id: &str,
        agent: &AgentName,
        idempotency_key: Option<&IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<Boundary, StoreError> {
        let mut row = self.require_conversation(caller, id, source).await?;
        if let Some(known) = self.remembered_answer::<String>(idempotency_key, source).await? {
            return Boundary::parse(&known).ok_or_else(|| StoreError::new(ErrorKind::Damaged, "a boundary is damaged"));
        }
        let boundary = self.new_boundary();
        if *agent == AgentName::main() {
            row.boundary = boundary.clone();
            row.boundary_changed = false;
        } else {
            row.agent_boundaries.retain(|(name, _)| **name != *agent.as_str());
            row.agent_boundaries.push((agent.as_str().into(), boundary.clone()));
            row.agent_boundaries.drain(..row.agent_boundaries.len().saturating_sub(AGENT_BOUNDARIES_MAX));
        }
        let owner = row.key.owner.clone();
        self.put(row);
        self.remember(idempotency_key, &boundary.as_str(), [&*owner]);
        Ok(boundary)
    }

    /// The conversation with this id, if the caller may access it; otherwise *not found*.
    async fn require_conversation(
        &mut self,
        caller: &Caller,
        id: &str,
        source: &mut impl RowSource,
    ) -> Result<ConversationRow, StoreError> {
        let main = self.resolve_conversation(caller, id, None, source).await?;
        let hot = main.as_ref().and_then(MailboxKey::conversation).and_then(|key| self.conversations.get(key));
        hot.map(|hot| hot.row.clone()).ok_or_else(|| StoreError::not_found("conversation"))
    }

    /// Resolves a conversation id for this caller and loads the conversation. Returns the key of its main agent's
    /// mailbox, or none if there is no such conversation that the caller may access. `owner` is the owner that the
    /// caller named, if any.
    pub(super) async fn resolve_conversation(
        &mut self,
        caller: &Caller,
        id: &str,
        owner: Option<&str>,
        source: &mut impl RowSource,
    ) -> Result<Option<MailboxKey>, StoreError> {
        if caller.conversation_id.as_deref().is_some_and(|bound| bound != id) {
            return Ok(None);
        }
        if let Some(owner) = owner {
            self.erasing.check(owner)?;
        }
        let owner = match (caller.user_id.as_deref(), owner) {
            (Some(bound), Some(named)) if bound != named => return Ok(None),
            (bound, named) => bound.or(named),
        };
        if let Some(owner) = owner {
            let key = ConversationKey::new(owner, id);
            return Ok(self.hot(&key, source).await?.map(|hot| hot.main.clone()));
        }
        if let Some(known) = self.names.get(id) {
            // A person who is being erased was evicted from memory, so no check is needed here.
            return Ok(Some(known.clone()));
        }
        let rows = self.named(id, source).await?;
        let Some(row) = pick_unambiguous(id, rows, |row| row.registered)? else { return Ok(None) };
        self.erasing.check(&row.key.owner)?;
        let hot = self.conversations.entry(row.key.clone()).or_insert_with(|| HotConversation::of(row));
        self.names.insert(hot.row.key.id.clone(), hot.main.clone());
        Ok(Some(hot.main.clone()))
    }

    /// Conversations with this id, the registered one first; enough of them to see whether there is more than one.
    async fn named(&self, id: &str, source: &mut impl RowSource) -> Result<Vec<ConversationRow>, StoreError> {
        let mut rows: Vec<ConversationRow> =
            self.changes.conversations.values().filter(|row| &*row.key.id == id).cloned().collect();
        for row in source.conversations_named(id).await? {
            if !self.changes.conversations.contains_key(&row.key) {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Whether a conversation is registered under this id.
    pub(super) async fn is_registered(&self, id: &str, source: &mut impl RowSource) -> Result<bool, StoreError> {
        Ok(self.named(id, source).await?.iter().any(|row| row.registered))
    }

    pub(super) async fn conversation(
        &mut self,
        key: &ConversationKey,
        source: &mut impl RowSource,
    ) -> Result<Option<&ConversationRow>, StoreError> {
        Ok(self.hot(key, source).await?.map(|hot| &hot.row))
    }

    async fn hot(
        &mut self,
        key: &ConversationKey,
        source: &mut impl RowSource,
    ) -> Result<Option<&HotConversation>, StoreError> {
        match self.conversations.entry(key.clone()) {
            Entry::Occupied(known) => Ok(Some(known.into_mut())),
            Entry::Vacant(free) => {
                Ok(source.conversation(key).await?.map(|row| &*free.insert(HotConversation::of(row))))
            }
        }
    }

    /// Creates an open conversation, for an injection or a PUT.
    pub(super) fn create(&mut self, key: &ConversationKey, details: ConversationDetails, registered: bool) {
        self.create_seen(key, details, registered, self.context.now);
    }

    /// Creates a conversation for an event. It counts as open only after an injection, a stream or a PUT.
    pub(super) fn create_unopened(&mut self, key: &ConversationKey, registered: bool) {
        self.create_seen(key, ConversationDetails::default(), registered, Time::ZERO);
    }

    fn create_seen(&mut self, key: &ConversationKey, details: ConversationDetails, registered: bool, seen_at: Time) {
        let now = self.context.now;
        let (boundary, agent_secret) = (self.new_boundary(), self.randomness.draw());
        // The id must be resolved again, because it may be ambiguous now.
        self.names.remove(&key.id);
        self.put(ConversationRow {
            key: key.clone(),
            registered,
            title: details.title,
            folder: details.folder,
            boundary,
            boundary_changed: false,
            created_at: now,
            seen_at,
            workers: Vec::new(),
            agent_secret,
            agent_boundaries: Vec::new(),
        });
    }

    /// The warning for the first injection after an upgrade has changed the boundary; the agent knows only the old one.
    pub(super) fn boundary_warning(&mut self, key: &ConversationKey) -> Option<String> {
        let row = &self.conversations.get(key)?.row;
        if !row.boundary_changed {
            return None;
        }
        let row = ConversationRow { boundary_changed: false, ..row.clone() };
        self.put(row);
        Some(
            "an upgrade of Bellwire has changed the boundary of this conversation; read system_prompt again".to_owned(),
        )
    }

    fn new_boundary(&mut self) -> Boundary {
        Boundary::from_seed(u128::from_le_bytes(self.randomness.draw()))
    }

    fn put(&mut self, row: ConversationRow) {
        self.changes.conversations.insert(row.key.clone(), row.clone());
        match self.conversations.entry(row.key.clone()) {
            Entry::Occupied(mut known) => known.get_mut().row = row,
            Entry::Vacant(free) => drop(free.insert(HotConversation::of(row))),
        }
    }

    /// Updates `seen_at`, which keeps the conversation open for another day. Written at most once a minute.
    pub(super) fn touch_last_seen(&mut self, key: &ConversationKey) {
        let now = self.context.now;
        let Some(HotConversation { row, .. }) = self.conversations.get(key) else { return };
        if now.millis_since(row.seen_at) >= SEEN_STEP_MS {
            let row = ConversationRow { seen_at: now, ..row.clone() };
            self.put(row);
        }
    }
}

/// The boundary of an agent of this conversation. Each sub-agent has its own: a new one for the main agent, as after a
/// compaction, must not change what a running sub-agent was told.
pub(super) fn boundary_of(row: &ConversationRow, agent: &AgentName) -> Boundary {
    if *agent == AgentName::main() {
        return row.boundary.clone();
    }
    let given = row.agent_boundaries.iter().find(|(name, _)| **name == *agent.as_str());
    given.map_or_else(|| Boundary::of_sub_agent(&row.agent_secret, agent.as_str()), |(_, boundary)| boundary.clone())
}

/// Resolves an id without owner: the registered conversation, or else the only one. Several are a conflict.
pub(crate) fn pick_unambiguous<T>(
    id: &str,
    mut rows: Vec<T>,
    registered: impl Fn(&T) -> bool,
) -> Result<Option<T>, StoreError> {
    match rows.iter().position(registered) {
        Some(at) => Ok(Some(rows.swap_remove(at))),
        None if rows.len() > 1 => {
            let message = format!("several people have a conversation '{id}'; say whose is meant with user_id");
            Err(StoreError::new(ErrorKind::Conflict, message))
        }
        None => Ok(rows.pop()),
    }
}
