//! The console: its page at every path of its own, its files, and what browsers are told about both.

use reqwest::{Method, StatusCode};

use crate::hub::TestHub;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/dist/console");
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn ask(hub: &TestHub, path: &str, accept: &str) -> reqwest::Response {
    hub.client.get(format!("{}{path}", hub.base)).header("accept", accept).send().await.unwrap()
}

fn header(answer: &reqwest::Response, name: &str) -> String {
    answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn the_page_answers_every_path_of_the_console_and_no_path_of_the_api() {
    let hub = TestHub::start().await;
    let page = std::fs::read_to_string(format!("{FOLDER}/index.html")).unwrap();
    for path in ["/", "/inbox", "/conversations/a%20b", "/sign-in", "/live?type=x", "/v1beta", "/users"] {
        let answer = ask(&hub, path, BROWSER).await;
        assert_eq!((answer.status(), header(&answer, "cache-control")), (StatusCode::OK, "no-cache".into()), "{path}");
        assert_eq!(answer.text().await.unwrap(), page, "{path}");
    }
    assert_eq!(ask(&hub, "/", "*/*").await.status(), StatusCode::OK, "the root is the console for everyone");
    for path in ["/v1", "/v1/nothing", "/mcp/nothing", "/assets/nothing.js", "/docs/nothing"] {
        let answer = ask(&hub, path, BROWSER).await;
        let kind = header(&answer, "content-type");
        assert_eq!((answer.status(), kind.as_str()), (StatusCode::NOT_FOUND, "application/json"), "{path}");
    }
    assert_eq!(ask(&hub, "/inbox", "application/json").await.status(), StatusCode::NOT_FOUND);
    let posted = hub.client.post(format!("{}/inbox", hub.base)).header("accept", BROWSER).send().await.unwrap();
    assert_eq!(posted.status(), StatusCode::NOT_FOUND);
    let head = hub.client.request(Method::HEAD, format!("{}/inbox", hub.base)).header("accept", BROWSER);
    assert_eq!(head.send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn the_page_is_sent_again_only_if_it_changed_and_trusts_only_its_own_files() {
    let hub = TestHub::start().await;
    let first = ask(&hub, "/inbox", BROWSER).await;
    let policy = header(&first, "content-security-policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.split(';').any(|one| one.trim() == rule), "{rule} in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(header(&first, "permissions-policy").contains("camera=()"));
    assert_eq!(header(&first, "referrer-policy"), "same-origin");
    assert_eq!(header(&first, "x-content-type-options"), "nosniff");
    let tag = header(&first, "etag");
    let again = hub.client.get(&hub.base).header("if-none-match", &tag).send().await.unwrap();
    assert_eq!((again.status(), header(&again, "etag")), (StatusCode::NOT_MODIFIED, tag));
}

#[tokio::test]
async fn every_file_of_the_folder_is_served_for_ever_and_the_page_names_only_such() {
    let hub = TestHub::start().await;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(format!("{FOLDER}/assets")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("/assets/{name}");
        let request = hub.client.get(format!("{}{path}", hub.base)).header("accept-encoding", "gzip");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}: is it in files.rs?");
        assert_eq!(header(&answer, "cache-control"), "public, max-age=31536000, immutable");
        assert_ne!(header(&answer, "content-type"), "application/octet-stream", "{name}");
        let content = std::fs::read(entry.path()).unwrap();
        match content.len() > 1024 {
            true => assert_eq!(header(&answer, "content-encoding"), "gzip", "{name}"),
            false => assert_eq!(answer.bytes().await.unwrap(), content, "{name}"),
        }
        names.push(path);
    }
    let page = std::fs::read_to_string(format!("{FOLDER}/index.html")).unwrap();
    let named: Vec<&str> = page.split('"').filter(|text| text.starts_with('/')).collect();
    assert!(!named.is_empty());
    assert!(named.iter().all(|name| names.iter().any(|known| known == name)), "{named:?}");
}
