use std::collections::VecDeque;
use std::hash::Hasher as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use siphasher::sip::SipHasher13;

use crate::Time;
use crate::event::{Event, HashKey, Payload, Severity, cut, entries_fingerprint, fingerprint};

/// The number of repetitions that make a loop.
const REPETITIONS: u32 = 3;
/// The longest cycle detected, in tool calls.
const CYCLE_MAX: usize = 6;
/// A loop's first call lies within this many turns …
const TURNS: u32 = 6;
/// … or within this many milliseconds.
const WINDOW_MS: u64 = 60_000;
/// The maximum length of a tool's name in a pattern, in characters.
const NAME_MAX: usize = 40;
/// Arguments that do not change what a call does; they are ignored when calls are compared.
const INCIDENTAL: [&str; 6] = ["description", "explanation", "reason", "thought", "timeout", "timeout_ms"];

/// Detects loops: the same call, or the same cycle of calls, three times in a row without other calls between.
///
/// Calls are equal if tool and arguments are, apart from `INCIDENTAL` arguments. So reading a file in parts, or running
/// tests after each of several different edits, is not a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Repetition {
    calls: VecDeque<RecordedCall>,
    turn: u32,
    running: Option<ActiveLoop>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RecordedCall {
    signature: u64,
    tool: Arc<str>,
    at: Time,
    turn: u32,
}

/// The loop the agent is in. It is reported again when its repetitions have doubled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ActiveLoop {
    /// The length of the cycle, in calls: 1 to `CYCLE_MAX`.
    cycle: u32,
    calls: u32,
    /// The number of repetitions at which the next report is due.
    report_at: u32,
    since: Time,
}

impl Repetition {
    /// Starts a turn. A second start before any call (an event and an injection point report the same one) is ignored.
    pub(crate) fn next_turn(&mut self) {
        if self.calls.back().is_some_and(|call| call.turn == self.turn) {
            self.turn = self.turn.saturating_add(1);
        }
    }

    /// Records a finished call; returns an event if it completes or doubles a loop.
    pub(crate) fn observe(&mut self, payload: &Payload, now: Time, secret: &HashKey) -> Option<Event> {
        let tool = payload.get("tool_name")?.as_str()?;
        let arguments = payload.get("arguments")?;
        let call = RecordedCall {
            signature: signature(tool, arguments, secret),
            tool: self.name(tool),
            at: now,
            turn: self.turn,
        };
        while self.calls.len() >= CYCLE_MAX * REPETITIONS as usize {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
        if self.continues(now) { self.continue_loop() } else { self.begin(now) }
    }

    /// The tool's name, shared with an earlier call of the same tool to save memory.
    fn name(&self, tool: &str) -> Arc<str> {
        let known = self.calls.iter().rev().find(|call| &*call.tool == tool);
        known.map_or_else(|| cut(tool, NAME_MAX).into(), |call| call.tool.clone())
    }

    /// Drops calls too old to be part of a loop.
    pub(crate) fn compact(&mut self, now: Time) {
        let turn = self.turn;
        self.calls.retain(|call| is_recent(call, turn, now));
        self.calls.shrink_to_fit();
        if self.calls.is_empty() {
            *self = Self::default();
        }
    }

    /// Moves the calls back by this many milliseconds.
    pub(crate) fn set_back(&mut self, millis: u64) {
        let calls = self.calls.iter_mut().map(|call| &mut call.at);
        calls.chain(self.running.as_mut().map(|running| &mut running.since)).for_each(|at| *at = at.minus(millis));
    }

    /// Whether the loaded state satisfies the invariants that the arithmetic below relies on.
    pub(crate) fn is_valid(&self) -> bool {
        let cycles = 1..=CYCLE_MAX as u32;
        self.running.as_ref().is_none_or(|running| cycles.contains(&running.cycle))
            && self.calls.iter().all(|call| call.turn <= self.turn)
    }

    /// Whether the newest call continues the current loop.
    fn continues(&self, now: Time) -> bool {
        let Some(running) = &self.running else { return false };
        let newest = self.calls.len() - 1;
        let before = newest.checked_sub(running.cycle as usize);
        before
            .map(|before| &self.calls[before])
            .is_some_and(|before| before.signature == self.calls[newest].signature && is_recent(before, self.turn, now))
    }

    fn continue_loop(&mut self) -> Option<Event> {
        let running = self.running.as_mut()?;
        running.calls = running.calls.saturating_add(1);
        let repetitions = running.calls / running.cycle;
        if running.calls % running.cycle != 0 || repetitions < running.report_at {
            return None;
        }
        running.report_at = repetitions.saturating_mul(2);
        let (cycle, since) = (running.cycle as usize, running.since);
        Some(self.report(cycle, repetitions, since))
    }

    /// Looks for the shortest cycle that the newest calls repeat three times.
    fn begin(&mut self, now: Time) -> Option<Event> {
        self.running = None;
        let cycle = (1..=CYCLE_MAX).find(|cycle| self.repeats(*cycle, now))?;
        let calls = cycle * REPETITIONS as usize;
        let since = self.calls[self.calls.len() - calls].at;
        self.running = Some(ActiveLoop { cycle: cycle as u32, calls: calls as u32, report_at: 2 * REPETITIONS, since });
        Some(self.report(cycle, REPETITIONS, since))
    }

    fn repeats(&self, cycle: usize, now: Time) -> bool {
        let Some(start) = self.calls.len().checked_sub(cycle * REPETITIONS as usize) else { return false };
        let same =
            (start + cycle..self.calls.len()).all(|at| self.calls[at].signature == self.calls[at - cycle].signature);
        same && is_recent(&self.calls[start], self.turn, now)
    }

    fn report(&self, cycle: usize, repetitions: u32, since: Time) -> Event {
        let newest = self.calls.len() - cycle;
        let tools: Vec<&str> = self.calls.range(newest..).map(|call| &*call.tool).collect();
        let last = self.calls.back().map_or(since, |call| call.at);
        let payload = json!({
            "pattern": tools.join(" → "),
            "repetitions": repetitions,
            "window_seconds": last.millis_since(since).div_ceil(1000),
        });
        let Value::Object(payload) = payload else { unreachable!("the macro made an object") };
        Event::internal("agent.loop.detected", "loop_detector", Severity::Critical, Payload::known(payload))
    }
}

fn is_recent(call: &RecordedCall, turn: u32, now: Time) -> bool {
    turn - call.turn < TURNS || call.at.plus(WINDOW_MS) > now
}

fn signature(tool: &str, arguments: &Value, secret: &HashKey) -> u64 {
    let of_arguments = match arguments {
        Value::Object(map) => {
            entries_fingerprint(map.iter().filter(|(key, _)| !INCIDENTAL.contains(&key.as_str())), secret)
        }
        other => fingerprint(other, secret),
    };
    let mut hasher = SipHasher13::new_with_key(secret);
    hasher.write(tool.as_bytes());
    hasher.finish() ^ of_arguments as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Agent {
        repetition: Repetition,
        now: i64,
    }

    impl Agent {
        fn calls(&mut self, tool: &str, arguments: Value) -> Option<String> {
            self.now += 1_000;
            let payload = Payload::from_json(json!({"tool_name": tool, "arguments": arguments})).unwrap();
            let event = self.repetition.observe(&payload, Time::from_millis(self.now), &[1; 16])?;
            Some(serde_json::to_string(event.payload().as_map()).unwrap())
        }
    }

    #[test]
    fn the_third_equal_call_in_a_row_is_a_loop() {
        let mut agent = Agent::default();
        assert_eq!(agent.calls("search", json!({"query": "x"})), None);
        assert_eq!(agent.calls("search", json!({"query": "x", "description": "again"})), None);
        let detected = agent.calls("search", json!({"query": "x"})).unwrap();
        assert_eq!(detected, r#"{"pattern":"search","repetitions":3,"window_seconds":2}"#);
    }

    #[test]
    fn a_loop_is_reported_again_when_its_repetitions_have_doubled() {
        let mut agent = Agent::default();
        let detected: Vec<usize> = (1..=24).filter(|_| agent.calls("search", json!({})).is_some()).collect();
        assert_eq!(detected, [3, 6, 12, 24]);
    }

    #[test]
    fn a_cycle_of_several_tools_is_a_loop() {
        let mut agent = Agent::default();
        let mut detected = Vec::new();
        for _ in 0..3 {
            for tool in ["search", "parse", "write"] {
                detected.extend(agent.calls(tool, json!({"path": "a"})));
            }
        }
        assert_eq!(detected, [r#"{"pattern":"search → parse → write","repetitions":3,"window_seconds":8}"#]);
    }

    #[test]
    fn the_same_test_after_different_edits_is_not_a_loop() {
        let mut agent = Agent::default();
        for edit in 0..10 {
            assert_eq!(agent.calls("edit", json!({"path": "a", "text": edit})), None);
            assert_eq!(agent.calls("test", json!({})), None);
        }
    }

    #[test]
    fn equal_calls_far_apart_in_time_and_turns_are_not_a_loop() {
        let mut agent = Agent::default();
        for _ in 0..5 {
            agent.now += 61_000;
            assert_eq!(agent.calls("status", json!({})), None);
            for other in 0..TURNS {
                agent.repetition.next_turn();
                agent.calls("other", json!({ "number": other, "round": agent.now }));
            }
        }
    }

    #[test]
    fn slow_repeats_within_six_turns_are_a_loop() {
        let mut agent = Agent::default();
        let mut detected = None;
        for _ in 0..3 {
            agent.now += 120_000;
            agent.repetition.next_turn();
            detected = agent.calls("status", json!({}));
        }
        assert!(detected.is_some());
    }
}
