//! Refusals that need no writer, because they were decided before.
//!
//! The order of the checks holds: a call that was made before under the same name gets its first answer even while the
//! hour is full. A call without a name has no first answer. For one with a name the refusal is recalled first and the name
//! looked for afterwards, in committed rows: a refusal is remembered after its commit, so everything that was admitted
//! before it is committed by then and is found; and until its time nothing else is admitted. A name that is found goes to
//! the writer, which knows the answer, and whether it was the same call.

use super::{Reader, SingleWriterStore};
use crate::error::StoreError;
use crate::people::{NotificationDraft, SendResult};

/// No refusal lasts longer. One that says so was written by another clock, and is not believed.
const HOUR_MS: u64 = 60 * 60 * 1000;

impl<R: Reader> SingleWriterStore<R> {
    /// What this call is answered without the writer, if it can be.
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
        if let Some(once) = &draft.once
            && self.reader.is_named(once).await?
        {
            return Ok(None);
        }
        Ok(Some(SendResult::Limited { retry_after_seconds: wait_ms.div_ceil(1000) }))
    }
}
