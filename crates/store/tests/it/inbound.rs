//! Inbound messages: a reply can be checked against them, and an agent answers the newest one it has read.

use bellwire_core::Event;
use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::event::AgentName;
use bellwire_core::notify::RequestContext;
use bellwire_store::{Caller, InboundMessage, RetentionCutoffs};
use uuid::Uuid;

use crate::backends::{Backend, inject_command, on_every_store};

fn context(number: u128) -> RequestContext {
    RequestContext {
        request_id: Uuid::from_u128(number),
        source_channel: "telegram".into(),
        source_endpoint_identity: "telegram:42".into(),
        source_sender_identity: "7".into(),
        source_thread_identity: Some(format!("12:{number}")),
        received_at: Some("2026-01-03T15:30:00Z".into()),
    }
}

async fn says(backend: &Backend, number: u128) {
    let event = Event::user_message_in("hello", &context(number)).unwrap().in_conversation("chat");
    backend.publish_as(Caller::user("ada"), event, None).await.unwrap();
}

async fn reads(backend: &Backend, agent: &str, call_id: &str) {
    let mut command = inject_command(AfterTool, call_id);
    command.agent = AgentName::parse(agent).unwrap();
    backend.store().inject(command).await.unwrap();
}

async fn answers(backend: &Backend, agent: &str) -> Option<Uuid> {
    let agent = AgentName::parse(agent).unwrap();
    let context = backend.store().reply_context("ada".into(), "chat".into(), agent).await.unwrap();
    context.map(|context| context.request_id)
}

on_every_store! {
    async fn a_message_is_found_by_its_thread_with_its_conversation(backend: Backend) {
        says(&backend, 1).await;
        let found = async |thread: &str| backend.store().inbound_message("telegram".into(), thread.into()).await.unwrap();
        let expected = InboundMessage { user_id: "ada".into(), conversation_id: "chat".into(), context: context(1) };
        assert_eq!(found("12:1").await, Some(expected));
        assert_eq!(found("12:2").await, None);
        assert_eq!(backend.store().inbound_message("email".into(), "12:1".into()).await.unwrap(), None);
    }

    async fn an_agent_answers_the_newest_message_it_has_read(backend: Backend) {
        says(&backend, 1).await;
        assert_eq!(answers(&backend, "main").await, None, "nobody has read it");
        reads(&backend, "main", "call_1").await;
        assert_eq!(answers(&backend, "main").await, Some(Uuid::from_u128(1)));
        says(&backend, 2).await;
        says(&backend, 3).await;
        assert_eq!(answers(&backend, "main").await, Some(Uuid::from_u128(1)), "the newer ones are unread");
        reads(&backend, "main", "call_2").await;
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(answers(&backend, "main").await, Some(Uuid::from_u128(3)));
        assert_eq!(answers(&backend, "scout").await, None, "a sub-agent has not read it");
        let event = Event::user_message("typed in the chat").unwrap().in_conversation("chat");
        backend.publish_as(Caller::user("ada"), event, None).await.unwrap();
        reads(&backend, "main", "call_3").await;
        assert_eq!(answers(&backend, "main").await, Some(Uuid::from_u128(3)), "that one came by no channel");
    }

    async fn they_are_erased_with_the_person_and_deleted_with_the_events(backend: Backend) {
        says(&backend, 1).await;
        reads(&backend, "main", "call_1").await;
        backend.pass(1_000);
        backend.store().prune(RetentionCutoffs::before(backend.now()), 1_000).await.unwrap();
        assert_eq!(answers(&backend, "main").await, None);
        assert_eq!(backend.store().inbound_message("telegram".into(), "12:1".into()).await.unwrap(), None);
        says(&backend, 2).await;
        reads(&backend, "main", "call_2").await;
        backend.store().erase_user("ada".into()).await.unwrap();
        assert_eq!(answers(&backend, "main").await, None);
        assert_eq!(backend.store().inbound_message("telegram".into(), "12:2".into()).await.unwrap(), None);
    }
}
