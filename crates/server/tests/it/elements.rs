//! The module for web pages: what browsers and caches need of it.

use bellwire_server::Config;
use reqwest::StatusCode;

use crate::hub::TestHub;

#[tokio::test]
async fn the_module_is_the_committed_build_and_is_sent_again_only_if_it_changed() {
    let hub = TestHub::start().await;
    let ask = |tag: Option<&str>| {
        let request = hub.client.get(format!("{}/elements.js", hub.base));
        tag.iter().fold(request, |request, tag| request.header("if-none-match", *tag)).send()
    };
    let first = ask(None).await.unwrap();
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(first.headers()["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(first.headers()["cache-control"], "no-cache");
    assert_eq!(first.headers()["x-content-type-options"], "nosniff");
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let committed = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/dist/elements.js"));
    assert_eq!(first.text().await.unwrap(), committed.unwrap());
    for known in [tag.clone(), tag.replace("W/", ""), format!("\"other\", {tag}"), "*".to_owned()] {
        let again = ask(Some(&known)).await.unwrap();
        assert_eq!((again.status(), again.headers()["etag"].to_str().unwrap()), (StatusCode::NOT_MODIFIED, &*tag));
        assert_eq!(again.text().await.unwrap(), "");
    }
    assert_eq!(ask(Some("W/\"other\"")).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn pages_of_allowed_origins_may_import_the_module() {
    let config = Config { allowed_origins: vec!["https://chat.example".into()], ..Config::default() };
    let hub = TestHub::start_with(config).await;
    let ask = |origin: &str| {
        let request = hub.client.get(format!("{}/elements.js", hub.base)).header("accept-encoding", "gzip");
        request.header("origin", origin).send()
    };
    let allowed = ask("https://chat.example").await.unwrap();
    assert_eq!(allowed.status(), StatusCode::OK);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://chat.example");
    assert_eq!(allowed.headers()["content-encoding"], "gzip");
    assert!(allowed.bytes().await.unwrap().len() < 40 * 1024);
    assert_eq!(ask("https://evil.example").await.unwrap().status(), StatusCode::FORBIDDEN);
}
