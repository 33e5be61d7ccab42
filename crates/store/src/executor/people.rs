//! People as the executor knows them: their settings, how far their inbox is, and what they were told within the hour.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::Arc;

use bellwire_core::event::HUB;
use bellwire_core::person::PersonSettings;
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::{Executor, RowSource};
use crate::damage::Found;
use crate::error::StoreError;
use crate::people::{
    Allowance, ConfirmationRow, Delivery, DeliveryState, InboxItem, InboxItemKind, InboxItemType, LoadedPerson,
    NotificationContent, NotificationDraft, PeopleRules, Quota, Reminder, SendResult, Toast,
};

pub(super) const HOUR_MS: u64 = 60 * 60 * 1000;

/// Where the rows of people come from.
pub(crate) trait PeopleRowSource {
    fn person(&mut self, user_id: &str, since: Time) -> impl Future<Output = Result<LoadedPerson, StoreError>> + Send;
    fn inbox_item(
        &mut self,
        user_id: &str,
        id: NotificationId,
    ) -> impl Future<Output = Result<Option<InboxItem>, StoreError>> + Send;
    /// What the person has not read, oldest first, at most `limit`.
    fn unread(
        &mut self,
        user_id: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<InboxItem>, StoreError>> + Send;
    fn reminder(&mut self, id: Uuid) -> impl Future<Output = Result<Option<Reminder>, StoreError>> + Send;
    /// How many wait for this person, as far as it is committed.
    fn waiting_reminders(&mut self, user_id: &str) -> impl Future<Output = Result<usize, StoreError>> + Send;
    /// What is due by now, oldest first, but for these people.
    fn due_reminders(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Found<Reminder>, StoreError>> + Send;
    fn delivery(&mut self, id: Uuid) -> impl Future<Output = Result<Option<Delivery>, StoreError>> + Send;
    /// What is due by now, oldest first, but for these people.
    fn due_deliveries(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// What waits for this person, due or not, behind this id and in the order of ids; at most `limit`.
    fn waiting_deliveries(
        &mut self,
        user_id: &str,
        after: Uuid,
        limit: usize,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// Deliveries of a letter that are in this state under this claim, in the order of ids; at most `limit`.
    fn attempt(
        &mut self,
        letter_id: Uuid,
        fence: i64,
        state: DeliveryState,
        limit: usize,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// What is claimed or tried and whose lease ended by now, the oldest first; at most `limit`.
    fn lapsed_deliveries(
        &mut self,
        now: Time,
        limit: usize,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// The letters that are claimed or tried, each once, and whose they are.
    fn letters_in_flight(&mut self) -> impl Future<Output = Result<Vec<(String, Option<Uuid>)>, StoreError>> + Send;
    /// What went into this letter to this person.
    fn letter(
        &mut self,
        user_id: &str,
        letter_id: Uuid,
    ) -> impl Future<Output = Result<Found<Delivery>, StoreError>> + Send;
    /// How many codes were to be mailed to this person since then.
    fn codes_since(&mut self, user_id: &str, since: Time) -> impl Future<Output = Result<usize, StoreError>> + Send;
    fn confirmation(
        &mut self,
        user_id: &str,
    ) -> impl Future<Output = Result<Option<ConfirmationRow>, StoreError>> + Send;
    fn secret(&mut self, name: &str) -> impl Future<Output = Result<Option<Vec<u8>>, StoreError>> + Send;
}

/// One person, hot.
pub(super) struct Person {
    pub(super) settings: PersonSettings,
    position: i64,
    /// When they were told something within the hour, oldest first.
    told: BTreeMap<Allowance, VecDeque<Time>>,
}

impl Person {
    fn of(loaded: LoadedPerson, rules: &PeopleRules, now: Time) -> Self {
        let mut told = BTreeMap::<Allowance, VecDeque<Time>>::new();
        for (kind, level, at) in loaded.told {
            if let Some(allowance) = rules.allowance(kind, level) {
                told.entry(allowance).or_default().push_back(at);
            }
        }
        Self {
            settings: loaded.settings,
            // Positions begin with the time, so that those of somebody who was erased are never used again.
            position: loaded.position.unwrap_or_else(|| now.as_millis()),
            told,
        }
    }

    /// Takes a place in the hour's allowance, or says when one is free: no 60 minutes hold more than the rules allow.
    fn spend(&mut self, quota: &Quota, now: Time) -> Result<(), Time> {
        let told = self.told.entry(quota.allowance).or_default();
        while told.front().is_some_and(|at| now.millis_since(*at) >= HOUR_MS) {
            told.pop_front();
        }
        let max = usize::try_from(quota.per_hour).unwrap_or(usize::MAX);
        match told.len().checked_sub(max) {
            // Where the allowance was made smaller since, more than one has to grow old first.
            Some(beyond) => Err(told[beyond].plus(HOUR_MS)),
            None => {
                told.push_back(now);
                Ok(())
            }
        }
    }
}

/// Something for an inbox that was not admitted yet.
pub(super) struct InboxDraft {
    pub(super) id: Option<NotificationId>,
    pub(super) user_id: Arc<str>,
    pub(super) kind: InboxItemKind,
    pub(super) level: InboxItemType,
    pub(super) origin: String,
    pub(super) source: Option<String>,
    pub(super) conversation_id: Option<String>,
    pub(super) correlation_id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) message: String,
    pub(super) toast: Option<Toast>,
}

impl Executor {
    /// Tells a person, or says when there is room to; the same call is carried out once.
    pub(crate) async fn send(
        &mut self,
        draft: Box<NotificationDraft>,
        source: &mut impl RowSource,
    ) -> Result<SendResult, StoreError> {
        draft.caller.check_person(&draft.user_id, draft.conversation_id.as_deref())?;
        if let Some(known) = self.remembered_answer(draft.once.as_ref(), source).await? {
            return Ok(known);
        }
        let (once, person) = (draft.once.clone(), draft.user_id.clone());
        let now = self.context.now;
        match self.admit(InboxDraft::of(*draft), source).await? {
            Ok(id) => {
                let sent = SendResult::Stored { id, at: now };
                self.remember(once.as_ref(), &sent, [&*person]);
                Ok(sent)
            }
            Err(free) => Ok(SendResult::Limited { retry_after_seconds: free.millis_since(now).div_ceil(1000).max(1) }),
        }
    }

    /// Puts it into the inbox and plans how else it goes out; or says when the hour's allowance has room again.
    pub(super) async fn admit(
        &mut self,
        draft: InboxDraft,
        source: &mut impl RowSource,
    ) -> Result<Result<NotificationId, Time>, StoreError> {
        let now = self.context.now;
        let rules = self.rules;
        let person = self.person(&draft.user_id, source).await?;
        let quota = rules.allowance(draft.kind, draft.level);
        let quota = quota.and_then(|allowance| rules.quota_of(&draft.user_id, allowance));
        if let Some(Err(free)) = quota.as_ref().map(|quota| person.spend(quota, now)) {
            self.changes.people.refused.extend(quota.map(|quota| (quota, free)));
            return Ok(Err(free));
        }
        let muted = person.settings.mutes(&draft.origin);
        let shown = person.settings.toasts.enabled && !muted;
        let id = draft.id.unwrap_or_else(|| self.context.ids.notification(now));
        let position = self.advance(&draft.user_id);
        let item = InboxItem {
            id,
            user_id: draft.user_id.to_string(),
            kind: draft.kind,
            level: draft.level,
            origin: draft.origin,
            source: draft.source,
            conversation_id: draft.conversation_id,
            title: draft.title,
            message: draft.message,
            toast: draft.toast.map(|toast| Toast { shown, ..toast }),
            correlation_id: draft.correlation_id,
            created_at: now,
            read_at: None,
            dismissed_at: None,
            acted: Vec::new(),
            created_sequence: position,
            changed_sequence: position,
        };
        self.plan(&item, muted);
        self.changes.people.inbox.insert(id, item);
        self.changes.people.created.push(id);
        Ok(Ok(id))
    }

    /// The person, hot.
    pub(super) async fn person(
        &mut self,
        user_id: &str,
        source: &mut impl RowSource,
    ) -> Result<&mut Person, StoreError> {
        self.erasing.check(user_id)?;
        if !self.people.contains_key(user_id) {
            let now = self.context.now;
            let since = Time::from_millis(now.as_millis().saturating_sub_unsigned(HOUR_MS));
            let loaded = source.person(user_id, since).await?;
            self.people.insert(user_id.into(), Person::of(loaded, &self.rules, now));
        }
        Ok(self.people.get_mut(user_id).expect("it was put there above"))
    }

    /// The next position of an inbox; streams are told of it after the commit.
    pub(super) fn advance(&mut self, user_id: &str) -> i64 {
        let person = self.people.get_mut(user_id).expect("a person is loaded before their inbox changes");
        person.position += 1;
        let position = person.position;
        self.changes.people.positions.insert(user_id.into(), position);
        position
    }

    /// A secret of the hub, the same for as long as its data lives.
    pub(crate) async fn secret(
        &mut self,
        name: String,
        fresh: Vec<u8>,
        source: &mut impl RowSource,
    ) -> Result<Vec<u8>, StoreError> {
        let known = match self.changes.people.secrets.get(&name) {
            Some(known) => Some(known.clone()),
            None => source.secret(&name).await?,
        };
        Ok(known.unwrap_or_else(|| {
            self.changes.people.secrets.insert(name, fresh.clone());
            fresh
        }))
    }

    /// An item of an inbox, as this commit has it.
    pub(super) async fn inbox_item(
        &mut self,
        user_id: &str,
        id: NotificationId,
        source: &mut impl RowSource,
    ) -> Result<Option<InboxItem>, StoreError> {
        self.person(user_id, source).await?;
        match self.changes.people.inbox.get(&id) {
            Some(item) => Ok(Some(item.clone()).filter(|item| item.user_id == user_id)),
            None => source.inbox_item(user_id, id).await,
        }
    }

    /// Keeps an item that has changed, at the next position.
    pub(super) fn put_item(&mut self, mut item: InboxItem) -> InboxItem {
        item.changed_sequence = self.advance(&item.user_id);
        self.changes.people.inbox.insert(item.id, item.clone());
        item
    }
}

impl InboxDraft {
    fn of(draft: NotificationDraft) -> Self {
        let (kind, level, title, message, toast) = match draft.content {
            NotificationContent::Message { kind, message } => {
                (InboxItemKind::Message, kind.into(), None, message, None)
            }
            NotificationContent::Toast(show) => {
                let toast = Toast::of(&show, true);
                (InboxItemKind::Toast, show.severity.into(), show.title, show.message, Some(toast))
            }
        };
        Self {
            id: None,
            user_id: draft.user_id.as_str().into(),
            kind,
            level,
            origin: draft.origin,
            source: None,
            conversation_id: draft.conversation_id,
            correlation_id: draft.correlation_id,
            title,
            message,
            toast,
        }
    }

    /// What the hub itself has to say.
    pub(super) fn note(user_id: &str, conversation_id: Option<String>, message: String) -> Self {
        Self {
            id: None,
            user_id: user_id.into(),
            kind: InboxItemKind::Note,
            level: InboxItemType::Warning,
            origin: HUB.to_owned(),
            source: None,
            conversation_id,
            correlation_id: None,
            title: None,
            message,
            toast: None,
        }
    }
}
