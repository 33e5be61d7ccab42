//! Chats: pairing, updates that are handled once, words that find their conversation, buttons, leases.

use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use bellwire_store::{
    Caller, ChannelUpdate, ChatKey, ChatMessage, ChatSender, ConversationDetails, EditEnd, ErrorKind, InboundText,
    InboxQuery, InboxState, NewButton, NotificationContent, NotificationDraft, PressOutcome, RetentionCutoffs,
    SendResult, UpdateAction, UpdateCommand, UpdateOutcome,
};
use serde_json::json;

use crate::backends::{Backend, on_every_store};

const MINUTE: i64 = 60 * 1000;
const HOUR: i64 = 60 * MINUTE;
/// The chat of ada.
const CHAT: &str = "1815";

fn telegram() -> ChannelName {
    ChannelName::parse("telegram").unwrap()
}

fn chat(target: &str) -> ChatKey {
    ChatKey { channel: telegram(), target: target.to_owned() }
}

async fn handle_as(backend: &Backend, id: i64, target: &str, sender: &str, action: UpdateAction) -> UpdateOutcome {
    let from = Some(ChatSender { target: target.to_owned(), sender: sender.to_owned() });
    let command = UpdateCommand { channel: telegram(), update_id: id, from, action };
    backend.store().handle_update(command).await.unwrap()
}

async fn handle(backend: &Backend, id: i64, action: UpdateAction) -> UpdateOutcome {
    handle_as(backend, id, CHAT, CHAT, action).await
}

async fn code(backend: &Backend, user: &str, code: &str) {
    backend.store().put_pairing_code(user.into(), telegram(), code.into(), None).await.unwrap();
}

async fn pair(backend: &Backend, id: i64) {
    code(backend, "ada", "right").await;
    let outcome = handle(backend, id, UpdateAction::Pair("right".into())).await;
    assert_eq!(outcome, UpdateOutcome::Paired { user_id: "ada".into(), replaced: None });
}

async fn open(backend: &Backend, id: &str, title: Option<&str>) {
    let title = title.map(ConversationDetails::titled).unwrap_or_default();
    backend.store().put_conversation(Caller::user("ada"), id.into(), "ada".into(), title).await.unwrap();
}

fn text(message_id: i64, text: &str, reply_to: Option<i64>) -> UpdateAction {
    UpdateAction::Text(Box::new(InboundText {
        message_id,
        text: text.to_owned(),
        reply_to,
        endpoint: "telegram:7001".into(),
        thread: format!("{CHAT}:{message_id}"),
        choices: (0..5).map(|index| format!("choice {message_id} {index}").into()).collect(),
    }))
}

async fn block(backend: &Backend, conversation: &str, call: &str) -> String {
    let mut command = crate::backends::inject_command(AfterTool, call);
    command.conversation_id = conversation.into();
    backend.store().inject(command).await.unwrap().block
}

/// A toast with two buttons in this conversation.
async fn toast(backend: &Backend, conversation: &str) -> NotificationId {
    let actions = json!([
        {"label": "Go", "action": "prompt", "prompt": "go on"},
        {"label": "Later", "action": "dismiss"},
    ]);
    let arguments = json!({"message": "Shall I?", "severity": "info", "actions": actions});
    let arguments = bellwire_core::person::ToolArguments::parse(arguments).unwrap();
    let toast = bellwire_core::person::ShowNotification::parse(&arguments).unwrap();
    let draft = NotificationDraft {
        caller: Caller::user("ada"),
        user_id: "ada".into(),
        origin: "butler".into(),
        conversation_id: Some(conversation.into()),
        correlation_id: None,
        content: NotificationContent::Toast(toast),
        idempotency_key: None,
    };
    match backend.store().send(draft).await.unwrap() {
        SendResult::Stored { id, .. } => id,
        refused => panic!("{refused:?}"),
    }
}

fn message(id: i64, conversation: &str, origin: Option<&str>, notification: Option<NotificationId>) -> ChatMessage {
    ChatMessage {
        chat: chat(CHAT),
        message_id: id,
        user_id: "ada".into(),
        conversation_id: Some(conversation.into()),
        origin: origin.map(str::to_owned),
        notification_id: notification,
        at: Time::from_millis(crate::backends::START),
    }
}

fn button(token: &str, notification_id: NotificationId, index: usize) -> NewButton {
    NewButton { token: token.into(), chat: chat(CHAT), user_id: "ada".into(), notification_id, index }
}

on_every_store! {
    async fn a_code_pairs_a_chat_once_and_for_ten_minutes(backend: Backend) {
        pair(&backend, 1).await;
        let settings = backend.store().settings("ada".into()).await.unwrap();
        assert_eq!(settings.usable_target("telegram"), Some(CHAT));
        let again = handle_as(&backend, 2, "2", "2", UpdateAction::Pair("right".into())).await;
        assert_eq!(again, UpdateOutcome::WrongCode { is_answered: true });
        code(&backend, "ada", "late").await;
        backend.pass(10 * MINUTE);
        let late = handle(&backend, 3, UpdateAction::Pair("late".into())).await;
        assert_eq!(late, UpdateOutcome::WrongCode { is_answered: true }, "the chat is connected, so it is answered");
    }

    async fn a_newer_code_replaces_the_older_one(backend: Backend) {
        code(&backend, "ada", "older").await;
        code(&backend, "ada", "newer").await;
        let older = handle(&backend, 1, UpdateAction::Pair("older".into())).await;
        assert_eq!(older, UpdateOutcome::WrongCode { is_answered: true });
        let paired = handle(&backend, 2, UpdateAction::Pair("newer".into())).await;
        assert_eq!(paired, UpdateOutcome::Paired { user_id: "ada".into(), replaced: None });
    }

    async fn after_five_wrong_codes_a_chat_must_wait_an_hour_even_with_the_right_one(backend: Backend) {
        code(&backend, "ada", "right").await;
        for id in 1..=5 {
            let outcome = handle(&backend, id, UpdateAction::Pair("guess".into())).await;
            assert_eq!(outcome, UpdateOutcome::WrongCode { is_answered: id == 1 }, "{id}");
        }
        let refused = handle(&backend, 6, UpdateAction::Pair("right".into())).await;
        assert_eq!(refused, UpdateOutcome::TooManyCodes { is_answered: false });
        // Another chat is not concerned.
        let other = handle_as(&backend, 8, "2", "2", UpdateAction::Pair("guess".into())).await;
        assert_eq!(other, UpdateOutcome::WrongCode { is_answered: true });
        backend.pass(HOUR);
        code(&backend, "ada", "fresh").await;
        let outcome = handle(&backend, 9, UpdateAction::Pair("fresh".into())).await;
        assert!(matches!(outcome, UpdateOutcome::Paired { .. }), "{outcome:?}");
    }

    async fn a_chat_of_no_person_gets_one_answer_a_day_whatever_it_sends(backend: Backend) {
        let wrong = || UpdateAction::Pair("guess".into());
        assert_eq!(handle(&backend, 1, UpdateAction::Start).await, UpdateOutcome::Stranger { is_answered: true });
        assert_eq!(handle(&backend, 2, wrong()).await, UpdateOutcome::WrongCode { is_answered: false });
        backend.pass(24 * HOUR);
        assert_eq!(handle(&backend, 3, wrong()).await, UpdateOutcome::WrongCode { is_answered: true });
        assert_eq!(handle(&backend, 4, wrong()).await, UpdateOutcome::WrongCode { is_answered: false });
        assert_eq!(handle(&backend, 5, UpdateAction::Help).await, UpdateOutcome::Stranger { is_answered: false });
        pair(&backend, 6).await;
        assert_eq!(handle(&backend, 7, wrong()).await, UpdateOutcome::WrongCode { is_answered: true }, "a person's chat");
    }

    async fn a_new_chat_replaces_the_old_one_and_a_chat_of_another_person_is_refused(backend: Backend) {
        pair(&backend, 1).await;
        code(&backend, "bob", "bobs").await;
        assert_eq!(handle(&backend, 2, UpdateAction::Pair("bobs".into())).await, UpdateOutcome::Taken);
        // The code is not used up by that.
        let bob = handle_as(&backend, 3, "2", "2", UpdateAction::Pair("bobs".into())).await;
        assert_eq!(bob, UpdateOutcome::Paired { user_id: "bob".into(), replaced: None });
        code(&backend, "ada", "moved").await;
        let moved = handle_as(&backend, 4, "3", "3", UpdateAction::Pair("moved".into())).await;
        assert_eq!(moved, UpdateOutcome::Paired { user_id: "ada".into(), replaced: Some(CHAT.into()) });
        let settings = backend.store().settings("ada".into()).await.unwrap();
        assert_eq!(settings.usable_target("telegram"), Some("3"));
        assert_eq!(handle(&backend, 5, UpdateAction::Help).await, UpdateOutcome::Stranger { is_answered: true });
        assert_eq!(handle_as(&backend, 6, "3", "3", UpdateAction::Stop).await, UpdateOutcome::Stopped);
        let settings = backend.store().settings("ada".into()).await.unwrap();
        assert_eq!(settings.channel("telegram"), Default::default());
        // After /stop the chat is free.
        code(&backend, "carol", "carols").await;
        let carol = handle_as(&backend, 7, "3", "3", UpdateAction::Pair("carols".into())).await;
        assert_eq!(carol, UpdateOutcome::Paired { user_id: "carol".into(), replaced: None });
    }

    async fn a_stranger_is_answered_once_a_day(backend: Backend) {
        let is_answered = |outcome| match outcome {
            UpdateOutcome::Stranger { is_answered } => is_answered,
            other => panic!("{other:?}"),
        };
        assert!(is_answered(handle(&backend, 1, UpdateAction::Help).await));
        assert!(!is_answered(handle(&backend, 2, text(5, "hello", None)).await));
        backend.pass(24 * HOUR);
        assert!(is_answered(handle(&backend, 3, UpdateAction::Stop).await));
    }

    async fn another_sender_cannot_act_in_a_paired_chat(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "chat", None).await;
        for (id, action) in [(2, text(5, "let me in", None)), (3, UpdateAction::Stop), (4, UpdateAction::Press("x".into()))] {
            assert_eq!(handle_as(&backend, id, CHAT, "666", action).await, UpdateOutcome::Ignored);
        }
        assert_eq!(block(&backend, "chat", "1").await, "");
        assert!(backend.store().settings("ada".into()).await.unwrap().usable_target("telegram").is_some());
    }

    async fn an_update_is_handled_once_also_after_a_restart(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "chat", None).await;
        let updates = vec![ChannelUpdate { id: 7, body: "seven".into() }, ChannelUpdate { id: 6, body: "six".into() }];
        assert!(backend.store().keep_updates(telegram(), None, updates.clone()).await.unwrap());
        assert!(backend.store().keep_updates(telegram(), None, updates.clone()).await.unwrap());
        if backend.is_durable() {
            backend.restart().await;
        }
        let waiting = backend.store().waiting_updates(telegram(), 10).await.unwrap();
        assert_eq!(waiting, [updates[1].clone(), updates[0].clone()]);
        let sent = handle(&backend, 7, text(5, "hello", None)).await;
        assert_eq!(sent, UpdateOutcome::Sent { conversation_id: "chat".into(), title: "chat".into() });
        assert_eq!(handle(&backend, 7, text(5, "hello", None)).await, UpdateOutcome::Repeated);
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(handle(&backend, 7, text(5, "hello", None)).await, UpdateOutcome::Repeated);
        // An update that the provider sends again stays handled.
        assert!(backend.store().keep_updates(telegram(), None, updates.clone()).await.unwrap());
        assert_eq!(backend.store().waiting_updates(telegram(), 10).await.unwrap(), updates[1..]);
        let block = block(&backend, "chat", "1").await;
        assert_eq!(block.matches("hello").count(), 1, "{block}");
    }

    async fn a_text_comes_with_the_context_to_answer_it(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "chat", None).await;
        handle(&backend, 2, text(42, "two\nlines", None)).await;
        let block = block(&backend, "chat", "1").await;
        let line = block.lines().find(|line| line.trim_start().starts_with("request_context: ")).unwrap_or_else(|| panic!("{block}"));
        for part in ["telegram", "telegram:7001", CHAT, "1815:42", "2026-01-03T15:30:00Z"] {
            assert!(line.contains(part), "{line}");
        }
        assert!(block.contains("two\\nlines"), "{block}");
    }

    async fn a_reply_goes_to_the_conversation_of_its_message(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "one", None).await;
        open(&backend, "two", Some("The second")).await;
        backend.store().put_chat_message(message(10, "two", Some("butler"), None)).await.unwrap();
        let sent = handle(&backend, 2, text(11, "to the second", Some(10))).await;
        assert_eq!(sent, UpdateOutcome::Sent { conversation_id: "two".into(), title: "The second".into() });
        // An answer to the person's own message goes where that went.
        let sent = handle(&backend, 3, text(12, "one more", Some(11))).await;
        assert_eq!(sent, UpdateOutcome::Sent { conversation_id: "two".into(), title: "The second".into() });
        assert_eq!(block(&backend, "one", "1").await, "");
        assert!(block(&backend, "two", "2").await.contains("to the second"));
    }

    async fn with_several_conversations_the_text_waits_for_a_choice(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "one", None).await;
        backend.pass(1000);
        open(&backend, "two", Some("The second")).await;
        let asked = handle(&backend, 2, text(11, "which?", None)).await;
        assert_eq!(asked, UpdateOutcome::Choose { titles: vec!["The second".into(), "one".into()] });
        if backend.is_durable() {
            backend.restart().await;
        }
        let sent = handle(&backend, 3, UpdateAction::Press("choice 11 1".into())).await;
        assert_eq!(sent, UpdateOutcome::Sent { conversation_id: "one".into(), title: "one".into() });
        assert!(block(&backend, "one", "1").await.contains("which?"));
        // The text is sent once, whatever is pressed afterwards.
        for (id, token) in [(4, "choice 11 1"), (5, "choice 11 0")] {
            assert_eq!(handle(&backend, id, UpdateAction::Press(token.into())).await, UpdateOutcome::UsedButton);
        }
        assert_eq!(handle(&backend, 6, UpdateAction::Press("choice 11 4".into())).await, UpdateOutcome::UnknownButton);
        assert_eq!(block(&backend, "two", "2").await, "");
    }

    async fn a_text_that_is_too_long_is_refused_before_it_is_kept(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "one", None).await;
        open(&backend, "two", None).await;
        let from = Some(ChatSender { target: CHAT.into(), sender: CHAT.into() });
        let action = text(7, &"é".repeat(4097), None);
        let command = UpdateCommand { channel: telegram(), update_id: 2, from, action };
        let refused = backend.store().handle_update(command).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid("text"), "{refused}");
        let longest = handle(&backend, 3, text(8, &"é".repeat(4096), None)).await;
        assert!(matches!(longest, UpdateOutcome::Choose { .. }), "{longest:?}");
    }

    async fn without_an_open_conversation_nothing_is_kept(backend: Backend) {
        pair(&backend, 1).await;
        assert_eq!(handle(&backend, 2, text(11, "hello?", None)).await, UpdateOutcome::NoConversation);
        open(&backend, "chat", None).await;
        backend.pass(25 * HOUR);
        assert_eq!(handle(&backend, 3, text(12, "hello?", None)).await, UpdateOutcome::NoConversation);
        // A reply names its conversation, even if no agent has opened it yet.
        backend.store().put_chat_message(message(10, "new", Some("butler"), None)).await.unwrap();
        let sent = handle(&backend, 4, text(13, "hello!", Some(10))).await;
        assert_eq!(sent, UpdateOutcome::Sent { conversation_id: "new".into(), title: "new".into() });
        assert!(block(&backend, "new", "1").await.contains("hello!"));
    }

    async fn a_button_presses_once_and_only_in_its_chat(backend: Backend) {
        pair(&backend, 1).await;
        code(&backend, "bob", "bobs").await;
        handle_as(&backend, 2, "2", "2", UpdateAction::Pair("bobs".into())).await;
        open(&backend, "chat", None).await;
        let id = toast(&backend, "chat").await;
        backend.store().put_buttons(vec![button("go", id, 0), button("later", id, 1)]).await.unwrap();
        let foreign = handle_as(&backend, 3, "2", "2", UpdateAction::Press("go".into())).await;
        assert_eq!(foreign, UpdateOutcome::UnknownButton);
        let pressed = handle(&backend, 4, UpdateAction::Press("go".into())).await;
        assert!(matches!(&pressed, UpdateOutcome::Pressed(pressed) if pressed.button.label == "Go"), "{pressed:?}");
        assert_eq!(handle(&backend, 5, UpdateAction::Press("go".into())).await, UpdateOutcome::UsedButton);
        let other = handle(&backend, 6, UpdateAction::Press("later".into())).await;
        assert!(matches!(other, UpdateOutcome::Settled(_)), "{other:?}");
        let block = block(&backend, "chat", "1").await;
        assert_eq!(block.matches("go on").count(), 1, "{block}");
    }

    async fn a_message_is_edited_wherever_its_notification_was_settled(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "chat", None).await;
        let (in_inbox, dismissed) = (toast(&backend, "chat").await, toast(&backend, "chat").await);
        let store = backend.store();
        store.put_chat_message(message(10, "chat", Some("butler"), Some(in_inbox))).await.unwrap();
        store.put_chat_message(message(11, "chat", Some("butler"), Some(dismissed))).await.unwrap();
        assert_eq!(store.due_edits(telegram(), 10).await.unwrap(), []);
        let mut changes = store.edit_changes();
        let pressed = store.act("ada".into(), in_inbox, 0, None).await.unwrap();
        assert!(matches!(pressed, PressOutcome::Pressed(_)));
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        store.dismiss("ada".into(), dismissed).await.unwrap();
        assert!(changes.has_changed().unwrap());
        let mut ids: Vec<i64> =
            store.due_edits(telegram(), 10).await.unwrap().iter().map(|edit| edit.message.message_id).collect();
        ids.sort();
        assert_eq!(ids, [10, 11]);
        assert_eq!(store.due_edits(telegram(), 1).await.unwrap().len(), 1);
        store.finish_edit(chat(CHAT), 10, EditEnd::Done).await.unwrap();
        store.finish_edit(chat(CHAT), 11, EditEnd::TryAgain { retry_after_ms: None, jitter: 0 }).await.unwrap();
        assert_eq!(store.due_edits(telegram(), 10).await.unwrap(), []);
        backend.pass(5_000);
        let again = store.due_edits(telegram(), 10).await.unwrap();
        assert_eq!(again.len(), 1);
        assert!(again[0].item.as_ref().is_some_and(|item| item.dismissed_at.is_some()));
        // One that was settled while the message was on its way is edited at once.
        store.put_chat_message(message(12, "chat", Some("butler"), Some(in_inbox))).await.unwrap();
        assert_eq!(store.due_edits(telegram(), 10).await.unwrap().len(), 2);
    }

    async fn mute_takes_the_origin_of_the_message(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "chat", None).await;
        backend.store().put_chat_message(message(10, "chat", Some("butler"), None)).await.unwrap();
        backend.store().put_chat_message(message(11, "chat", None, None)).await.unwrap();
        let muted = handle(&backend, 2, UpdateAction::Mute(Some(10))).await;
        assert_eq!(muted, UpdateOutcome::Muted { origin: "butler".into() });
        assert_eq!(handle(&backend, 3, UpdateAction::Mute(Some(10))).await, muted);
        for unknown in [11, 99] {
            let outcome = handle(&backend, 10 + unknown, UpdateAction::Mute(Some(unknown))).await;
            assert_eq!(outcome, UpdateOutcome::NothingToMute);
        }
        let listed = handle(&backend, 4, UpdateAction::Mute(None)).await;
        assert_eq!(listed, UpdateOutcome::MutedOrigins { user_id: "ada".into(), muted: vec!["butler".into()] });
    }

    async fn a_person_who_blocks_the_bot_is_told_in_the_inbox_once(backend: Backend) {
        pair(&backend, 1).await;
        assert_eq!(handle(&backend, 2, UpdateAction::Blocked).await, UpdateOutcome::Blocked);
        assert_eq!(handle(&backend, 3, UpdateAction::Blocked).await, UpdateOutcome::Blocked);
        let query = InboxQuery { state: InboxState::All, item_type: None, before: None, limit: 10 };
        let inbox = backend.store().inbox("ada".into(), query).await.unwrap().0;
        assert_eq!(inbox.len(), 1);
        assert!(inbox[0].message.contains("blocked"), "{}", inbox[0].message);
        let settings = backend.store().settings("ada".into()).await.unwrap();
        assert_eq!(settings.usable_target("telegram"), None);
        assert_eq!(handle(&backend, 4, UpdateAction::Start).await, UpdateOutcome::Started);
        let settings = backend.store().settings("ada".into()).await.unwrap();
        assert_eq!(settings.usable_target("telegram"), Some(CHAT));
    }

    async fn a_lease_has_one_holder_and_a_stale_fence_stores_nothing(backend: Backend) {
        let store = backend.store();
        let take = |holder: &str| store.take_lease("poller".into(), holder.into(), 60_000);
        assert_eq!(take("one").await.unwrap(), Some(1));
        assert_eq!(take("two").await.unwrap(), None);
        assert_eq!(take("one").await.unwrap(), Some(1));
        backend.pass(60_000);
        assert_eq!(take("two").await.unwrap(), Some(2));
        assert_eq!(take("one").await.unwrap(), None);
        let update = |id: i64| vec![ChannelUpdate { id, body: "x".into() }];
        let lease = |fence: i64| Some(("poller".to_owned(), fence));
        assert!(!store.keep_updates(telegram(), lease(1), update(1)).await.unwrap());
        assert!(store.keep_updates(telegram(), lease(2), update(2)).await.unwrap());
        assert_eq!(store.waiting_updates(telegram(), 10).await.unwrap(), update(2));
        store.release_lease("poller".into(), "one".into()).await.unwrap();
        assert_eq!(take("one").await.unwrap(), None, "only the holder can release it");
        store.release_lease("poller".into(), "two".into()).await.unwrap();
        assert_eq!(take("one").await.unwrap(), Some(3));
    }

    async fn a_repeated_call_for_a_code_is_refused(backend: Backend) {
        let key = bellwire_store::IdempotencyKey {
            token_id: "admin".into(),
            route: "pair".into(),
            key: "k".into(),
            content: [0; 32],
        };
        let store = backend.store();
        let put = |code: &str| store.put_pairing_code("ada".into(), telegram(), code.into(), Some(key.clone()));
        put("one").await.unwrap();
        assert_eq!(put("two").await.unwrap_err().kind, ErrorKind::Conflict);
    }

    async fn old_rows_of_chats_are_deleted(backend: Backend) {
        pair(&backend, 1).await;
        open(&backend, "chat", None).await;
        code(&backend, "ada", "unused").await;
        handle_as(&backend, 2, "2", "2", UpdateAction::Help).await;
        handle(&backend, 3, text(11, "hello", None)).await;
        let id = toast(&backend, "chat").await;
        backend.store().put_buttons(vec![button("go", id, 0)]).await.unwrap();
        backend.pass(40 * 24 * HOUR);
        let before = RetentionCutoffs::before(backend.now());
        while backend.store().prune(before, 1_000).await.unwrap() > 0 {}
        // The message is gone, so an answer to it names no conversation.
        open(&backend, "chat", None).await;
        open(&backend, "other", None).await;
        let asked = handle(&backend, 6, text(12, "again", Some(11))).await;
        assert!(matches!(asked, UpdateOutcome::Choose { .. }), "{asked:?}");
        assert_eq!(handle(&backend, 4, UpdateAction::Press("go".into())).await, UpdateOutcome::UnknownButton);
        // The pairing stays.
        assert_eq!(handle(&backend, 5, UpdateAction::Help).await, UpdateOutcome::Help);
    }
}
