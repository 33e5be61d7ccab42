//! Replies and reactions: to their thread or nowhere.

use bellwire_server::channels::{NotifyOutcome, Obstacle};
use serde_json::{Value, json};

use super::pager::Script;
use super::{ADAS, Scene, agent, context, wire};

#[tokio::test]
async fn a_reaction_goes_to_its_message() {
    let scene = Scene::open().await;
    let inbound = scene.says(3).await;
    let react = json!({"channel": "pager", "intent": "react", "emoji": "\u{1f44d}", "request_context": wire(&inbound)});
    assert_eq!(scene.notify(react).await["status"], "ok");
    let message = scene.pager.messages().remove(0);
    assert_eq!(
        (message.target.reaction.as_deref(), message.target.thread),
        (Some("\u{1f44d}"), inbound.source_thread_identity)
    );
    assert_eq!((scene.inbox().await.len(), message.message), (0, None));
}

#[tokio::test]
async fn a_thread_that_the_caller_may_not_read_is_refused_like_one_that_does_not_exist() {
    let scene = Scene::open().await;
    let adas = scene.says(3).await;
    let reply = |context: &bellwire_core::notify::RequestContext| json!({"channel": "pager", "intent": "reply", "message": "Yes", "request_context": wire(context)});
    let bobs = agent(&scene.hub, "health", "bob").await;
    let foreign = scene.notify_as(&bobs, reply(&adas), json!({})).await;
    let missing = scene.notify_as(&bobs, reply(&context(99)), json!({})).await;
    assert_eq!((&foreign["error"], &foreign["error_class"]), (&missing["error"], &json!("validation_error")));
    let mut forged = adas.clone();
    forged.source_sender_identity = "eve".into();
    assert!(scene.refusal(reply(&forged)).await.contains("source_thread_identity"));
    let mut bad = adas;
    bad.source_thread_identity = Some(ADAS.into());
    assert!(scene.refusal(reply(&bad)).await.contains("source_thread_identity"));
    assert_eq!(scene.pager.messages().len(), 0);
    assert_eq!(scene.decisions().await, ["refused"; 4]);
}

#[tokio::test]
async fn an_answer_belongs_to_the_conversation_of_the_message_it_answers() {
    let scene = Scene::open().await;
    let reply =
        |context: Value| json!({"channel": "pager", "intent": "reply", "message": "Yes", "request_context": context});
    let inbound = wire(&scene.says(3).await);
    for (number, conversation) in [json!({}), json!({"conversation_id": "other"})].into_iter().enumerate() {
        let mut context = inbound.clone();
        context["request_id"] = json!(uuid::Uuid::from_u128(number as u128));
        let answer = scene.notify_as(&scene.health, reply(context), conversation).await;
        assert_eq!(answer["status"], "ok", "{answer}");
        assert_eq!(scene.pager.messages()[number].conversation_id.as_deref(), Some("chat"));
    }
}

#[tokio::test]
async fn one_message_has_at_most_twenty_answers_whatever_request_id_the_agent_gives() {
    let scene = Scene::open().await;
    let inbound = scene.says(3).await;
    for number in 0..20 {
        let mut context = wire(&inbound);
        context["request_id"] = json!(uuid::Uuid::from_u128(number));
        let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes", "request_context": context});
        assert_eq!(scene.notify(reply).await["status"], "ok");
    }
    let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes", "request_context": wire(&inbound)});
    assert!(scene.refusal(reply).await.starts_with("This message has had 20 replies and reactions"));
    assert_eq!(scene.pager.messages().len(), 20);
}

#[tokio::test]
async fn a_sub_agent_answers_what_it_has_read_itself() {
    let scene = Scene::open().await;
    scene.says(3).await;
    scene.reads("call_1").await;
    let reply = json!({"channel": "pager", "intent": "reply", "message": "Yes"});
    let scout = json!({"conversation_id": "chat", "agent": "scout"});
    let answer = scene.notify_as(&scene.health, reply.clone(), scout).await;
    assert!(answer["error"].as_str().unwrap().starts_with("Missing required request_context field"), "{answer}");
    let admin = scene.notify_as(&scene.hub.admin, reply, json!({"conversation_id": "chat"})).await;
    assert_eq!(admin["status"], "ok", "the conversation says whose it is: {admin}");
}

#[tokio::test]
async fn a_repeat_of_an_answer_without_a_context_answers_the_message_of_the_first_call() {
    let scene = Scene::open().await;
    let first = scene.says(3).await;
    scene.reads("c1").await;
    for (intent, text) in [("reply", json!({"message": "Yes"})), ("react", json!({"emoji": "\u{1f44d}"}))] {
        let mut arguments = json!({"channel": "pager", "intent": intent});
        arguments.as_object_mut().unwrap().extend(text.as_object().unwrap().clone());
        let keyed = |key: &str| {
            let context = json!({"conversation_id": "chat", "idempotency_key": format!("{intent} {key}")});
            scene.notify_as(&scene.health, arguments.clone(), context)
        };
        let busy =
            NotifyOutcome::TryAgain { obstacle: Obstacle::Unavailable, reason: "busy".into(), retry_after: None };
        scene.pager.next(Script::Outcome(busy));
        assert_eq!(keyed("k").await["error"]["retryable"], true, "nothing was sent");
        let newer = scene.says(if intent == "reply" { 4 } else { 5 }).await;
        scene.reads(&format!("{intent} c2")).await;
        let sent = keyed("k").await;
        assert_eq!(sent["status"], "ok", "{sent}");
        assert_eq!(keyed("k").await["delivery"], sent["delivery"], "a repeat of the final answer");
        let threads: Vec<_> = scene.pager.messages().into_iter().map(|message| message.target.thread).collect();
        let chosen =
            if intent == "reply" { first.source_thread_identity.clone() } else { context(4).source_thread_identity };
        assert_eq!(threads[threads.len() - 2..], [chosen.clone(), chosen], "{intent}");
        assert_eq!(keyed("another").await["status"], "ok");
        let newest = scene.pager.messages().pop().unwrap().target.thread;
        assert_eq!(newest, newer.source_thread_identity, "another call answers the newest");
    }
}
