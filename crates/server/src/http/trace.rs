//! The wire types of an event's trace: the event, its verdicts, notifications, injections and deliveries.

use std::borrow::Cow;
use std::sync::Arc;

use bellwire_core::lifecycle::{EventState, NotificationState};
use bellwire_core::verdict::{FilterKind, VerdictKind};
use bellwire_store::{Decision, Delivery, InboxItem, InjectionView, NotificationView, PersonTrace, Superseded};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::deliveries::DeliveryBody;
use super::field::{EnumText, Rfc3339Time};
use super::inbox::InboxItemBody;
use super::stored_event::StoredEventBody;

/// The verdict on an event for one subscriber.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Verdict")]
pub(super) struct VerdictBody {
    /// The subscriber; `*` for all of them, as in the verdict on an event for which no subscriber listens.
    subscriber: Arc<str>,
    /// The conversation it decided for; null where the person has none open.
    conversation_id: Option<Arc<str>>,
    /// The agent it decided for; null where the person has no conversation open.
    agent: Option<Arc<str>>,
    /// What it decided.
    #[schemars(extend("enum" = ["queued", "held", "duplicate", "filtered", "suppressed"]))]
    verdict: Cow<'static, str>,
    /// The reason, for people.
    reason: Cow<'static, str>,
    /// Why the subscriber does not want the event, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["severity", "source", "disabled", "not_waiting", "agent_saw_it"]))]
    #[schemars(with = "Option<String>")]
    filter: Option<FilterKind>,
    /// The notification it became part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    notification_id: Option<Uuid>,
    /// The event it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<Uuid>,
    /// How many repeats there have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<u32>,
    /// What the sender of the event should know: that no field of its payload is shown, or which type is nearest to one
    /// that no subscriber listens for.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Arc<str>>,
}

/// The trace of an event, as far as its rows are still stored.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Trace")]
pub(super) struct TraceBody {
    #[serde(flatten)]
    event: StoredEventBody,
    /// The person it was sent to; null if its sender named only a conversation.
    user_id: Option<String>,
    /// The verdicts, one per conversation and listening subscriber.
    verdicts: Vec<VerdictBody>,
    /// The stages it passed, one entry per verdict.
    progress: Vec<Progress>,
    /// The notifications it is part of.
    notifications: Vec<TracedNotification>,
    /// The injections that showed them.
    injections: Vec<TracedInjection>,
    /// The newer events that replaced it before it was shown.
    superseded: Vec<SupersededBy>,
    /// The notifications to its person, with their deliveries.
    told: Vec<PersonTraceBody>,
}

/// A notification to the event's person.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToldPerson")]
pub(super) struct PersonTraceBody {
    /// The notification in the inbox; null if it was not sent yet.
    notification: Option<InboxItemBody>,
    /// When it will be sent, if the hourly limit was reached.
    due_at: Option<Rfc3339Time>,
    /// Why the subscriber's template failed, if it did. The person then reads a plain sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    template_error: Option<String>,
    /// Its deliveries.
    deliveries: Vec<DeliveryBody>,
}

/// The stages that an event passed for one subscriber.
#[derive(Serialize, JsonSchema)]
pub(super) struct Progress {
    /// The subscriber.
    subscriber: Arc<str>,
    /// The conversation; null if the person has no open one.
    conversation_id: Option<Arc<str>>,
    /// The agent; null if the person has no open conversation.
    agent: Option<Arc<str>>,
    /// Whether the subscriber is active or disabled for the conversation's person.
    #[schemars(extend("enum" = ["active", "disabled"]))]
    subscriber_state: &'static str,
    /// The stages it passed, in order: created, queued, dispatched, filtered (it matched the subscriber), batched,
    /// formatted, injected.
    states: Vec<String>,
}

/// An injection that showed a notification.
#[derive(Serialize, JsonSchema)]
pub(super) struct TracedInjection {
    /// The conversation.
    conversation_id: String,
    /// The agent that called.
    agent: String,
    /// The call id.
    call_id: String,
    /// The injection point.
    #[schemars(with = "EnumText<bellwire_core::InjectionPoint>")]
    point: String,
    /// When.
    at: Rfc3339Time,
    /// Whether the answer was later reported as never seen by the model.
    unseen: bool,
}

/// A newer event that replaced this one.
#[derive(Serialize, JsonSchema)]
pub(super) struct SupersededBy {
    /// For which subscriber.
    subscriber: String,
    /// The newer event.
    by: Uuid,
    /// When.
    at: Rfc3339Time,
}

/// A notification that contains the event.
#[derive(Serialize, JsonSchema)]
pub(super) struct TracedNotification {
    /// Its id.
    id: Uuid,
    /// The subscriber that created it.
    subscriber: String,
    /// The conversation it is for.
    conversation_id: String,
    /// The agent it is for.
    agent: String,
    /// The priority.
    #[schemars(with = "EnumText<bellwire_core::Priority>")]
    priority: String,
    /// The injection point.
    #[schemars(with = "EnumText<bellwire_core::InjectionPoint>")]
    inject_at: String,
    /// The state.
    #[schemars(extend("enum" = ["pending", "injected", "persisted", "replaced", "expired", "folded"]))]
    state: String,
    /// The states it passed, in order.
    states: Vec<String>,
    /// Why it ended.
    reason: Option<String>,
    /// The text that was shown.
    content: Option<String>,
    /// The injection it was shown in.
    call_id: Option<String>,
    /// Why the subscriber's template failed, if it did. The text is then in the built-in form.
    #[serde(skip_serializing_if = "Option::is_none")]
    template_error: Option<String>,
    /// When it was created.
    created_at: Rfc3339Time,
    /// When it ended.
    ended_at: Option<Rfc3339Time>,
}

impl From<Decision> for VerdictBody {
    fn from(decision: Decision) -> Self {
        Self {
            subscriber: decision.subscriber,
            conversation_id: decision.conversation_id,
            agent: decision.agent,
            verdict: decision.verdict,
            reason: decision.reason,
            filter: decision.filter,
            notification_id: decision.notification_id,
            of: decision.of,
            repeats: decision.repeats,
            hint: decision.hint,
        }
    }
}

impl From<bellwire_store::Trace> for TraceBody {
    fn from(trace: bellwire_store::Trace) -> Self {
        Self {
            user_id: trace.event.user_id.clone(),
            event: StoredEventBody::new(trace.event, trace.accepted_at, trace.filtered),
            progress: trace.verdicts.iter().map(|decision| Progress::of(decision, &trace.notifications)).collect(),
            verdicts: trace.verdicts.into_iter().map(VerdictBody::from).collect(),
            injections: trace.injections.into_iter().map(TracedInjection::from).collect(),
            superseded: trace.superseded.into_iter().map(SupersededBy::from).collect(),
            told: trace.person_traces.into_iter().map(PersonTraceBody::from).collect(),
            notifications: trace.notifications.into_iter().map(TracedNotification::from).collect(),
        }
    }
}

impl Progress {
    fn of(decision: &Decision, notifications: &[NotificationView]) -> Self {
        let reached = notifications.iter().find(|one| Some(one.id.0) == decision.notification_id);
        let reached = reached.and_then(|one| NotificationState::parse(&one.state));
        let states = VerdictKind::parse(&decision.verdict).map(|kind| EventState::reached(kind, reached));
        let disabled = decision.filter == Some(FilterKind::Disabled);
        Self {
            subscriber: decision.subscriber.clone(),
            conversation_id: decision.conversation_id.clone(),
            agent: decision.agent.clone(),
            subscriber_state: if disabled { "disabled" } else { "active" },
            states: states.unwrap_or_default().iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<InjectionView> for TracedInjection {
    fn from(view: InjectionView) -> Self {
        Self {
            conversation_id: view.conversation_id,
            agent: view.agent,
            call_id: view.call_id,
            point: view.point,
            at: Rfc3339Time(view.at),
            unseen: view.unseen,
        }
    }
}

impl From<Superseded> for SupersededBy {
    fn from(view: Superseded) -> Self {
        Self { subscriber: view.subscriber, by: view.by.0, at: Rfc3339Time(view.at) }
    }
}

impl From<PersonTrace> for PersonTraceBody {
    fn from(trace: PersonTrace) -> Self {
        let heading = trace.item.as_ref().map(InboxItem::heading);
        let delivery = |delivery: &Delivery| DeliveryBody::of(delivery.clone(), heading.clone());
        Self {
            deliveries: trace.deliveries.iter().map(delivery).collect(),
            notification: trace.item.map(|item| InboxItemBody::of(item, &trace.deliveries)),
            due_at: trace.due_at.map(Rfc3339Time),
            template_error: trace.template_error,
        }
    }
}

impl From<NotificationView> for TracedNotification {
    fn from(view: NotificationView) -> Self {
        let states = NotificationState::parse(&view.state).map(NotificationState::reached).unwrap_or_default();
        Self {
            states: states.iter().map(ToString::to_string).collect(),
            id: view.id.0,
            subscriber: view.subscriber_id,
            conversation_id: view.conversation_id,
            agent: view.agent,
            priority: view.priority,
            inject_at: view.inject_at,
            state: view.state,
            reason: view.reason,
            content: view.content,
            call_id: view.call_id,
            template_error: view.template_error,
            created_at: Rfc3339Time(view.created_at),
            ended_at: view.ended_at.map(Rfc3339Time),
        }
    }
}
