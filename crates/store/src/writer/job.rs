use std::sync::Arc;

use bellwire_core::event::AgentName;
use bellwire_core::render::Boundary;
use bellwire_core::subscriber::Subscribers;

use super::STEP_WORK;
use crate::RetentionCutoffs;
use crate::command::{
    Caller, ConversationDetails, ConversationView, Hint, IdempotencyKey, InjectCommand, InjectResult, Receipt, Seen,
    Token,
};
use crate::error::StoreError;
use crate::executor::{MailboxSummary, Publishing};
use crate::people::PeopleCommand;
use crate::reply::PendingReply;
use crate::rows::MailboxKey;

/// A command for the writer, with its reply.
pub(crate) enum Job {
    Publish(Box<Publishing>, PendingReply<Vec<Receipt>>),
    Inject(Box<InjectCommand>, PendingReply<InjectResult>),
    PutConversation(Caller, String, String, ConversationDetails, PendingReply<ConversationView>),
    Conversation(Caller, String, PendingReply<ConversationView>),
    /// What a page of conversations says of their mailboxes.
    Summaries(Vec<MailboxKey>, PendingReply<Vec<MailboxSummary>>),
    Connect(Caller, String, Seen, PendingReply<Vec<Hint>>),
    Boundary(Caller, String, AgentName, PendingReply<Boundary>),
    Rotate(Caller, String, AgentName, Option<IdempotencyKey>, PendingReply<Boundary>),
    People(PeopleCommand),
    PutToken(Box<Token>, Option<IdempotencyKey>, PendingReply<()>),
    AnswerOnce(IdempotencyKey, String, Option<String>, PendingReply<String>),
    EraseUser(String, PendingReply<()>),
    Prune(RetentionCutoffs, usize, PendingReply<usize>),
    /// Answers whether there may be more that is due.
    Tick(PendingReply<bool>),
    SetSubscribers(Arc<Subscribers>, PendingReply<()>),
    Check(PendingReply<()>),
    Close(PendingReply<()>),
}

impl Job {
    /// The command is not added to a commit that already has this much work. Large commands share a commit only with
    /// little work.
    pub(super) fn shares_up_to(&self) -> usize {
        match self {
            Self::Publish(publishing, _) if publishing.is_large() => STEP_WORK / 3,
            // A message with a thousand notifications is most of a step.
            Self::People(PeopleCommand::Claim { .. }) => STEP_WORK / 10,
            // It takes back answers with hundreds of notifications each.
            Self::Inject(command, _) if !command.unseen.is_empty() => STEP_WORK / 10,
            Self::Tick(_) => STEP_WORK / 10,
            _ => STEP_WORK,
        }
    }

    /// Whether its answer is decided. A publish or an injection that has staged only a part of its work has none yet.
    pub(super) fn has_answer(&self) -> bool {
        match self {
            Self::Publish(_, reply) => reply.is_held(),
            Self::Inject(_, reply) => reply.is_held(),
            _ => true,
        }
    }

    /// Sends the answer after the commit.
    pub(super) fn answer(self, committed: Result<(), StoreError>) {
        match self {
            Self::Publish(_, reply) => reply.send(committed),
            Self::Inject(_, reply) => reply.send(committed),
            Self::PutConversation(.., reply) | Self::Conversation(.., reply) => reply.send(committed),
            Self::Summaries(_, reply) => reply.send(committed),
            Self::Connect(.., reply) => reply.send(committed),
            Self::Boundary(.., reply) | Self::Rotate(.., reply) => reply.send(committed),
            Self::People(command) => command.answer(committed),
            Self::PutToken(.., reply) | Self::EraseUser(_, reply) => reply.send(committed),
            Self::AnswerOnce(.., reply) => reply.send(committed),
            Self::Prune(.., reply) => reply.send(committed),
            Self::Tick(reply) => reply.send(committed),
            Self::SetSubscribers(_, reply) | Self::Check(reply) | Self::Close(reply) => reply.send(committed),
        }
    }

    /// The id of the person that the command names, if it names one.
    pub(super) fn about(&self) -> Option<&str> {
        match self {
            Self::Publish(publishing, _) => publishing.publish.caller.user_id.as_deref(),
            Self::Inject(command, _) => command.caller.user_id.as_deref(),
            Self::PutConversation(_, _, user_id, ..) => Some(user_id),
            Self::Conversation(caller, ..)
            | Self::Connect(caller, ..)
            | Self::Boundary(caller, ..)
            | Self::Rotate(caller, ..) => caller.user_id.as_deref(),
            Self::PutToken(token, ..) => token.user_id.as_deref(),
            Self::AnswerOnce(_, _, about, _) => about.as_deref(),
            _ => None,
        }
    }

    /// Answers a command about a person whose erasure is in progress.
    pub(super) fn refuse(&mut self, error: StoreError) -> Result<(), StoreError> {
        match self {
            Self::Publish(_, reply) => reply.hold(Err(error)),
            Self::Inject(_, reply) => reply.hold(Err(error)),
            Self::PutConversation(.., reply) | Self::Conversation(.., reply) => reply.hold(Err(error)),
            Self::Connect(.., reply) => reply.hold(Err(error)),
            Self::Boundary(.., reply) | Self::Rotate(.., reply) => reply.hold(Err(error)),
            Self::PutToken(.., reply) => reply.hold(Err(error)),
            Self::AnswerOnce(.., reply) => reply.hold(Err(error)),
            _ => Err(error),
        }
    }
}

/// Divides jobs into commits. An erasure has a commit of its own: it erases what earlier jobs stored and leaves what later jobs
/// store. So has a prune: no job may stage changes for a conversation that it deletes. Without jobs there is still one commit,
/// for timers.
pub(super) fn commits(jobs: Vec<Job>) -> Vec<Vec<Job>> {
    let (mut commits, mut alone) = (vec![Vec::new()], false);
    for job in jobs {
        let erases = matches!(job, Job::EraseUser(..) | Job::Prune(..));
        if (erases || alone) && commits.last().is_some_and(|last: &Vec<Job>| !last.is_empty()) {
            commits.push(Vec::new());
        }
        alone = erases;
        commits.last_mut().expect("the list starts with one commit").push(job);
    }
    commits
}
