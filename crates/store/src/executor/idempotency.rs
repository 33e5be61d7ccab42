use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Executor, RowSource};
use crate::command::IdempotencyKey;
use crate::error::{ErrorKind, StoreError};
use crate::rows::IdempotencyRow;

impl Executor {
    /// What this call was answered when it was sent before. Commands are carried out one after the other, so a repeat of
    /// one that is still in flight waits for it here without doing anything.
    pub(super) async fn remembered_answer<T: DeserializeOwned>(
        &mut self,
        once: Option<&IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<Option<T>, StoreError> {
        let Some(once) = once else { return Ok(None) };
        let same = |row: &&IdempotencyRow| {
            row.once.token_id == once.token_id && row.once.route == once.route && row.once.key == once.key
        };
        let known = match self.changes.once.iter().find(same).cloned() {
            Some(row) => Some(row),
            None => source.once(once).await?,
        };
        let Some(row) = known.filter(|row| self.context.now.millis_since(row.at) < IdempotencyKey::KEPT_MS) else {
            return Ok(None);
        };
        if row.once.content != once.content {
            let message = format!("the Idempotency-Key '{}' was used for another request; use a new one", once.key);
            return Err(StoreError::new(ErrorKind::Conflict, message));
        }
        let answer = serde_json::from_str(&row.answer);
        answer.map(Some).map_err(|_| StoreError::new(ErrorKind::Damaged, "a remembered answer is damaged"))
    }

    /// Remembers a success in the commit that makes it one, until those it is about are erased.
    pub(super) fn remember<'a, T: Serialize>(
        &mut self,
        once: Option<&IdempotencyKey>,
        answer: &T,
        about: impl IntoIterator<Item = &'a str>,
    ) {
        if let Some(once) = once {
            let answer = serde_json::to_string(answer).expect("plain data becomes JSON");
            let people = about.into_iter().map(str::to_owned).collect();
            self.changes.once.push(IdempotencyRow { once: once.clone(), answer, people, at: self.context.now });
        }
    }

    /// What a call was answered under this name.
    pub(crate) async fn known_answer(
        &mut self,
        once: IdempotencyKey,
        source: &mut impl RowSource,
    ) -> Result<Option<String>, StoreError> {
        self.remembered_answer(Some(&once), source).await
    }

    /// Remembers an answer that nothing else depends on, or gives the one that was remembered before.
    pub(crate) async fn answer_once(
        &mut self,
        once: &IdempotencyKey,
        answer: String,
        about: Option<&str>,
        source: &mut impl RowSource,
    ) -> Result<String, StoreError> {
        if let Some(known) = self.remembered_answer(Some(once), source).await? {
            return Ok(known);
        }
        self.remember(Some(once), &answer, about);
        Ok(answer)
    }
}
