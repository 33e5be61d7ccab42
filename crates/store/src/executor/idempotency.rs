use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::{Executor, RowSource};
use crate::command::IdempotencyKey;
use crate::error::{ErrorKind, StoreError};
use crate::rows::IdempotencyRow;

impl Executor {
    /// The stored answer of an earlier call with this key. The writer runs commands one after the other, so the repeat
    /// of a call in the queue is decided after that call.
    pub(super) async fn remembered_answer<T: DeserializeOwned>(
        &mut self,
        idempotency_key: Option<&IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<Option<T>, StoreError> {
        let Some(key) = idempotency_key else { return Ok(None) };
        let same = |row: &&IdempotencyRow| {
            row.key.token_id == key.token_id && row.key.route == key.route && row.key.key == key.key
        };
        let known = match self.changes.idempotency_rows.iter().find(same).cloned() {
            Some(row) => Some(row),
            None => source.idempotency_row(key).await?,
        };
        let Some(row) = known.filter(|row| self.context.now.millis_since(row.at) < IdempotencyKey::KEPT_MS) else {
            return Ok(None);
        };
        if row.key.content != key.content {
            let message = format!("the Idempotency-Key '{}' was used for another request; use a new one", key.key);
            return Err(StoreError::new(ErrorKind::Conflict, message));
        }
        serde_json::from_str(&row.answer).map(Some).map_err(|error| unreadable(&key.key, &error))
    }

    /// Stores a successful answer in the same commit. It is deleted when any of the people in `about` is erased.
    pub(super) fn remember<'a, T: Serialize>(
        &mut self,
        idempotency_key: Option<&IdempotencyKey>,
        answer: &T,
        about: impl IntoIterator<Item = &'a str>,
    ) {
        if let Some(key) = idempotency_key {
            let answer = serde_json::to_string(answer).expect("plain data becomes JSON");
            let people = about.into_iter().map(str::to_owned).collect();
            self.changes.idempotency_rows.push(IdempotencyRow {
                key: key.clone(),
                answer,
                people,
                at: self.context.now,
            });
        }
    }

    /// The stored answer of this key, as text.
    pub(crate) async fn known_answer(
        &mut self,
        idempotency_key: IdempotencyKey,
        source: &mut impl RowSource,
    ) -> Result<Option<String>, StoreError> {
        self.remembered_answer(Some(&idempotency_key), source).await
    }

    /// Returns the stored answer of this key, or stores this one. For calls that write nothing else.
    pub(crate) async fn answer_once(
        &mut self,
        idempotency_key: &IdempotencyKey,
        answer: String,
        about: Option<&str>,
        source: &mut impl RowSource,
    ) -> Result<String, StoreError> {
        if let Some(known) = self.remembered_answer(Some(idempotency_key), source).await? {
            return Ok(known);
        }
        self.remember(Some(idempotency_key), &answer, about);
        Ok(answer)
    }
}

/// The error for a remembered answer that this version cannot read. The request was carried out, and must not be again.
fn unreadable(key: &str, error: &serde_json::Error) -> StoreError {
    match error.classify() {
        // Other versions may remember an answer in another format.
        Category::Data => {
            let message = format!(
                "the request with the Idempotency-Key '{key}' was carried out by another version of the hub, whose answer \
                 cannot be read; it was not carried out again: look at its effect, and use a new key for another request"
            );
            StoreError::new(ErrorKind::Conflict, message)
        }
        Category::Io | Category::Syntax | Category::Eof => {
            StoreError::new(ErrorKind::Damaged, "a remembered answer is damaged")
        }
    }
}
