//! Ways out of the hub: planned with the notification, claimed as letters, finished with what is known.
//!
//! A claim has a number, its fence. Whoever finishes with an older number is too late and changes nothing, so that two
//! workers never both decide. That an attempt begins is written down before anything is sent: a claim that was given up
//! before that goes back, one that was given up after it may have been sent, and is never sent again by itself.

use std::collections::{BTreeMap, BTreeSet};

use bellwire_core::Time;
use uuid::Uuid;

use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::people::{
    AttemptStart, Channel, Claim, Delivery, DeliveryContent, DeliveryState, Hold, InboxItem, InboxItemKind, Purpose,
};
use crate::rows::ConversationKey;

/// How many notifications a new letter carries; more go in another one.
const LETTER_MAX: usize = 1_000;
/// How many waiting deliveries of one person are read at once.
const PAGE: usize = 1_000;
/// After so much work no further letter is claimed; the outbox asks again.
const CLAIM_WORK: usize = 1_000;
/// How many due deliveries are looked at for each letter that is wanted.
const LOOK_MAX: usize = 20;

/// Deliveries that are due, of one letter or for a new one.
struct DueLetter {
    user_id: String,
    /// None = it has not been tried yet.
    letter_id: Option<Uuid>,
    is_code: bool,
    deliveries: Vec<Delivery>,
}

impl DueLetter {
    /// When its oldest delivery became due.
    fn due_at(&self) -> Time {
        self.deliveries.iter().map(|one| one.not_before).min().unwrap_or(Time::NEVER)
    }
}

impl Executor {
    /// Plans the ways of a new notification: none for a muted origin, none for what the hub says of itself.
    pub(super) fn plan(&mut self, item: &InboxItem, muted: bool) {
        if muted || item.kind == InboxItemKind::Note || !self.rules.email {
            return;
        }
        let now = self.context.now;
        let settings = &self.people[item.user_id.as_str()].settings;
        let Some(target) = settings.mail_address().map(str::to_owned) else { return };
        let until = settings.quiet_until(now);
        let delivery = Delivery {
            id: self.context.ids.next(now),
            content: DeliveryContent::Notification(item.id),
            user_id: item.user_id.clone(),
            channel: Channel::Email,
            target,
            state: DeliveryState::Waiting,
            held_by: until.map(|_| Hold::QuietHours),
            reason: None,
            attempts: 0,
            not_before: until.unwrap_or(now),
            lease_until: None,
            fence: 0,
            letter_id: None,
            created_at: now,
            ended_at: None,
        };
        self.changes.people.deliveries.insert(delivery.id, delivery);
    }

    /// Other quiet hours: what they hold back is planned by the new ones, a page at a time. Some = there is more behind
    /// this id.
    pub(crate) async fn replan(
        &mut self,
        user_id: String,
        after: Uuid,
        source: &mut impl RowSource,
    ) -> Result<Option<Uuid>, StoreError> {
        let now = self.context.now;
        let until = self.person(&user_id, source).await?.settings.quiet_until(now);
        let stored = source.waiting_deliveries(&user_id, after, PAGE).await?;
        let stored = self.damage.readable(stored);
        let last = stored.last().map(|one| one.id).filter(|_| stored.len() == PAGE);
        for mut delivery in
            self.with_commit_changes(stored, |one| one.user_id == user_id).into_iter().filter(Delivery::is_held)
        {
            delivery.not_before = until.unwrap_or(now);
            delivery.held_by = until.map(|_| Hold::QuietHours);
            self.changes.people.deliveries.insert(delivery.id, delivery);
        }
        Ok(last)
    }

    /// Takes what is due, as letters, oldest first and in turn between people.
    pub(crate) async fn claim(&mut self, limit: usize, source: &mut impl RowSource) -> Result<Vec<Claim>, StoreError> {
        let (letters, is_whole) = self.due_letters(limit.saturating_mul(LOOK_MAX), source).await?;
        let mut claims = Vec::new();
        for letter in letters {
            if claims.len() == limit || self.changes.work() >= CLAIM_WORK {
                break;
            }
            if !self.is_readable(&letter.user_id, source).await? {
                continue;
            }
            let deliveries = match letter.letter_id {
                Some(letter_id) => self.whole_letter(&letter.user_id, letter_id, source).await?,
                None if is_whole || letter.is_code => letter.deliveries,
                None => self.all_due(letter, source).await?,
            };
            claims.extend(self.claim_letter(deliveries, source).await?);
        }
        Ok(claims)
    }

    /// The letters that are due, in the order in which they are claimed; and whether all that is due was looked at.
    ///
    /// Whoever has waited longest comes first, but a person's second letter comes after everybody's first, and letters
    /// that are being sent count: one person's backlog delays nobody else.
    async fn due_letters(
        &mut self,
        look: usize,
        source: &mut impl RowSource,
    ) -> Result<(Vec<DueLetter>, bool), StoreError> {
        let now = self.context.now;
        let mut turns = self.letters_in_flight(source).await?;
        let due = source.due_deliveries(now, look, &self.damaged_people).await?;
        let mut due = self.damage.readable(due);
        let is_whole = due.len() < look;
        if !is_whole {
            let mut except = self.damaged_people.clone();
            except.extend(due.iter().map(|one| one.user_id.clone()).chain(turns.keys().cloned()));
            let others = source.due_deliveries(now, look, &except).await?;
            due.append(&mut self.damage.readable(others));
        }
        let is_due = |one: &Delivery| one.state == DeliveryState::Waiting && one.not_before <= now;
        let mut letters: BTreeMap<(String, Option<Uuid>, bool), Vec<Delivery>> = BTreeMap::new();
        for delivery in self.with_commit_changes(due, is_due).into_iter().filter(is_due) {
            let is_code = delivery.content == DeliveryContent::ConfirmationCode;
            letters.entry((delivery.user_id.clone(), delivery.letter_id, is_code)).or_default().push(delivery);
        }
        let letter =
            |((user_id, letter_id, is_code), deliveries)| DueLetter { user_id, letter_id, is_code, deliveries };
        let mut letters: Vec<DueLetter> = letters.into_iter().map(letter).collect();
        letters.sort_by_key(DueLetter::due_at);
        let mut in_turn: Vec<(usize, DueLetter)> = Vec::with_capacity(letters.len());
        for letter in letters {
            let turn = turns.entry(letter.user_id.clone()).or_default();
            in_turn.push((*turn, letter));
            *turn += 1;
        }
        // A stable sort: within a turn they stay in the order of their age.
        in_turn.sort_by_key(|(turn, _)| *turn);
        Ok((in_turn.into_iter().map(|(_, letter)| letter).collect(), is_whole))
    }

    /// How many letters to each person are claimed or being sent.
    async fn letters_in_flight(&mut self, source: &mut impl RowSource) -> Result<BTreeMap<String, usize>, StoreError> {
        let mut letters: BTreeSet<(String, Option<Uuid>)> = source.letters_in_flight().await?.into_iter().collect();
        let fresh = self.changes.people.deliveries.values().filter(|one| one.is_leased());
        letters.extend(fresh.map(|one| (one.user_id.clone(), one.letter_id)));
        let mut people = BTreeMap::new();
        letters.into_iter().for_each(|(user_id, _)| *people.entry(user_id).or_default() += 1);
        Ok(people)
    }

    /// Records that an attempt begins, if the claim still holds.
    pub(crate) async fn start(
        &mut self,
        letter: AttemptStart,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let now = self.context.now;
        let ours = self.attempt(letter.letter_id, letter.fence, DeliveryState::Claimed, usize::MAX, source).await?;
        for mut delivery in ours.iter().cloned() {
            if let (DeliveryContent::ConfirmationCode, Some(code)) = (delivery.content, letter.code.clone()) {
                self.keep_code(&delivery, code);
            }
            delivery.state = DeliveryState::Started;
            delivery.attempts += 1;
            delivery.lease_until = Some(now.plus(self.rules.attempt_ms));
            self.changes.people.deliveries.insert(delivery.id, delivery);
        }
        Ok(!ours.is_empty())
    }

    /// What is due for this person and in no letter yet, for those who have more than was looked at: what was held back
    /// together goes together, as far as one letter carries it.
    async fn all_due(&mut self, letter: DueLetter, source: &mut impl RowSource) -> Result<Vec<Delivery>, StoreError> {
        let (now, user_id) = (self.context.now, letter.user_id);
        let stored = source.waiting_deliveries(&user_id, Uuid::nil(), PAGE).await?;
        let stored = self.damage.readable(stored);
        let is_due = |one: &Delivery| {
            let is_news = one.content != DeliveryContent::ConfirmationCode && one.letter_id.is_none();
            one.user_id == user_id && one.state == DeliveryState::Waiting && one.not_before <= now && is_news
        };
        let mut due: Vec<Delivery> = self.with_commit_changes(stored, is_due).into_iter().filter(is_due).collect();
        // Behind a page of what is not due yet there may still be some that was found to be.
        due.extend(letter.deliveries);
        due.sort_by_key(|one| one.id);
        due.dedup_by_key(|one| one.id);
        due.truncate(LETTER_MAX);
        Ok(due)
    }

    /// Everything that waits in a letter that was tried before. It goes again as a whole: a part of it under the same id
    /// and fence would be recorded as sent together with what was left out.
    async fn whole_letter(
        &mut self,
        user_id: &str,
        letter_id: Uuid,
        source: &mut impl RowSource,
    ) -> Result<Vec<Delivery>, StoreError> {
        let stored = source.letter(user_id, letter_id).await?;
        let stored = self.damage.readable(stored);
        let waits = |one: &Delivery| one.letter_id == Some(letter_id) && one.state == DeliveryState::Waiting;
        Ok(self.with_commit_changes(stored, waits).into_iter().filter(waits).collect())
    }

    /// Looks once more whether each is wanted, and claims what is left as one letter.
    async fn claim_letter(
        &mut self,
        deliveries: Vec<Delivery>,
        source: &mut impl RowSource,
    ) -> Result<Option<Claim>, StoreError> {
        let now = self.context.now;
        let mut looked_at = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            looked_at.push((self.still_wanted(&delivery, source).await?, delivery));
        }
        let (mut taken, mut items) = (Vec::new(), Vec::new());
        for (wanted, delivery) in looked_at {
            match wanted {
                DeliveryCheck::Yes(item) => {
                    items.extend(item.map(|item| *item));
                    taken.push(delivery);
                }
                DeliveryCheck::Later(until) => {
                    let held_by = Some(Hold::QuietHours);
                    let held = Delivery { not_before: until, held_by, reason: None, ..delivery };
                    self.changes.people.deliveries.insert(held.id, held);
                }
                DeliveryCheck::No(reason) => self.settle(&[delivery], DeliveryState::Skipped, Some(reason), None),
            }
        }
        let Some(first) = taken.first().cloned() else { return Ok(None) };
        // Names of one millisecond are in no order; positions are.
        items.sort_by_key(|item| item.created_sequence);
        let titles = self.titles(&items, source).await?;
        let fence = taken.iter().map(|one| one.fence).max().unwrap_or(0) + 1;
        let letter_id = first.letter_id.unwrap_or_else(|| self.context.ids.next(now));
        for delivery in taken {
            let lease_until = Some(now.plus(self.rules.claim_ms));
            let state = DeliveryState::Claimed;
            let letter_id = Some(letter_id);
            let claimed = Delivery { state, held_by: None, lease_until, fence, letter_id, ..delivery };
            self.changes.people.deliveries.insert(claimed.id, claimed);
        }
        let settings = &self.people[first.user_id.as_str()].settings;
        let timezone = settings.quiet_hours.as_ref().map(|quiet| quiet.timezone.clone());
        let purpose = match first.content {
            DeliveryContent::Notification(_) => Purpose::News(items),
            DeliveryContent::ConfirmationCode => Purpose::Confirmation,
        };
        let created_at = crate::minted_at(letter_id);
        Ok(Some(Claim {
            letter_id,
            fence,
            user_id: first.user_id,
            channel: first.channel,
            target: first.target,
            purpose,
            titles,
            timezone,
            created_at,
        }))
    }

    /// What the conversations of these are called.
    async fn titles(
        &mut self,
        items: &[InboxItem],
        source: &mut impl RowSource,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let mut titles = BTreeMap::new();
        for item in items {
            let Some(id) = item.conversation_id.as_deref().filter(|id| !titles.contains_key(*id)) else { continue };
            let row = match self.conversation(&ConversationKey::new(&item.user_id, id), source).await {
                // It is told of by its id.
                Err(error) if error.kind == ErrorKind::Damaged => {
                    self.damage.note(&item.user_id, format!("conversations ({}, {id})", item.user_id), &error);
                    continue;
                }
                row => row?,
            };
            titles.extend(row.and_then(|row| row.title.clone()).map(|title| (id.to_owned(), title)));
        }
        Ok(titles)
    }

    async fn still_wanted(
        &mut self,
        delivery: &Delivery,
        source: &mut impl RowSource,
    ) -> Result<DeliveryCheck, StoreError> {
        let now = self.context.now;
        let DeliveryContent::Notification(id) = delivery.content else {
            let settings = &self.person(&delivery.user_id, source).await?.settings;
            let same = settings.email.address.as_ref() == Some(&delivery.target) && !settings.email.confirmed;
            return Ok(if same {
                DeliveryCheck::Yes(None)
            } else {
                DeliveryCheck::No("the address is no longer to be confirmed")
            });
        };
        let item = match self.inbox_item(&delivery.user_id, id, source).await {
            Err(error) if error.kind == ErrorKind::Damaged => {
                self.damage.note(&delivery.user_id, format!("inbox ({}, {id})", delivery.user_id), &error);
                return Ok(DeliveryCheck::No("the notification is damaged"));
            }
            item => item?,
        };
        let settings = &self.people[delivery.user_id.as_str()].settings;
        Ok(match item {
            None => DeliveryCheck::No("the notification is gone"),
            Some(item) if item.dismissed_at.is_some() => DeliveryCheck::No("it was dismissed meanwhile"),
            Some(item) if item.read_at.is_some() => DeliveryCheck::No("it was read meanwhile"),
            Some(_) if !settings.email.enabled => DeliveryCheck::No("mail is switched off"),
            Some(_) if settings.mail_address() != Some(&delivery.target) => {
                DeliveryCheck::No("the address has changed")
            }
            Some(item) if settings.mutes(&item.origin) => DeliveryCheck::No("the origin is muted"),
            Some(item) => match settings.quiet_until(now) {
                Some(until) => DeliveryCheck::Later(until),
                None => DeliveryCheck::Yes(Some(Box::new(item))),
            },
        })
    }

    /// The deliveries of a letter that are in this state under this claim, about `limit` of them.
    pub(super) async fn attempt(
        &mut self,
        letter_id: Uuid,
        fence: i64,
        state: DeliveryState,
        limit: usize,
        source: &mut impl RowSource,
    ) -> Result<Vec<Delivery>, StoreError> {
        let stored = source.attempt(letter_id, fence, state, limit).await?;
        let stored = self.damage.readable(stored);
        let ours = |one: &Delivery| one.letter_id == Some(letter_id) && one.fence == fence && one.state == state;
        Ok(self.with_commit_changes(stored, ours).into_iter().filter(ours).collect())
    }

    /// Stored deliveries as this commit has them, and those it has of its own that are wanted besides. Nothing is
    /// delivered to a person who is being erased.
    pub(super) fn with_commit_changes(
        &self,
        stored: Vec<Delivery>,
        wanted: impl Fn(&Delivery) -> bool,
    ) -> Vec<Delivery> {
        let fresh = &self.changes.people.deliveries;
        let mut all: BTreeMap<Uuid, Delivery> =
            fresh.values().filter(|one| wanted(one)).map(|one| (one.id, one.clone())).collect();
        for delivery in stored.into_iter().filter(|one| !self.erasing.has(&one.user_id)) {
            all.insert(delivery.id, fresh.get(&delivery.id).cloned().unwrap_or(delivery));
        }
        all.into_values().collect()
    }
}

/// Whether a delivery is wanted when its time has come.
enum DeliveryCheck {
    Yes(Option<Box<InboxItem>>),
    Later(Time),
    No(&'static str),
}
