//! A store that is open for one command, and the conversations that arguments name in it.

use recto::blocking::{Conversation, Recto};
use recto::{Address, ConversationInfo, Options};
use recto_service::{Perform, Service};

use crate::Surroundings;
use crate::arguments::General;
use crate::failure::Failure;
use crate::last_used::{LastUsed, Used};
use crate::place::{Place, Source};

/// An open store.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) recto: Recto,
    pub(crate) place: Place,
    last_used: LastUsed,
}

/// Whether a command may create a store where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    Refuse,
}

/// Whether a store that is created now can be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    Yes,
    /// Nobody asks, so it need not be paid for.
    NotInMemory,
}

/// A conversation, and what it is called.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) talk: Conversation,
}

impl Session {
    /// Opens the store that is meant, which must be there.
    pub(crate) fn open(general: &General, surroundings: &Surroundings) -> Result<Session, Failure> {
        Self::open_or(general, surroundings, IfMissing::Refuse, Search::Yes)
    }

    pub(crate) fn open_or(
        general: &General,
        surroundings: &Surroundings,
        if_missing: IfMissing,
        search: Search,
    ) -> Result<Session, Failure> {
        let place = Place::find(general, surroundings)?;
        if let Some(file) = place.file().filter(|file| !file.exists()) {
            if if_missing == IfMissing::Refuse {
                let said_by = place.source;
                return Err(Failure::NoStore { place: place.shown(), said_by });
            }
            // Only a folder of our own is made: anywhere else a misspelt path is likelier.
            if place.source == Source::DataFolder {
                make_private_folder(file.parent().unwrap_or(file))?;
            }
        }
        let last_used = LastUsed::of(&place, surroundings);
        let search = search == Search::Yes || place.address != Address::Memory;
        let options = Options { search, ..Options::default() };
        Ok(Session { recto: Recto::open_with(&place.text, options)?, place, last_used })
    }

    /// Whether nobody else can see the store.
    pub(crate) fn is_private(&self) -> bool {
        self.place.address == Address::Memory
    }

    /// Performs a request of the service.
    pub(crate) fn run<R: Perform>(&self, request: R) -> Result<R::Response, Failure> {
        let service = Service::new(self.recto.inner().clone());
        Ok(self.recto.wait(service.run(request))?)
    }

    /// A conversation by its name, its id, the beginning of one of them, or `@`.
    pub(crate) fn conversation(&self, given: &str) -> Result<Named, Failure> {
        let name = self.name_of(given)?;
        let talk = self.recto.conversation(&name)?;
        self.used(&name, &talk);
        Ok(Named { name, talk })
    }

    /// Takes note that a conversation was used.
    pub(crate) fn used(&self, name: &str, talk: &Conversation) {
        let (id, name) = (talk.inner().id().to_string(), name.to_owned());
        self.last_used.set(&Used { id, name });
    }

    /// The name of the conversation that is meant.
    pub(crate) fn name_of(&self, given: &str) -> Result<String, Failure> {
        let wanted = match given {
            "@" => {
                let used = self.last_used.get().ok_or(Failure::NothingUsed)?;
                if self.recto.info(&used.name).is_ok_and(|info| info.id.to_string() == used.id) {
                    return Ok(used.name);
                }
                used.id
            }
            given if self.recto.info(given).is_ok() => return Ok(given.to_owned()),
            given => given.to_owned(),
        };
        if let Ok(id) = wanted.parse()
            && let Ok(info) = self.recto.info_by_id(id)
        {
            return Ok(info.name);
        }
        let all = self.recto.list(None, usize::MAX)?;
        let found = chosen(&all, &wanted);
        match &*found {
            [one] => Ok(one.name.clone()),
            [] if given == "@" => Err(Failure::NothingUsed),
            [] => {
                let similar = similar(&all, given).take(3).map(|name| format!("{name:?}"));
                match similar.collect::<Vec<_>>() {
                    none if none.is_empty() => {
                        let name = given.to_owned();
                        Err(recto::StoreError::ConversationNotFound { name }.into())
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

/// A name must not mean something else.
pub(crate) fn check_new_name(name: &str) -> Result<(), Failure> {
    match name {
        "@" => Err(Failure::Usage(
            "@ stands for the conversation that was used last; choose another name".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// The conversations that a text may mean: the one of that id, else those that begin with it.
fn chosen<'a>(all: &'a [ConversationInfo], wanted: &str) -> Vec<&'a ConversationInfo> {
    let id = wanted.to_ascii_lowercase();
    if let Some(found) = all.iter().find(|info| info.id.to_string() == id) {
        return vec![found];
    }
    let begins = |info: &&ConversationInfo| {
        info.name.starts_with(wanted) || info.id.to_string().starts_with(&id)
    };
    match wanted {
        "" => Vec::new(),
        _ => all.iter().filter(begins).collect(),
    }
}

/// Names that have the text in them, in upper or lower case.
fn similar<'a>(all: &'a [ConversationInfo], given: &str) -> impl Iterator<Item = &'a str> {
    let wanted = given.trim().to_lowercase();
    let names = all.iter().map(|info| &*info.name);
    names.filter(move |name| !wanted.is_empty() && name.to_lowercase().contains(&wanted))
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
