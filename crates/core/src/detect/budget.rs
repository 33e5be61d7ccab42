use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Detection;
use crate::event::{Event, Payload, Severity};

/// The state of the four budgets. Each threshold is reported once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Budgets {
    reported: [BudgetState; BUDGETS.len()],
}

/// Which thresholds of a budget were reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct BudgetState {
    /// The latest limit. A higher one starts a new budget.
    limit: u64,
    warned: bool,
    exceeded: bool,
}

struct Budget {
    name: &'static str,
    used: &'static str,
    limit: &'static str,
    warn_percent: u64,
    warning: &'static str,
    exceeded: Option<&'static str>,
    /// Whether use can fall under the same limit, as a context does when it is compacted.
    refills: bool,
}

const BUDGETS: [Budget; 4] = [
    Budget {
        name: "token",
        used: "tokens_used",
        limit: "token_limit",
        warn_percent: 80,
        warning: "budget.token.warning",
        exceeded: Some("budget.token.exceeded"),
        refills: false,
    },
    Budget {
        name: "iteration",
        used: "iterations",
        limit: "iteration_limit",
        warn_percent: 70,
        warning: "budget.iteration.warning",
        exceeded: Some("budget.iteration.exceeded"),
        refills: false,
    },
    Budget {
        name: "context",
        used: "context_used",
        limit: "context_limit",
        warn_percent: 70,
        warning: "context.limit.warning",
        exceeded: None,
        refills: true,
    },
    Budget {
        name: "timeout",
        used: "elapsed_ms",
        limit: "time_limit_ms",
        warn_percent: 80,
        warning: "budget.timeout.warning",
        exceeded: None,
        refills: false,
    },
];

impl Budgets {
    /// Adds to `detected`, for each budget in this `usage` object: the event of a threshold crossed for the first time;
    /// otherwise, if `measure` is set, the measurement.
    pub(crate) fn observe(&mut self, usage: &Map<String, Value>, measure: bool, detected: &mut Vec<Detection>) {
        for (budget, reported) in BUDGETS.iter().zip(&mut self.reported) {
            let (Some(used), Some(limit)) = (amount(usage, budget.used), amount(usage, budget.limit)) else { continue };
            if limit == 0 {
                continue;
            }
            let measured = Measured { used, limit };
            let crossed = budget.crossed(reported, measured);
            let warns = crossed.as_ref().is_some_and(|event| event.kind().as_str() == budget.warning);
            detected.extend(crossed.map(Detection::News));
            // A warning that waits shows the newest measurement, also after the budget is used up or was raised.
            if measure && !warns {
                detected.push(Detection::Measurement(budget.event(budget.warning, Severity::Warning, measured)));
            }
        }
    }
}

/// The used amount of a budget and its limit, which is not 0.
#[derive(Copy, Clone)]
struct Measured {
    used: u64,
    limit: u64,
}

impl Measured {
    fn percent(self) -> u64 {
        u64::try_from(u128::from(self.used) * 100 / u128::from(self.limit)).unwrap_or(u64::MAX)
    }
}

impl Budget {
    /// The event for a newly crossed threshold. If both are crossed at once, only `exceeded` is reported.
    fn crossed(&self, reported: &mut BudgetState, measured: Measured) -> Option<Event> {
        let (limit, percent) = (measured.limit, measured.percent());
        // A raised limit or a compacted context starts again.
        let compacted = self.refills && percent < self.warn_percent / 2;
        if limit > reported.limit || compacted {
            *reported = BudgetState::default();
        }
        reported.limit = limit;
        if let Some(kind) = self.exceeded
            && percent >= 100
        {
            reported.warned = true;
            let first = !std::mem::replace(&mut reported.exceeded, true);
            return first.then(|| self.event(kind, Severity::Critical, measured));
        }
        let first = percent >= self.warn_percent && !std::mem::replace(&mut reported.warned, true);
        first.then(|| self.event(self.warning, Severity::Warning, measured))
    }

    fn event(&self, kind: &'static str, severity: Severity, measured: Measured) -> Event {
        let Measured { used, limit } = measured;
        let payload = json!({
            "budget_type": self.name,
            "current": used,
            "limit": limit,
            "percentage": measured.percent(),
            "remaining": limit.saturating_sub(used),
        });
        let Value::Object(payload) = payload else { unreachable!("the macro made an object") };
        Event::internal(kind, "budget_monitor", severity, Payload::known(payload))
    }
}

/// A non-negative count, given as a JSON number or as a string.
fn amount(usage: &Map<String, Value>, key: &str) -> Option<u64> {
    match usage.get(key)? {
        Value::Number(number) => {
            number.as_u64().or_else(|| Some(number.as_f64().filter(|float| *float >= 0.0)? as u64))
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(budgets: &mut Budgets, usage: Value) -> Vec<String> {
        observed(budgets, usage, false)
    }

    fn observed(budgets: &mut Budgets, usage: Value, measure: bool) -> Vec<String> {
        let mut detected = Vec::new();
        budgets.observe(usage.as_object().unwrap(), measure, &mut detected);
        let percent = |event: &Event| event.payload().get("percentage").unwrap().to_string();
        let line = |detection: &Detection| match detection {
            Detection::News(event) => format!("{} {}", event.kind(), percent(event)),
            Detection::Measurement(event) => format!("measured {} {}", event.kind(), percent(event)),
        };
        detected.iter().map(line).collect()
    }

    #[test]
    fn while_a_warning_may_wait_every_measurement_is_returned() {
        let mut budgets = Budgets::default();
        let mut tokens =
            |used: u64, limit: u64| observed(&mut budgets, json!({"tokens_used": used, "token_limit": limit}), true);
        assert_eq!(tokens(700, 1000), ["measured budget.token.warning 70"]);
        assert_eq!(tokens(840, 1000), ["budget.token.warning 84"]);
        assert_eq!(tokens(960, 1000), ["measured budget.token.warning 96"]);
        assert_eq!(tokens(1010, 1000), ["budget.token.exceeded 101", "measured budget.token.warning 101"]);
        assert_eq!(tokens(1010, 4000), ["measured budget.token.warning 25"]);
    }

    #[test]
    fn each_threshold_is_reported_once() {
        let mut budgets = Budgets::default();
        let mut tokens = |used: u64| detected(&mut budgets, json!({"tokens_used": used, "token_limit": 1000}));
        assert!(tokens(799).is_empty());
        assert_eq!(tokens(800), ["budget.token.warning 80"]);
        assert!(tokens(950).is_empty());
        assert_eq!(tokens(1000), ["budget.token.exceeded 100"]);
        assert!(tokens(2000).is_empty());
    }

    #[test]
    fn a_jump_past_both_thresholds_reports_only_exceeded() {
        let mut budgets = Budgets::default();
        let shown = detected(&mut budgets, json!({"iterations": 30, "iteration_limit": 30}));
        assert_eq!(shown, ["budget.iteration.exceeded 100"]);
    }

    #[test]
    fn a_raised_budget_warns_again() {
        let mut budgets = Budgets::default();
        assert_eq!(
            detected(&mut budgets, json!({"tokens_used": 900, "token_limit": 1000})),
            ["budget.token.warning 90"]
        );
        assert!(detected(&mut budgets, json!({"tokens_used": 950, "token_limit": 2000})).is_empty());
        assert_eq!(
            detected(&mut budgets, json!({"tokens_used": 1700, "token_limit": 2000})),
            ["budget.token.warning 85"]
        );
    }

    #[test]
    fn a_budget_that_is_lowered_and_raised_again_warns_again() {
        let mut budgets = Budgets::default();
        let mut tokens =
            |used: u64, limit: u64| detected(&mut budgets, json!({"tokens_used": used, "token_limit": limit}));
        assert_eq!(tokens(850, 1000), ["budget.token.warning 85"]);
        assert!(tokens(850, 900).is_empty());
        assert_eq!(tokens(950, 900), ["budget.token.exceeded 105"]);
        assert_eq!(tokens(950, 1000), ["budget.token.warning 95"]);
        assert_eq!(tokens(1000, 1000), ["budget.token.exceeded 100"]);
    }

    #[test]
    fn a_compacted_context_can_warn_again() {
        let mut budgets = Budgets::default();
        let mut context = |used: u64| detected(&mut budgets, json!({"context_used": used, "context_limit": 100}));
        assert_eq!(context(72), ["context.limit.warning 72"]);
        assert!(context(40).is_empty());
        assert!(context(75).is_empty());
        assert!(context(10).is_empty());
        assert_eq!(context(71), ["context.limit.warning 71"]);
    }

    #[test]
    fn invalid_amounts_are_ignored() {
        let mut budgets = Budgets::default();
        for usage in [
            json!({"tokens_used": 5, "token_limit": 0}),
            json!({"tokens_used": -5, "token_limit": 10}),
            json!({"tokens_used": "many", "token_limit": 10}),
            json!({"tokens_used": 5}),
            json!({"tokens_used": u64::MAX, "token_limit": null}),
        ] {
            assert!(detected(&mut budgets, usage).is_empty());
        }
        let most = json!({"tokens_used": u64::MAX, "token_limit": 1});
        assert_eq!(detected(&mut budgets, most).len(), 1);
    }
}
