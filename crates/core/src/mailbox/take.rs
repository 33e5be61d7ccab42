//! An injection point: close what belongs to it, put it in order, take what fits.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Desk, Effect, Mailbox};
use crate::event::Event;
use crate::inject::{Answer, Capped, Inject, Item, Style, Told, cap, coalesce, worded};
use crate::notification::{Fate, Kind, Notification};
use crate::render::{Boundary, Rendered, Wrapper, render_item, safe_label, synthetic_messages};
use crate::{EventId, InjectionPoint, NotificationId};

/// What has waited this long is taken at every point, so that nothing starves whatever a harness can offer.
pub(crate) const PROMOTE_AFTER_MS: u64 = 30_000;

/// Where the events of waiting notifications are found. It must know every event in [`Mailbox::references`].
pub trait EventLookup {
    /// The event with this name; `None` if it is gone, and then only that is said.
    fn event(&self, id: EventId) -> Option<Arc<Event>>;
}

/// An agent at an injection point.
pub struct InjectInput<'a> {
    /// What it asks for.
    pub request: &'a Inject,
    /// The tool call it just made, published first.
    pub observed: Option<Arc<Event>>,
    /// What earlier answers took and the model never saw: it waits again, with its age.
    pub returned: Vec<Notification>,
    /// Where events are found.
    pub events: &'a dyn EventLookup,
    /// The conversation's boundary.
    pub boundary: &'a Boundary,
}

impl std::fmt::Debug for InjectInput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InjectInput").field("request", self.request).finish_non_exhaustive()
    }
}

impl Mailbox {
    /// Close, coalesce, order, cap, render, mark: in one step, so that nobody sees half of it.
    pub(super) fn inject(&mut self, input: InjectInput<'_>, desk: &mut Desk) {
        let request = input.request;
        self.take_back(input.returned, desk);
        if let Some(observed) = &input.observed {
            self.publish(observed, desk);
        }
        if request.point == InjectionPoint::TurnStart
            && let Some(detectors) = &mut self.detectors
        {
            detectors.next_turn();
        }
        let answer = if request.wake_only && !self.has_wake_mail(request.point) {
            Answer::empty(&request.call_id, request.point, coalesce(self.eligible(request.point)).len())
        } else {
            self.close_for(request.point, desk);
            let detected = desk.out.iter().filter_map(|effect| match effect {
                Effect::Detected(event) => Some(event.clone()),
                _ => None,
            });
            let fresh = input.observed.into_iter().chain(detected).collect();
            self.answer(request, input.boundary, &Known { stored: input.events, fresh }, desk)
        };
        let kept_going = request.wake_only && answer.showing > 0;
        self.presence.reached(request.point, kept_going, self.now);
        self.alarm = self.alarm.min(self.next_ring());
        desk.emit(Effect::Answer(Box::new(answer)));
    }

    /// Every batch that belongs to the point ends here: an injection point always flushes.
    fn close_for(&mut self, point: InjectionPoint, desk: &mut Desk) {
        for closed in self.batches.close(self.now, |batch| point.takes(batch.notification.inject_at)) {
            self.queue(closed, desk);
        }
        self.merge_repeats(desk);
    }

    /// Adds the repeats counted so far to the events that wait, so that what is shown has the count of this moment.
    fn merge_repeats(&mut self, desk: &mut Desk) {
        let pending = &mut self.pending;
        self.dedupe.tell(|window| {
            let found = pending.iter_mut().find_map(|notification| notification.merge_repeats(window));
            found.inspect(|id| desk.emit(Effect::Waiting(*id))).is_some()
        });
    }

    fn answer(&mut self, request: &Inject, boundary: &Boundary, events: &Known<'_>, desk: &mut Desk) -> Answer {
        let mut items = coalesce(self.eligible(request.point));
        items.iter_mut().for_each(|item| item.label = safe_label(&item.label, item, boundary));
        let mut answer = Answer::empty(&request.call_id, request.point, 0);
        if items.is_empty() {
            return answer;
        }
        let rendered = worded(&items, &request.limits, |item| {
            let Rendered { shown, problem } = render_item(item, &desk.subscribers, events, boundary);
            answer.rendered += 1;
            answer.problems.extend(problem.map(|problem| (item.subscriber.clone(), problem)));
            shown
        });
        let wrapper = Wrapper { style: request.style, boundary };
        let capped = cap(&items, rendered, request.point, &request.limits, &wrapper);
        answer.count = items.len();
        answer.showing = capped.page.shown.len();
        answer.folded = capped.folded.len();
        answer.pending = capped.page.pending;
        answer.told = told(&items, &capped);
        self.mark(&items[..answer.showing], Fate::Injected, &mut answer, desk);
        for at in &capped.folded {
            self.mark(&items[*at..=*at], Fate::Folded, &mut answer, desk);
        }
        match request.style {
            Style::Synthetic => {
                answer.messages = synthetic_messages(&capped.page, request.shape, self.now, &mut desk.ids)
            }
            Style::Block | Style::Append => answer.block = capped.text,
        }
        answer
    }

    /// Takes the items' notifications out of the queue.
    fn mark(&mut self, items: &[Item], fate: Fate, answer: &mut Answer, desk: &mut Desk) {
        for id in items.iter().flat_map(|item| &item.notifications) {
            if let Some(at) = self.pending.iter().position(|notification| notification.id == *id) {
                answer.notifications.push(*id);
                let taken = self.pending.remove(at);
                desk.emit(Effect::Ended(Box::new(taken.clone()), fate.clone()));
                answer.taken.push(taken);
            }
        }
    }

    /// What this point takes, in order: critical, high, normal, low, and the oldest first.
    fn eligible(&self, point: InjectionPoint) -> Vec<&Notification> {
        let taken = |one: &&Notification| point.takes(one.inject_at) || self.is_promoted(one);
        let mut eligible: Vec<_> = self.pending.iter().filter(taken).collect();
        eligible.sort_by_key(|notification| (notification.priority, notification.sequence));
        eligible
    }

    fn is_promoted(&self, notification: &Notification) -> bool {
        notification.since.plus(PROMOTE_AFTER_MS) <= self.now
    }

    /// Whether wake mail would be among what this point takes, open batches included.
    fn has_wake_mail(&self, point: InjectionPoint) -> bool {
        let mut held = self.batches.0.iter().map(|batch| &batch.notification);
        self.eligible(point).iter().any(|notification| notification.wakes)
            || held.any(|notification| notification.wakes && point.takes(notification.inject_at))
    }

    /// What an earlier answer took and the model never saw waits again, in its old place and with its age. News that a
    /// newer event has replaced meanwhile stays replaced.
    fn take_back(&mut self, mut returned: Vec<Notification>, desk: &mut Desk) {
        // The newest first: of two that hold the same place, the older gives way.
        returned.sort_by_key(|notification| Reverse(notification.sequence));
        for mut notification in returned {
            if let Kind::LeftOut(counts) = &notification.kind
                && self.pending.iter().any(|waiting| matches!(waiting.kind, Kind::LeftOut(_)))
            {
                self.left_out(desk, |left_out| left_out.add(counts));
                desk.emit(Effect::Ended(Box::new(notification), Fate::Folded));
                continue;
            }
            match self.drop_overtaken(&mut notification, desk) {
                Some(by) if notification.events.is_empty() => {
                    desk.emit(Effect::Ended(Box::new(notification), Fate::Replaced { by }));
                }
                _ if notification.expires <= self.now => {
                    desk.emit(Effect::Ended(Box::new(notification), Fate::Expired))
                }
                _ => self.queue(notification, desk),
            }
        }
    }

    /// Drops the entries of a returned notification whose place something newer holds, each as superseded, and says
    /// where the last of them was overtaken.
    fn drop_overtaken(&mut self, notification: &mut Notification, desk: &mut Desk) -> Option<NotificationId> {
        let held = self.batches.0.iter().map(|batch| &batch.notification);
        let others = held.chain(&self.pending).filter(|other| other.subscriber == notification.subscriber);
        let holders: Vec<_> = others.flat_map(|other| other.events.iter().map(|entry| (other.id, *entry))).collect();
        let mut newer = None;
        notification.events.retain(|entry| {
            let holder = holders.iter().find(|(_, held)| entry.replace != 0 && held.replace == entry.replace);
            if let Some((id, held)) = holder {
                newer = Some(*id);
                let subscriber = notification.subscriber.clone();
                self.dedupe.forget(entry.event, subscriber.key());
                desk.emit(Effect::Superseded { event: entry.event, subscriber, by: held.event });
            }
            holder.is_none()
        });
        newer
    }
}

/// Stored events, and those that came in with the injection itself.
struct Known<'a> {
    stored: &'a dyn EventLookup,
    fresh: Vec<Arc<Event>>,
}

impl EventLookup for Known<'_> {
    fn event(&self, id: EventId) -> Option<Arc<Event>> {
        self.fresh.iter().find(|event| event.id() == id).cloned().or_else(|| self.stored.event(id))
    }
}

/// What was said, for the conversation's history: the items shown, then the lines that sum up.
fn told(items: &[Item], capped: &Capped) -> Vec<Told> {
    let shown = capped.page.shown.iter().zip(items).map(|(shown, item)| Told {
        source: shown.label.clone(),
        content: shown.document.to_toon(),
        notifications: item.notifications.clone(),
    });
    let folded = capped.page.fold_lines.iter().map(|line| Told {
        source: line.label.clone(),
        content: format!("{} more", line.items),
        notifications: Vec::new(),
    });
    shown.chain(folded).collect()
}
