//! Changes to a person's settings, and the confirmation of a mail address.

use bellwire_core::Time;
use bellwire_core::person::{EmailSettings, PersonSettings};
use uuid::Uuid;

use super::people::HOUR_MS;
use super::{Executor, RowSource};
use crate::command::IdempotencyKey;
use crate::error::{ErrorKind, StoreError};
use crate::people::{Channel, ConfirmationRow, Delivery, DeliveryContent, DeliveryState, SettingsRequest};

/// How long a mailed code is valid.
const CODE_MS: u64 = 24 * HOUR_MS;
/// The maximum number of wrong codes.
const TRIES_MAX: i64 = 5;
/// The maximum number of codes per hour, so that the hub cannot be used to flood an address with mail.
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
        let asked = after.email.address.is_some() && !after.email.confirmed && change.email_address.is_some();
        if asked && self.rules.email {
            self.ask_for_confirmation(&user_id, &after, source).await?;
        }
        let replan = after.quiet_hours != before.quiet_hours;
        self.put_settings(&user_id, after.clone());
        let rest = match replan {
            true => self.replan(user_id, Uuid::nil(), source).await?,
            false => None,
        };
        Ok((after, rest))
    }

    /// Confirms the address with the mailed code, which proves that the person reads its mail.
    pub(crate) async fn confirm_address(
        &mut self,
        user_id: String,
        code: Vec<u8>,
        idempotency_key: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<PersonSettings, StoreError> {
        if let Some(known) = self.remembered_answer(idempotency_key.as_ref(), source).await? {
            return Ok(known);
        }
        let mut settings = self.person(&user_id, source).await?.settings.clone();
        let known = match self.changes.people.confirmations.get(user_id.as_str()) {
            Some(known) => known.clone(),
            None => source.confirmation(&user_id).await?,
        };
        let now = self.context.now;
        let fits = |row: &ConfirmationRow| {
            row.expires_at > now
                && row.tries < TRIES_MAX
                && Some(row.address.as_str()) == settings.email.address.as_deref()
        };
        let Some(row) = known.filter(fits) else {
            let message = "there is no code to confirm, or it is too old; set the address again to get another";
            return Err(StoreError::new(ErrorKind::Conflict, message));
        };
        if row.code != code {
            // The failed try must be stored, so this is not an error: an error would drop the staged changes.
            let tries = row.tries + 1;
            let row = ConfirmationRow { tries, ..row };
            self.changes.people.confirmations.insert(user_id.as_str().into(), Some(row));
            return Ok(settings);
        }
        settings.email.confirmed = true;
        self.changes.people.confirmations.insert(user_id.as_str().into(), None);
        self.put_settings(&user_id, settings.clone());
        self.remember(idempotency_key.as_ref(), &settings, [&*user_id]);
        Ok(settings)
    }

    /// Switches off mail for the address of an unsubscribe link. Does nothing if the person has another address now.
    pub(crate) async fn unsubscribe(
        &mut self,
        user_id: String,
        address: String,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let settings = self.person(&user_id, source).await?.settings.clone();
        if settings.email.address.as_deref() == Some(&address) && settings.email.enabled {
            let email = EmailSettings { enabled: false, ..settings.email };
            self.put_settings(&user_id, PersonSettings { email, ..settings });
        }
        Ok(())
    }

    fn put_settings(&mut self, user_id: &str, settings: PersonSettings) {
        self.preferences.remove(user_id);
        let person = self.people.get_mut(user_id).expect("a person is loaded before they change");
        person.settings = settings.clone();
        self.changes.settings.insert(user_id.to_owned(), (settings, self.context.now));
    }

    async fn ask_for_confirmation(
        &mut self,
        user_id: &str,
        settings: &PersonSettings,
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
        let target = settings.email.address.clone().unwrap_or_default();
        let delivery = Delivery {
            id: self.context.ids.next(now),
            content: DeliveryContent::ConfirmationCode,
            user_id: user_id.to_owned(),
            channel: Channel::Email,
            target,
            state: DeliveryState::Waiting,
            held_by: None,
            reason: None,
            attempts: 0,
            not_before: now,
            lease_until: None,
            fence: 0,
            mail_id: None,
            created_at: now,
            ended_at: None,
        };
        self.changes.people.deliveries.insert(delivery.id, delivery);
        Ok(())
    }

    /// Stores the hash of the code in a confirmation mail when its attempt starts.
    pub(super) fn keep_code(&mut self, delivery: &Delivery, code: Vec<u8>) {
        let row = ConfirmationRow {
            address: delivery.target.clone(),
            code,
            expires_at: self.context.now.plus(CODE_MS),
            tries: 0,
        };
        self.changes.people.confirmations.insert(delivery.user_id.as_str().into(), Some(row));
    }
}
