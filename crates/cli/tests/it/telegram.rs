//! `bellwire telegram pair`.

use telegram_standin::Standin;

use crate::hub::Hub;
use crate::program::{assert_output, shown, text};

fn hub(telegram: &Standin) -> Hub {
    Hub::configured(&format!("[telegram]\ntoken = \"{}\"\napi_url = \"{}\"\n", telegram.token(), telegram.url()))
}

#[test]
fn a_code_a_link_and_a_qr_code_pair_a_chat() {
    let telegram = Standin::start();
    let hub = hub(&telegram);
    let output = hub.run(&["telegram", "pair", "ada"]);
    let said = text(&output.stdout);
    let code = said.lines().next().and_then(|line| line.strip_prefix("code  ")).expect("a code").trim().to_owned();
    assert!(said.contains(&format!("link  https://t.me/standin_bot?start={code}\n")), "{said}");
    assert!(said.lines().filter(|line| line.contains('█')).count() > 10, "{said}");
    assert!(!said.contains(telegram.token()) && !text(&output.stderr).contains(telegram.token()));
    telegram.types(1815, &format!("/start {code}"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(telegram.wait_for_sent(1815, 1));
    let settings = hub.json(&["settings", "--user", "ada", "--json"]);
    assert_eq!(settings["telegram"]["paired"], true, "{settings}");
}

#[test]
fn a_person_pairs_with_their_own_token_and_nobody_elses_chat() {
    let telegram = Standin::start();
    let hub = hub(&telegram);
    let token = hub.user_token_of("ada");
    let own = hub.json(&["telegram", "pair", "ada", "--json", "--token", &token]);
    assert_eq!(own["code"].as_str().map(str::len), Some(22), "{own}");
    let others = hub.run(&["telegram", "pair", "bob", "--token", &token]);
    assert_eq!(others.status.code(), Some(2), "{}", shown(&others));
}

#[test]
fn a_hub_without_a_bot_says_what_to_set() {
    assert_output!(shown(&Hub::start().run(&["telegram", "pair", "ada"])));
}
