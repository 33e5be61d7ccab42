//! A store whose commits fail at random gives the same answers as one whose commits never fail.
//!
//! The same random commands go to the memory store, which is the model, and to SQLite, where a second connection makes a
//! table fail: by a trigger that makes the commit fail, in each of the ways in which a statement can fail, or by renaming
//! it, so that reads fail too, at any point of a command. Failed commands are repeated. Every answer must equal the model's.
//!
//! Every simulation follows from its seed, which a failure prints. `BELLWIRE_SIM_SEEDS=200` runs more of them,
//! `BELLWIRE_SIM_FIRST=17` begins with that one.

use std::cell::Cell;
use std::collections::HashMap;

use bellwire_core::InjectionPoint::{AfterTool, Immediate, TurnEnd, TurnStart};
use bellwire_core::conversation::{CallOutcome, ObservedCall};
use bellwire_core::event::AgentName;
use bellwire_core::notify::{ErrorClass, Intent, NotifyError};
use bellwire_core::person::{ChannelName, MessageType, PersonSettings, SettingsChange};
use bellwire_core::{Event, Severity};
use bellwire_store::{
    AttemptEnd, AttemptStart, Caller, Claimant, ClientEventId, Delivery, ErrorKind, InboxItem, InboxQuery, InboxState,
    IncomingEvent, InjectCommand, LedgerQuery, NotificationContent, NotificationDraft, NotifyClaim, NotifyClaimed,
    NotifyEnd, NotifyEnding, NotifyRecipient, Publish, Purpose, SentFrom, SettingsRequest, Store, StoreError,
};
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::backends::{Backend, email, email_to, event, inject_command};
use crate::outbox_counts;

const SEEDS: u64 = 2;
const COMMANDS: u64 = 250;

#[tokio::test]
async fn a_store_whose_commits_fail_says_what_one_says_whose_commits_never_do() {
    let first = setting("BELLWIRE_SIM_FIRST").unwrap_or(1);
    for seed in first..first + setting("BELLWIRE_SIM_SEEDS").unwrap_or(SEEDS) {
        println!("BELLWIRE_SIM_FIRST={seed} BELLWIRE_SIM_SEEDS=1 shows this again");
        let failures = simulate(Dice(seed)).await;
        assert!(failures > COMMANDS / 20, "only {failures} commits failed: the simulation does not test much");
    }
}

async fn simulate(mut dice: Dice) -> u64 {
    let (model, mut store) = (Backend::memory().await, Backend::sqlite().await);
    let (mut model_names, mut store_names) = (Names::default(), Names::default());
    let (mut history, mut failures) = (Vec::new(), 0);
    for number in 0..COMMANDS {
        let command = Command::random(number, &mut dice);
        let passed = dice.below(4) * dice.below(1_500);
        for backend in [&model, &store] {
            backend.pass(i64::try_from(passed).unwrap());
        }
        if dice.percent(8) {
            store.restart().await;
        }
        let wanted = model_names.hide(&command.give(&model, &Fault::none()).await.unwrap_or_else(refusal));
        let fault = Fault::random(&mut dice);
        let given = store_names.hide(&command.give(&store, &fault).await.unwrap_or_else(refusal));
        failures += fault.happened.get();
        history.push(format!("+{passed} ms {command:?}"));
        assert_eq!(given, wanted, "command {number}, after:\n{}", history.join("\n"));
    }
    failures
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// A refusal is an answer too.
fn refusal(error: StoreError) -> String {
    format!("{:?}: {error}", error.kind)
}

const FAULT: &str = "an injected fault";
/// The way in which every read of a table fails.
const GONE: &str = "GONE";

/// Where a commit fails, and how; none = it does not.
struct Fault {
    at: Option<(&'static str, &'static str)>,
    happened: Cell<u64>,
}

impl Fault {
    fn none() -> Self {
        Self { at: None, happened: Cell::new(0) }
    }

    fn random(dice: &mut Dice) -> Self {
        let tables = [
            "events",
            "brought_ids",
            "mailbox_log",
            "mailboxes",
            "notifications",
            "injections",
            "conversations",
            "inbox",
            "inbox_positions",
            "deliveries",
            "reminders",
            "user_settings",
            "notify_requests",
            "ledger",
            "ledger_days",
        ];
        let ways = ["ABORT", "FAIL", "ROLLBACK", GONE, GONE, GONE];
        let at = dice.percent(50).then(|| (dice.choose(&tables), dice.choose(&ways)));
        Self { at, ..Self::none() }
    }

    /// One step under the fault, and again without it where it failed.
    async fn step<T>(&self, store: &Backend, step: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
        match self.during(store, &step).await {
            Err(error) if error.message.contains(FAULT) || error.message.contains("no such table") => {
                self.happened.set(self.happened.get() + 1);
                step().await
            }
            done => done,
        }
    }

    async fn during<T>(
        &self,
        store: &Backend,
        step: &impl AsyncFn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some((table, way)) = self.at else { return step().await };
        let mut file = SqliteConnectOptions::new().filename(store.path()).connect().await.unwrap();
        execute(&mut file, fault(table, way)).await;
        let given = step().await;
        execute(&mut file, repair(table, way)).await;
        file.close().await.unwrap();
        given
    }
}

fn fault(table: &str, way: &str) -> String {
    if way == GONE {
        return format!("ALTER TABLE {table} RENAME TO {table}_away");
    }
    let trigger = |moment: &str| {
        format!("CREATE TRIGGER fault_{moment} BEFORE {moment} ON {table} BEGIN SELECT RAISE({way}, '{FAULT}'); END;")
    };
    ["INSERT", "UPDATE", "DELETE"].map(trigger).concat()
}

fn repair(table: &str, way: &str) -> String {
    match way {
        GONE => format!("ALTER TABLE {table}_away RENAME TO {table}"),
        _ => "DROP TRIGGER fault_INSERT; DROP TRIGGER fault_UPDATE; DROP TRIGGER fault_DELETE".to_owned(),
    }
}

async fn execute(file: &mut SqliteConnection, sql: String) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(file).await.unwrap();
}

/// Something to ask of a store.
#[derive(Debug)]
enum Command {
    Publish(Vec<IncomingEvent>),
    Say(String),
    Inject(Box<InjectCommand>),
    Tick,
    View,
    Messages,
    PersonSettings(Vec<String>),
    Mail(String),
    Tell(String),
    ReadAll,
    Dismiss,
    Inbox,
    Deliver(bellwire_store::AttemptOutcome),
    Notify(Box<NotifyClaim>, NotifyEnding),
    Erase,
    Trace(String),
}

impl Command {
    fn random(number: u64, dice: &mut Dice) -> Self {
        match dice.below(100) {
            0..30 => Self::Publish((0..1 + dice.below(3)).map(|at| happening(number * 10 + at, dice)).collect()),
            30..40 => Self::for_people(number, dice),
            40..45 => Self::Say(format!("word {number}")),
            45..70 => Self::Inject(Box::new(asking(number, dice))),
            70..80 => Self::Tick,
            80..85 => Self::View,
            85..90 => Self::Messages,
            90..93 => Self::PersonSettings(if dice.percent(50) { vec!["source_stale".into()] } else { Vec::new() }),
            93..94 => Self::Erase,
            _ => Self::Trace(format!("name-{}", dice.below(number * 10 + 1))),
        }
    }

    fn for_people(number: u64, dice: &mut Dice) -> Self {
        use bellwire_store::AttemptOutcome::{Refused, Sent, TryAgain, Unknown};
        let reason = || "because".to_owned();
        match dice.below(16) {
            12.. => notifying(dice),
            0..4 => Self::Tell(format!("news {number}")),
            4 => Self::ReadAll,
            5 | 6 => Self::Dismiss,
            7 | 8 => Self::Inbox,
            9 => Self::Mail(format!("ada{}@example.org", dice.below(3))),
            _ => Self::Deliver(match dice.below(4) {
                0 => Sent,
                1 => Refused { reason: reason() },
                2 => TryAgain { reason: reason(), retry_after_ms: None },
                _ => Unknown { reason: reason() },
            }),
        }
    }

    /// The answer in words; names of the store's own making are still in it.
    /// Gives the command; what takes several commits is given step by step.
    async fn give(&self, backend: &Backend, fault: &Fault) -> Result<String, StoreError> {
        match self {
            Self::Mail(address) => mail_to(backend, address, fault).await.map(|answer| format!("{answer:?}")),
            Self::Deliver(outcome) => deliver(backend, outcome, fault).await.map(|answer| format!("{answer:?}")),
            Self::Notify(claim, ending) => notify(backend, claim, ending, fault).await,
            _ => fault.step(backend, async || self.give_at_once(backend).await).await,
        }
    }

    async fn give_at_once(&self, backend: &Backend) -> Result<String, StoreError> {
        let (store, ada) = (backend.store(), || Caller::user("ada"));
        let words = |answer: &dyn std::fmt::Debug| format!("{answer:?}");
        Ok(match self {
            Self::Publish(events) => {
                words(&store.publish(Publish { caller: ada(), events: events.clone(), idempotency_key: None }).await?)
            }
            Self::Say(text) => {
                let said = Event::user_message(text).expect("a person may say this").in_conversation("chat");
                words(&backend.publish_as(ada(), said, None).await?)
            }
            Self::Inject(command) => words(&store.inject(InjectCommand::clone(command)).await?),
            Self::Tick => words(&store.tick().await?),
            Self::View => words(&store.conversation(ada(), "chat".into()).await?),
            Self::Messages => words(&store.messages(ada(), "chat".into(), None, 1_000).await?.0),
            Self::PersonSettings(disabled) => {
                let change = SettingsChange { disabled_subscribers: Some(disabled.clone()), ..Default::default() };
                words(&store.change_settings(SettingsRequest { user_id: "ada".into(), change }).await?)
            }
            Self::Tell(text) => words(&store.send(telling(text)).await?),
            Self::ReadAll => words(&store.read_all("ada".into(), None).await?),
            Self::Dismiss => match inbox(&*store).await?.first() {
                Some(item) => words(&anywhere(store.dismiss("ada".into(), item.id).await?)),
                None => "nothing to dismiss".to_owned(),
            },
            Self::Inbox => words(&inbox(&*store).await?),
            Self::Mail(_) | Self::Deliver(_) | Self::Notify(..) => unreachable!("these take several steps"),
            Self::Erase => words(&store.erase_user("ada".into()).await?),
            Self::Trace(id) => words(&store.trace(ada(), id.clone()).await?),
        })
    }
}

/// An address that is confirmed at once: the code is the one its attempt started with.
async fn mail_to(backend: &Backend, address: &str, fault: &Fault) -> Result<PersonSettings, StoreError> {
    let store = backend.store();
    let change = SettingsChange { channels: email_to(address), ..SettingsChange::default() };
    let change = SettingsRequest { user_id: "ada".into(), change };
    fault.step(backend, async || store.change_settings(change.clone()).await).await?;
    deliver(backend, &bellwire_store::AttemptOutcome::Sent, fault).await?;
    match fault.step(backend, async || store.confirm_target("ada".into(), email(), b"code".to_vec(), None).await).await
    {
        Err(error) if error.kind == ErrorKind::Conflict => store.settings("ada".into()).await,
        settled => settled,
    }
}

fn telling(text: &str) -> NotificationDraft {
    NotificationDraft {
        caller: Caller::user("ada"),
        user_id: "ada".into(),
        origin: "butler".into(),
        conversation_id: Some("chat".into()),
        correlation_id: None,
        content: NotificationContent::Message { kind: MessageType::Info, message: text.to_owned() },
        idempotency_key: None,
    }
}

async fn inbox(store: &dyn Store) -> Result<Vec<InboxItem>, StoreError> {
    let query = InboxQuery { state: InboxState::All, item_type: None, before: None, limit: 100 };
    Ok(store.inbox("ada".into(), query).await?.0.into_iter().map(anywhere).collect())
}

/// An item without its place in the stream: places begin with the time at which a person is first looked at.
fn anywhere(item: InboxItem) -> InboxItem {
    InboxItem { created_sequence: 0, changed_sequence: 0, ..item }
}

/// Everything that is due, to this end.
async fn deliver(
    backend: &Backend,
    outcome: &bellwire_store::AttemptOutcome,
    fault: &Fault,
) -> Result<Vec<Delivery>, StoreError> {
    let store = backend.store();
    for claim in fault.step(backend, async || store.claim(email(), 10).await).await? {
        let (message_id, fence) = (claim.message_id, claim.fence);
        let code = (claim.purpose == Purpose::Confirmation).then(|| b"code".to_vec());
        let start = async || store.start(AttemptStart { message_id, fence, code: code.clone() }).await;
        fault.step(backend, start).await?;
        let finish = async || store.finish(AttemptEnd { message_id, fence, outcome: outcome.clone(), jitter: 0 }).await;
        fault.step(backend, finish).await?;
    }
    outbox_counts::check(backend, "a step that may have failed").await;
    Ok(store.deliveries(Some("ada".into()), None, None, 100).await?.0)
}

/// One of a few requests, to a target that is nobody's.
fn notifying(dice: &mut Dice) -> Command {
    let number = dice.below(5);
    let claim = NotifyClaim {
        key: [u8::try_from(number).expect("it is small"); 32],
        request_id: uuid::Uuid::from_u128(number.into()),
        origin: dice.choose(&["health", "bank"]).into(),
        intent: Intent::Send,
        channel: ChannelName::parse("email").expect("a legal name"),
        recipient: NotifyRecipient::Listed { limit_key: [9; 32] },
        on_behalf_of: dice.percent(50).then(|| "ada".to_owned()),
        claimant: Claimant::Tool,
        answer_key: None,
        chosen: None,
        conversation_id: None,
        correlation_id: None,
        message: Some("text".into()),
        subject: None,
    };
    let ending = match dice.below(3) {
        0 => NotifyEnding::Delivered { delivery_id: "7".into() },
        1 => NotifyEnding::failed(NotifyError::invalid("no"), None),
        _ => NotifyEnding::failed(NotifyError::new(ErrorClass::TargetUnavailable, "busy"), None),
    };
    Command::Notify(Box::new(claim), ending)
}

/// Claims, starts and ends a request, and lists what the ledger says.
async fn notify(
    backend: &Backend,
    claim: &NotifyClaim,
    ending: &NotifyEnding,
    fault: &Fault,
) -> Result<String, StoreError> {
    let (store, key) = (backend.store(), claim.key);
    let claimed = fault.step(backend, async || store.claim_notify(claim.clone()).await).await?;
    let mut words = format!("{claimed:?}");
    if let NotifyClaimed::Mine { fence, .. } = claimed {
        let started = fault.step(backend, async || store.start_notify(key, fence, SentFrom::Here).await).await?;
        let end = NotifyEnd {
            key,
            fence,
            ending: ending.clone(),
            duration_ms: 1,
            further_parts: Vec::new(),
            unreachable_target: None,
        };
        let ended = fault.step(backend, async || store.end_notify(end.clone()).await).await?;
        words += &format!(" {started} {ended:?}");
    }
    let entries = store.ledger(LedgerQuery { limit: 1_000, ..LedgerQuery::default() }).await?.0;
    let decided: Vec<_> = entries.into_iter().map(|entry| entry.decided).collect();
    let sums = store.ledger_sums(None, None, bellwire_core::Time::ZERO).await?;
    Ok(format!("{words} {decided:?} {sums:?}"))
}

fn happening(number: u64, dice: &mut Dice) -> IncomingEvent {
    let word = format!("w{}", dice.below(8));
    let (kind, severity) = dice.choose(&[
        ("tool.call.failure", Severity::Error),
        ("source.file.changed", Severity::Info),
        ("task.background.complete", Severity::Info),
        ("budget.token.warning", Severity::Warning),
        ("budget.token.exceeded", Severity::Critical),
        ("cli.event", Severity::Info),
        ("agent.turn.end", Severity::Info),
        ("agent.input.needed", Severity::Info),
    ]);
    let payload = json!({ "tool_name": word, "path": word, "task_id": word, "percentage": dice.below(3) });
    let event = event(kind, severity, payload).for_agent(agent(dice));
    // Now and then a name comes twice, with the same content or another.
    let name = if dice.percent(10) { dice.below(number + 1) } else { number };
    let content = [if dice.percent(90) { 1 } else { 2 }; 16];
    let client_event_id = dice.percent(50).then(|| ClientEventId { id: format!("name-{name}"), content });
    IncomingEvent::new(event, client_event_id)
}

fn asking(number: u64, dice: &mut Dice) -> InjectCommand {
    let call = if dice.percent(15) { dice.below(number + 1) } else { number };
    let mut asked =
        inject_command(dice.choose(&[AfterTool, AfterTool, Immediate, TurnEnd, TurnStart]), &format!("c{call}"));
    asked.agent = agent(dice);
    if dice.percent(30) {
        let earlier = number.saturating_sub(dice.below(20));
        asked.unseen = (earlier..number).map(|number| format!("c{number}")).collect();
    }
    if dice.percent(20) {
        asked.observed = Some(ObservedCall {
            tool_name: "grep".into(),
            outcome: CallOutcome::Failure,
            arguments: Some(json!({ "pattern": "x" })),
            error_type: None,
            error_message: None,
            duration_ms: None,
            usage: None,
            seen: dice.percent(50),
        });
    }
    asked
}

fn agent(dice: &mut Dice) -> AgentName {
    AgentName::parse(dice.choose(&["main", "main", "scout"])).expect("a legal name")
}

/// Names a store made up, each replaced by the order in which it turned up: two stores never make the same ones.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn hide(&mut self, text: &str) -> String {
        let (mut hidden, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
            hidden.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
            let is_boundary = hidden.ends_with("notifications id=\\\"") || hidden.ends_with("Boundary(\"");
            let is_id = end == 36 && rest[..end].matches('-').count() == 4;
            if is_boundary || is_id {
                let next = self.0.len();
                let number = *self.0.entry(rest[..end].to_owned()).or_insert(next);
                hidden.push_str(&format!("#{number}"));
            } else {
                hidden.push_str(&rest[..end]);
            }
            rest = &rest[end..];
        }
        hidden + rest
    }
}

/// SplitMix64: small, and the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("an index fits")]
    }
}
