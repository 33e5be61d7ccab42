//! Pairs a chat with a person by a code, and ends the pairing.

use bellwire_core::Time;
use bellwire_core::person::{ChannelName, ChannelSettings};

use super::super::people::{HOUR_MS, InboxDraft};
use crate::chats::{ChatKey, CodeRow, Pairing, StrangerRow, UpdateOutcome};
use crate::command::IdempotencyKey;
use crate::error::{ErrorKind, StoreError};
use crate::executor::{Executor, RowSource};

/// How long a code is valid.
const CODE_MS: u64 = 10 * 60 * 1000;
/// How many wrong codes a chat may send within an hour.
const WRONG_CODES_MAX: i64 = 5;
/// How long a stranger is not answered again.
const ANSWER_MS: u64 = 24 * HOUR_MS;
/// How many strangers are remembered. Further ones get no answer until older ones are deleted, after a day.
const STRANGERS_MAX: usize = 10_000;

impl Executor {
    /// Stores the hash of a code. Returns when it ends.
    pub(crate) async fn put_pairing_code(
        &mut self,
        user_id: String,
        channel: ChannelName,
        code: Vec<u8>,
        idempotency_key: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<Time, StoreError> {
        if self.remembered_answer::<()>(idempotency_key.as_ref(), source).await?.is_some() {
            let message = "this call made a code before; it cannot be shown again, ask for another one";
            return Err(StoreError::new(ErrorKind::Conflict, message));
        }
        self.erasing.check(&user_id)?;
        let expires_at = self.context.now.plus(CODE_MS);
        self.remember(idempotency_key.as_ref(), &(), [&*user_id]);
        let codes = &mut self.changes.people.chats.codes;
        let is_older =
            |row: &Option<CodeRow>| row.as_ref().is_some_and(|row| row.user_id == user_id && row.channel == channel);
        codes.values_mut().filter(|row| is_older(row)).for_each(|row| *row = None);
        codes.insert(code, Some(CodeRow { channel, user_id, expires_at }));
        Ok(expires_at)
    }

    pub(super) async fn pair(
        &mut self,
        chat: ChatKey,
        sender: String,
        pairing: Option<Pairing>,
        code: Vec<u8>,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let stranger = self.stranger(&chat, source).await?;
        let wrong_codes = stranger.as_ref().map_or(0, |row| self.wrong_codes(row));
        let known = self.pairing_code(&code, source).await?;
        let known = known.filter(|row| row.channel == chat.channel && row.expires_at > self.context.now);
        let Some(row) = known.filter(|_| wrong_codes < WRONG_CODES_MAX) else {
            return self.count_wrong_code(chat, pairing.is_some(), stranger, wrong_codes, source).await;
        };
        self.erasing.check(&row.user_id)?;
        if pairing.is_some_and(|pairing| pairing.user_id != row.user_id) {
            return Ok(UpdateOutcome::Taken);
        }
        let earlier = self.pairing_of(&row.user_id, &chat.channel, source).await?;
        let replaced = earlier.map(|earlier| earlier.chat).filter(|earlier| *earlier != chat);
        let mut settings = self.person(&row.user_id, source).await?.settings.clone();
        let (user_id, target) = (row.user_id, Some(chat.target.clone()));
        settings.channels.insert(chat.channel.clone(), ChannelSettings { enabled: true, target, verified: true });
        self.put_settings(&user_id, settings);
        let chats = &mut self.changes.people.chats;
        chats.codes.insert(code, None);
        chats.pairings.extend(replaced.iter().map(|earlier| (earlier.clone(), None)));
        let paired_at = self.context.now;
        let pairing = Pairing { chat: chat.clone(), user_id: user_id.clone(), sender, paired_at };
        chats.pairings.insert(chat, Some(pairing));
        Ok(UpdateOutcome::Paired { user_id, replaced: replaced.map(|earlier| earlier.target) })
    }

    /// Decides whether to answer a chat that belongs to no person.
    pub(super) async fn meet_stranger(
        &mut self,
        chat: ChatKey,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let now = self.context.now;
        let known = self.stranger(&chat, source).await?;
        let answered_at = known.as_ref().and_then(|row| row.answered_at);
        if self.is_recent_answer(answered_at) || (known.is_none() && source.has_strangers(STRANGERS_MAX).await?) {
            return Ok(UpdateOutcome::Stranger { is_answered: false });
        }
        let row = known.unwrap_or(StrangerRow { seen_at: now, answered_at, wrong_codes: 0, wrong_since: now });
        let row = StrangerRow { seen_at: now, answered_at: Some(now), ..row };
        self.changes.people.chats.strangers.insert(chat, row);
        Ok(UpdateOutcome::Stranger { is_answered: true })
    }

    /// Switches the channel on again.
    pub(super) async fn start_chat(
        &mut self,
        pairing: &Pairing,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        self.change_channel(pairing, source, |settings| settings.enabled = true).await?;
        Ok(UpdateOutcome::Started)
    }

    pub(super) async fn stop_chat(
        &mut self,
        pairing: &Pairing,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        self.change_channel(pairing, source, |settings| *settings = ChannelSettings::default()).await?;
        self.changes.people.chats.pairings.insert(pairing.chat.clone(), None);
        Ok(UpdateOutcome::Stopped)
    }

    /// Switches the channel off and adds a note to the inbox, because nothing can be sent any more.
    pub(super) async fn block_chat(
        &mut self,
        pairing: &Pairing,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let (user_id, channel) = (&pairing.user_id, &pairing.chat.channel);
        self.person(user_id, source).await?;
        if self.switch_off(user_id, channel, &pairing.chat.target) {
            let name = self.rules.display_name(channel);
            let text = format!(
                "{name} is off now, because you blocked the bot there. Unblock it and send /start to get notifications on {name} again."
            );
            // Notes have no hourly limit, so it is always admitted.
            let _ = self.admit(InboxDraft::note(user_id, None, text), source).await?;
        }
        Ok(UpdateOutcome::Blocked)
    }

    /// Mutes the origin of a message, or lists what is muted.
    pub(super) async fn mute(
        &mut self,
        pairing: &Pairing,
        message_id: Option<i64>,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let user_id = &pairing.user_id;
        let mut settings = self.person(user_id, source).await?.settings.clone();
        let Some(message_id) = message_id else {
            return Ok(UpdateOutcome::MutedOrigins { user_id: user_id.clone(), muted: settings.muted_origins });
        };
        let message = self.message_in_chat(&pairing.chat, message_id, source).await?;
        let message = message.filter(|row| row.message.user_id == *user_id);
        let Some(origin) = message.and_then(|row| row.message.origin) else {
            return Ok(UpdateOutcome::NothingToMute);
        };
        if !settings.mutes(&origin) {
            settings.mute(&origin).map_err(|invalid| StoreError::invalid(invalid.field, invalid.message))?;
            self.put_settings(user_id, settings);
        }
        Ok(UpdateOutcome::Muted { origin })
    }

    async fn change_channel(
        &mut self,
        pairing: &Pairing,
        source: &mut impl RowSource,
        change: impl FnOnce(&mut ChannelSettings),
    ) -> Result<(), StoreError> {
        let mut settings = self.person(&pairing.user_id, source).await?.settings.clone();
        // The settings may have another target by now.
        let channel = settings.channels.entry(pairing.chat.channel.clone()).or_default();
        if channel.target.as_ref() == Some(&pairing.chat.target) {
            change(channel);
            self.put_settings(&pairing.user_id, settings);
        }
        Ok(())
    }

    /// Counts a wrong code. The first one beyond the limit is told so, further ones get no answer.
    async fn count_wrong_code(
        &mut self,
        chat: ChatKey,
        is_paired: bool,
        stranger: Option<StrangerRow>,
        wrong_codes: i64,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let now = self.context.now;
        if stranger.is_none() && source.has_strangers(STRANGERS_MAX).await? {
            return Ok(UpdateOutcome::TooManyCodes { is_answered: false });
        }
        let answered_at = stranger.as_ref().and_then(|row| row.answered_at);
        let is_answered = is_paired || !self.is_recent_answer(answered_at);
        let answered_at = if is_answered && !is_paired { Some(now) } else { answered_at };
        let wrong_since = stranger.filter(|_| wrong_codes > 0).map_or(now, |row| row.wrong_since);
        let row = StrangerRow { seen_at: now, answered_at, wrong_codes: wrong_codes + 1, wrong_since };
        self.changes.people.chats.strangers.insert(chat, row);
        Ok(match wrong_codes {
            count if count < WRONG_CODES_MAX => UpdateOutcome::WrongCode { is_answered },
            count => UpdateOutcome::TooManyCodes { is_answered: is_answered && count == WRONG_CODES_MAX },
        })
    }

    /// Whether a chat that belongs to no person has had its answer of the day.
    fn is_recent_answer(&self, answered_at: Option<Time>) -> bool {
        answered_at.is_some_and(|at| self.context.now.millis_since(at) < ANSWER_MS)
    }

    /// The wrong codes within the current hour.
    fn wrong_codes(&self, row: &StrangerRow) -> i64 {
        if self.context.now.millis_since(row.wrong_since) < HOUR_MS { row.wrong_codes } else { 0 }
    }

    async fn stranger(&self, chat: &ChatKey, source: &mut impl RowSource) -> Result<Option<StrangerRow>, StoreError> {
        match self.changes.people.chats.strangers.get(chat) {
            Some(row) => Ok(Some(row.clone())),
            None => source.stranger(chat).await,
        }
    }

    async fn pairing_code(&self, code: &[u8], source: &mut impl RowSource) -> Result<Option<CodeRow>, StoreError> {
        let codes = &self.changes.people.chats.codes;
        if let Some(row) = codes.get(code) {
            return Ok(row.clone());
        }
        let stored = source.pairing_code(code).await?;
        // A newer code of the same person replaces it.
        let is_newer =
            |row: &&CodeRow, stored: &CodeRow| row.user_id == stored.user_id && row.channel == stored.channel;
        Ok(stored.filter(|stored| !codes.values().flatten().any(|row| is_newer(&row, stored))))
    }

    async fn pairing_of(
        &self,
        user_id: &str,
        channel: &ChannelName,
        source: &mut impl RowSource,
    ) -> Result<Option<Pairing>, StoreError> {
        let fresh = &self.changes.people.chats.pairings;
        let is_theirs = |row: &&Pairing| row.user_id == user_id && row.chat.channel == *channel;
        if let Some(row) = fresh.values().flatten().find(is_theirs) {
            return Ok(Some(row.clone()));
        }
        Ok(source.pairing_of(user_id, channel).await?.filter(|row| !fresh.contains_key(&row.chat)))
    }
}
