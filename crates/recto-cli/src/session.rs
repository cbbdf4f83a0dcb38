//! The open store of one command, and the lookup of conversations by their arguments.

use recto::blocking::{Conversation, Recto};
use recto::{Address, ConversationInfo, Options, StoreError};
use recto_service::{Perform, Service};

use crate::Environment;
use crate::arguments::General;
use crate::failure::Failure;
use crate::last_used::{LastUsed, Used};
use crate::store_location::{LocationSource, StoreLocation};

/// An open store.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) recto: Recto,
    pub(crate) location: StoreLocation,
    last_used: LastUsed,
}

/// What to do if the store does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    Refuse,
}

/// Whether a store gets a search index when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    Yes,
    /// Not if it is in memory.
    NotInMemory,
}

/// A conversation and its name.
#[derive(Debug)]
pub(crate) struct NamedConversation {
    pub(crate) name: String,
    pub(crate) handle: Conversation,
}

impl Session {
    /// Opens the selected store. Fails if it does not exist.
    pub(crate) fn open(general: &General, environment: &Environment) -> Result<Session, Failure> {
        Self::open_or(general, environment, IfMissing::Refuse, Search::Yes)
    }

    pub(crate) fn open_or(
        general: &General,
        environment: &Environment,
        if_missing: IfMissing,
        search: Search,
    ) -> Result<Session, Failure> {
        let location = StoreLocation::find(general, environment)?;
        if let Some(file) = location.file().filter(|file| !file.exists()) {
            if if_missing == IfMissing::Refuse {
                let named_by = location.source;
                return Err(Failure::NoStore { location: location.shown(), named_by });
            }
            // Only the default folder is created: for any other path, a typing error is more likely.
            if location.source == LocationSource::DataFolder {
                make_private_folder(file.parent().unwrap_or(file))?;
            }
        }
        let last_used = LastUsed::of(&location, environment);
        let search = search == Search::Yes || location.address != Address::Memory;
        let options = Options { search, ..Options::default() };
        Ok(Session { recto: Recto::open_with(&location.text, options)?, location, last_used })
    }

    /// Whether the store is in memory, so that no other process can use it.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.location.address == Address::Memory
    }

    /// Performs a request of `recto-service`.
    pub(crate) fn run<R: Perform>(&self, request: R) -> Result<R::Response, Failure> {
        Ok(self.recto.wait(self.service().run(request))?)
    }

    /// The requests of `recto-service` on this store.
    pub(crate) fn service(&self) -> Service {
        Service::new(self.recto.inner().clone())
    }

    /// Opens a conversation by its name, its id, a unique prefix of either, or `@`.
    pub(crate) fn conversation(&self, given: &str) -> Result<NamedConversation, Failure> {
        let name = self.name_of(given)?;
        let handle = self.recto.conversation(&name)?;
        self.record_use(&name, &handle);
        Ok(NamedConversation { name, handle })
    }

    /// Records a conversation as the last one used.
    pub(crate) fn record_use(&self, name: &str, handle: &Conversation) {
        let (id, name) = (handle.id().to_string(), name.to_owned());
        self.last_used.set(&Used { id, name });
    }

    /// The name of the only conversation of the store.
    fn only_name(&self) -> Result<String, Failure> {
        match <[ConversationInfo; 1]>::try_from(self.recto.list(None, 2)?) {
            Ok([only]) => Ok(only.name),
            Err(_) => Err(Failure::NothingUsed),
        }
    }

    /// The full name of a conversation that is given by name, id, prefix or `@`. `@` is the one that was used
    /// last, or the only one.
    pub(crate) fn name_of(&self, given: &str) -> Result<String, Failure> {
        let text = match given {
            "@" => {
                let Some(used) = self.last_used.get() else { return self.only_name() };
                let info = if_found(self.recto.info(&used.name))?;
                if info.is_some_and(|info| info.id.to_string() == used.id) {
                    return Ok(used.name);
                }
                used.id
            }
            given if if_found(self.recto.info(given))?.is_some() => return Ok(given.to_owned()),
            given => given.to_owned(),
        };
        if let Ok(id) = text.parse()
            && let Some(info) = if_found(self.recto.info_by_id(id))?
        {
            return Ok(info.name);
        }
        let all = self.recto.list(None, usize::MAX)?;
        let found = matching(&all, &text);
        match &*found {
            [one] => Ok(one.name.clone()),
            [] if given == "@" => Err(Failure::NothingUsed),
            [] => {
                let similar = similar(&all, given).take(3).map(|name| format!("{name:?}"));
                match similar.collect::<Vec<_>>() {
                    none if none.is_empty() => {
                        let name = given.to_owned();
                        Err(StoreError::ConversationNotFound { name }.into())
                    }
                    similar => Err(Failure::Misnamed { given: given.to_owned(), similar }),
                }
            }
            several => {
                let names = several.iter().take(9).map(|info| format!("{:?}", info.name));
                Err(Failure::Ambiguous { given: given.to_owned(), candidates: names.collect() })
            }
        }
    }
}

/// `None` if there is no such conversation.
fn if_found(
    info: Result<ConversationInfo, recto::Error>,
) -> Result<Option<ConversationInfo>, Failure> {
    match info {
        Ok(info) => Ok(Some(info)),
        Err(recto::Error::Store(StoreError::ConversationNotFound { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The conversations that match a text: the one with that id, else those whose name or id has it as
/// a prefix.
fn matching<'a>(all: &'a [ConversationInfo], text: &str) -> Vec<&'a ConversationInfo> {
    let id = text.to_ascii_lowercase();
    if let Some(found) = all.iter().find(|info| info.id.to_string() == id) {
        return vec![found];
    }
    let has_prefix = |info: &&ConversationInfo| {
        info.name.starts_with(text) || info.id.to_string().starts_with(&id)
    };
    match text {
        "" => Vec::new(),
        _ => all.iter().filter(has_prefix).collect(),
    }
}

/// Names that contain the text, ignoring case.
fn similar<'a>(all: &'a [ConversationInfo], given: &str) -> impl Iterator<Item = &'a str> {
    let text = given.trim().to_lowercase();
    let names = all.iter().map(|info| &*info.name);
    names.filter(move |name| !text.is_empty() && name.to_lowercase().contains(&text))
}

fn make_private_folder(folder: &std::path::Path) -> Result<(), Failure> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| Failure::Write {
        file: folder.display().to_string(),
        reason: error.kind().to_string(),
    })
}
