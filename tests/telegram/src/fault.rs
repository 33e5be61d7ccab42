//! Faults by script: what goes wrong with the next call of a method.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::answer::Answer;

/// What goes wrong with one call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The call is not carried out; this is the answer.
    Status(u16, String),
    /// The call is not carried out; 429 with this `retry_after`, in seconds.
    TooManyRequests(u64),
    /// The call is not carried out; the answer is 200 with a body that is not JSON.
    Garbage,
    /// The connection is closed before the body of the request is read. The call is not carried out.
    CloseUnread,
    /// The call is carried out, and the connection is closed instead of an answer.
    CloseAfterAccepting,
    /// The call is carried out, and its answer comes after this time.
    Delay(Duration),
    /// The call is carried out, and its answer waits for a [`Gate`].
    Hold(Hold),
}

impl Fault {
    /// An error in Telegram's form that is not carried out, such as `(500, "Internal Server Error")`.
    pub fn error(code: u16, description: &str) -> Self {
        Self::Status(code, Answer::error(code, description).into_body())
    }

    /// The answer, where the call is not carried out.
    pub(crate) fn answer(&self) -> Option<(u16, String)> {
        match self {
            Self::Status(code, body) => Some((*code, body.clone())),
            Self::TooManyRequests(seconds) => {
                let answer = Answer::too_many_requests(*seconds);
                Some((answer.status(), answer.into_body()))
            }
            Self::Garbage => Some((200, "<html>\u{0}not JSON".to_owned())),
            _ => None,
        }
    }
}

/// The part of a [`Gate`] that the server waits on.
#[derive(Clone, Debug)]
pub struct Hold(Arc<GateState>);

#[derive(Debug)]
struct GateState {
    reached: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

/// Holds the answer of one call back. It opens when it is dropped.
#[derive(Debug)]
pub struct Gate(Arc<GateState>);

impl Gate {
    pub(crate) fn new() -> (Self, Fault) {
        let state = Arc::new(GateState { reached: watch::channel(false).0, open: watch::channel(false).0 });
        (Self(state.clone()), Fault::Hold(Hold(state)))
    }

    /// Waits until the call was carried out and its answer waits.
    pub async fn reached(&self) {
        // `self` owns the sender, so the channel is open.
        let _ = self.0.reached.subscribe().wait_for(|reached| *reached).await;
    }

    /// Lets the answer go.
    pub fn open(&self) {
        self.0.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl Hold {
    pub(crate) async fn wait(&self) {
        self.0.reached.send_replace(true);
        let _ = self.0.open.subscribe().wait_for(|open| *open).await;
    }
}

/// The faults that are still to come.
#[derive(Default)]
pub(crate) struct Faults(VecDeque<(String, Fault)>);

impl Faults {
    pub(crate) fn push(&mut self, method: &str, fault: Fault) {
        self.0.push_back((method.to_ascii_lowercase(), fault));
    }

    /// Takes the first fault for a method, whose name is in lower case.
    pub(crate) fn take(&mut self, method: &str) -> Option<Fault> {
        let index = self.0.iter().position(|(wanted, _)| wanted == method || wanted == "*")?;
        self.0.remove(index).map(|(_, fault)| fault)
    }
}
