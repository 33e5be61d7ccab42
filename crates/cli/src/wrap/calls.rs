//! The requests of one client that its server has not answered yet.
//!
//! It reads both directions and never changes a message. A tool call ends by its response, by the client's cancellation, or
//! by the end of the server.

mod request;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::message::{elements, fields, id_key, messages, offset, string};
use super::splice::Place;
use crate::hook::call::{Outcome, ToolCall};
use request::{ToolRequest, client_name};

/// Beyond this number of unanswered requests, further ones pass without being watched.
const PENDING_MAX: usize = 4096;
/// In bytes. A request with a longer id is not watched.
const ID_MAX: usize = 1024;
/// A client that shows its model `structuredContent` instead of `content`.
const CODEX_CLIENT: &str = "codex-mcp-client";

#[derive(Default)]
pub(super) struct Calls {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pending: HashMap<String, Pending>,
    client: Option<String>,
}

struct Pending {
    /// The id as the client wrote it.
    id: String,
    begun: Instant,
    /// When the client or the server last said something of it.
    heard: Instant,
    call: Option<ToolRequest>,
}

/// A tool call that has ended, as far as it is known here.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EndedCall {
    pub(super) tool: ToolCall,
    /// The session that called, where the harness says it in each call.
    pub(super) thread: Option<String>,
    /// The name of the client.
    pub(super) client: Option<String>,
    /// Where notifications can be added; `None` if the client's model would not see them.
    pub(super) place: Option<Place>,
    /// False if the outcome was reported before.
    pub(super) is_news: bool,
}

/// A request that will not be answered.
pub(super) struct Abandoned {
    /// The id as the client wrote it.
    pub(super) id: String,
    pub(super) call: Option<EndedCall>,
}

impl Calls {
    /// Reads a text of the client; returns the tool calls that it cancels.
    pub(super) fn client_said(&self, text: &str, now: Instant) -> Vec<EndedCall> {
        let mut state = self.state();
        messages(text).into_iter().filter_map(|message| state.client_said(message, now)).collect()
    }

    /// Reads a text of the server; returns the tool calls that it answers.
    pub(super) fn server_said(&self, text: &str, now: Instant) -> Vec<EndedCall> {
        let mut state = self.state();
        let ended = |message: &str| state.server_said(message, now).map(|call| (offset(text, message), call));
        let ended: Vec<(usize, EndedCall)> = messages(text).into_iter().filter_map(ended).collect();
        ended
            .into_iter()
            .map(|(by, call)| EndedCall { place: call.place.map(|place| place.moved(by)), ..call })
            .collect()
    }

    /// The tool calls that nothing was heard of for so long. Each is returned once; its answer may still come.
    pub(super) fn overdue(&self, limit: Duration, now: Instant) -> Vec<EndedCall> {
        let mut state = self.state();
        let client = state.client.clone();
        let late = state.pending.values_mut().filter(|pending| now.duration_since(pending.heard) >= limit);
        let each = late.filter_map(|pending| {
            let call = pending.call.as_mut().filter(|call| !call.is_reported)?;
            call.is_reported = true;
            let error = format!("no answer within {} s", limit.as_secs());
            Some(call.ended(Outcome::Timeout, Some(error), now - pending.begun, client.clone()))
        });
        each.collect()
    }

    /// Whether one of these requests, in the form of [`id_key`], has no answer yet.
    pub(super) fn is_any_open(&self, ids: &[String]) -> bool {
        let state = self.state();
        ids.iter().any(|id| state.pending.contains_key(id))
    }

    /// The server will not answer these requests, or none any more.
    pub(super) fn abandon(&self, ids: Option<&[String]>, why: &str, now: Instant) -> Vec<Abandoned> {
        let mut state = self.state();
        let client = state.client.clone();
        let is_meant = |id: &String| ids.is_none_or(|ids| ids.contains(id));
        let all: Vec<(String, Pending)> = state.pending.extract_if(|id, _| is_meant(id)).collect();
        let each = all.into_iter().map(|(_, pending)| pending).map(|pending| {
            let took = now - pending.begun;
            let call = pending.call.filter(|call| !call.is_reported);
            let call = call.map(|call| call.ended(Outcome::Failure, Some(why.to_owned()), took, client.clone()));
            Abandoned { id: pending.id, call }
        });
        each.collect()
    }

    /// A message of the server passed that was too long to be read: it may have answered any of the requests.
    pub(super) fn forget_all(&self) {
        self.state().pending.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn client_said(&mut self, message: &str, now: Instant) -> Option<EndedCall> {
        let [id, method, params] = fields(message, ["id", "method", "params"])?;
        let method = string(method)?;
        let Some(id) = id else { return self.notified(&method, params?, now) };
        if let Some(name) = client_name(&method, params) {
            self.client = Some(name);
        }
        let key = id_key(id).filter(|_| id.len() <= ID_MAX && self.pending.len() < PENDING_MAX)?;
        let call = params.filter(|_| method == "tools/call").and_then(ToolRequest::read);
        self.pending.insert(key, Pending { id: id.to_owned(), begun: now, heard: now, call });
        None
    }

    fn notified(&mut self, method: &str, params: &str, now: Instant) -> Option<EndedCall> {
        if method != "notifications/cancelled" {
            return None;
        }
        let [id, reason] = fields(params, ["requestId", "reason"])?;
        let pending = self.pending.remove(&id_key(id?)?)?;
        let call = pending.call.filter(|call| !call.is_reported)?;
        let reason = string(reason).map(|reason| format!(": {reason}")).unwrap_or_default();
        let error = format!("the client cancelled the call{reason}");
        Some(call.ended(Outcome::Timeout, Some(error), now - pending.begun, self.client.clone()))
    }

    fn server_said(&mut self, message: &str, now: Instant) -> Option<EndedCall> {
        let [id, method, result, error, params] = fields(message, ["id", "method", "result", "error", "params"])?;
        if let Some(method) = string(method) {
            if method == "notifications/progress" {
                self.progressed(params?, now);
            }
            return None;
        }
        let pending = self.pending.remove(&id_key(id?)?)?;
        let (call, took) = (pending.call?, now - pending.begun);
        match (result, error) {
            (Some(result), _) => self.with_result(call, result, message, took),
            (None, Some(error)) => {
                let text = fields(error, ["message"]).and_then(|[text]| string(text)).unwrap_or_default();
                let is_news = !call.is_reported;
                let ended = call.ended(Outcome::of_error(&text), Some(text), took, self.client.clone());
                Some(EndedCall { is_news, ..ended })
            }
            (None, None) => None,
        }
    }

    /// A result without content is not the tool's: the server has made a task of the call, or asks the client first.
    fn with_result(&self, call: ToolRequest, result: &str, message: &str, took: Duration) -> Option<EndedCall> {
        let names = ["content", "isError", "structuredContent", "resultType"];
        let [content, is_error, structured, kind] = fields(result, names)?;
        if string(kind).is_some_and(|kind| kind != "complete") {
            return None;
        }
        let structured = structured.filter(|value| *value != "null");
        let place = content.and_then(|content| Place::at_end_of(content, message));
        if place.is_none() && structured.is_none() {
            return None;
        }
        let (outcome, error) = match is_error == Some("true") {
            true => {
                let text = content.and_then(first_text).unwrap_or_default();
                (Outcome::of_error(&text), Some(text))
            }
            false => (Outcome::Success, None),
        };
        let is_hidden = structured.is_some() && self.client.as_deref() == Some(CODEX_CLIENT);
        let is_news = !call.is_reported;
        let ended = call.ended(outcome, error, took, self.client.clone());
        Some(EndedCall { place: place.filter(|_| !is_hidden), is_news, ..ended })
    }

    fn progressed(&mut self, params: &str, now: Instant) {
        let token = fields(params, ["progressToken"]).and_then(|[token]| id_key(token?));
        let is_its = |pending: &&mut Pending| {
            token.is_some() && pending.call.as_ref().is_some_and(|call| call.progress_token == token)
        };
        if let Some(pending) = self.pending.values_mut().find(is_its) {
            pending.heard = now;
        }
    }
}

/// The first text of a result's content, for the report of a failure.
fn first_text(content: &str) -> Option<String> {
    elements(content)?.into_iter().find_map(|block| fields(block, ["text"]).and_then(|[text]| string(text)))
}

#[cfg(test)]
mod tests;
