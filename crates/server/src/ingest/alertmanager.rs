//! What a group of alerts of Prometheus Alertmanager becomes: one event per alert, by its fingerprint, start and status.

use bellwire_core::Severity;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::rule::severity_of;
use super::{BodyProblem, Mapped, WebhookEvent, clip, text_at};

/// More alerts than this share one event.
const ALERTS_MAX: usize = 20;
/// More alerts than this in one call are refused.
const GROUP_MAX: usize = 5_000;
const LABELS_MAX: usize = 32;
const LABEL_TEXT_MAX: usize = 200;
const SUMMARY_MAX: usize = 280;
/// How many of the alerts that share an event are named.
const NAMED_MAX: usize = 10;
const FIRING: &str = "firing";
const RESOLVED: &str = "resolved";

/// The events of a group.
pub(super) fn map(body: &Value) -> Result<Mapped, BodyProblem> {
    let version = text_at(body, "/version", 20);
    // Grafana sends the same format as version 1.
    if !["", "1", "4"].contains(&version.as_str()) {
        return Err(BodyProblem::new("version", format!("is '{version}'; version 4 is understood")));
    }
    let alerts = body.get("alerts").and_then(Value::as_array);
    let alerts = alerts.ok_or_else(|| BodyProblem::new("alerts", "is missing or no list; is this an Alertmanager?"))?;
    if alerts.len() > GROUP_MAX {
        let message = format!("has {} alerts; at most {GROUP_MAX} are taken: set max_alerts", alerts.len());
        return Err(BodyProblem::new("alerts", message));
    }
    let alerts: Vec<Alert<'_>> =
        alerts.iter().enumerate().map(|(at, one)| Alert::read(one, at)).collect::<Result<_, _>>()?;
    let (single, rest) = alerts.split_at(alerts.len().min(ALERTS_MAX));
    let (firing, resolved): (Vec<&Alert<'_>>, Vec<&Alert<'_>>) = rest.iter().partition(|alert| alert.status == FIRING);
    let rest = [firing, resolved].into_iter().filter(|alerts| !alerts.is_empty()).map(|alerts| together(&alerts));
    let events: Vec<WebhookEvent> = single.iter().map(Alert::event).chain(rest).collect();
    match events.is_empty() {
        true => Ok(Mapped::Skipped("the group has no alerts".into())),
        false => Ok(Mapped::Events(events)),
    }
}

struct Alert<'a> {
    json: &'a Value,
    status: &'static str,
    /// By which a repeated alert is recognized.
    id: String,
}

impl<'a> Alert<'a> {
    fn read(json: &'a Value, at: usize) -> Result<Self, BodyProblem> {
        let field = |name: &str| format!("alerts[{at}].{name}");
        let status = match json.get("status").and_then(Value::as_str) {
            Some(FIRING) => FIRING,
            Some(RESOLVED) => RESOLVED,
            other => {
                let came = clip(other.unwrap_or_default(), 40);
                return Err(BodyProblem::new(&field("status"), format!("is '{came}'; firing or resolved is allowed")));
            }
        };
        let starts_at = text_at(json, "/startsAt", 40);
        if starts_at.is_empty() {
            return Err(BodyProblem::new(&field("startsAt"), "is missing"));
        }
        let fingerprint = match text_at(json, "/fingerprint", 64) {
            // Versions before 0.15 send none.
            missing if missing.is_empty() => hash(json.get("labels").unwrap_or(&Value::Null).to_string().as_bytes()),
            fingerprint => fingerprint,
        };
        Ok(Self { json, status, id: format!("{fingerprint} {starts_at} {status}") })
    }

    fn name(&self) -> String {
        let (name, instance) =
            (text_at(self.json, "/labels/alertname", 100), text_at(self.json, "/labels/instance", 100));
        match (name.is_empty(), instance.is_empty()) {
            (true, _) => "alert".into(),
            (false, true) => name,
            (false, false) => format!("{name} on {instance}"),
        }
    }

    fn severity(&self) -> Severity {
        let label = severity_of(&text_at(self.json, "/labels/severity", 40));
        if self.status == RESOLVED { Severity::Info } else { label.unwrap_or(Severity::Warning) }
    }

    fn event(&self) -> WebhookEvent {
        let annotation = |name: &str| text_at(self.json, &format!("/annotations/{name}"), SUMMARY_MAX);
        let texts = ["summary", "description", "message"].map(annotation);
        let message = texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let mut payload = json!({
            "name": self.name(), "task_id": self.id, "status": self.status, "labels": self.labels(),
            "starts_at": text_at(self.json, "/startsAt", 40), "url": text_at(self.json, "/generatorURL", 500),
        });
        if !message.is_empty() {
            payload["message"] = json!(message);
        }
        let event = WebhookEvent::new(&format!("task.background.{}", self.status), self.severity(), payload);
        WebhookEvent { id: Some(self.id.clone()), ..event }
    }

    fn labels(&self) -> Map<String, Value> {
        let labels = self.json.get("labels").and_then(Value::as_object);
        let short = |(name, value): (&String, &Value)| {
            Some((clip(name, LABEL_TEXT_MAX), json!(clip(value.as_str()?, LABEL_TEXT_MAX))))
        };
        labels.into_iter().flatten().filter_map(short).take(LABELS_MAX).collect()
    }
}

/// One event for alerts of one status that are too many to be told one by one.
fn together(alerts: &[&Alert<'_>]) -> WebhookEvent {
    let status = alerts.first().map_or(RESOLVED, |alert| alert.status);
    let severity = alerts.iter().map(|alert| alert.severity()).max().unwrap_or(Severity::Info);
    let names: Vec<String> = alerts.iter().take(NAMED_MAX).map(|alert| alert.name()).collect();
    let more = alerts.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let mut ids: Vec<&str> = alerts.iter().map(|alert| alert.id.as_str()).collect();
    ids.sort_unstable();
    let id = hash(ids.join("\n").as_bytes());
    let payload = json!({
        "name": format!("{} more alerts", alerts.len()), "task_id": id, "message": format!("{}{more}", names.join(", ")),
        "status": status,
    });
    let event = WebhookEvent::new(&format!("task.background.{status}"), severity, payload);
    WebhookEvent { id: Some(id), ..event }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(number: usize, status: &str) -> Value {
        json!({"status": status, "fingerprint": format!("{number:016x}"), "startsAt": "2026-01-03T15:30:00Z",
            "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "http://prometheus:9090/graph",
            "labels": {"alertname": "HighMemory", "instance": format!("db{number}"), "severity": "critical"},
            "annotations": {"summary": "memory above 95 %"}})
    }

    fn group(alerts: Vec<Value>) -> Value {
        json!({"version": "4", "groupKey": "{}:{}", "truncatedAlerts": 0, "status": "firing", "receiver": "bellwire",
            "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {}, "externalURL": "", "alerts": alerts})
    }

    fn events(body: &Value) -> Vec<WebhookEvent> {
        match map(body).expect("a group") {
            Mapped::Events(events) => events,
            Mapped::Skipped(why) => panic!("{why}"),
        }
    }

    #[test]
    fn each_alert_is_an_event_by_fingerprint_start_and_status() {
        let events = events(&group(vec![alert(1, "firing"), alert(1, "resolved")]));
        let ids: Vec<&str> = events.iter().filter_map(|event| event.id.as_deref()).collect();
        let expected =
            ["0000000000000001 2026-01-03T15:30:00Z firing", "0000000000000001 2026-01-03T15:30:00Z resolved"];
        assert_eq!(ids, expected);
        assert_eq!((&*events[0].kind, events[0].severity), ("task.background.firing", Severity::Critical));
        assert_eq!((&*events[1].kind, events[1].severity), ("task.background.resolved", Severity::Info));
        assert_eq!(events[0].payload["name"], "HighMemory on db1");
        assert_eq!(events[0].payload["message"], "memory above 95 %");
    }

    #[test]
    fn a_large_group_is_told_within_bounds_and_under_the_same_ids_again() {
        let body = group((0..500).map(|number| alert(number, "firing")).collect());
        let first = events(&body);
        assert_eq!(first.len(), ALERTS_MAX + 1);
        let last = first.last().expect("the rest");
        assert_eq!(last.payload["name"], "480 more alerts");
        assert!(last.payload["message"].as_str().is_some_and(|text| text.ends_with("HighMemory on db29 and 470 more")));
        let mixed: Vec<Value> = (0..30).map(|n| alert(n, if n < 25 { "firing" } else { "resolved" })).collect();
        let mixed = events(&group(mixed));
        let rest: Vec<_> = mixed[ALERTS_MAX..].iter().map(|one| (&*one.kind, one.payload["name"].as_str())).collect();
        let expected = ["firing", "resolved"].map(|status| (format!("task.background.{status}"), "5 more alerts"));
        assert_eq!(rest, expected.each_ref().map(|(kind, name)| (&**kind, Some(*name))));
        let again = events(&body);
        assert!(first.iter().zip(&again).all(|(one, other)| one.id == other.id));
    }

    #[test]
    fn a_body_of_another_form_is_refused_by_the_name_of_the_field() {
        let field = |body: Value| map(&body).expect_err("it is no group").field;
        assert_eq!(field(json!({})), "alerts");
        assert_eq!(field(json!({"alerts": {}})), "alerts");
        assert_eq!(field(json!({"alerts": [], "version": "3"})), "version");
        let grafana = json!({"alerts": [alert(1, "firing")], "version": "1"});
        assert!(matches!(map(&grafana), Ok(Mapped::Events(_))));
        assert_eq!(field(json!({"alerts": [alert(1, "firing"), alert(1, "loud")]})), "alerts[1].status");
        assert_eq!(field(json!({"alerts": [{"status": "firing"}]})), "alerts[0].startsAt");
        assert_eq!(field(json!({"alerts": [7]})), "alerts[0].status");
        assert_eq!(field(json!({"alerts": vec![alert(1, "firing"); GROUP_MAX + 1]})), "alerts");
        assert!(matches!(map(&group(vec![])), Ok(Mapped::Skipped(_))));
    }

    #[test]
    fn hostile_labels_stay_short() {
        let mut one = alert(1, "firing");
        let labels: Map<String, Value> = (0..1000).map(|at| (format!("l{at}"), json!("x".repeat(10_000)))).collect();
        one["labels"] = Value::Object(labels);
        one["annotations"]["summary"] = json!("y".repeat(100_000));
        let payload = &events(&group(vec![one]))[0].payload;
        assert!(payload.to_string().len() < 10_000, "{} bytes", payload.to_string().len());
    }
}
