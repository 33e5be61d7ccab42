//! Configuration: the precedence of layers, errors, warnings, and the layer that each value came from.

use std::path::PathBuf;

use bellwire_server::config::{
    Config, ConfigProblems, ConfigSources, DEFAULT_FILE, Flag, LoadedConfig, SettingSource, load,
};

fn file(text: &str) -> ConfigSources {
    ConfigSources {
        file: Some((PathBuf::from("/etc/bellwire/bellwire.toml"), text.to_owned())),
        ..ConfigSources::default()
    }
}

fn environment(variables: &[(&str, &str)]) -> ConfigSources {
    let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ConfigSources { environment, ..ConfigSources::default() }
}

fn refused(sources: &ConfigSources) -> Vec<String> {
    let problems: ConfigProblems = load(sources).expect_err("this must be refused");
    problems.0.iter().map(ToString::to_string).collect()
}

fn loaded(sources: &ConfigSources) -> LoadedConfig {
    load(sources).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn without_any_layer_the_defaults_hold() {
    let loaded = loaded(&ConfigSources::default());
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn the_default_file_as_a_file_changes_nothing() {
    assert_eq!(loaded(&file(DEFAULT_FILE)).config, Config::default());
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let mut sources = file("[limits]\nstreams = 1\nrequest_seconds = 2\nbatch_events = 3\n");
    sources.environment =
        [("BELLWIRE_LIMITS_STREAMS", "10"), ("BELLWIRE_LIMITS_REQUEST_SECONDS", "20"), ("HOME", "elsewhere")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
    sources.flags = vec![Flag { name: "--streams", key: "limits.streams", value: "100".into() }];
    let loaded = loaded(&sources);
    let limits = &loaded.config.limits;
    assert_eq!((limits.streams, limits.request_seconds, limits.batch_events), (100, 20, 3));
    assert_eq!(loaded.origin("limits.streams"), &SettingSource::Flag("--streams"));
    assert_eq!(loaded.origin("limits.request_seconds").to_string(), "BELLWIRE_LIMITS_REQUEST_SECONDS");
    assert_eq!(loaded.origin("limits.batch_events").to_string(), "/etc/bellwire/bellwire.toml:4");
    assert_eq!(loaded.origin("limits.publish_burst"), &SettingSource::Default);
}

#[test]
fn unknown_keys_are_refused_with_their_line_and_the_nearest_known_one() {
    let said =
        refused(&file("listen = \"x\"\n\n[limits]\nstreems = 4\ncolour = 1\n\n[limit]\nstreams = 4\n\n[colours]\n"));
    let place = "/etc/bellwire/bellwire.toml";
    let expected = [
        format!("{place}:10: [colours] is not a section; `bellwire config --default` shows them all"),
        format!("{place}:7: [limit] is not a section; did you mean [limits]?"),
        format!("{place}:5: limits.colour is not a setting; `bellwire config --default` shows them all"),
        format!("{place}:4: limits.streems is not a setting; did you mean limits.streams?"),
        format!("{place}:1: listen is not a setting; did you mean server.listen?"),
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for line in &expected {
        assert!(said.contains(line), "{line}\nis missing in {said:#?}");
    }
}

#[test]
fn wrong_values_are_refused_with_their_line_and_what_is_allowed() {
    let place = "/etc/bellwire/bellwire.toml:2";
    for (text, expected) in [
        (
            "[limits]\nstreams = \"many\"",
            "limits.streams is the text \"many\"; a whole number from 1 to 1000000 is allowed",
        ),
        ("[limits]\nstreams = 0", "limits.streams is 0; a whole number from 1 to 1000000 is allowed"),
        ("[limits]\nbatch_events = 1001", "limits.batch_events is 1001; a whole number from 1 to 1000 is allowed"),
        ("[limits]\nrequest_seconds = -1", "limits.request_seconds is -1; a whole number from 1 to 300 is allowed"),
        ("[retention]\nanswers_days = 6", "retention.answers_days is 6; a whole number from 7 to 3650 is allowed"),
        (
            "[server]\nlisten = \"localhost\"",
            "server.listen is 'localhost'; an address and a port, such as 127.0.0.1:2355 or [::]:2355, is allowed",
        ),
        (
            "[server]\npublic_url = \"bell.example.org\"",
            "server.public_url is 'bell.example.org', which does not begin with http:// or https:// and a host name; \
             write it like https://bell.example.org",
        ),
        (
            "[server]\npublic_url = \"https://x.org/hub\"",
            "server.public_url is 'https://x.org/hub', which has a path; only scheme, host and port are allowed; \
             write it like https://bell.example.org",
        ),
        (
            "[server]\nallowed_hosts = [\"x.org:80\"]",
            "server.allowed_hosts has 'x.org:80', which has a port; write only the name, like bell.example.org",
        ),
        (
            "[server]\nallowed_origins = [\"*\"]",
            "server.allowed_origins has '*', but every page of the web is too many: name those you trust; write it \
             like https://console.example.org",
        ),
        (
            "[server]\nallowed_origins = [\"https://x.org/page\"]",
            "server.allowed_origins has 'https://x.org/page', which is no web origin: scheme, host name and port, \
             without a path; write it like https://console.example.org",
        ),
        ("[subscribers]\ndir = \"~/mine\"", "subscribers.dir is '~/mine'; write the whole path instead of ~"),
        ("[log]\nformat = \"xml\"", "log.format is 'xml'; auto, text or json is allowed"),
        (
            "[log]\nlevel = \"loud\"",
            "log.level is 'loud'; off, error, warn, info, debug, trace, or part=level with commas between, is allowed",
        ),
    ] {
        assert_eq!(refused(&file(text)), [format!("{place}: {expected}")], "{text}");
    }
}

#[test]
fn invalid_toml_is_refused_with_its_line() {
    let said = refused(&file("[limits]\nstreams == 4\n"));
    assert!(said[0].starts_with("/etc/bellwire/bellwire.toml:2: "), "{said:?}");
}

#[test]
fn all_errors_are_reported_at_once() {
    let mut sources = file("[limits]\nstreams = 0\ncolour = 1\n");
    sources.environment = vec![("BELLWIRE_LIMITS_BATCH_EVENTS".into(), "many".into())];
    sources.flags = vec![Flag { name: "--listen", key: "server.listen", value: "here".into() }];
    let said = refused(&sources);
    assert_eq!(said.len(), 4, "{said:#?}");
    assert_eq!(
        said[2],
        "BELLWIRE_LIMITS_BATCH_EVENTS: limits.batch_events is 'many'; a whole number from 1 to 1000 is allowed"
    );
    assert!(said[3].starts_with("--listen: server.listen is 'here'"), "{said:#?}");
}

#[test]
fn contradictions_are_refused_with_the_way_out() {
    for (text, key) in [
        ("[server]\nlisten = \"0.0.0.0:2355\"", "set server.public_url"),
        ("[limits]\npublish_burst = 999\nbatch_events = 1", "raise the burst to at least 1000"),
        ("[limits]\npublish_burst = 999\npublish_per_second = 10", "raise the burst or lower the batch"),
    ] {
        let said = refused(&file(text));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(key), "{text}: {said:?}");
    }
    loaded(&file("[limits]\npublish_burst = 1\npublish_per_second = 0\n"));
    loaded(&file("[server]\nlisten = \"0.0.0.0:2355\"\nallowed_hosts = [\"bell.example.org\"]\n"));
}

#[test]
fn risky_pairs_are_warned_of() {
    let open = "[server]\nlisten = \"0.0.0.0:2355\"\npublic_url = ";
    assert_eq!(loaded(&file(&format!("{open}\"https://bell.example.org\""))).warnings, []);
    let plain = loaded(&file(&format!("{open}\"http://bell.example.org\""))).warnings;
    assert!(plain.len() == 1 && plain[0].message.contains("tokens travel unencrypted"), "{plain:?}");
    let origins = "\nallowed_origins = [\"http://x.org\", \"http://localhost:3000\"]";
    let trusting = loaded(&file(&format!("{open}\"https://bell.example.org\"{origins}"))).warnings;
    assert!(trusting.len() == 1 && trusting[0].message.contains("http://x.org"), "{trusting:?}");
    let short = loaded(&file("[retention]\nevents_days = 7\nanswers_days = 8\n")).warnings;
    assert_eq!(short.len(), 2, "{short:?}");
}

#[test]
fn variables_have_long_and_short_names_and_lists_have_commas() {
    let variables = [
        ("BELLWIRE_LISTEN", "127.0.0.1:0"),
        ("BELLWIRE_DATA_DIR", "/var/lib/bellwire"),
        ("BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR", "5"),
        ("BELLWIRE_SERVER_ALLOWED_HOSTS", "a.example.org, B.example.org"),
        ("BELLWIRE_LOG", "warn,bellwire_store=debug"),
        ("BELLWIRE_LIMITS_STREAMS", ""),
    ];
    let loaded = loaded(&environment(&variables));
    let config = &loaded.config;
    assert_eq!(config.listen.port(), 0);
    assert_eq!(config.data_dir, Some(PathBuf::from("/var/lib/bellwire")));
    assert_eq!(config.limits.notifications_per_hour, 5);
    assert_eq!(config.allowed_hosts, ["a.example.org", "b.example.org"]);
    assert_eq!(config.log.level, "warn,bellwire_store=debug");
    assert_eq!(config.limits.streams, 10_000, "an empty variable is one that is not set");
    assert_eq!(loaded.origin("server.listen").to_string(), "BELLWIRE_LISTEN");
}

#[test]
fn two_names_of_one_variable_must_agree() {
    let both = |long| environment(&[("BELLWIRE_LISTEN", "127.0.0.1:1"), ("BELLWIRE_SERVER_LISTEN", long)]);
    let said = refused(&both("127.0.0.1:2"));
    assert_eq!(said, ["BELLWIRE_LISTEN and BELLWIRE_SERVER_LISTEN say different things; keep one"]);
    loaded(&both("127.0.0.1:1"));
}

#[test]
fn an_unknown_variable_warns_with_the_nearest_known_one() {
    let variables =
        [("BELLWIRE_LIMITS_STREAM", "5"), ("BELLWIRE_X", "1"), ("BELLWIRE_TOKEN", "bw_1"), ("PATH", "/bin")];
    let warnings = loaded(&environment(&variables)).warnings;
    assert_eq!(
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "the variable BELLWIRE_LIMITS_STREAM means nothing; did you mean BELLWIRE_LIMITS_STREAMS?",
            "the variable BELLWIRE_X means nothing; unset it",
        ]
    );
}

#[test]
fn relative_paths_are_relative_to_the_configuration_file() {
    let loaded = loaded(&file("[subscribers]\ndir = \"subscribers\"\n[data]\ndir = \"/data\"\n"));
    assert_eq!(loaded.config.subscribers_dir, Some(PathBuf::from("/etc/bellwire/subscribers")));
    assert_eq!(loaded.config.data_dir, Some(PathBuf::from("/data")));
}

#[test]
fn the_printed_configuration_can_be_loaded() {
    let text = "[server]\npublic_url = \"https://bell.example.org\"\nallowed_origins = [\"https://a.org\"]\n";
    let first = loaded(&file(text)).with_platform_data_dir(PathBuf::from("/data"));
    let printed = first.to_toml();
    assert!(printed.contains("# from: /etc/bellwire/bellwire.toml:2\n"), "{printed}");
    assert!(printed.contains("dir = \"/data\"") && printed.contains("# from: platform\n"), "{printed}");
    assert_eq!(loaded(&file(&printed)).config, first.config);
    let json = first.to_json();
    assert_eq!(json["limits.streams"], serde_json::json!({"value": 10_000, "from": "default"}));
    assert_eq!(json["server.allowed_origins"]["value"], serde_json::json!(["https://a.org"]));
}
