//! The demo's scenes. How they are printed is in `stage.rs`.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::stage::Stage;

pub(super) fn play(stage: &mut Stage<'_>) -> Result<()> {
    let first = failures_and_changes(stage)?;
    loop_and_budget(stage)?;
    wake_when_idle(stage)?;
    sub_agent(stage)?;
    overflow(stage)?;
    stage.scene("Why was I told?", "Every event can tell its life (bellwire trace ID). The first failure's:")?;
    stage.trace(&first)?;
    stage.scene(
        "That is all of it.",
        "Your own agent next: bellwire token create --scope agent --user you --origin mine",
    )
}

/// A burst of failures, changed files and a message of the person come as one block.
fn failures_and_changes(stage: &Stage<'_>) -> Result<String> {
    stage.scene(
        "1. An agent works; things happen around it",
        "A turn begins. Then a tool fails seven times, another once, and a file that the agent has read changes.",
    )?;
    stage.inject("turn_start", "turn_1", json!({}))?;
    let search = failure("vault_search", "timeout", "no answer after 5000ms");
    let id = stage.publish(std::slice::from_ref(&search))?;
    let repeats = vec![search; 6];
    stage.publish(&[repeats, vec![failure("vault_write", "permission_denied", "read-only")]].concat())?;
    stage.publish(&[changed("src/lib.rs"), changed("src/main.rs")])?;
    stage.say("what about this other approach?")?;
    let ask = json!({ "tool_result": "File updated successfully." });
    let answer = stage.inject("after_tool", "call_1", ask.clone())?;
    stage.explain(
        "when the next tool finishes, everything that waits is delivered at once: most urgent first, repeats counted (x8), each shown once.",
    )?;
    let repeated = stage.inject("after_tool", "call_1", ask)?;
    ensure!(repeated == answer, "the same call id gave another answer");
    stage.explain(
        "the harness asked twice for call_1 (a retry). The same call id gets the same answer, byte for byte.",
    )?;
    Ok(id)
}

/// The detectors find a loop and a budget warning in the observed tool calls.
fn loop_and_budget(stage: &Stage<'_>) -> Result<()> {
    stage.scene(
        "2. The agent goes in circles and its budget runs low",
        "No program publishes that. The harness only reports each tool call, with the tokens used so far.",
    )?;
    for (call, used) in [("call_2", 21_000), ("call_3", 30_000), ("call_4", 42_500)] {
        let observed = json!({
            "tool_name": "grep", "outcome": "success", "arguments": { "pattern": "TODO" },
            "usage": { "tokens_used": used, "token_limit": 50_000 },
        });
        stage.inject("after_tool", call, json!({ "tool_result": "3 matches", "observed": observed }))?;
    }
    stage.explain("the same call three times is a loop: critical, so it waits for nothing. 85 % of the tokens can wait for the next turn.")
}

/// A finished background task wakes the idle agent.
fn wake_when_idle(stage: &Stage<'_>) -> Result<()> {
    stage.scene(
        "3. The turn ends; a build finishes while the agent is idle",
        "The harness listens to the conversation's stream. Streams carry hints, never text.",
    )?;
    stage.inject("turn_end", "turn_1_end", json!({}))?;
    let stream = stage.listen()?;
    stage.publish(&[event(
        "task.background.complete",
        "ci",
        "info",
        json!({ "task_id": "build-17", "name": "nightly build", "result_summary": "2 warnings" }),
    )])?;
    stage.wait_for_wake(stream)?;
    stage.publish(&[event("session.resumed", "harness", "info", json!({ "exchanges": 4 }))])?;
    stage.inject("turn_start", "turn_2", json!({}))?;
    stage.explain("the build woke it; the budget's warning was waiting for a turn to begin, and so is told now.")
}

/// A sub-agent has its own mailbox; its result goes to the main agent.
fn sub_agent(stage: &Stage<'_>) -> Result<()> {
    stage
        .scene("4. A sub-agent works beside it", "Its failure is its own business; its result is the main agent's.")?;
    let mut own = failure("web_fetch", "dns", "no such host");
    own["agent"] = json!("researcher");
    stage.publish(&[own])?;
    stage.inject("after_tool", "r_1", json!({ "agent": "researcher", "tool_result": "fetch failed" }))?;
    stage.publish(&[event(
        "subagent.complete",
        "researcher",
        "info",
        json!({ "task_id": "r-1", "name": "researcher", "result_summary": "three sources agree, one does not" }),
    )])?;
    stage.inject("after_tool", "call_5", json!({ "tool_result": "Tests passed." }))?;
    Ok(())
}

/// More notifications than the requested maximum: the rest is counted, and low priorities are folded.
fn overflow(stage: &Stage<'_>) -> Result<()> {
    stage.scene(
        "5. More news than fits, and a budget that is used up",
        "The harness asks for at most three items. What is left out says so; at a turn's start the minor rest is folded.",
    )?;
    let note = |number: usize| {
        event("agent.self.notify", "planner", "info", json!({ "message": format!("step {number} is done") }))
    };
    let failed =
        event("delivery.failed", "mail", "warning", json!({ "channel": "email", "error_message": "mailbox full" }));
    let saved = event("task.checkpoint", "runner", "info", json!({ "message": "state saved", "turn": 2 }));
    let context =
        event("context.limit.warning", "harness", "warning", json!({ "percentage": 80, "remaining": 40_000 }));
    let spent = event("budget.token.exceeded", "budget", "critical", json!({ "current": 50_120, "limit": 50_000 }));
    let notes: Vec<Value> = (1..=6).map(note).collect();
    stage.publish(&[vec![failed, saved, context, spent], notes].concat())?;
    stage.inject("turn_start", "turn_3", json!({ "max_items": 3 }))?;
    stage.explain("critical first, then high; the rest is not lost and not silent: it is counted, line by line.")
}

fn failure(tool: &str, error: &str, message: &str) -> Value {
    let payload = json!({ "tool_name": tool, "error_type": error, "error_message": message });
    event("tool.call.failure", "tool_executor", "error", payload)
}

fn changed(path: &str) -> Value {
    event("source.file.changed", "file_watcher", "info", json!({ "path": path }))
}

fn event(kind: &str, source: &str, severity: &str, payload: Value) -> Value {
    json!({ "type": kind, "source": source, "severity": severity, "payload": payload })
}
