use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::setting::{self, SETTINGS, SHORT, Setting};
use super::{Config, ConfigWarning, DEFAULT_FILE, IngestSource, Secret, check, file};
use bellwire_core::nearest;

/// The prefix of the hub's environment variables.
const PREFIX: &str = "BELLWIRE_";

/// The keys of the sources of webhooks.
const SOURCE_PREFIX: &str = "ingest.";

/// Variables with the prefix that are not settings: the path of the file, and how other commands reach a hub.
const OTHER_VARIABLES: &[&str] = &["BELLWIRE_CONFIG", "BELLWIRE_URL", "BELLWIRE_TOKEN"];

/// The layers over the defaults; a later one overrides an earlier one.
#[derive(Clone, Debug, Default)]
pub struct ConfigSources {
    /// A file's path and its text.
    pub file: Option<(PathBuf, String)>,
    /// Environment variables. Those without the prefix `BELLWIRE_` are ignored.
    pub environment: Vec<(String, String)>,
    /// Settings given on the command line.
    pub flags: Vec<Flag>,
}

/// A setting given on the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The flag, such as `--listen`.
    pub name: &'static str,
    /// The key of its setting, such as `server.listen`.
    pub key: &'static str,
    /// The value as text.
    pub value: String,
}

/// A valid configuration, with the source of every value.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The settings.
    pub config: Config,
    /// Allowed but risky combinations, and unknown variables.
    pub warnings: Vec<ConfigWarning>,
    origins: BTreeMap<&'static str, SettingSource>,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// The default file.
    Default,
    /// The platform's default directory.
    Platform,
    /// A line of a file.
    File(PathBuf, usize),
    /// A variable.
    Environment(String),
    /// A flag.
    Flag(&'static str),
}

/// One error of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// `FILE:LINE`, a variable or a flag; none if two settings contradict each other.
    pub place: Option<String>,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// All errors of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<ConfigProblem>);

/// Applies the layers in order: defaults, file, environment, flags. Refuses unknown, invalid and contradictory settings, and
/// reports all of them at once.
pub fn load(sources: &ConfigSources) -> Result<LoadedConfig, ConfigProblems> {
    let mut layers = Layers::new();
    if let Some((path, text)) = &sources.file {
        layers.file(path, text);
    }
    layers.environment(&sources.environment);
    for flag in &sources.flags {
        let setting = setting::find(flag.key).expect("every flag has a key of the table");
        layers.text(setting, &flag.value, SettingSource::Flag(flag.name));
    }
    layers.finish()
}

/// The default file alone.
pub(super) fn defaults() -> Config {
    let mut layers = Layers { config: Config::blank(), ..Layers::empty() };
    layers.file(Path::new("bellwire.default.toml"), DEFAULT_FILE);
    assert!(layers.problems.is_empty(), "the default file is part of the program: {:?}", layers.problems);
    assert_eq!(layers.origins.len(), SETTINGS.len(), "the default file names every setting");
    layers.config
}

impl LoadedConfig {
    /// The source of a setting's value.
    pub fn origin(&self, key: &str) -> &SettingSource {
        self.origins.get(key).unwrap_or(&SettingSource::Default)
    }

    /// Sets the platform's data directory, for a configuration without one.
    pub fn with_platform_data_dir(mut self, dir: PathBuf) -> Self {
        self.config.data_dir = Some(dir);
        self.origins.insert("data.dir", SettingSource::Platform);
        self
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Platform => f.write_str("platform"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigProblems {}

struct Layers {
    config: Config,
    origins: BTreeMap<&'static str, SettingSource>,
    warnings: Vec<ConfigWarning>,
    problems: Vec<ConfigProblem>,
}

impl Layers {
    fn new() -> Self {
        Self { config: defaults(), ..Self::empty() }
    }

    fn empty() -> Self {
        Self { config: Config::blank(), origins: BTreeMap::new(), warnings: Vec::new(), problems: Vec::new() }
    }

    fn file(&mut self, path: &Path, text: &str) {
        let place = |line: usize| match line {
            0 => path.display().to_string(),
            line => format!("{}:{line}", path.display()),
        };
        let (entries, mistakes) = match file::entries(text) {
            Ok(read) => read,
            Err(mistake) => (Vec::new(), vec![mistake]),
        };
        let problem = |(line, message): file::Mistake| ConfigProblem { place: Some(place(line)), message };
        self.problems.extend(mistakes.into_iter().map(problem));
        let base = path.parent().unwrap_or(Path::new(""));
        for entry in entries {
            if let Some(name) = entry.key.strip_prefix(SOURCE_PREFIX) {
                let problem = self.source(name, &entry, base).err();
                self.problems
                    .extend(problem.map(|(line, message)| ConfigProblem { place: Some(place(line)), message }));
                continue;
            }
            let Some(setting) = setting::find(&entry.key) else { continue };
            match setting.write(&mut self.config, &entry.value, base) {
                Ok(()) => drop(self.origins.insert(setting.key, SettingSource::File(path.to_owned(), entry.line))),
                Err(message) => self.refuse(setting, Some(place(entry.line)), &message),
            }
        }
    }

    /// Adds a source of webhooks. Sources are no settings of the table, because the operator chooses their names.
    fn source(&mut self, name: &str, entry: &file::ConfigEntry, base: &Path) -> Result<(), file::Mistake> {
        let source = IngestSource::parse(name, &entry.value, base).map_err(|(field, message)| {
            let (dot, top) =
                if field.is_empty() { ("", "") } else { (".", field.split(['.', '[']).next().unwrap_or("")) };
            let line = entry.lines.get(top).copied().unwrap_or(entry.line);
            (line, format!("{SOURCE_PREFIX}{name}{dot}{field} {message}"))
        })?;
        self.config.ingest.insert(name.to_owned(), source);
        Ok(())
    }

    /// Takes the secrets of sources from the environment.
    fn source_secrets(&mut self, ours: &BTreeMap<&str, &str>) {
        for source in self.config.ingest.values_mut() {
            if let Some(secret) = ours.get(IngestSource::variable(&source.name).as_str()) {
                (source.secret, source.secret_file) = (Some(Secret::new(secret.trim())), None);
            }
        }
    }

    fn environment(&mut self, variables: &[(String, String)]) {
        // Scripts set a variable to the empty string to unset it.
        let ours = variables.iter().filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty());
        let ours: BTreeMap<&str, &str> = ours.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        for setting in SETTINGS {
            let short = SHORT.iter().find(|(_, key)| *key == setting.key).map(|(name, _)| *name);
            let long = setting.variable();
            match (short.and_then(|name| ours.get(name)), ours.get(long.as_str())) {
                (Some(one), Some(other)) if one != other => {
                    let short = short.unwrap_or_default();
                    let message = format!("{short} and {long} say different things; keep one");
                    self.problems.push(ConfigProblem { place: None, message });
                }
                (_, Some(text)) => self.text(setting, text, SettingSource::Environment(long)),
                (Some(text), None) => {
                    self.text(setting, text, SettingSource::Environment(short.unwrap_or_default().to_owned()));
                }
                (None, None) => {}
            }
        }
        self.source_secrets(&ours);
        self.warn_of_unknown(ours.keys().copied());
    }

    fn warn_of_unknown<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let long: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
        let short = SHORT.iter().map(|(name, _)| *name);
        let secrets: Vec<String> = self.config.ingest.keys().map(|name| IngestSource::variable(name)).collect();
        let long: Vec<String> = long.into_iter().chain(secrets).collect();
        let known: Vec<&str> =
            long.iter().map(String::as_str).chain(short).chain(OTHER_VARIABLES.iter().copied()).collect();
        for name in names.filter(|name| !known.contains(name)) {
            // Without the common prefix, which would make unrelated names look similar.
            let near =
                nearest(name.trim_start_matches(PREFIX), known.iter().map(|known| known.trim_start_matches(PREFIX)));
            let fix = near.map_or_else(|| "unset it".to_owned(), |near| format!("did you mean {PREFIX}{near}?"));
            self.warnings.push(ConfigWarning::new(format!("the variable {name} means nothing"), fix));
        }
    }

    fn text(&mut self, setting: &Setting, text: &str, origin: SettingSource) {
        match setting.write_untyped(&mut self.config, text) {
            Ok(()) => drop(self.origins.insert(setting.key, origin)),
            Err(message) => self.refuse(setting, Some(origin.to_string()), &message),
        }
    }

    fn refuse(&mut self, setting: &Setting, place: Option<String>, message: &str) {
        self.problems.push(ConfigProblem { place, message: format!("{} {message}", setting.key) });
    }

    fn finish(mut self) -> Result<LoadedConfig, ConfigProblems> {
        // An invalid setting still has its default here; a contradiction with that default would confuse.
        if self.problems.is_empty() {
            let together = check::contradictions(&self.config);
            self.problems.extend(together.into_iter().map(|message| ConfigProblem { place: None, message }));
        }
        if !self.problems.is_empty() {
            return Err(ConfigProblems(self.problems));
        }
        self.warnings.extend(check::risks(&self.config));
        Ok(LoadedConfig { config: self.config, warnings: self.warnings, origins: self.origins })
    }
}
