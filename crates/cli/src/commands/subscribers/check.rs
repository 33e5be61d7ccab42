//! Checks subscriber files as `bellwire subscribers check` and `bellwire doctor` do.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use bellwire_core::render::toon::Document;
use bellwire_core::subscriber::{Audience, Subscriber};
use bellwire_core::{Boundary, Event};
use serde_json::Value;

use super::sample::samples;
use crate::commands::folder;

/// What a folder of subscribers holds, and what is wrong with it.
pub(crate) struct FolderCheck {
    /// The number of subscriber files.
    pub(crate) files: usize,
    /// One for each file that is invalid, or whose template fails on sample events.
    pub(crate) problems: Vec<String>,
}

/// Loads every file of a folder and renders sample events with its templates, once one event and once a full batch.
pub(crate) fn check_folder(dir: &Path) -> Result<FolderCheck> {
    let (good, errors) = folder::read(dir)?;
    let mut problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
    problems.extend(good.iter().filter_map(|one| Some(format!("subscriber '{}': {}", one.id, template_problem(one)?))));
    Ok(FolderCheck { files: good.len() + errors.len(), problems })
}

/// The first failure of a template on one sample event or on a full batch of them.
fn template_problem(one: &Subscriber) -> Option<String> {
    [1, one.batching.max_size].into_iter().find_map(|count| {
        let events = samples(one, count);
        let problem = |name: &str, problem: String| format!("its {name} fails on a batch of {count}: {problem}");
        let agent = render_checked(one, &events).err().map(|error| problem("template", error));
        let person = || render_for_person(one, &events)?.err().map(|error| problem("template_user", error));
        agent.or_else(person)
    })
}

/// The text that a person would get; `None` if the subscriber is for agents only.
pub(super) fn render_for_person(one: &Subscriber, events: &[Arc<Event>]) -> Option<Result<String, String>> {
    (one.output.audience != Audience::Agent).then(|| one.dry_run_for_person(events))
}

/// Renders events and checks that the official TOON crate decodes and re-encodes the text unchanged.
pub(super) fn render_checked(one: &Subscriber, events: &[Arc<Event>]) -> Result<Document, String> {
    let document = one.dry_run(events, &Boundary::from_seed(0))?;
    let text = document.to_toon();
    let decoded: Value = toon_format::decode_default(&text).map_err(|error| format!("not valid TOON: {error}"))?;
    let encoded = toon_format::encode_default(&decoded).map_err(|error| format!("not valid TOON: {error}"))?;
    match encoded == text {
        true => Ok(document),
        false => Err(format!("the official encoder would write it otherwise: {encoded}")),
    }
}
