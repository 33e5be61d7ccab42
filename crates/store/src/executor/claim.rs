//! Claims due deliveries as mails: several of one person go into one mail, which is always sent whole, and people take turns.

use std::collections::{BTreeMap, BTreeSet};

use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::outbox::PAGE;
use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::people::{Claim, Delivery, DeliveryContent, DeliveryState, Hold, InboxItem, Purpose};
use crate::rows::ConversationKey;

/// The maximum number of notifications in a new mail; more go into another mail. It bounds the work of a claim: for each
/// notification a delivery, an inbox item and perhaps a title are read, and a delivery is written.
const MAIL_ITEMS_MAX: usize = 500;
/// After this much work no further mail is claimed in this step. Mails of older versions have up to 1,000 notifications.
const CLAIM_WORK: usize = 600;
/// How many due deliveries are read per requested mail, and at most.
const LOOKED_PER_MAIL: usize = 20;
const LOOKED_MAX: usize = 200;

/// The due deliveries of one mail.
struct DueMail {
    user_id: String,
    /// None = a new mail, not attempted yet.
    mail_id: Option<Uuid>,
    is_code: bool,
    deliveries: Vec<Delivery>,
}

impl DueMail {
    /// When its oldest delivery became due.
    fn due_at(&self) -> Time {
        self.deliveries.iter().map(|one| one.not_before).min().unwrap_or(Time::NEVER)
    }
}

impl Executor {
    /// Claims due deliveries as mails, oldest first, in turn between people. Returns true if it stopped because of
    /// [`CLAIM_WORK`] and there is more.
    pub(crate) async fn claim(
        &mut self,
        limit: usize,
        source: &mut impl RowSource,
    ) -> Result<(Vec<Claim>, bool), StoreError> {
        let (mails, is_whole) = self.due_mails(limit.saturating_mul(LOOKED_PER_MAIL).min(LOOKED_MAX), source).await?;
        let mut claims = Vec::new();
        for (at, mail) in mails.into_iter().enumerate() {
            if claims.len() == limit {
                break;
            }
            if at > 0 && source.rows_read() + self.changes.work() >= CLAIM_WORK {
                return Ok((claims, true));
            }
            if !self.is_readable(&mail.user_id, source).await? {
                continue;
            }
            let deliveries = match mail.mail_id {
                Some(mail_id) => self.whole_mail(&mail.user_id, mail_id, source).await?,
                None if is_whole || mail.is_code => at_most(MAIL_ITEMS_MAX, mail.deliveries),
                None => at_most(MAIL_ITEMS_MAX, self.all_due(&mail.user_id, mail.deliveries, source).await?),
            };
            claims.extend(self.claim_mail(&mail.user_id, deliveries, source).await?);
        }
        Ok((claims, false))
    }

    /// The due mails in the order in which they are claimed, and whether all due deliveries were read.
    ///
    /// The oldest mail comes first, but a person's second mail comes after the first mail of every other person. Mails
    /// in flight count too, so that one person's backlog does not delay others.
    async fn due_mails(
        &mut self,
        look: usize,
        source: &mut impl RowSource,
    ) -> Result<(Vec<DueMail>, bool), StoreError> {
        let now = self.context.now;
        let mut turns = self.mails_in_flight(source).await?;
        let mut except = self.unreachable_people();
        let due = source.due_deliveries(now, look, &except).await?;
        let mut due = self.damage.readable(due);
        let is_whole = due.len() < look;
        if !is_whole {
            except.extend(due.iter().map(|one| one.user_id.clone()).chain(turns.keys().cloned()));
            let others = source.due_deliveries(now, look, &except).await?;
            due.append(&mut self.damage.readable(others));
        }
        let is_due = |one: &Delivery| one.state == DeliveryState::Waiting && one.not_before <= now;
        let mut mails: BTreeMap<(String, Option<Uuid>, bool), Vec<Delivery>> = BTreeMap::new();
        for delivery in self.with_commit_changes(due, is_due).into_iter().filter(is_due) {
            let is_code = delivery.content == DeliveryContent::ConfirmationCode;
            mails.entry((delivery.user_id.clone(), delivery.mail_id, is_code)).or_default().push(delivery);
        }
        let mail = |((user_id, mail_id, is_code), deliveries)| DueMail { user_id, mail_id, is_code, deliveries };
        let mut mails: Vec<DueMail> = mails.into_iter().map(mail).collect();
        mails.sort_by_key(DueMail::due_at);
        let mut in_turn: Vec<(usize, DueMail)> = Vec::with_capacity(mails.len());
        for mail in mails {
            let turn = turns.entry(mail.user_id.clone()).or_default();
            in_turn.push((*turn, mail));
            *turn += 1;
        }
        // A stable sort keeps the order by age within a turn.
        in_turn.sort_by_key(|(turn, _)| *turn);
        Ok((in_turn.into_iter().map(|(_, mail)| mail).collect(), is_whole))
    }

    /// The number of claimed or started mails per person.
    async fn mails_in_flight(&mut self, source: &mut impl RowSource) -> Result<BTreeMap<String, usize>, StoreError> {
        let mut mails: BTreeSet<(String, Option<Uuid>)> = source.mails_in_flight().await?.into_iter().collect();
        let fresh = self.changes.people.deliveries.values().filter(|one| one.is_leased());
        mails.extend(fresh.map(|one| (one.user_id.clone(), one.mail_id)));
        let mut people = BTreeMap::new();
        mails.into_iter().for_each(|(user_id, _)| *people.entry(user_id).or_default() += 1);
        Ok(people)
    }

    /// The due deliveries of this person that are in no mail yet. Deliveries that were held together are sent together,
    /// even if the first query read only some of them.
    async fn all_due(
        &mut self,
        user_id: &str,
        found: Vec<Delivery>,
        source: &mut impl RowSource,
    ) -> Result<Vec<Delivery>, StoreError> {
        let now = self.context.now;
        let stored = source.waiting_deliveries(user_id, Uuid::nil(), PAGE).await?;
        let stored = self.damage.readable(stored);
        let is_due = |one: &Delivery| {
            let is_news = one.content != DeliveryContent::ConfirmationCode && one.mail_id.is_none();
            one.user_id == user_id && one.state == DeliveryState::Waiting && one.not_before <= now && is_news
        };
        let mut due: Vec<Delivery> = self.with_commit_changes(stored, is_due).into_iter().filter(is_due).collect();
        // The page may be full of deliveries that are not due yet, so add the due ones that were already found.
        due.extend(found);
        due.sort_by_key(|one| one.id);
        due.dedup_by_key(|one| one.id);
        Ok(due)
    }

    /// All waiting deliveries of a mail that was attempted before. It must be sent again as a whole: a part of it under
    /// the same id and fence would mark the other deliveries as sent too.
    async fn whole_mail(
        &mut self,
        user_id: &str,
        mail_id: Uuid,
        source: &mut impl RowSource,
    ) -> Result<Vec<Delivery>, StoreError> {
        let stored = source.mail_deliveries(user_id, mail_id).await?;
        let stored = self.damage.readable(stored);
        let waits = |one: &Delivery| one.mail_id == Some(mail_id) && one.state == DeliveryState::Waiting;
        Ok(self.with_commit_changes(stored, waits).into_iter().filter(waits).collect())
    }

    /// Checks each delivery against the current settings, and claims the remaining ones as one mail.
    async fn claim_mail(
        &mut self,
        user_id: &str,
        deliveries: Vec<Delivery>,
        source: &mut impl RowSource,
    ) -> Result<Option<Claim>, StoreError> {
        let now = self.context.now;
        let ids: Vec<NotificationId> = deliveries.iter().filter_map(|one| one.content.notification_id()).collect();
        let mut stored = self.inbox_items(user_id, &ids, source).await?;
        let (mut taken, mut items) = (Vec::new(), Vec::new());
        for delivery in deliveries {
            let item = delivery.content.notification_id().and_then(|id| stored.remove(&id));
            match self.still_wanted(&delivery, item) {
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
        // Ids of one millisecond are not ordered; positions are.
        items.sort_by_key(|item| item.created_sequence);
        let titles = self.titles(&items, source).await?;
        let fence = taken.iter().map(|one| one.fence).max().unwrap_or(0) + 1;
        let mail_id = first.mail_id.unwrap_or_else(|| self.context.ids.next(now));
        for delivery in taken {
            let lease_until = Some(now.plus(self.rules.claim_ms));
            let state = DeliveryState::Claimed;
            let mail_id = Some(mail_id);
            let claimed = Delivery { state, held_by: None, lease_until, fence, mail_id, ..delivery };
            self.changes.people.deliveries.insert(claimed.id, claimed);
        }
        let settings = &self.people[first.user_id.as_str()].settings;
        let timezone = settings.quiet_hours.as_ref().map(|quiet| quiet.timezone.clone());
        let purpose = match first.content {
            DeliveryContent::Notification(_) => Purpose::Notifications(items),
            DeliveryContent::ConfirmationCode => Purpose::Confirmation,
        };
        let created_at = crate::minted_at(mail_id);
        Ok(Some(Claim {
            mail_id,
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

    /// The titles of the items' conversations.
    async fn titles(
        &mut self,
        items: &[InboxItem],
        source: &mut impl RowSource,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let mut titles = BTreeMap::new();
        let mut conversations: Vec<(&str, &str)> =
            items.iter().filter_map(|item| Some((item.user_id.as_str(), item.conversation_id.as_deref()?))).collect();
        conversations.sort_unstable();
        conversations.dedup();
        for (user_id, id) in conversations {
            let row = match self.conversation(&ConversationKey::new(user_id, id), source).await {
                // The mail shows the conversation id instead.
                Err(error) if error.kind == ErrorKind::Damaged => {
                    self.damage.note(user_id, format!("conversations ({user_id}, {id})"), &error);
                    continue;
                }
                row => row?,
            };
            titles.extend(row.and_then(|row| row.title.clone()).map(|title| (id.to_owned(), title)));
        }
        Ok(titles)
    }

    /// Checks a delivery against its inbox item and the person's settings, which are loaded.
    fn still_wanted(&mut self, delivery: &Delivery, item: Option<Result<InboxItem, StoreError>>) -> DeliveryCheck {
        let settings = &self.people[delivery.user_id.as_str()].settings;
        let DeliveryContent::Notification(id) = delivery.content else {
            let is_same = settings.email.address.as_ref() == Some(&delivery.target) && !settings.email.confirmed;
            return match is_same {
                true => DeliveryCheck::Yes(None),
                false => DeliveryCheck::No("the address is no longer to be confirmed"),
            };
        };
        match item {
            Some(Err(error)) => {
                self.damage.note(&delivery.user_id, format!("inbox ({}, {id})", delivery.user_id), &error);
                DeliveryCheck::No("the notification is damaged")
            }
            None => DeliveryCheck::No("the notification is gone"),
            Some(Ok(item)) if item.dismissed_at.is_some() => DeliveryCheck::No("it was dismissed meanwhile"),
            Some(Ok(item)) if item.read_at.is_some() => DeliveryCheck::No("it was read meanwhile"),
            Some(Ok(_)) if !settings.email.enabled => DeliveryCheck::No("mail is switched off"),
            Some(Ok(_)) if settings.mail_address() != Some(&delivery.target) => {
                DeliveryCheck::No("the address has changed")
            }
            Some(Ok(item)) if settings.mutes(&item.origin) => DeliveryCheck::No("the origin is muted"),
            Some(Ok(item)) => match settings.quiet_until(self.context.now) {
                Some(until) => DeliveryCheck::Later(until),
                None => DeliveryCheck::Yes(Some(Box::new(item))),
            },
        }
    }
}

/// Whether a due delivery should be sent now, later, or not at all.
enum DeliveryCheck {
    Yes(Option<Box<InboxItem>>),
    Later(Time),
    No(&'static str),
}

fn at_most(limit: usize, mut deliveries: Vec<Delivery>) -> Vec<Delivery> {
    deliveries.truncate(limit);
    deliveries
}
