//! The largest possible mailbox: every part filled to its bound, with the longest names.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwire_core::inject::InjectLimits;
use bellwire_core::mailbox::{EventLookup, InjectInput, PENDING_MAX};
use bellwire_core::subscriber::SubscriberFile;
use bellwire_core::{
    Boundary, Effect, Event, EventId, Ids, Inject, InjectionPoint, Input, Mailbox, MailboxContext, MailboxKind,
    Severity, Subscribers, Time,
};
use serde_json::{Value, json};

/// A mailbox and the inputs that make it as large as possible.
pub(crate) struct Adversary {
    pub(crate) mailbox: Mailbox,
    context: MailboxContext,
    sources: u64,
    calls: u32,
}

/// The bounds on batches, held events and windows.
const BATCHES: usize = 32;
const HELD: usize = 128;
const WINDOWS: usize = 1024;
/// From here on a count takes two bytes.
const REPEATS: usize = 128;

impl Adversary {
    pub(crate) fn new() -> Self {
        let batches =
            (0..BATCHES + 8).map(|number| file(&format!("flood.batch.b{number}"), 10_000, 1_000, "turn_start"));
        let windows = [file("flood.window", 0, 60_000, "after_tool")];
        let files: Vec<_> = batches.chain(windows).collect();
        let loaded =
            Subscribers::load(&files, &BTreeMap::from([("t".to_owned(), "{{ events[0].message }}".to_owned())]));
        assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
        let mut context = MailboxContext::new(Arc::new(loaded.subscribers), Ids::seeded(1));
        context.now = Time::from_millis(1_767_000_000_000);
        Self { mailbox: Mailbox::new(MailboxKind::MainAgent, [0xff; 16]), context, sources: 0, calls: 0 }
    }

    /// Six wakes within an hour.
    pub(crate) fn wake_often(&mut self) {
        for number in 0..10 {
            self.publish("flood.window", json!({}), &format!("wake {number}"));
            self.sleep(1_000);
        }
    }

    /// Opens as many batches as possible, full of events that all have repeats.
    pub(crate) fn fill_batches(&mut self) {
        for number in 0..HELD {
            let kind = format!("flood.batch.b{}", number % BATCHES);
            let (payload, key) = (json!({ "k": number }), format!("held {number}"));
            self.publish_from(&format!("{kind:-<64}"), &kind, payload.clone(), &key);
            (0..REPEATS).for_each(|_| self.publish(&kind, payload.clone(), &key));
        }
        self.sleep(1_000);
    }

    /// Opens as many windows as possible, all with repeats, reported and unreported.
    pub(crate) fn fill_windows(&mut self) {
        for chunk in (0..WINDOWS).collect::<Vec<_>>().chunks(InjectLimits::ITEMS_MOST) {
            for number in chunk {
                for _ in 0..=REPEATS {
                    self.publish("flood.window", json!({}), &format!("window {number}"));
                }
            }
            self.take();
        }
        for number in 0..WINDOWS {
            self.publish("flood.window", json!({}), &format!("window {number}"));
        }
    }

    /// Queues more notifications than the bound.
    pub(crate) fn fill_queue(&mut self) {
        for number in 0..2 * PENDING_MAX {
            self.publish("flood.window", json!({}), &format!("queue {number}"));
        }
        assert_eq!(self.mailbox.pending().len(), PENDING_MAX + 1);
    }

    /// Tool calls with the longest names, and budgets with the largest numbers.
    pub(crate) fn feed_detectors(&mut self) {
        let most = u64::MAX;
        let usage = json!({
            "tokens_used": most, "token_limit": most, "iterations": most, "iteration_limit": most,
            "context_used": most, "context_limit": most, "elapsed_ms": most, "time_limit_ms": most,
        });
        for number in 0..40 {
            let payload = json!({"tool_name": "🙂".repeat(60), "arguments": {"n": number}, "usage": usage});
            self.publish("tool.call.success", payload, "call");
        }
    }

    pub(crate) fn sleep(&mut self, millis: u64) {
        self.context.now = self.context.now.plus(millis);
        self.handle(Input::Time);
    }

    /// Every event has its own source with the longest name, so that none is suppressed.
    fn publish(&mut self, kind: &str, payload: Value, key: &str) {
        self.sources += 1;
        self.publish_from(&format!("{:064}", self.sources), kind, payload, key);
    }

    fn publish_from(&mut self, source: &str, kind: &str, payload: Value, key: &str) {
        let event = Event::new(kind, source, Severity::Error, payload).and_then(|event| event.with_dedupe_key(key));
        let event = event.expect("it is well formed").with_id(self.context.ids.event(self.context.now));
        self.handle(Input::Event(&event));
    }

    fn take(&mut self) {
        self.calls += 1;
        let mut request = Inject::new(InjectionPoint::AfterTool, &format!("call {}", self.calls)).expect("it is short");
        request.limits =
            InjectLimits::new(InjectLimits::ITEMS_MOST, InjectLimits::TOKENS_MOST).expect("these are the limits");
        let boundary = Boundary::from_seed(7);
        let input = InjectInput { request: &request, observed: None, events: &Gone, boundary: &boundary };
        self.handle(Input::Inject(input));
    }

    fn handle(&mut self, input: Input<'_>) {
        self.mailbox.handle(input, &mut self.context).expect("only messages of a person are refused");
        while let Some(effect) = self.context.poll() {
            drop::<Effect>(effect);
        }
        assert!(self.mailbox.pending().len() <= PENDING_MAX + 1);
    }

    /// The saved size if every counter had its maximum, which would take longer than its window lasts. Also checks that
    /// the saved bytes can be loaded.
    pub(crate) fn size(&self) -> usize {
        let saved = self.mailbox.save();
        let loaded = Mailbox::load(&saved, self.mailbox.pending().to_vec()).expect("a saved mailbox can be loaded");
        assert!(loaded.save() == saved, "a loaded mailbox differs from the saved one");
        let wider = 5 - 2;
        // A saved window has a fixed size.
        saved.len() + HELD * wider
    }
}

/// A subscriber with the longest id.
fn file(kind: &str, window_ms: u64, dedupe_window_ms: u64, inject_at: &str) -> SubscriberFile {
    let id = format!("{:_<64}", kind.replace('.', "_"));
    let text = format!(
        "[subscriber]\nid = \"{id}\"\nname = \"Flood\"\ndescription = \"Takes everything\"\nversion = \"1.0.0\"\n\
         [events]\ntypes = [\"{kind}\"]\n\
         [batching]\nwindow_ms = {window_ms}\nmax_size = 100\ndedupe_window_ms = {dedupe_window_ms}\n\
         [output]\npriority = \"high\"\ninject_at = \"{inject_at}\"\ntemplate = \"t\"\nactivation = \"wake\"\n\
         replace_key = \"payload.k\"\nttl_ms = 2592000000\n"
    );
    SubscriberFile { path: format!("{kind}.toml"), text }
}

/// Finds no events: only the size of the mailbox matters here.
struct Gone;

impl EventLookup for Gone {
    fn event(&self, _: EventId) -> Option<Arc<Event>> {
        None
    }
}
