use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::{FileError, FindTemplate, Subscriber, SubscriberFile, SubscriberId, SubscriberKey, bundled_files};
use crate::event::{EventType, KnownType, TypePattern};

/// The loaded subscribers, in id order, with an index by event type.
///
/// A set never changes; a reload creates a new one. It keeps removed subscribers as *retired*, so that a batch they
/// opened is still rendered with their template.
///
/// ```
/// use bellwire_core::Subscribers;
///
/// let subscribers = Subscribers::bundled();
/// assert_eq!(subscribers.iter().count(), 15);
/// assert!(subscribers.find("tool_failure").unwrap().output.core);
/// ```
#[derive(Debug, Default)]
pub struct Subscribers {
    list: Vec<Arc<Subscriber>>,
    retired: BTreeMap<SubscriberId, Arc<Subscriber>>,
    by_type: BTreeMap<EventType, Box<[u16]>>,
    /// The subscribers with a wildcard among their types: the only candidates for a type that none lists literally.
    with_wildcard: Box<[u16]>,
    outdated: BTreeMap<SubscriberId, String>,
}

/// The result of loading a folder: the subscribers, and the errors of the files that are not among them.
#[derive(Debug)]
pub struct LoadedSubscribers {
    /// The subscribers of every valid file.
    pub subscribers: Subscribers,
    /// The errors of the invalid files.
    pub errors: Vec<FileError>,
}

/// More subscribers in one set are a mistake.
const SUBSCRIBERS_MAX: usize = 1000;

impl Subscribers {
    /// The fifteen subscribers that come with Bellwire.
    pub fn bundled() -> Self {
        let (files, templates) = bundled_files();
        let loaded = Self::load(&files, &templates);
        debug_assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
        loaded.subscribers
    }

    /// Loads subscriber files; `templates` maps the paths they name to texts. An invalid file is reported and skipped.
    /// Of two files with the same id the second is invalid.
    pub fn load(files: &[SubscriberFile], templates: &BTreeMap<String, String>) -> LoadedSubscribers {
        let find = |path: &str| templates.get(path).cloned().ok_or_else(|| "does not exist".to_owned());
        let (mut errors, mut list) = (Vec::new(), Vec::new());
        for parsed in Self::parse_all(files, &find) {
            match parsed {
                Ok(subscriber) => list.push(subscriber),
                Err(error) => errors.push(error),
            }
        }
        LoadedSubscribers { subscribers: Self::new(list), errors }
    }

    /// Parses subscriber files that form one set; one result per file, in their order.
    pub fn parse_all(files: &[SubscriberFile], template: FindTemplate<'_>) -> Vec<Result<Arc<Subscriber>, FileError>> {
        let mut taken = TakenIds::new();
        files.iter().map(|file| first_of_its_id(file, file.parse(template)?, &mut taken)).collect()
    }

    /// A set of parsed subscribers. Of two with the same id the later wins.
    pub fn new(list: impl IntoIterator<Item = Arc<Subscriber>>) -> Self {
        let by_id: BTreeMap<_, _> = list.into_iter().map(|subscriber| (subscriber.id.clone(), subscriber)).collect();
        let list: Vec<_> = by_id.into_values().collect();
        let exact = |pattern: &TypePattern| match pattern {
            TypePattern::Exact(kind) => Some(kind.clone()),
            TypePattern::Below(_) | TypePattern::Form { .. } => None,
        };
        let named: BTreeSet<EventType> = list.iter().flat_map(|one| one.types.iter().filter_map(exact)).collect();
        let listening = |kind: &EventType| positions(&list, |one| one.listens_for(kind));
        let by_type = named.iter().map(|kind| (kind.clone(), listening(kind))).collect();
        let with_wildcard = positions(&list, |one| one.types.iter().any(|pattern| exact(pattern).is_none()));
        Self { retired: BTreeMap::new(), by_type, with_wildcard, list, outdated: BTreeMap::new() }
    }

    /// The set with the errors of files that became invalid and whose last valid version it has.
    pub fn with_outdated(self, outdated: BTreeMap<SubscriberId, String>) -> Self {
        Self { outdated, ..self }
    }

    /// Why the subscriber's file could not be loaded again; then this is its last valid version.
    pub fn outdated(&self, id: &SubscriberId) -> Option<&str> {
        self.outdated.get(id).map(String::as_str)
    }

    /// The set after a reload: `next`, with the subscribers missing from it retired. For a file that became invalid,
    /// pass its last valid version in `next`.
    pub fn reloaded(&self, next: impl IntoIterator<Item = Arc<Subscriber>>) -> Self {
        let mut set = Self::new(next);
        let gone = self.retired.values().chain(&self.list).filter(|old| set.find(old.id.as_str()).is_none());
        set.retired = gone.map(|old| (old.id.clone(), old.clone())).collect();
        set
    }

    /// Every active subscriber, in id order; retired ones are not included.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Subscriber>> {
        self.list.iter()
    }

    /// The number of active subscribers.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether no subscriber is active.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The active subscriber with this id.
    pub fn find(&self, id: &str) -> Option<&Arc<Subscriber>> {
        self.list.binary_search_by(|one| one.id.as_str().cmp(id)).ok().map(|at| &self.list[at])
    }

    /// The active or retired subscriber with this id: a retired one may still have an open batch or pending
    /// notifications.
    pub(crate) fn find_or_retired(&self, id: &SubscriberId) -> Option<&Arc<Subscriber>> {
        self.find(id.as_str()).or_else(|| self.retired.get(id))
    }

    pub(crate) fn find_by_key(&self, key: SubscriberKey) -> Option<&Arc<Subscriber>> {
        self.list.iter().chain(self.retired.values()).find(|one| one.key == key)
    }

    /// Whether any subscriber notifies people, and not only agents, of this event type.
    pub fn reaches_person(&self, kind: &EventType) -> bool {
        self.listening(kind).any(|subscriber| subscriber.output.audience.includes(true))
    }

    /// Whether no subscriber listens for this type although it is not one that Bellwire itself uses. Such a type is
    /// probably mistyped. Does not allocate.
    pub fn is_unheard(&self, kind: &EventType) -> bool {
        self.listening(kind).next().is_none() && KnownType::find(kind.as_str()).is_none()
    }

    /// The subscribers that notify people of this event type, in id order.
    pub fn for_person(&self, kind: &EventType) -> impl Iterator<Item = &Arc<Subscriber>> {
        self.listening(kind).filter(|subscriber| subscriber.output.audience.includes(true))
    }

    /// The subscribers that listen for this type, in id order.
    pub(crate) fn listening(&self, kind: &EventType) -> impl Iterator<Item = &Arc<Subscriber>> {
        let (positions, sure) = match self.by_type.get(kind) {
            Some(positions) => (positions, true),
            None => (&self.with_wildcard, false),
        };
        positions
            .iter()
            .map(|at| &self.list[usize::from(*at)])
            .filter(move |subscriber| sure || subscriber.listens_for(kind))
    }
}

/// The ids of the files before, each with the path of its file.
type TakenIds<'a> = BTreeMap<SubscriberKey, (SubscriberId, &'a str)>;

fn first_of_its_id<'a>(
    file: &'a SubscriberFile,
    subscriber: Arc<Subscriber>,
    taken: &mut TakenIds<'a>,
) -> Result<Arc<Subscriber>, FileError> {
    let message = match taken.get(&subscriber.key) {
        Some((id, first)) if *id == subscriber.id => format!("subscriber.id '{id}' is already used by {first}"),
        Some((id, _)) => format!("subscriber.id '{}' has the same key as '{id}'; choose another", subscriber.id),
        None if taken.len() == SUBSCRIBERS_MAX => format!("more than {SUBSCRIBERS_MAX} subscribers"),
        None => {
            taken.insert(subscriber.key, (subscriber.id.clone(), &file.path));
            return Ok(subscriber);
        }
    };
    Err(FileError { path: file.path.clone(), line: 0, message })
}

fn positions(list: &[Arc<Subscriber>], wanted: impl Fn(&Subscriber) -> bool) -> Box<[u16]> {
    let wanted = list.iter().enumerate().filter(|(_, one)| wanted(one));
    wanted.map(|(at, _)| u16::try_from(at).unwrap_or(u16::MAX)).collect()
}

/// The subscribers a person has switched off. Core subscribers are never among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    disabled: BTreeSet<SubscriberId>,
}

/// Why a subscriber cannot be switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisableError {
    /// It is a core subscriber; the value is its id.
    Core(String),
    /// No subscriber has this id.
    Unknown(String),
}

impl fmt::Display for DisableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(id) => write!(f, "'{id}' is a core subscriber and cannot be disabled"),
            Self::Unknown(id) => write!(f, "there is no subscriber '{}'", crate::event::excerpt(id)),
        }
    }
}

impl std::error::Error for DisableError {}

/// Whether a subscriber is active for one person.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SubscriberState {
    /// It turns events into notifications.
    Active,
    /// The person switched it off.
    Disabled,
}

impl Preferences {
    /// Switches off these subscribers. Returns an error, and switches off none, if one of them is core or unknown.
    pub fn disabling<'a>(
        ids: impl IntoIterator<Item = &'a str>,
        subscribers: &Subscribers,
    ) -> Result<Self, DisableError> {
        let known = |id: &str| match subscribers.find(id) {
            Some(subscriber) if subscriber.output.core => Err(DisableError::Core(id.to_owned())),
            Some(subscriber) => Ok(subscriber.id.clone()),
            None => Err(DisableError::Unknown(id.to_owned())),
        };
        Ok(Self { disabled: ids.into_iter().map(known).collect::<Result<_, _>>()? })
    }

    /// The state of this subscriber. A subscriber that became core after it was switched off is active.
    pub fn state_of(&self, subscriber: &Subscriber) -> SubscriberState {
        match !self.disabled.is_empty() && !subscriber.output.core && self.disabled.contains(&subscriber.id) {
            true => SubscriberState::Disabled,
            false => SubscriberState::Active,
        }
    }

    /// The ids of the subscribers switched off.
    pub fn disabled(&self) -> impl Iterator<Item = &SubscriberId> {
        self.disabled.iter()
    }
}
