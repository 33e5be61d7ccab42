//! Asks the hub for the notifications that are added to a result, and reports how tools ended.
//!
//! A result waits for the hub at most its `timeout`. After a failure the hub is left alone for a while, so that a hub which
//! is away delays one result and not each of them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::calls::EndedCall;
use super::hub::HubError;
use super::recipient::{Finder, Recipient, Search};
use super::report::Reports;
use crate::client::{conversation_path, with_query};
use crate::hook::exchange::{FIXED_LINE, TOKENS_MAX};
use crate::hook::notes::{self, LeftOver, Notes, PendingCall};
use crate::output::warn;

/// At most so many results wait for the hub at once. What ends beyond is only reported: one of those that wait brings the news.
const ASKING_MAX: usize = 4;
/// How long the hub is left alone after its first failure in a row; doubled by each further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// At most so many different reasons are told.
const REASONS_MAX: usize = 8;

pub(super) struct News {
    finder: Finder,
    asking: Semaphore,
    reports: Reports,
    pause: Mutex<Pause>,
    told: Mutex<HashSet<String>>,
    /// The conversations whose model was told its boundary, where no hook notes it.
    introduced: Mutex<HashSet<String>>,
    minted: AtomicU64,
}

#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    failures: u32,
}

/// Notifications that a result carries to the client.
#[derive(Default)]
pub(super) struct Addition {
    pub(super) text: String,
    pending: Option<PendingCall>,
    introduced: Option<Introduced>,
}

enum Introduced {
    InNotes(Notes),
    Here(Arc<News>, String),
}

impl News {
    pub(super) fn start(search: Search) -> Arc<Self> {
        let (reports, queue) = Reports::new();
        let news = Arc::new(Self {
            finder: Finder::new(search),
            asking: Semaphore::new(ASKING_MAX),
            reports,
            pause: Mutex::default(),
            told: Mutex::default(),
            introduced: Mutex::default(),
            minted: AtomicU64::new(0),
        });
        tokio::spawn(queue.work_off(Arc::downgrade(&news)));
        news
    }

    /// Reports the call and returns what waits for the agent. `received` is when the result came.
    pub(super) async fn take(self: &Arc<Self>, ended: &EndedCall, received: Instant) -> Option<Addition> {
        if self.is_paused() {
            return None;
        }
        let Ok(_permit) = self.asking.try_acquire() else {
            self.report(ended.clone());
            return None;
        };
        let answer = self.recipient_and_ask(ended, received).await;
        match answer {
            Ok(found) => found,
            Err(reason) => {
                self.failed(&reason);
                None
            }
        }
    }

    async fn recipient_and_ask(self: &Arc<Self>, ended: &EndedCall, received: Instant) -> Result<Option<Addition>> {
        let in_time = (received + self.finder.timeout()).into();
        let found = timeout_at(in_time, self.recipient(ended)).await.map_err(|_| too_slow())?;
        // In a session with hooks, the hook of the same call brings the news, to the sub-agent or agent that made it.
        let Some(recipient) = found?.filter(|recipient| !recipient.has_hooks) else { return Ok(None) };
        let in_time = (received + recipient.hub.timeout).into();
        let answer = timeout_at(in_time, self.ask(recipient, ended)).await.map_err(|_| too_slow())?;
        self.answered();
        answer
    }

    /// Reports a call to whose end nothing can be added. The report is sent later.
    pub(super) fn report(&self, ended: EndedCall) {
        if ended.is_news && !self.is_paused() {
            self.reports.push(ended);
        }
    }

    /// Waits until the reports are sent, or for so long as a result may wait.
    pub(super) async fn finish(&self) {
        let _ = tokio::time::timeout(self.finder.timeout(), self.reports.finish()).await;
    }

    /// The agent of a call; `None` if it was silenced.
    pub(super) async fn recipient(&self, ended: &EndedCall) -> Result<Option<Recipient>> {
        let recipient = self.finder.find(ended.client.as_deref(), ended.thread.as_deref()).await?;
        Ok(Some(recipient).filter(|recipient| !notes::is_paused(&recipient.conversation)))
    }

    /// The hub answers: the next failure is the first one again.
    pub(super) fn answered(&self) {
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = Pause::default();
    }

    /// The hub cannot be asked. It is left alone for a while, and the reason is told once.
    pub(super) fn failed(&self, reason: &anyhow::Error) {
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that failed together count as one failure.
        if pause.until.is_none_or(|until| until < Instant::now()) {
            pause.until = Some(Instant::now() + (PAUSE_MIN * 2_u32.pow(pause.failures.min(5))).min(PAUSE_MAX));
            pause.failures += 1;
        }
        drop(pause);
        self.tell_once(format!("{reason:#}"));
    }

    async fn ask(self: &Arc<Self>, recipient: Recipient, ended: &EndedCall) -> Result<Option<Addition>> {
        let notes = Notes::of(&recipient.conversation, &recipient.agent);
        let call_id = self.mint();
        let left_over = notes.as_ref().map(Notes::left_over).unwrap_or_default();
        let pending = notes.as_ref().and_then(|notes| notes.begin(&call_id));
        let body = request(&recipient, ended, &call_id, &left_over);
        let path = conversation_path(&recipient.conversation, "/inject", recipient.user.as_deref());
        let answer = match recipient.hub.call(Method::POST, &path, Some(&body)).await {
            Ok(answer) => answer,
            Err(error) => {
                if error.is_certain {
                    pending.into_iter().for_each(PendingCall::done);
                }
                return Err(self.refused(error));
            }
        };
        left_over.into_iter().for_each(LeftOver::done);
        let block = answer["block"].as_str().unwrap_or_default();
        if block.is_empty() {
            pending.into_iter().for_each(PendingCall::done);
            return Ok(None);
        }
        let (paragraph, introduced) = self.introduction(&recipient, notes).await;
        Ok(Some(Addition { text: format!("{FIXED_LINE}\n{paragraph}{block}"), pending, introduced }))
    }

    /// The paragraph that explains the block, if the model may not know it. A block without it is better than none.
    async fn introduction(
        self: &Arc<Self>,
        recipient: &Recipient,
        notes: Option<Notes>,
    ) -> (String, Option<Introduced>) {
        // The notes of a harness's session last as long as its context; elsewhere that is not known.
        let introduced = match notes.filter(|_| recipient.host.is_some()) {
            Some(notes) if notes.is_introduced() => return (String::new(), None),
            Some(notes) => Introduced::InNotes(notes),
            None if self.introduced().contains(&recipient.conversation) => return (String::new(), None),
            None => Introduced::Here(self.clone(), recipient.conversation.clone()),
        };
        let query = [("agent", Some(recipient.agent.as_str())), ("user_id", recipient.user.as_deref())];
        let path = with_query(&conversation_path(&recipient.conversation, "/system_prompt", None), &query);
        match recipient.hub.call(Method::GET, &path, None).await {
            Ok(answer) if answer["system_prompt"].is_string() => {
                let paragraph = answer["system_prompt"].as_str().unwrap_or_default();
                (format!("{paragraph}\n\n"), Some(introduced))
            }
            _ => (String::new(), None),
        }
    }

    fn introduced(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.introduced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason of an error. A token that is refused is read again.
    pub(super) fn refused(&self, error: HubError) -> anyhow::Error {
        if error.is_unauthorized {
            self.finder.forget_tokens();
        }
        error.reason
    }

    fn is_paused(&self) -> bool {
        let pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        pause.until.is_some_and(|until| Instant::now() < until)
    }

    /// Standard error may not be read: it must not hold up a message.
    fn tell_once(&self, reason: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < REASONS_MAX && told.insert(reason.clone()) {
            std::thread::spawn(move || warn(&format!("bellwire wrap adds no notifications: {reason}")));
        }
    }

    fn mint(&self) -> String {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        format!("wrap-{:x}-{nanos:x}-{:x}", std::process::id(), self.minted.fetch_add(1, Ordering::Relaxed))
    }
}

fn too_slow() -> anyhow::Error {
    anyhow!("the hub does not answer in time")
}

fn request(recipient: &Recipient, ended: &EndedCall, call_id: &str, left_over: &[LeftOver]) -> Value {
    // Without hooks there is no other point at which the agent could be told.
    let mut body =
        json!({ "point": "turn_start", "call_id": call_id, "agent": recipient.agent, "max_tokens": TOKENS_MAX });
    if !left_over.is_empty() {
        body["unseen"] = left_over.iter().map(|left| left.call_id.as_str()).collect();
    }
    if ended.is_news {
        body["observed"] = ended.tool.observed();
    }
    body
}

impl Addition {
    /// The client has the text.
    pub(super) fn written(self) {
        match self.introduced {
            Some(Introduced::InNotes(notes)) => notes.set_introduced(true),
            Some(Introduced::Here(news, conversation)) => {
                news.introduced().insert(conversation);
            }
            None => {}
        }
        self.pending.into_iter().for_each(PendingCall::done);
    }
}
