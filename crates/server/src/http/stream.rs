use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::sse::{Event as Line, KeepAlive, Sse};
use bellwire_store::{Heard, Hint, HintKind, Hints};
use futures_util::Stream;
use futures_util::stream::{self, StreamExt as _};
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use super::{ApiError, Hub};
use crate::auth::Identity;

/// Proxies close what is silent for longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Hints for a harness: the state now, then what changes. Hints carry ids and counts, never text: only an injection
/// consumes. A reader that is too slow gets the state anew instead of what it missed.
pub(super) async fn stream(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Line, Infallible>>>, ApiError> {
    // Subscribe first: what is committed between the two is told twice rather than never.
    let hints = hub.store.hints(&id);
    let revoked = hub.revoked.subscribe();
    let state = hub.store.connect(identity.caller.clone(), id.clone()).await?;
    let first = stream::iter(state.into_iter().map(Arc::new).collect::<Vec<_>>());
    let live = Live { hub, identity, conversation_id: id, hints, revoked };
    let rest =
        stream::unfold(live, |mut live| async move { live.next().await.map(|hints| (stream::iter(hints), live)) });
    let lines = first.chain(rest.flatten()).map(|hint| Ok(line(&hint)));
    Ok(Sse::new(lines).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

struct Live {
    hub: Hub,
    identity: Identity,
    conversation_id: String,
    hints: Hints,
    revoked: Receiver<String>,
}

impl Live {
    /// The next hints of this conversation; none when the stream ends.
    async fn next(&mut self) -> Option<Vec<Arc<Hint>>> {
        loop {
            tokio::select! {
                heard = self.hints.next() => match heard {
                    Heard::Hint(hint) => return Some(vec![hint]),
                    Heard::Missed => return self.state_anew().await,
                    Heard::Closed => return None,
                },
                token = self.revoked.recv() => match token {
                    Ok(token) if token == self.identity.token_id => return None,
                    Ok(_) => {}
                    Err(_) => return None,
                },
                _ = self.hub.stopping.changed() => return None,
            }
        }
    }

    async fn state_anew(&mut self) -> Option<Vec<Arc<Hint>>> {
        let state = self.hub.store.connect(self.identity.caller.clone(), self.conversation_id.clone()).await.ok()?;
        Some(state.into_iter().map(Arc::new).collect())
    }
}

fn line(hint: &Hint) -> Line {
    let kind = match hint.kind {
        HintKind::Pending => "pending",
        HintKind::Wake => "wake",
        HintKind::Immediate => "immediate",
    };
    let ids: Vec<String> = hint.notifications.iter().map(ToString::to_string).collect();
    let data = json!({ "agent": hint.agent.as_str(), "notifications": ids, "count": hint.count });
    Line::default().event(kind).data(data.to_string())
}
