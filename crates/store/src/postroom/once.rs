use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{PostRoom, Source};
use crate::command::Once;
use crate::error::{ErrorKind, StoreError};
use crate::rows::OnceRow;

impl PostRoom {
    /// What this call was answered when it was sent before. Commands are carried out one after the other, so a repeat of
    /// one that is still in flight waits for it here without doing anything.
    pub(super) async fn answered<T: DeserializeOwned>(
        &mut self,
        once: Option<&Once>,
        source: &mut impl Source,
    ) -> Result<Option<T>, StoreError> {
        let Some(once) = once else { return Ok(None) };
        let same = |row: &&OnceRow| {
            row.once.token_id == once.token_id && row.once.route == once.route && row.once.key == once.key
        };
        let known = match self.changes.once.iter().find(same).cloned() {
            Some(row) => Some(row),
            None => source.once(once).await?,
        };
        let Some(row) = known.filter(|row| self.desk.now.millis_since(row.at) < Once::KEPT_MS) else { return Ok(None) };
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
        once: Option<&Once>,
        answer: &T,
        about: impl IntoIterator<Item = &'a str>,
    ) {
        if let Some(once) = once {
            let answer = serde_json::to_string(answer).expect("plain data becomes JSON");
            let people = about.into_iter().map(str::to_owned).collect();
            self.changes.once.push(OnceRow { once: once.clone(), answer, people, at: self.desk.now });
        }
    }

    /// What a call was answered under this name.
    pub(crate) async fn known_answer(
        &mut self,
        once: Once,
        source: &mut impl Source,
    ) -> Result<Option<String>, StoreError> {
        self.answered(Some(&once), source).await
    }

    /// Remembers an answer that nothing else depends on, or gives the one that was remembered before.
    pub(crate) async fn answer_once(
        &mut self,
        once: &Once,
        answer: String,
        about: Option<&str>,
        source: &mut impl Source,
    ) -> Result<String, StoreError> {
        if let Some(known) = self.answered(Some(once), source).await? {
            return Ok(known);
        }
        self.remember(Some(once), &answer, about);
        Ok(answer)
    }
}
