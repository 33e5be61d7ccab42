//! Handles an injection point: closes its batches, orders the pending notifications and takes those that fit.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Effect, Mailbox, MailboxContext};
use crate::event::{Event, EventType};
use crate::inject::{BlockItem, CappedContent, Inject, Injection, ShownItem, Style, TemplateFailure, coalesce, fill};
use crate::notification::{EndReason, Notification, NotificationKind};
use crate::person::NotifySelf;
use crate::render::{BlockWriter, Boundary, render_item, safe_label, synthetic_messages};
use crate::subscriber::Subscribers;
use crate::{EventId, InjectionPoint, NotificationId};

/// A notification pending this long is taken at every point, so that it is shown even by a harness without its point.
pub(crate) const PROMOTE_AFTER_MS: u64 = 30_000;

/// Looks up the events of pending notifications. It must find every event in [`Mailbox::references`].
pub trait EventLookup {
    /// The event with this id; `None` if it was deleted. The block then says so.
    fn event(&self, id: EventId) -> Option<Arc<Event>>;
}

/// An agent's request at an injection point.
pub struct InjectInput<'a> {
    /// The request.
    pub request: &'a Inject,
    /// The tool call that the agent just made; published before anything is taken.
    pub observed: Option<Arc<Event>>,
    /// Looks up stored events.
    pub events: &'a dyn EventLookup,
    /// The conversation's current boundary.
    pub boundary: &'a Boundary,
}

impl std::fmt::Debug for InjectInput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InjectInput").field("request", self.request).finish_non_exhaustive()
    }
}

impl Mailbox {
    /// Close, coalesce, order, cap, render, mark: in one step, so that no other input sees an intermediate state.
    pub(super) fn inject(&mut self, input: InjectInput<'_>, context: &mut MailboxContext) {
        let request = input.request;
        if let Some(observed) = &input.observed {
            self.publish(observed, context);
        }
        if request.point == InjectionPoint::TurnStart
            && let Some(detectors) = &mut self.detectors
        {
            detectors.next_turn();
        }
        let answer = if request.wake_only && !self.has_waking_notification(request.point) {
            Injection::empty(&request.call_id, request.point, coalesce(&self.eligible(request.point), 0).len())
        } else {
            self.close_for(request.point, context);
            let detected = context.out.iter().filter_map(|effect| match effect {
                Effect::Detected(event) | Effect::Remeasured(event) => Some(event.clone()),
                _ => None,
            });
            let fresh = input.observed.into_iter().chain(detected).collect();
            self.answer(request, input.boundary, &LayeredEvents { stored: input.events, fresh }, context)
        };
        let kept_going = request.wake_only && answer.showing > 0;
        self.presence.reached(request.point, kept_going, self.now);
        self.next_timer = self.next_timer.min(self.next_wake_at());
        context.emit(Effect::Injection(Box::new(answer)));
    }

    /// Closes every open batch for this point: an injection never waits for a window.
    fn close_for(&mut self, point: InjectionPoint, context: &mut MailboxContext) {
        for closed in self.batches.close(self.now, |batch| point.takes(batch.notification.inject_at)) {
            self.queue(closed, context);
        }
        self.merge_repeats(context);
    }

    /// Adds the repeats counted so far to pending events, so that the block shows current counts.
    fn merge_repeats(&mut self, context: &mut MailboxContext) {
        // For each event with unreported repeats: the position of the pending notification that holds it.
        let mut places: BTreeMap<_, Option<usize>> =
            self.dedupe.unreported().map(|window| ((window.of, window.subscriber), None)).collect();
        if places.is_empty() {
            return;
        }
        for (at, notification) in
            self.pending.iter().enumerate().filter(|(_, one)| one.kind == NotificationKind::Events)
        {
            let subscriber = notification.subscriber.key();
            for entry in &notification.events {
                if let Some(place @ None) = places.get_mut(&(entry.event, subscriber)) {
                    *place = Some(at);
                }
            }
        }
        let pending = &mut self.pending;
        self.dedupe.mark_reported(|window| {
            let place = places.get(&(window.of, window.subscriber)).copied().flatten();
            let found = place.and_then(|at| pending[at].merge_repeats(window));
            found.inspect(|id| context.emit(Effect::Waiting(*id))).is_some()
        });
    }

    fn answer(
        &mut self,
        request: &Inject,
        boundary: &Boundary,
        events: &LayeredEvents<'_>,
        context: &mut MailboxContext,
    ) -> Injection {
        let note = EventType::known(NotifySelf::EVENT_TYPE);
        let own_notes = OwnNotes { call_id: &request.call_id, note, subscribers: &context.subscribers, events };
        let mut eligible = self.eligible(request.point);
        eligible.retain(|notification| !own_notes.include(notification));
        let mut items = coalesce(&eligible, request.limits.items_max);
        // Only a turn start has fold lines, which show labels unrendered. Items get their labels when they are
        // rendered.
        if request.point == InjectionPoint::TurnStart {
            items.iter_mut().for_each(|item| item.label = safe_label(&item.label, item, boundary));
        }
        let mut answer = Injection::empty(&request.call_id, request.point, 0);
        if items.is_empty() {
            return answer;
        }
        let wrapper = BlockWriter { style: request.style, boundary };
        let mut failed = Vec::new();
        let mut capped = fill(&items, request.point, &request.limits, &wrapper, |item| {
            let mut rendered = render_item(item, &context.subscribers, events, boundary);
            // Items are rendered in order, each once.
            failed.extend(rendered.template_error.take().map(|error| (answer.rendered, error)));
            answer.rendered += 1;
            rendered
        });
        answer.count = items.len();
        answer.showing = capped.page.shown.len();
        answer.folded = capped.folded.len();
        answer.pending = capped.page.rest.pending;
        let shown = failed.into_iter().filter(|(at, _)| *at < answer.showing);
        answer.template_failures = shown.map(|(at, error)| TemplateFailure::of(&items[at], error)).collect();
        match request.style {
            Style::Synthetic => {
                answer.messages = synthetic_messages(&capped.page, request.shape, self.now, &mut context.ids)
            }
            Style::Block | Style::Append => answer.block = std::mem::take(&mut capped.text),
        }
        self.mark(&items, &capped, &mut answer, context);
        answer.shown = shown_items(items, capped);
        answer
    }

    /// Removes the notifications of shown and folded items from the queue, in the order of the items.
    fn mark(
        &mut self,
        items: &[BlockItem],
        capped: &CappedContent,
        answer: &mut Injection,
        context: &mut MailboxContext,
    ) {
        let showing = capped.page.shown.len();
        let folded = capped.folded.iter().map(|at| &items[*at]);
        let ids = items[..showing].iter().chain(folded).flat_map(|item| &item.notifications);
        answer.notifications = ids.copied().collect();
        let injected = items[..showing].iter().map(|item| item.notifications.len()).sum::<usize>();
        let order: BTreeMap<NotificationId, usize> = answer.notifications.iter().copied().zip(0..).collect();
        let taken = self.pending.extract_if(.., |notification| order.contains_key(&notification.id));
        answer.taken = taken.collect();
        answer.taken.sort_by_key(|notification| order.get(&notification.id));
        for (number, taken) in answer.taken.iter().enumerate() {
            let end_reason = if number < injected { EndReason::Injected } else { EndReason::Folded };
            context.emit(Effect::Ended(Box::new(taken.clone()), end_reason));
        }
    }

    /// The notifications this point takes, by priority (critical first), then oldest first.
    fn eligible(&self, point: InjectionPoint) -> Vec<&Notification> {
        let taken = |one: &&Notification| point.takes(one.inject_at) || self.is_promoted(one);
        let mut eligible: Vec<_> = self.pending.iter().filter(taken).collect();
        eligible.sort_by_key(|notification| (notification.priority, notification.sequence));
        eligible
    }

    fn is_promoted(&self, notification: &Notification) -> bool {
        notification.since.plus(PROMOTE_AFTER_MS) <= self.now
    }

    /// Whether this point would take a notification that wakes, open batches included.
    fn has_waking_notification(&self, point: InjectionPoint) -> bool {
        let mut held = self.batches.0.iter().map(|batch| &batch.notification);
        self.eligible(point).iter().any(|notification| notification.wakes)
            || held.any(|notification| notification.wakes && point.takes(notification.inject_at))
    }
}

/// The notes that an agent left itself in one call. They must not come back in the result of that call.
struct OwnNotes<'a> {
    call_id: &'a str,
    note: EventType,
    subscribers: &'a Subscribers,
    events: &'a dyn EventLookup,
}

impl OwnNotes<'_> {
    /// Whether the notification holds such a note, which names its call in `payload.call_id`. Reads events only of
    /// subscribers that listen for notes.
    fn include(&self, notification: &Notification) -> bool {
        let is_own = |event: Arc<Event>| {
            let call_id = event.payload().get("call_id").and_then(|value| value.as_str());
            *event.kind() == self.note && call_id == Some(self.call_id)
        };
        let subscriber = self.subscribers.find_or_retired(&notification.subscriber);
        subscriber.is_some_and(|subscriber| subscriber.listens_for(&self.note))
            && notification.events.iter().any(|entry| self.events.event(entry.event).is_some_and(is_own))
    }
}

/// Stored events plus those created by this injection itself.
struct LayeredEvents<'a> {
    stored: &'a dyn EventLookup,
    fresh: Vec<Arc<Event>>,
}

impl EventLookup for LayeredEvents<'_> {
    fn event(&self, id: EventId) -> Option<Arc<Event>> {
        self.fresh.iter().find(|event| event.id() == id).cloned().or_else(|| self.stored.event(id))
    }
}

impl TemplateFailure {
    fn of(item: &BlockItem, error: String) -> Self {
        Self { subscriber: item.subscriber.clone(), notifications: item.notifications.clone(), error }
    }
}

/// The content for the conversation's history: the shown items, then the fold lines.
fn shown_items(items: Vec<BlockItem>, capped: CappedContent) -> Vec<ShownItem> {
    let shown = capped.page.shown.into_iter().zip(items).map(|(rendered, item)| ShownItem {
        source: rendered.label.to_string(),
        content: rendered.text,
        notifications: item.notifications,
    });
    let folded = capped.page.rest.fold_lines.iter().map(|line| ShownItem {
        source: line.label.to_string(),
        content: format!("{} more", line.items),
        notifications: Vec::new(),
    });
    shown.chain(folded).collect()
}
