//! What GitHub's webhooks become: results of workflows, checks and deployments end a background task, everything else is
//! reported with the verb of its action, such as `task.background.opened`.

use bellwire_core::Severity;
use serde_json::{Value, json};

use super::{Mapped, WebhookEvent, clip, text_at};

/// The events that can be taken.
pub(crate) const EVENTS: [&str; 12] = [
    "workflow_run",
    "check_run",
    "check_suite",
    "status",
    "deployment_status",
    "pull_request",
    "pull_request_review",
    "issues",
    "issue_comment",
    "push",
    "release",
    "workflow_job",
];

/// Taken only if the configuration names them: they repeat what others report.
const ONLY_IF_NAMED: [&str; 2] = ["check_suite", "workflow_job"];

/// In characters: the longest title or description that is shown.
const TITLE_MAX: usize = 120;

/// What a call of this event becomes. `named` are the events that the configuration names; empty = the usual ones.
pub(super) fn map(event: &str, body: &Value, named: &[String]) -> Mapped {
    let call = Call { body, named };
    match event {
        "ping" => Mapped::Skipped("ping: the webhook works; it is no event".into()),
        event if !EVENTS.contains(&event) => {
            Mapped::Skipped(format!("'{}' is not taken; taken are {}", clip(event, 40), EVENTS.join(", ")))
        }
        event if !call.takes(event) => {
            Mapped::Skipped(format!("'{event}' is not taken; name it in `events` of the source"))
        }
        "workflow_run" => call.finished("workflow_run", "name", "head_branch"),
        "workflow_job" => call.finished("workflow_job", "name", "head_branch"),
        "check_run" | "check_suite" if call.is_told_by_workflow(event) => {
            Mapped::Skipped("workflow_run reports the checks of GitHub Actions".into())
        }
        "check_run" => call.finished("check_run", "name", "check_suite/head_branch"),
        "check_suite" => call.finished("check_suite", "app/name", "head_branch"),
        "status" => call.status(),
        "deployment_status" => call.deployment(),
        "pull_request" => call.pull_request(),
        "pull_request_review" => call.review(),
        "issues" => call.issue(),
        "issue_comment" => call.comment(),
        "push" => call.push(),
        _ => call.release(),
    }
}

/// The event of a stored body without headers, by the object that it contains. For trying out.
pub(super) fn guess_event(body: &Value) -> Option<&'static str> {
    let has = |key: &str| body.get(key).is_some();
    Some(match body {
        _ if has("zen") => "ping",
        _ if has("deployment_status") => "deployment_status",
        _ if has("review") => "pull_request_review",
        _ if has("comment") && has("issue") => "issue_comment",
        _ if has("commits") && has("ref") => "push",
        _ if has("context") && has("state") => "status",
        _ => {
            let by_object = ["workflow_run", "workflow_job", "check_run", "check_suite", "pull_request", "release"];
            return by_object.into_iter().find(|key| has(key)).or(has("issue").then_some("issues"));
        }
    })
}

struct Call<'a> {
    body: &'a Value,
    named: &'a [String],
}

impl Call<'_> {
    fn takes(&self, event: &str) -> bool {
        match self.named {
            [] => !ONLY_IF_NAMED.contains(&event),
            named => named.iter().any(|one| one == event),
        }
    }

    fn is_told_by_workflow(&self, object: &str) -> bool {
        self.text(&format!("/{object}/app/slug")) == "github-actions" && self.takes("workflow_run")
    }

    fn text(&self, pointer: &str) -> String {
        text_at(self.body, pointer, TITLE_MAX)
    }

    fn repository(&self) -> String {
        self.text("/repository/full_name")
    }

    /// A workflow, a job or a check that has ended.
    fn finished(&self, object: &str, name: &str, branch: &str) -> Mapped {
        if self.text("/action") != "completed" {
            return Mapped::Skipped(format!("{object} has not ended: its action is '{}'", self.text("/action")));
        }
        let at = |field: &str| self.text(&format!("/{object}/{field}"));
        let conclusion = at("conclusion");
        if matches!(&*conclusion, "skipped" | "stale" | "") {
            return Mapped::Skipped(format!("{object} ended as '{conclusion}', which is no result"));
        }
        let title = match (at("display_title"), at("output/title")) {
            (title, other) if title.is_empty() => other,
            (title, _) => title,
        };
        let run = Run {
            name: at(name),
            branch: at(branch),
            task_id: format!("{} {object} {} {}", self.repository(), at("id"), at("run_attempt")),
            result: conclusion,
            commit: at("head_sha"),
            url: at("html_url"),
            title,
        };
        self.ended(run)
    }

    fn status(&self) -> Mapped {
        let state = self.text("/state");
        if !matches!(&*state, "success" | "failure" | "error") {
            return Mapped::Skipped(format!("the status is '{state}', which is no result"));
        }
        self.ended(Run {
            name: self.text("/context"),
            branch: self.text("/branches/0/name"),
            task_id: format!("{} status {}", self.repository(), self.text("/id")),
            result: state,
            commit: self.text("/sha"),
            url: self.text("/target_url"),
            title: self.text("/description"),
        })
    }

    fn deployment(&self) -> Mapped {
        let state = self.text("/deployment_status/state");
        if !matches!(&*state, "success" | "failure" | "error") {
            return Mapped::Skipped(format!("the deployment is '{state}', which is no result"));
        }
        self.ended(Run {
            name: format!("deployment to {}", self.text("/deployment_status/environment")),
            branch: self.text("/deployment/ref"),
            task_id: format!("{} deployment {}", self.repository(), self.text("/deployment_status/id")),
            result: state,
            commit: self.text("/deployment/sha"),
            url: self.text("/deployment_status/target_url"),
            title: self.text("/deployment_status/description"),
        })
    }

    /// The end of a background task.
    fn ended(&self, run: Run) -> Mapped {
        let (kind, severity, field) = match &*run.result {
            "success" | "neutral" => ("task.background.complete", Severity::Info, "result_summary"),
            "cancelled" => ("task.background.failed", Severity::Warning, "error_message"),
            _ => ("task.background.failed", Severity::Error, "error_message"),
        };
        let name = [run.name.as_str(), "on", &run.branch, "of", &self.repository()].join(" ");
        let name = if run.branch.is_empty() { format!("{} of {}", run.name, self.repository()) } else { name };
        let commit: String = run.commit.chars().take(7).collect();
        let facts = [run.result.clone(), prefixed("commit ", &commit), run.title, run.url.clone()];
        let message = joined(facts.iter());
        let payload = json!({
            "name": name, "task_id": run.task_id, field: message, "result": run.result, "branch": run.branch,
            "commit": run.commit, "url": run.url, "repository": self.repository(), "sender": self.text("/sender/login"),
        });
        Mapped::one(WebhookEvent::new(kind, severity, payload))
    }

    fn pull_request(&self) -> Mapped {
        let action = self.text("/action");
        let verb = match &*action {
            "closed" if self.body.pointer("/pull_request/merged") == Some(&Value::Bool(true)) => "merged",
            "opened" | "closed" | "reopened" | "ready_for_review" | "review_requested" => &action,
            _ => return self.not_told("pull_request"),
        };
        let name = format!("pull request {} of {}", self.text("/pull_request/number"), self.repository());
        self.happened(name, verb, Severity::Info, "/pull_request/title", "/pull_request/html_url")
    }

    fn review(&self) -> Mapped {
        let state = self.text("/review/state").to_lowercase();
        let (verb, severity) = match &*state {
            "approved" => ("approved", Severity::Info),
            "changes_requested" => ("changes_requested", Severity::Warning),
            "commented" => ("commented", Severity::Info),
            _ => return self.not_told("pull_request_review"),
        };
        if self.text("/action") != "submitted" {
            return self.not_told("pull_request_review");
        }
        let name = format!("pull request {} of {}", self.text("/pull_request/number"), self.repository());
        self.happened(name, verb, severity, "/review/body", "/review/html_url")
    }

    fn issue(&self) -> Mapped {
        let action = self.text("/action");
        if !matches!(&*action, "opened" | "closed" | "reopened" | "assigned") {
            return self.not_told("issues");
        }
        let name = format!("issue {} of {}", self.text("/issue/number"), self.repository());
        self.happened(name, &action, Severity::Info, "/issue/title", "/issue/html_url")
    }

    fn comment(&self) -> Mapped {
        if self.text("/action") != "created" {
            return self.not_told("issue_comment");
        }
        let object = if self.body.pointer("/issue/pull_request").is_some() { "pull request" } else { "issue" };
        let name = format!("{object} {} of {}", self.text("/issue/number"), self.repository());
        self.happened(name, "commented", Severity::Info, "/comment/body", "/comment/html_url")
    }

    fn push(&self) -> Mapped {
        let branch = self.text("/ref");
        let branch = branch.trim_start_matches("refs/heads/").trim_start_matches("refs/");
        let verb = match self.body.pointer("/deleted") {
            Some(Value::Bool(true)) => "deleted",
            _ => "pushed",
        };
        let name = format!("{branch} of {}", self.repository());
        self.happened(name, verb, Severity::Info, "/head_commit/message", "/compare")
    }

    fn release(&self) -> Mapped {
        if self.text("/action") != "published" {
            return self.not_told("release");
        }
        let name = format!("release {} of {}", self.text("/release/tag_name"), self.repository());
        self.happened(name, "published", Severity::Info, "/release/name", "/release/html_url")
    }

    /// Something that is told with a verb.
    fn happened(&self, name: String, verb: &str, severity: Severity, about: &str, url: &str) -> Mapped {
        let (about, url, sender) = (self.text(about), self.text(url), self.text("/sender/login"));
        let message = joined([&about, &prefixed("by ", &sender), &url]);
        let payload = json!({
            "name": name, "task_id": format!("{name} {url}"), "message": message, "url": url, "sender": sender,
            "repository": self.repository(),
        });
        Mapped::one(WebhookEvent::new(&format!("task.background.{verb}"), severity, payload))
    }

    fn not_told(&self, event: &str) -> Mapped {
        Mapped::Skipped(format!("the action '{}' of {event} is not reported", self.text("/action")))
    }
}

/// A task on GitHub that has ended.
struct Run {
    name: String,
    branch: String,
    task_id: String,
    result: String,
    commit: String,
    url: String,
    title: String,
}

fn prefixed(prefix: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{prefix}{text}") }
}

fn joined<'a>(facts: impl IntoIterator<Item = &'a String>) -> String {
    facts.into_iter().filter(|fact| !fact.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> Value {
        json!({"full_name": "octo/app"})
    }

    fn one(event: &str, body: Value, named: &[&str]) -> (String, Severity, Value) {
        let named: Vec<String> = named.iter().map(|&one| one.to_owned()).collect();
        match map(event, &body, &named) {
            Mapped::Events(mut events) => {
                assert_eq!(events.len(), 1);
                let event = events.remove(0);
                (event.kind, event.severity, event.payload)
            }
            Mapped::Skipped(why) => panic!("{why}"),
        }
    }

    fn skipped(event: &str, body: Value, named: &[&str]) -> String {
        let named: Vec<String> = named.iter().map(|&one| one.to_owned()).collect();
        match map(event, &body, &named) {
            Mapped::Skipped(why) => why,
            Mapped::Events(events) => panic!("{events:?}"),
        }
    }

    fn workflow(action: &str, conclusion: Value) -> Value {
        json!({"action": action, "repository": repository(), "sender": {"login": "ada"}, "workflow_run": {
            "id": 7, "run_attempt": 2, "name": "CI", "head_branch": "main", "head_sha": "1a2b3c4d5e6f", "conclusion": conclusion,
            "display_title": "Fix the parser", "html_url": "https://github.com/octo/app/actions/runs/7",
        }})
    }

    #[test]
    fn a_finished_workflow_ends_a_background_task() {
        let (kind, severity, payload) = one("workflow_run", workflow("completed", json!("failure")), &[]);
        assert_eq!((&*kind, severity), ("task.background.failed", Severity::Error));
        assert_eq!(payload["name"], "CI on main of octo/app");
        let message = "failure, commit 1a2b3c4, Fix the parser, https://github.com/octo/app/actions/runs/7";
        assert_eq!(
            (&payload["error_message"], &payload["task_id"]),
            (&json!(message), &json!("octo/app workflow_run 7 2"))
        );
        let (kind, severity, payload) = one("workflow_run", workflow("completed", json!("success")), &[]);
        assert_eq!((&*kind, severity), ("task.background.complete", Severity::Info));
        assert!(payload["result_summary"].as_str().is_some_and(|text| text.starts_with("success")), "{payload}");
        assert_eq!(one("workflow_run", workflow("completed", json!("cancelled")), &[]).1, Severity::Warning);
        for (action, conclusion) in
            [("requested", Value::Null), ("completed", json!("skipped")), ("completed", Value::Null)]
        {
            skipped("workflow_run", workflow(action, conclusion), &[]);
        }
    }

    #[test]
    fn a_check_of_github_actions_is_told_once() {
        let check = |slug: &str| {
            let app = json!({"slug": slug, "name": slug});
            json!({"action": "completed", "repository": repository(), "check_run": {
                "id": 9, "name": "lint", "conclusion": "timed_out", "head_sha": "abcdef0", "app": app,
                "check_suite": {"head_branch": "main"}, "output": {"title": "took too long"},
            }, "check_suite": {"id": 9, "conclusion": "success", "head_branch": "main", "app": app}})
        };
        assert_eq!(one("check_run", check("circleci"), &[]).2["name"], "lint on main of octo/app");
        skipped("check_run", check("github-actions"), &[]);
        one("check_run", check("github-actions"), &["check_run"]);
        skipped("check_suite", check("circleci"), &[]);
        assert_eq!(one("check_suite", check("circleci"), &["check_suite"]).2["name"], "circleci on main of octo/app");
        skipped("push", json!({}), &["check_suite"]);
    }

    #[test]
    fn other_events_are_told_with_their_verb() {
        let pull = |action: &str, merged: bool| {
            json!({"action": action, "repository": repository(), "sender": {"login": "ada"}, "pull_request": {
                "number": 5, "title": "Fix it", "merged": merged, "html_url": "https://github.com/octo/app/pull/5",
            }, "review": {"state": "CHANGES_REQUESTED", "body": "a test is missing", "html_url": "u"}})
        };
        let (kind, _, payload) = one("pull_request", pull("opened", false), &[]);
        assert_eq!((&*kind, &payload["name"]), ("task.background.opened", &json!("pull request 5 of octo/app")));
        assert_eq!(payload["message"], "Fix it, by ada, https://github.com/octo/app/pull/5");
        assert_eq!(one("pull_request", pull("closed", true), &[]).0, "task.background.merged");
        assert_eq!(one("pull_request", pull("closed", false), &[]).0, "task.background.closed");
        skipped("pull_request", pull("synchronize", false), &[]);
        let (kind, severity, payload) = one("pull_request_review", pull("submitted", false), &[]);
        assert_eq!((&*kind, severity), ("task.background.changes_requested", Severity::Warning));
        assert_eq!(payload["message"], "a test is missing, by ada, u");
        let push = json!({"ref": "refs/heads/main", "repository": repository(), "deleted": false, "commits": [],
            "head_commit": {"message": "One\n\nTwo"}, "compare": "c"});
        let (kind, _, payload) = one("push", push, &[]);
        assert_eq!((&*kind, &payload["name"]), ("task.background.pushed", &json!("main of octo/app")));
    }

    #[test]
    fn a_body_of_any_other_form_is_no_event_and_no_panic() {
        for body in
            [json!(null), json!([]), json!("x"), json!({"action": 7}), json!({"workflow_run": []}), json!({"ref": {}})]
        {
            for event in EVENTS.iter().chain(&["ping", "star", "", "é"]) {
                let named: Vec<String> = EVENTS.iter().map(|&one| one.to_owned()).collect();
                if let Mapped::Events(events) = map(event, &body, &named) {
                    assert_eq!(*event, "push", "{body} {events:?}");
                }
            }
        }
    }

    #[test]
    fn the_event_of_a_stored_body_is_guessed() {
        for (body, event) in [
            (json!({"zen": "x", "hook": {}}), Some("ping")),
            (workflow("completed", json!("success")), Some("workflow_run")),
            (json!({"check_run": {}}), Some("check_run")),
            (json!({"issue": {}}), Some("issues")),
            (json!({"issue": {}, "comment": {}}), Some("issue_comment")),
            (json!({"pull_request": {}, "review": {}}), Some("pull_request_review")),
            (json!({"ref": "refs/heads/x", "commits": []}), Some("push")),
            (json!({"state": "success", "context": "ci"}), Some("status")),
            (json!({}), None),
        ] {
            assert_eq!(guess_event(&body), event, "{body}");
        }
    }
}
