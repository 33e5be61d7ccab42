//! Changes to a person's settings, and the verification of a target by a code.

use bellwire_core::Time;
use bellwire_core::person::{ChannelName, ChannelSettings, PersonSettings};
use uuid::Uuid;

use super::people::HOUR_MS;
use super::{Executor, RowSource};
use crate::command::IdempotencyKey;
use crate::error::{ErrorKind, StoreError};
use crate::people::{ConfirmationRow, Delivery, DeliveryContent, SettingsRequest};

/// How long a code is valid.
const CODE_MS: u64 = 24 * HOUR_MS;
/// The maximum number of wrong codes.
const TRIES_MAX: i64 = 5;
/// The maximum number of codes per hour, so that the hub cannot be used to flood a target.
const CODES_PER_HOUR: usize = 5;

impl Executor {
    /// Applies a change of the named settings, or refuses it as a whole. If deliveries must be replanned in further
    /// steps, returns the id to continue after.
    pub(crate) async fn change_settings(
        &mut self,
        change: Box<SettingsRequest>,
        source: &mut impl RowSource,
    ) -> Result<(PersonSettings, Option<Uuid>), StoreError> {
        let SettingsRequest { user_id, change } = *change;
        let before = self.person(&user_id, source).await?.settings.clone();
        let after = before.apply(&change);
        let after = after.map_err(|invalid| StoreError::invalid(invalid.field, invalid.message))?;
        for (name, change) in &change.channels {
            let sends_codes = self.rules.channels.get(name).is_some_and(|rules| rules.sends_codes);
            let channel = after.channel(name.as_str());
            if let (Some(target), false) = (channel.target, channel.verified)
                && sends_codes
                && change.target.is_some()
            {
                self.send_code(&user_id, name, target, source).await?;
            }
        }
        let replan = after.quiet_hours != before.quiet_hours;
        self.put_settings(&user_id, after.clone());
        let rest = match replan {
            true => self.replan(user_id, Uuid::nil(), source).await?,
            false => None,
        };
        Ok((after, rest))
    }

    /// Verifies the target with the code that was sent to it, which proves that the person reads what is sent there.
    pub(crate) async fn confirm_target(
        &mut self,
        user_id: String,
        channel: ChannelName,
        code: Vec<u8>,
        idempotency_key: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<PersonSettings, StoreError> {
        if let Some(known) = self.remembered_answer(idempotency_key.as_ref(), source).await? {
            return Ok(known);
        }
        let mut settings = self.person(&user_id, source).await?.settings.clone();
        let key = (user_id.as_str().into(), channel.clone());
        let known = match self.changes.people.confirmations.get(&key) {
            Some(known) => known.clone(),
            None => source.confirmation(&user_id, &channel).await?,
        };
        let now = self.context.now;
        let current = settings.channel(channel.as_str());
        let fits = |row: &ConfirmationRow| {
            row.expires_at > now && row.tries < TRIES_MAX && Some(&row.target) == current.target.as_ref()
        };
        let Some(row) = known.filter(fits) else {
            let message = "there is no code to confirm, or it is too old; set the address again to get another";
            return Err(StoreError::new(ErrorKind::Conflict, message));
        };
        if row.code != code {
            // The failed try must be stored, so this is not an error: an error would drop the staged changes.
            let tries = row.tries + 1;
            let row = ConfirmationRow { tries, ..row };
            self.changes.people.confirmations.insert(key, Some(row));
            return Ok(settings);
        }
        settings.channels.entry(channel).or_default().verified = true;
        self.changes.people.confirmations.insert(key, None);
        self.put_settings(&user_id, settings.clone());
        self.remember(idempotency_key.as_ref(), &settings, [&*user_id]);
        Ok(settings)
    }

    /// Switches off the channel for the target of an unsubscribe link. Does nothing if the person has another target now.
    pub(crate) async fn unsubscribe(
        &mut self,
        user_id: String,
        channel: ChannelName,
        target: String,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        self.person(&user_id, source).await?;
        self.switch_off(&user_id, &channel, &target);
        Ok(())
    }

    /// Switches a channel off for a person, who is loaded. False if it is off or the person has another target now.
    pub(super) fn switch_off(&mut self, user_id: &str, channel: &ChannelName, target: &str) -> bool {
        let mut settings = self.people[user_id].settings.clone();
        let is_on = |one: &ChannelSettings| one.enabled && one.target.as_deref() == Some(target);
        let Some(current) = settings.channels.get_mut(channel).filter(|one| is_on(one)) else { return false };
        current.enabled = false;
        self.put_settings(user_id, settings);
        true
    }

    pub(super) fn put_settings(&mut self, user_id: &str, settings: PersonSettings) {
        self.preferences.remove(user_id);
        let person = self.people.get_mut(user_id).expect("a person is loaded before they change");
        person.settings = settings.clone();
        self.changes.settings.insert(user_id.to_owned(), (settings, self.context.now));
    }

    /// Plans a message with a code to a new target.
    async fn send_code(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
        target: String,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let now = self.context.now;
        let since = Time::from_millis(now.as_millis().saturating_sub_unsigned(HOUR_MS));
        let stored = source.codes_since(user_id, since).await?;
        let fresh = self.changes.people.deliveries.values();
        let fresh = fresh.filter(|one| {
            one.user_id == user_id && one.content == DeliveryContent::ConfirmationCode && one.created_at == now
        });
        if stored + fresh.count() >= CODES_PER_HOUR {
            let message = "too many codes were asked for within an hour; try again later";
            return Err(StoreError::new(ErrorKind::Full, message));
        }
        let delivery = self.new_delivery(user_id, channel, target, DeliveryContent::ConfirmationCode);
        self.changes.people.deliveries.insert(delivery.id, delivery);
        Ok(())
    }

    /// Stores the hash of a code when the attempt to send it starts.
    pub(super) fn keep_code(&mut self, delivery: &Delivery, code: Vec<u8>) {
        let expires_at = self.context.now.plus(CODE_MS);
        let row = ConfirmationRow { target: delivery.target.clone(), code, expires_at, tries: 0 };
        let key = (delivery.user_id.as_str().into(), delivery.channel.clone());
        self.changes.people.confirmations.insert(key, Some(row));
    }
}
