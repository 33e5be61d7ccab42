use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::parse::{Action, InjectLine, TimelineStep, without};
use super::report::{ReportEntry, TimelineReport, Tone, clock};
use super::{Timeline, TimelineError};
use crate::conversation::{ConversationUpdate, InjectOptions};
use crate::event::Event;
use crate::inject::Injection;
use crate::notification::{EndReason, Notification, NotificationKind, counted};
use crate::subscriber::{Preferences, SubscriberFile};
use crate::{Conversation, EventId, NotificationId, Randomness, Subscribers, Time, Verdict};

/// A fixed seed, so that every run of a timeline gives the same ids and the same boundary.
const SEED: u64 = 0xbe11;

impl Timeline {
    /// Runs the timeline with `base` and its own subscribers.
    pub fn play(&self, base: &Subscribers) -> Result<TimelineReport, TimelineError> {
        let subscribers = Arc::new(self.subscribers(base)?);
        let mut player = Player {
            start: self.start,
            conversation: Conversation::new(subscribers, Randomness::repeatable(SEED)),
            templates: &self.templates,
            names: ShortNames::default(),
            report: TimelineReport::default(),
        };
        for step in &self.steps {
            player.run_timers_until(step.at);
            player.step(step).map_err(|message| TimelineError { line: step.line, message })?;
        }
        Ok(player.report)
    }
}

struct Player<'a> {
    start: Time,
    conversation: Conversation,
    templates: &'a BTreeMap<String, String>,
    names: ShortNames,
    report: TimelineReport,
}

impl Player<'_> {
    fn run_timers_until(&mut self, at: u64) {
        let until = self.start.plus(at);
        while self.conversation.wakes_at() < until {
            let due = self.conversation.wakes_at();
            let updates = self.conversation.tick(due);
            if !updates.is_empty() {
                self.log(due.millis_since(self.start), "timer", String::new(), &updates, Value::Null);
            }
        }
    }

    fn step(&mut self, step: &TimelineStep) -> Result<(), String> {
        let now = self.start.plus(step.at);
        match &step.action {
            Action::Publish { template, times: None } => self.publish(step.at, template.event(1)?, now),
            Action::Publish { template, times: Some(times) } => {
                self.burst(step.at, *times, now, |number| template.event(number))
            }
            Action::User { text, times: None } => self.publish(step.at, user_message(text, 1)?, now),
            Action::User { text, times: Some(times) } => {
                self.burst(step.at, *times, now, |number| user_message(text, number))
            }
            Action::Inject(line) => self.inject(step.at, line, now),
            Action::Disable(ids) => self.disable(step.at, ids),
            Action::Reload(file) => self.reload(step.at, file),
            Action::Remove(id) if self.conversation.subscribers().find(id).is_none() => {
                Err(format!("there is no subscriber '{id}' to remove"))
            }
            Action::Remove(id) => {
                let rest = without(self.conversation.subscribers(), id);
                self.conversation.set_subscribers(rest);
                self.note(step.at, "remove", id.clone())
            }
            Action::Rotate => {
                self.conversation.rotate_boundary();
                let boundary = self.conversation.boundary().to_string();
                self.note(step.at, "rotate", format!("the boundary is now {boundary}"))
            }
            Action::Crash => {
                self.conversation.crash();
                self.note(step.at, "crash", "saved and loaded".to_owned())
            }
            Action::Messages => self.messages(step.at),
            Action::Wait => {
                let updates = self.conversation.tick(now);
                self.log(step.at, "wait", String::new(), &updates, Value::Null);
                Ok(())
            }
        }
    }

    fn publish(&mut self, at: u64, event: Event, now: Time) -> Result<(), String> {
        let agent = if event.agent().is_main() { String::new() } else { format!(" for {}", event.agent()) };
        let title = format!("{} [{}] {}{agent}", event.kind(), event.source(), event.severity());
        match self.conversation.publish(event, now) {
            Ok(receipt) => {
                let name = self.names.event(receipt.event);
                let data = json!({"event": name, "filtered": receipt.unmatched});
                self.log(at, "event", format!("{name} {title}"), &receipt.updates, data);
            }
            Err(refused) => {
                let lines = vec![(Tone::Wrong, format!("refused: {refused}"))];
                let data = json!({"refused": refused.to_string()});
                self.report.entries.push(ReportEntry { at, verb: "event", title, lines, data });
            }
        }
        Ok(())
    }

    /// Publishes `times` events and logs one entry with counts per verdict instead of one entry per event.
    fn burst(
        &mut self,
        at: u64,
        times: u32,
        now: Time,
        event: impl Fn(u32) -> Result<Event, String>,
    ) -> Result<(), String> {
        let mut counted: Vec<(String, u32)> = Vec::new();
        let mut count = |line: String| match counted.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => counted.push((line, 1)),
        };
        for number in 1..=times {
            let receipt = match self.conversation.publish(event(number)?, now) {
                Ok(receipt) => receipt,
                Err(refused) => {
                    count(format!("refused: {refused}"));
                    continue;
                }
            };
            for update in receipt.updates {
                match update {
                    ConversationUpdate::Decided(_, subscriber, verdict) => {
                        count(format!("{:10} {subscriber}", verdict.name()))
                    }
                    ConversationUpdate::Ended(_, end_reason) => count(end_reason.name().to_owned()),
                    ConversationUpdate::Wake(_) => count("wake".to_owned()),
                    _ => {}
                }
            }
        }
        let lines = counted.iter().map(|(line, count)| (Tone::Kept, format!("{count} x {line}"))).collect();
        let data = json!({ "counts": counted });
        let title = format!("{times} x {}", event(1)?.kind());
        self.report.entries.push(ReportEntry { at, verb: "burst", title, lines, data });
        Ok(())
    }

    fn inject(&mut self, at: u64, line: &InjectLine, now: Time) -> Result<(), String> {
        let more =
            InjectOptions { agent: line.agent.clone(), observed: line.observed.clone(), unseen: line.unseen.clone() };
        let agent = line.agent.as_ref().map(|agent| format!(" for {agent}")).unwrap_or_default();
        let title = format!("{} {}{agent}", line.inject.point, line.inject.call_id);
        match self.conversation.inject_with(line.inject.clone(), more, now) {
            Ok((answer, updates)) => self.log_answer(at, title, line, &answer, &updates),
            Err(error) => {
                let lines = vec![(Tone::Wrong, format!("refused: {error}"))];
                let data = json!({"refused": error.to_string()});
                self.report.entries.push(ReportEntry { at, verb: "inject", title, lines, data });
            }
        }
        Ok(())
    }

    fn log_answer(
        &mut self,
        at: u64,
        title: String,
        line: &InjectLine,
        answer: &Injection,
        updates: &[ConversationUpdate],
    ) {
        let Injection { count, showing, folded, pending, .. } = answer;
        let content = answer.content(line.tool_result.as_deref().unwrap_or(""));
        self.log(at, "inject", title, updates, Value::Null);
        let names: Vec<String> = answer.notifications.iter().map(|id| self.names.notification(*id)).collect();
        let entry = self.report.entries.last_mut().expect("log added one");
        let data = json!({
            "news": entry.data["news"],
            "content": content,
            "block": answer.block,
            "messages": answer.messages,
            "notifications": names,
            "count": count,
            "showing": showing,
            "folded": folded,
            "pending": pending,
            "template_failures": answer
                .template_failures
                .iter()
                .map(|one| json!({"subscriber": one.subscriber.as_str(), "error": one.error}))
                .collect::<Vec<_>>(),
        });
        entry.data = data;
        let lines = &mut entry.lines;
        let failed = answer.template_failures.iter();
        lines.extend(failed.map(|one| {
            (Tone::Wrong, format!("template of {} failed: {}; built-in form used", one.subscriber, one.error))
        }));
        let text = match answer.messages.is_empty() {
            true => content,
            false => answer.messages.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        };
        if !text.is_empty() {
            lines.push((Tone::Text, text));
        }
        lines.push((Tone::Kept, format!("count {count} = {showing} shown + {folded} folded + {pending} pending")));
    }

    fn disable(&mut self, at: u64, ids: &[String]) -> Result<(), String> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        match Preferences::disabling(ids.iter().copied(), self.conversation.subscribers()) {
            Ok(preferences) => {
                self.conversation.set_preferences(preferences);
                match ids.as_slice() {
                    [] => self.note(at, "enable", "everything is on".to_owned()),
                    ids => self.note(at, "disable", ids.join(", ")),
                }
            }
            Err(refused) => self.note(at, "disable", format!("refused: {refused}")),
        }
    }

    /// Reloads a subscriber file. An invalid file leaves the last valid version in force.
    fn reload(&mut self, at: u64, file: &SubscriberFile) -> Result<(), String> {
        let path = &file.path;
        let find = |path: &str| self.templates.get(path).cloned().ok_or_else(|| "does not exist".to_owned());
        let title = match file.parse(&find) {
            Ok(changed) => {
                let current = self.conversation.subscribers();
                let next = current.reloaded(current.iter().cloned().chain([changed]));
                self.conversation.set_subscribers(Arc::new(next));
                format!("{path} is read again")
            }
            Err(error) => format!("{path} keeps its last good version: {error}"),
        };
        self.note(at, "reload", title)
    }

    fn messages(&mut self, at: u64) -> Result<(), String> {
        let messages = self.conversation.messages();
        let line = |message: &crate::inject::SystemMessage| {
            let content = message.content.replace('\n', "\n  ");
            (Tone::Said, format!("{} [{}] {content}", message.call_id, message.source))
        };
        let lines: Vec<_> = messages.iter().map(line).collect();
        let data = json!(lines.iter().map(|(_, line)| line).collect::<Vec<_>>());
        let title = format!("{} in the conversation", messages.len());
        self.report.entries.push(ReportEntry { at, verb: "messages", title, lines, data });
        Ok(())
    }

    fn note(&mut self, at: u64, verb: &'static str, title: String) -> Result<(), String> {
        let data = json!({ "note": title });
        self.report.entries.push(ReportEntry { at, verb, title, lines: Vec::new(), data });
        Ok(())
    }

    fn log(&mut self, at: u64, verb: &'static str, title: String, updates: &[ConversationUpdate], data: Value) {
        let printed = |update: &&ConversationUpdate| verb == "timer" || !is_shown_by_verdict(update);
        let lines: Vec<(Tone, String)> =
            updates.iter().filter(printed).filter_map(|update| self.update_line(update)).collect();
        let mut data = if data.is_null() { json!({}) } else { data };
        data["news"] = updates.iter().map(|update| self.update_data(update)).collect();
        self.report.entries.push(ReportEntry { at, verb, title, lines, data });
    }

    fn update_line(&mut self, update: &ConversationUpdate) -> Option<(Tone, String)> {
        Some(match update {
            ConversationUpdate::Decided(_, subscriber, verdict) => self.verdict_line(subscriber.as_str(), verdict),
            ConversationUpdate::Detected(event) => {
                let name = self.names.event(event.id());
                (Tone::Waits, format!("detected   {name} {} [{}]: {}", event.kind(), event.source(), event.message()))
            }
            ConversationUpdate::Remeasured(event) => {
                let name = self.names.event(event.id());
                (Tone::Waits, format!("measured   {name} {} [{}]: {}", event.kind(), event.source(), event.message()))
            }
            ConversationUpdate::Superseded(event, _, by) => {
                let (event, by) = (self.names.event(*event), self.names.event(*by));
                (Tone::Kept, format!("superseded {event} by {by}"))
            }
            ConversationUpdate::Waiting(notification) => (Tone::Waits, self.waiting_line(notification)),
            ConversationUpdate::Ended(id, end_reason) => {
                let (name, by) = (self.names.notification(*id), self.fate_target(end_reason));
                let tone = if *end_reason == EndReason::Injected { Tone::Said } else { Tone::Kept };
                (tone, format!("{:10} {name}{by}", end_reason.name()))
            }
            ConversationUpdate::Wake(ids) => {
                let names: Vec<String> = ids.iter().map(|id| self.names.notification(*id)).collect();
                (Tone::Said, format!("wake       for {}", names.join(", ")))
            }
        })
    }

    fn verdict_line(&mut self, subscriber: &str, verdict: &Verdict) -> (Tone, String) {
        let name = verdict.name();
        match verdict {
            Verdict::Queued { notification } => {
                (Tone::Waits, format!("{name:10} {subscriber} as {}", self.names.notification(*notification)))
            }
            Verdict::Held { notification, until } => {
                let until = clock(until.millis_since(self.start));
                let notification = self.names.notification(*notification);
                (Tone::Waits, format!("{name:10} {subscriber} as {notification} until {until}"))
            }
            Verdict::Duplicate { of, repeats } => {
                let of = self.names.event(*of);
                (Tone::Kept, format!("{name:10} {subscriber} of {of}, repeat {repeats}"))
            }
            Verdict::Filtered(_) | Verdict::Suppressed => {
                (Tone::Kept, format!("{name:10} {subscriber}: {}", verdict.reason()))
            }
        }
    }

    /// The update as JSON, for the `--json` output of `bellwire simulate`.
    fn update_data(&mut self, update: &ConversationUpdate) -> Value {
        match update {
            ConversationUpdate::Decided(event, subscriber, verdict) => {
                let (of, repeats) = match verdict {
                    Verdict::Duplicate { of, repeats } => (Some(self.names.event(*of)), Some(*repeats)),
                    _ => (None, None),
                };
                let until = match verdict {
                    Verdict::Held { until, .. } => Some(until.millis_since(self.start)),
                    _ => None,
                };
                json!({
                    "kind": "verdict", "event": self.names.event(*event), "subscriber": subscriber.as_str(),
                    "verdict": verdict.name(), "reason": verdict.reason(), "until_ms": until, "of": of,
                    "repeats": repeats, "notification": verdict.notification().map(|id| self.names.notification(id)),
                })
            }
            ConversationUpdate::Detected(event) | ConversationUpdate::Remeasured(event) => json!({
                "kind": "detected", "event": self.names.event(event.id()), "type": event.kind().as_str(),
                "source": event.source().as_str(), "payload": event.payload().as_map(),
            }),
            ConversationUpdate::Superseded(event, _, by) => {
                json!({ "kind": "superseded", "event": self.names.event(*event), "by": self.names.event(*by) })
            }
            ConversationUpdate::Waiting(notification) => json!({
                "kind": "waiting", "notification": self.names.notification(notification.id),
                "subscriber": notification.subscriber.as_str(), "priority": notification.priority,
                "inject_at": notification.inject_at, "stands_for": notification.event_count(),
            }),
            ConversationUpdate::Ended(id, end_reason) => json!({
                "kind": "ended", "notification": self.names.notification(*id), "state": end_reason.name(),
                "reason": end_reason.reason(),
            }),
            ConversationUpdate::Wake(ids) => {
                let names: Vec<String> = ids.iter().map(|id| self.names.notification(*id)).collect();
                json!({ "kind": "wake", "notifications": names })
            }
        }
    }

    fn waiting_line(&mut self, notification: &Notification) -> String {
        let name = self.names.notification(notification.id);
        let what = match &notification.kind {
            NotificationKind::Events => counted(notification.events.len() as u64, "event"),
            NotificationKind::Repeats => counted(notification.event_count(), "repeat"),
            NotificationKind::LeftOut(left_out) => left_out.message(),
        };
        let Notification { subscriber, priority, inject_at, .. } = notification;
        format!("waiting    {name} {subscriber} at {inject_at}, {priority}: {what}")
    }

    fn fate_target(&mut self, end_reason: &EndReason) -> String {
        match end_reason {
            EndReason::Replaced { by } => format!(" by {}", self.names.notification(*by)),
            EndReason::Expired => format!(": {}", end_reason.reason()),
            _ => String::new(),
        }
    }
}

/// A message of the person with `%n` replaced by `number`.
fn user_message(text: &str, number: u32) -> Result<Event, String> {
    Event::user_message(&text.replace("%n", &number.to_string())).map_err(|error| error.to_string())
}

/// Whether a verdict line already shows this: a verdict names its pending notification.
fn is_shown_by_verdict(update: &ConversationUpdate) -> bool {
    matches!(update, ConversationUpdate::Waiting(notification) if notification.kind == NotificationKind::Events)
}

/// Maps ids to short names in order of appearance: e1, e2 for events, n1, n2 for notifications.
#[derive(Default)]
struct ShortNames {
    events: HashMap<Uuid, usize>,
    notifications: HashMap<Uuid, usize>,
}

impl ShortNames {
    fn event(&mut self, id: EventId) -> String {
        let next = self.events.len() + 1;
        format!("e{}", self.events.entry(id.0).or_insert(next))
    }

    fn notification(&mut self, id: NotificationId) -> String {
        let next = self.notifications.len() + 1;
        format!("n{}", self.notifications.entry(id.0).or_insert(next))
    }
}
