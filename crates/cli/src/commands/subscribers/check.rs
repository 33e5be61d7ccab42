//! Checks subscriber files as `bellwire subscribers check` and `bellwire doctor` do.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use bellwire_core::render::toon::Document;
use bellwire_core::subscriber::{Audience, Subscriber};
use bellwire_core::{Boundary, Event};
use serde_json::Value;

use super::sample::{samples, sparse};
use crate::commands::folder;

/// What a folder of subscribers holds, and what is wrong with it.
pub(crate) struct FolderCheck {
    /// The number of subscriber files.
    pub(crate) files: usize,
    /// One for each file that is invalid, or whose template fails on sample events.
    pub(crate) problems: Vec<String>,
}

/// Loads every file of a folder and renders sample events with its templates.
pub(crate) fn check_folder(dir: &Path) -> Result<FolderCheck> {
    let (good, errors) = folder::read(dir)?;
    let mut problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
    problems.extend(good.iter().filter_map(|one| Some(format!("subscriber '{}': {}", one.id, template_problem(one)?))));
    Ok(FolderCheck { files: good.len() + errors.len(), problems })
}

/// The first failure of a template on one sample event, on a full batch of them, or on an event that lacks fields.
fn template_problem(one: &Subscriber) -> Option<String> {
    let of_batch = |count: usize| {
        let (name, error) = first_error(one, &samples(one, count))?;
        Some(format!("its {name} fails on a batch of {count}: {error}"))
    };
    let of_sparse = || {
        let (name, error) = first_error(one, &[sparse(one)?])?;
        Some(format!("its {name} fails if a field is missing: {error}"))
    };
    of_batch(1).or_else(|| of_batch(one.batching.max_size)).or_else(of_sparse)
}

/// Which template fails on these events, and why.
pub(super) fn first_error(one: &Subscriber, events: &[Arc<Event>]) -> Option<(&'static str, String)> {
    let agent = render_checked(one, events).err().map(|error| ("template", error));
    agent.or_else(|| render_for_person(one, events)?.err().map(|error| ("template_user", error)))
}

/// The text that a person would get; `None` if the subscriber is for agents only.
pub(crate) fn render_for_person(one: &Subscriber, events: &[Arc<Event>]) -> Option<Result<String, String>> {
    (one.output.audience != Audience::Agent).then(|| one.dry_run_for_person(events))
}

/// Renders events and checks that the official TOON crate decodes and re-encodes the text unchanged.
pub(super) fn render_checked(one: &Subscriber, events: &[Arc<Event>]) -> Result<Document, String> {
    let document = one.dry_run(events, &Boundary::from_seed(0))?;
    let text = document.to_toon();
    let invalid = |error| format!("{}: not valid TOON: {error}", one.template.path());
    let decoded: Value = toon_format::decode_default(&text).map_err(invalid)?;
    let encoded = toon_format::encode_default(&decoded).map_err(invalid)?;
    match encoded == text {
        true => Ok(document),
        false => Err(format!("{}: the official encoder would write it otherwise: {encoded}", one.template.path())),
    }
}
