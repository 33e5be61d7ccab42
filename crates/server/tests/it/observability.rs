use reqwest::StatusCode;
use serde_json::json;

use crate::hub::{TestHub, failure};

#[tokio::test]
async fn a_correlation_id_is_kept_from_request_to_trace() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&agent).json(&failure("grep"));
    let request = request.header("x-correlation-id", "job-17");
    let response = request.header("traceparent", format!("00-{trace_id}-00f067aa0ba902b7-01")).send().await.unwrap();
    assert_eq!(response.headers()["x-correlation-id"], "job-17");
    let trace = response.headers()["traceparent"].to_str().unwrap().to_owned();
    assert!(trace.starts_with(&format!("00-{trace_id}-")) && trace.ends_with("-01"), "{trace}");
    assert!(!trace.contains("00f067aa0ba902b7"), "our part of the trace has a name of its own");
    let answer: serde_json::Value = response.json().await.unwrap();
    let id = answer["events"][0]["id"].as_str().unwrap();
    let (_, event) = hub.get(&agent, &format!("/v1/events/{id}")).await;
    assert_eq!(event["correlation_id"], "job-17");
}

#[tokio::test]
async fn every_response_has_a_correlation_id_and_invalid_ones_are_replaced() {
    let hub = TestHub::start().await;
    for bad in [None, Some("two words"), Some("x".repeat(129).as_str())] {
        let mut request = hub.client.get(format!("{}/nowhere", hub.base));
        if let Some(bad) = bad {
            request = request.header("x-correlation-id", bad);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        let given = response.headers()["x-correlation-id"].to_str().unwrap();
        assert_eq!(given.len(), 32, "{given}");
    }
}

#[tokio::test]
async fn metrics_have_no_labels_for_people() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", json!([failure("grep"), failure("grep"), failure("sed")])).await;
    hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "1"})).await;
    let request = hub.client.get(format!("{}/metrics", hub.base)).header("host", "prometheus.example");
    let response = request.send().await.unwrap();
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = response.text().await.unwrap();
    for line in [
        "bellwire_events_accepted_total 3",
        "bellwire_verdicts_total{verdict=\"held\"} 2",
        "bellwire_verdicts_total{verdict=\"duplicate\"} 1",
        "bellwire_injections_total 1",
        "bellwire_notifications_pending 0",
        "bellwire_stream_clients 0",
        "bellwire_http_requests_total{method=\"POST\",route=\"/v1/conversations/{id}/inject\",status=\"200\"} 1",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} is not in:\n{text}");
    }
    assert!(!text.contains("ada") && !text.contains("chat"), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn a_hub_whose_writer_died_reports_it_and_stops() {
    let hub = TestHub::start().await;
    let healthz = format!("{}/healthz", hub.base);
    assert_eq!(hub.client.get(&healthz).send().await.unwrap().status(), StatusCode::OK);
    let (_, description) = hub.get(&hub.admin, "/openapi.json").await;
    hub.store().close().await.unwrap();
    for probe in ["/healthz", "/readyz", "/metrics"] {
        let described = &description["paths"][probe]["get"]["responses"];
        assert!(described["503"].is_object(), "{probe}");
        // The hub may have stopped already.
        let Ok(response) = hub.client.get(format!("{}{probe}", hub.base)).send().await else { continue };
        assert!(described[response.status().as_str()].is_object(), "{probe}: {} is not described", response.status());
    }
    let (client, failed) = (hub.client.clone(), hub.failed());
    let reason = tokio::time::timeout(std::time::Duration::from_secs(20), failed).await.expect("it stops by itself");
    assert!(reason.to_string().contains("the writer of the store has ended"), "{reason}");
    assert!(!client.get(&healthz).send().await.is_ok_and(|response| response.status() == StatusCode::OK));
}

#[tokio::test]
async fn metrics_are_written_at_most_once_a_second() {
    let hub = TestHub::start().await;
    let started = std::time::Instant::now();
    // Requests are counted in the text, so two texts written at different times differ.
    let ask = |_| async {
        let page = hub.client.get(format!("{}/metrics", hub.base)).send().await.unwrap();
        page.text().await.unwrap()
    };
    let mut pages = std::collections::HashSet::new();
    for _ in 0..5 {
        pages.extend(futures_util::future::join_all((0..10).map(ask)).await);
        hub.post(&hub.admin, "/v1/tokens", json!({"scope": "ingest", "name": "one more"})).await;
    }
    let seconds = started.elapsed().as_secs() as usize;
    assert!(pages.len() <= 1 + seconds, "{} pages in {seconds} seconds", pages.len());
}
