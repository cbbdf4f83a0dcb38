//! The import steps of a transcript, performed in a store.
//!
//! During an import the conversations have names such as `NAME (importing)`. [`Import::finish`] gives them
//! their final names, so an interrupted import is not taken for a complete conversation.

use std::collections::HashMap;

use recto_core::{Request, Settings, Version};
use recto_format::{EnvelopeInfo, Format, Start, Step};
use recto_store::ConversationId;

use crate::{Conversation, Error, Recto, StoreError, WriteOptions, check_name};

/// Maximum number of requests that are committed as a group.
const MAX_GROUP: usize = 256;

/// Size of the messages of a group, in bytes, above which it is committed.
const MAX_GROUP_BYTES: usize = 8 << 20;

/// The names of imported conversations. If a transcript has several conversations, each further one gets a
/// number. A fork is called `NAME/FORK`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportName {
    /// This name. The import fails if it is taken.
    Exactly(String),
    /// The title in the transcript, with a number if the name is taken, and after the word `imported` if
    /// it is not an [allowed name](crate::check_name).
    FromTitle {
        /// The name of a conversation without a title.
        default: String,
    },
}

/// Performs import steps one by one: an import for programs that read the transcript themselves. For all
/// others [`Recto::import`] does everything in one call.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use recto::format::{Collected, ImportOptions, import};
/// use recto::{Approx, Import, ImportName, Recto, Settings};
///
/// let file = r#"[{"role":"user","content":"2 + 2?"},{"role":"assistant","content":"4"}]"#;
/// let mut read = Collected::default();
/// import(file, None, &ImportOptions::default(), &mut read)?;
///
/// let recto = Recto::open("memory:").await?;
/// let settings = Settings::counting_with(Approx);
/// let mut into = Import::new(&recto, ImportName::Exactly("sums".into()), settings);
/// for step in read.steps {
///     into.step(step).await?; // after an error: into.abandon().await
/// }
/// let imported = into.finish().await?;
/// assert_eq!((&*imported[0].name, imported[0].messages), ("sums", 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// [`Collected`](recto_format::Collected) keeps the whole transcript in memory.
#[derive(Debug)]
pub struct Import {
    recto: Recto,
    naming: ImportName,
    settings: Settings,
    created: Vec<Created>,
    /// The conversation that was started last and its forks, as positions in `created`.
    branches: Vec<usize>,
    /// The position in `branches` of the branch that steps belong to.
    branch: usize,
    names: Names,
    /// Requests for the current branch that are not committed yet, and the size of their messages.
    waiting: Vec<Request>,
    waiting_bytes: usize,
}

/// A conversation of an import in progress.
#[derive(Debug)]
struct Created {
    conversation: Conversation,
    /// The newest version.
    version: Version,
    /// The present name.
    present_name: String,
    /// The final name.
    name: String,
    /// Whether the import fails if the final name is taken.
    is_fixed: bool,
    start: Start,
    envelope: Option<String>,
    /// The number of tools that were set.
    tools: usize,
    fork_of: Option<(usize, Version)>,
}

/// An imported conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Imported {
    /// The name.
    pub name: String,
    /// The id. It never changes.
    pub id: ConversationId,
    /// The newest version.
    pub version: Version,
    /// The length of the log.
    pub messages: u32,
    /// The number of its tools. If it is not 0, the last message of the log describes them.
    pub tools: usize,
    /// For a fork: the position of its origin in the list of imported conversations, and the version.
    pub fork_of: Option<(usize, Version)>,
    /// The title, id and time in the transcript.
    pub start: Start,
    /// The envelope of the messages, which is not stored; see [`Step::Envelope`].
    pub envelope: Option<String>,
}

impl Import {
    /// The end of the name of a conversation until the import is finished.
    pub const UNFINISHED: &str = " (importing)";

    /// Starts an import into a store. The settings must not have tools, because steps expect an empty
    /// log: set tools after the import.
    pub fn new(recto: &Recto, naming: ImportName, settings: Settings) -> Import {
        Import {
            recto: recto.clone(),
            naming,
            settings,
            created: Vec::new(),
            branches: Vec::new(),
            branch: 0,
            names: Names::default(),
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }

    /// Performs the next step. Versions are committed in groups, so the error of a step may be returned
    /// for a later one or by [`finish`](Self::finish). After an error, [`abandon`](Self::abandon) removes
    /// what earlier steps have created.
    pub async fn step(&mut self, step: Step) -> Result<(), Error> {
        if !matches!(step, Step::Append(_) | Step::Apply(_) | Step::Envelope(_)) {
            self.commit().await?;
        }
        match step {
            Step::Start(start) => self.start(start).await,
            Step::Append(messages) => {
                let bytes = messages.iter().map(|message| message.json().len()).sum();
                self.apply(recto_core::Append { messages }, bytes).await
            }
            Step::Apply(request) => {
                let bytes = request.to_json().len();
                self.apply(request, bytes).await
            }
            Step::Fork { name, parent_branch, version } => {
                self.fork(&name, parent_branch, version).await
            }
            Step::SwitchBranch(branch) => {
                self.branch = branch;
                Ok(())
            }
            Step::Envelope(envelope) => {
                let base = self.branches.first().ok_or_else(too_early)?;
                self.created[*base].envelope = Some(envelope);
                Ok(())
            }
            other => unreachable!("a step of a newer recto-format: {other:?}"),
        }
    }

    async fn start(&mut self, start: Start) -> Result<(), Error> {
        if !self.settings.tools.is_empty() {
            let reason = "a conversation is imported without tools; set them afterwards";
            let field = Some("tools".to_owned());
            return Err(recto_core::Error::InvalidOperation { reason: reason.into(), field }.into());
        }
        let (wanted, is_fixed) = match &self.naming {
            ImportName::Exactly(name) => (name.clone(), self.created.is_empty()),
            ImportName::FromTitle { default } => {
                let title = start.name.as_deref().map(titled).filter(|title| !title.is_empty());
                (allowed(title.unwrap_or_else(|| default.clone())), false)
            }
        };
        check_name(&wanted)?;
        let name = match is_fixed {
            true if self.is_taken(&wanted).await? => {
                return Err(StoreError::ConversationExists { name: wanted }.into());
            }
            true => self.names.take(&wanted),
            false => self.free(&wanted).await?,
        };
        let present_name = self.free(&format!("{name}{}", Self::UNFINISHED)).await?;
        let conversation = self.recto.create(&present_name, self.settings.clone()).await?;
        (self.branches, self.branch) = (vec![self.created.len()], 0);
        let (version, envelope, fork_of) = (Version(0), None, None);
        self.created.push(Created {
            conversation,
            version,
            present_name,
            name,
            is_fixed,
            start,
            envelope,
            tools: 0,
            fork_of,
        });
        Ok(())
    }

    async fn fork(&mut self, name: &str, of: usize, version: Version) -> Result<(), Error> {
        let from = *self.branches.get(of).ok_or_else(too_early)?;
        let base = self.created[self.branches[0]].name.clone();
        let name = self.free(&format!("{base}/{}", titled(name))).await?;
        let present_name = self.free(&format!("{name}{}", Self::UNFINISHED)).await?;
        let conversation = self.created[from].conversation.fork(&present_name, version).await?;
        self.branch = self.branches.len();
        self.branches.push(self.created.len());
        let (start, envelope, fork_of) = (Start::default(), None, Some((from, version)));
        self.created.push(Created {
            conversation,
            version,
            present_name,
            name,
            is_fixed: false,
            start,
            envelope,
            tools: 0,
            fork_of,
        });
        Ok(())
    }

    /// Adds a request to the group of the current branch.
    async fn apply(&mut self, request: impl Into<Request>, bytes: usize) -> Result<(), Error> {
        self.branches.get(self.branch).ok_or_else(too_early)?;
        self.waiting.push(request.into());
        self.waiting_bytes += bytes;
        match self.waiting.len() >= MAX_GROUP || self.waiting_bytes >= MAX_GROUP_BYTES {
            true => self.commit().await,
            false => Ok(()),
        }
    }

    /// Commits the waiting requests.
    async fn commit(&mut self) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let position = *self.branches.get(self.branch).ok_or_else(too_early)?;
        let requests = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let created = &mut self.created[position];
        // Steps refer to versions and indices that earlier steps have made, so no other writer may have
        // changed the conversation.
        created.version = created.conversation.apply_all(requests, created.version).await?;
        Ok(())
    }

    /// Sets the tools of each imported provider request as the tools of its conversation.
    pub(super) async fn set_tools(&mut self, format: Format) -> Result<(), Error> {
        self.commit().await?;
        for created in &mut self.created {
            let Some(envelope) = created.envelope.as_deref() else { continue };
            let tools = EnvelopeInfo::of(envelope, format).tools;
            if !tools.is_empty() {
                created.tools = tools.len();
                let options = WriteOptions::expecting(created.version);
                let outcome = created.conversation.set_tools_with(tools, options).await?;
                created.version = outcome.version;
            }
        }
        Ok(())
    }

    /// Gives the conversations their final names. After an error, [`abandon`](Self::abandon) removes the
    /// conversations.
    pub async fn finish(&mut self) -> Result<Vec<Imported>, Error> {
        self.commit().await?;
        for position in 0..self.created.len() {
            let Created { present_name, name, is_fixed, .. } = &self.created[position];
            let (present_name, mut name, is_fixed) =
                (present_name.clone(), name.clone(), *is_fixed);
            loop {
                match self.recto.rename(&present_name, &name).await {
                    // Another conversation got the name in between.
                    Err(Error::Store(StoreError::ConversationExists { .. })) if !is_fixed => {
                        name = self.free(&name).await?;
                    }
                    renamed => break renamed?,
                }
            }
            self.created[position].present_name = name;
        }
        let mut imported = Vec::new();
        for created in &self.created {
            let info = self.recto.info(&created.present_name).await?;
            imported.push(Imported {
                name: info.name,
                id: info.id,
                version: info.version,
                messages: info.messages,
                tools: created.tools,
                fork_of: created.fork_of,
                start: created.start.clone(),
                envelope: created.envelope.clone(),
            });
        }
        Ok(imported)
    }

    /// Removes the conversations that the steps have created. Returns the names of those that could not
    /// be removed, each with the error.
    pub async fn abandon(&mut self) -> Vec<(String, Error)> {
        let mut left = Vec::new();
        for created in self.created.drain(..).rev() {
            if let Err(error) = self.recto.remove(&created.present_name).await {
                left.push((created.present_name, error));
            }
        }
        left
    }

    async fn is_taken(&self, name: &str) -> Result<bool, Error> {
        match self.recto.info(name).await {
            Ok(_) => Ok(true),
            Err(Error::Store(StoreError::ConversationNotFound { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The name, with a number appended if it is taken.
    async fn free(&mut self, name: &str) -> Result<String, Error> {
        loop {
            let free = self.names.take(name);
            if !self.is_taken(&free).await? {
                return Ok(free);
            }
        }
    }
}

fn too_early() -> Error {
    let reason = "a step of an import came before its conversation started";
    recto_core::Error::InvalidOperation { reason: reason.into(), field: None }.into()
}

/// A title as a name: one line of at most 120 characters.
fn titled(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(120).collect()
}

/// The title, or a longer name if a conversation cannot have that name. The title of a transcript is often an
/// id, which a name must not be.
fn allowed(title: String) -> String {
    match check_name(&title) {
        Ok(()) => title,
        Err(_) => format!("imported {title}"),
    }
}

/// The names that the import has used, each with the number to append next.
#[derive(Debug, Default)]
struct Names(HashMap<String, u32>);

impl Names {
    /// The name itself the first time, then the name with a number.
    fn take(&mut self, name: &str) -> String {
        let Some(&(mut number)) = self.0.get(name) else {
            self.0.insert(name.to_owned(), 2);
            return name.to_owned();
        };
        loop {
            let numbered = format!("{name} {number}");
            number += 1;
            // "a 2" may have been used as a title.
            if !self.0.contains_key(&numbered) {
                self.0.insert(numbered.clone(), 2);
                self.0.insert(name.to_owned(), number);
                return numbered;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_used_twice() {
        let mut names = Names::default();
        let taken = ["a", "a 2", "a", "a", "a 2"].map(|name| names.take(name));
        assert_eq!(taken, ["a", "a 2", "a 3", "a 4", "a 2 2"]);
    }

    #[test]
    fn a_title_becomes_a_name_on_one_line() {
        assert_eq!(titled(" Why does\n it\u{7} fail? "), "Why does it fail?");
        assert_eq!(titled(&"x".repeat(1_000)).len(), 120);
    }
}
