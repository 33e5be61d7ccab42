//! Every decision on a call is in the ledger, without texts and addresses.

use serde_json::json;

use super::Scene;

#[tokio::test]
async fn refused_calls_are_recorded_by_the_argument_at_fault_and_nothing_the_agent_wrote() {
    let scene = Scene::open().await;
    let secret = "ada-secret@example.org";
    let calls = [
        (json!({"channel": secret, "message": secret}), "invalid channel", ""),
        (json!({"channel": "pager", "intent": secret}), "invalid intent", ""),
        (json!({"channel": "pager"}), "invalid message", ""),
        (json!({"channel": "pager", "message": secret, secret: 1}), "invalid arguments", ""),
        (json!({"channel": "pager", "message": secret, "recipient": secret}), "invalid recipient", "pager"),
        (json!({"channel": "telegram", "message": secret}), "invalid channel", ""),
    ];
    for (call, _, _) in &calls {
        scene.refusal(call.clone()).await;
    }
    let ledger = scene.ledger().await;
    for (entry, (call, reason, channel)) in ledger.iter().zip(&calls) {
        assert_eq!(
            (entry.decided.reason.as_deref(), entry.decided.channel.as_str()),
            (Some(*reason), *channel),
            "{call}"
        );
        assert_eq!((entry.decided.origin.as_str(), entry.decided.user_id.as_deref()), ("health", Some("ada")));
    }
    assert_eq!(ledger.len(), calls.len());
    assert!(!format!("{ledger:?}").contains("secret"));
}
