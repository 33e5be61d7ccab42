//! Refuses calls over the hourly limit without the writer, if the refusal cache knows that the limit is reached.
//!
//! A repeated call must get its first answer even while the limit is reached. So for a call with an idempotency key the
//! refusal cache is read first, and then the key is searched in committed rows. The order matters: a refusal is cached
//! only after its commit, so every call admitted before it is committed too and is found; and until the refusal ends no
//! other call is admitted. A call whose key is found goes to the writer, which compares the request and replays the
//! answer.

use super::{Reader, SingleWriterStore};
use crate::error::StoreError;
use crate::people::{NotificationDraft, SendResult};

/// The longest refusal. A longer one was written with another clock and is ignored.
const HOUR_MS: u64 = 60 * 60 * 1000;

impl<R: Reader> SingleWriterStore<R> {
    /// The answer to this call without the writer, if the limit is known to be reached.
    pub(super) async fn refused_before(&self, draft: &NotificationDraft) -> Result<Option<SendResult>, StoreError> {
        let caller = &draft.caller;
        let speaks_for = caller.user_id.as_deref().is_none_or(|own| own == draft.user_id);
        let speaks_in = draft.conversation_id.as_deref().is_none_or(|id| caller.may_see(id, &draft.user_id));
        let quota = self.writer.rules.quota(draft).filter(|_| speaks_for && speaks_in);
        let Some(quota) = quota else { return Ok(None) };
        let Some(until) = self.writer.refusals.until(&quota).await else { return Ok(None) };
        let wait_ms = until.millis_since(self.writer.clock.now());
        if !(1..=HOUR_MS).contains(&wait_ms) {
            return Ok(None);
        }
        if let Some(idempotency_key) = &draft.idempotency_key
            && self.reader.has_idempotency_row(idempotency_key).await?
        {
            return Ok(None);
        }
        Ok(Some(SendResult::Limited { retry_after_seconds: wait_ms.div_ceil(1000) }))
    }
}
