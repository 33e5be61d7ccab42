//! Random timelines: the inputs of a conversation, step by step.

use bellwire_core::conversation::{CallOutcome, ObservedCall};
use bellwire_core::inject::{Shape, Style};
use bellwire_core::{InjectionPoint, Severity};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::custom::{Custom, custom};
use super::texts::{event_type, hostile_text, payload, source};

/// All inputs of one conversation.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pub(crate) seed: u64,
    pub(crate) customs: Vec<Custom>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An event is published, perhaps many times.
    Publish { agent: usize, event: EventStep, times: u32 },
    /// The person sends a message, perhaps many times.
    Say { agent: usize, text: String, times: u32 },
    /// An agent reaches an injection point.
    Inject(InjectStep),
    /// An agent repeats an old call id, perhaps at another point.
    AskAgain { back: usize, point: InjectionPoint },
    /// The clock advances and no timer is handled.
    Sleep(u64),
    /// The clock advances and every timer is handled when it is due.
    Run(u64),
    /// The clock is set back.
    Rewind(u64),
    /// The next timer is handled when it is due.
    Tick,
    /// The person switches off every subscriber whose bit is set, except core ones.
    Prefer(u32),
    /// The operator changes the custom subscribers and may remove a bundled one. `forgetting`: the hub was down, so
    /// that it has no retired subscribers.
    Reload { customs: Vec<Custom>, without: Vec<&'static str>, forgetting: bool },
    /// A compaction: the boundary changes.
    Rotate,
}

#[derive(Clone, Debug)]
pub(crate) struct EventStep {
    pub(crate) kind: &'static str,
    pub(crate) source: &'static str,
    pub(crate) severity: Severity,
    pub(crate) payload: Value,
    pub(crate) dedupe_key: Option<&'static str>,
    pub(crate) by_agent: bool,
    /// Several events differ in `payload.n`.
    pub(crate) distinct: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct InjectStep {
    pub(crate) agent: usize,
    pub(crate) point: InjectionPoint,
    pub(crate) style: Style,
    pub(crate) shape: Shape,
    pub(crate) items_max: usize,
    pub(crate) tokens_max: usize,
    pub(crate) wake_only: bool,
    pub(crate) observed: Option<ObservedCall>,
    /// Which of the latest injections the model never saw, as bits.
    pub(crate) unseen: u8,
}

pub(crate) fn timelines() -> impl Strategy<Value = Timeline> {
    (any::<u64>(), prop::collection::vec(custom(), 0..4), prop::collection::vec(step(), 1..50))
        .prop_map(|(seed, customs, steps)| Timeline { seed, customs, steps })
}

/// Mostly storms.
pub(crate) fn storms() -> impl Strategy<Value = Timeline> {
    let many = prop_oneof![2 => 450..1200_u32, 1 => 1..20_u32];
    let step = prop_oneof![
        3 => (event(), many).prop_map(|(event, times)| Step::Publish { agent: 0, event, times }),
        1 => (0..12_000_u64).prop_map(Step::Sleep),
        1 => inject().prop_map(Step::Inject),
    ];
    (any::<u64>(), prop::collection::vec(custom(), 1..4), prop::collection::vec(step, 3..9))
        .prop_map(|(seed, customs, steps)| Timeline { seed, customs, steps })
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => (agent(), event(), times()).prop_map(|(agent, event, times)| Step::Publish { agent, event, times }),
        4 => (agent(), message(), prop_oneof![12 => Just(1_u32), 1 => 2..260_u32])
            .prop_map(|(agent, text, times)| Step::Say { agent, text, times }),
        22 => inject().prop_map(Step::Inject),
        3 => (0..4_usize, point()).prop_map(|(back, point)| Step::AskAgain { back, point }),
        12 => millis().prop_map(Step::Sleep),
        6 => millis().prop_map(Step::Run),
        2 => millis().prop_map(Step::Rewind),
        6 => Just(Step::Tick),
        2 => any::<u32>().prop_map(Step::Prefer),
        3 => (prop::collection::vec(custom(), 0..4), prop::collection::vec(removed(), 0..2), prop::bool::weighted(0.2))
            .prop_map(|(customs, without, forgetting)| Step::Reload { customs, without, forgetting }),
        1 => Just(Step::Rotate),
    ]
}

/// A message of the person, never blank.
fn message() -> impl Strategy<Value = String> {
    hostile_text().prop_map(|text| if text.trim().is_empty() { "word".to_owned() } else { text })
}

pub(crate) fn event() -> impl Strategy<Value = EventStep> {
    let severity = prop_oneof![3 => Just(Severity::Error), 1 => select(severities())];
    let dedupe_key = prop_oneof![8 => Just(None), 1 => Just(Some("mine")), 1 => Just(Some("ci"))];
    (event_type(), source(), severity, payload(), dedupe_key, prop::bool::weighted(0.1), any::<bool>()).prop_map(
        |(kind, source, severity, payload, dedupe_key, by_agent, distinct)| EventStep {
            kind,
            source,
            severity,
            payload,
            dedupe_key,
            by_agent,
            distinct,
        },
    )
}

pub(crate) fn inject() -> impl Strategy<Value = InjectStep> {
    let how = (select(Shape::ALL), prop::bool::weighted(0.1));
    let style = prop_oneof![2 => Just(Style::Block), 1 => Just(Style::Append), 1 => Just(Style::Synthetic)];
    let limits = (
        prop_oneof![3 => Just(10_usize), 2 => 1..6_usize, 1 => 1..=100_usize],
        prop_oneof![3 => Just(1000_usize), 2 => 64..90_usize, 1 => 64..3000_usize],
    );
    let observed = prop::option::weighted(0.3, observed());
    let unseen = prop_oneof![4 => Just(0_u8), 1 => any::<u8>()];
    (agent(), point(), style, how, limits, observed, unseen).prop_map(
        |(agent, point, style, (shape, wake_only), (items_max, tokens_max), observed, unseen)| InjectStep {
            agent,
            point,
            style,
            shape,
            items_max,
            tokens_max,
            wake_only,
            observed,
            unseen,
        },
    )
}

fn observed() -> impl Strategy<Value = ObservedCall> {
    let outcome = select(&[CallOutcome::Success, CallOutcome::Failure, CallOutcome::Timeout][..]);
    (select(&["grep", "sed"][..]), outcome, prop::option::of(hostile_text()), payload()).prop_map(
        |(tool, outcome, error_message, payload)| {
            let (arguments, usage) = (payload.get("arguments").cloned(), payload.get("usage").cloned());
            ObservedCall { error_message, arguments, usage, ..ObservedCall::new(tool, outcome) }
        },
    )
}

pub(crate) fn point() -> impl Strategy<Value = InjectionPoint> {
    select(InjectionPoint::ALL)
}

fn agent() -> impl Strategy<Value = usize> {
    prop_oneof![5 => Just(0_usize), 1 => Just(1_usize)]
}

fn times() -> impl Strategy<Value = u32> {
    prop_oneof![60 => Just(1_u32), 16 => 2..15_u32, 1 => 100..300_u32, 1 => 450..1200_u32]
}

/// From 0 to more than a day, with values around every limit.
fn millis() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 0..3_u64,
        3 => 100..3_000_u64,
        2 => select(&[500, 1_000, 1_999, 2_000, 5_000, 10_000, 29_999, 30_000, 60_000, 600_000][..]),
        2 => 3_000..70_000_u64,
        1 => 70_000..5_000_000_u64,
        1 => 5_000_000..100_000_000_u64,
    ]
}

fn removed() -> impl Strategy<Value = &'static str> {
    select(&["tool_failure", "user_message", "turn_summary", "source_stale", "self_notify", "budget_warning"][..])
}

fn severities() -> &'static [Severity] {
    &[Severity::Debug, Severity::Info, Severity::Warning, Severity::Error, Severity::Critical]
}
