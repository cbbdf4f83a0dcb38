//! Transcripts into a store: each step of an import is one request here.
//!
//! While steps come, the conversations are called `NAME (importing)`; [`Import::finish`] gives them
//! their names. So whatever stops an import, nobody takes half a conversation for a whole one.

use std::collections::HashMap;

use recto_core::{Request, Settings, Version};
use recto_format::{Start, Step};
use recto_store::ConversationId;

use crate::{Error, Recto, StoreError, StoredConversation, Write};

/// What imported conversations are called. Of several in one file, each further one has a number, and
/// so has a name from a file that is taken already. A fork is called `NAME/FORK`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// This, which must be free.
    Exactly(String),
    /// As the file says; where it says nothing, this.
    AsTitled {
        /// The name of a conversation without a title.
        otherwise: String,
    },
}

/// Takes the steps of an import and makes conversations of them, with their versions and forks.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use recto::{Import, Naming, Recto, Settings};
/// use recto_format::{Collected, ImportOptions, import};
///
/// let file = r#"[{"role":"user","content":"2 + 2?"},{"role":"assistant","content":"4"}]"#;
/// let mut read = Collected::default();
/// import(file, None, &ImportOptions::default(), &mut read)?;
///
/// let recto = Recto::open("memory:").await?;
/// let mut into = Import::new(&recto, Naming::Exactly("sums".into()), Settings::default());
/// for step in read.steps {
///     into.step(step).await?; // if it is refused: into.abandon().await
/// }
/// let imported = into.finish().await?;
/// assert_eq!((&*imported[0].name, imported[0].messages), ("sums", 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// [`Collected`](recto_format::Collected) holds all of a file. For larger ones, import on a thread of
/// its own, with a [`Sink`](recto_format::Sink) that waits for each [`step`](Self::step).
#[derive(Debug)]
pub struct Import {
    recto: Recto,
    naming: Naming,
    settings: Settings,
    made: Vec<Made>,
    /// The lines of the conversation that was started last, as places in `made`.
    lines: Vec<usize>,
    /// The line that steps belong to.
    line: usize,
    names: Names,
}

/// A conversation in the making.
#[derive(Debug)]
struct Made {
    talk: StoredConversation,
    /// Its newest version, as long as nobody else writes to it.
    version: Version,
    /// What it is called now.
    called: String,
    /// What it is to be called.
    name: String,
    /// Whether that name must not be another one.
    is_fixed: bool,
    start: Start,
    envelope: Option<String>,
    fork_of: Option<(usize, Version)>,
}

/// A conversation that was imported.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// What it is called.
    pub name: String,
    /// What it is known by, for ever.
    pub id: ConversationId,
    /// Its newest version.
    pub version: Version,
    /// How long its log is.
    pub messages: u32,
    /// For a fork: of which of the imported conversations, and at which version.
    pub fork_of: Option<(usize, Version)>,
    /// What the file says about it.
    pub start: Start,
    /// What stood around its messages, which no store keeps; see [`Step::Envelope`].
    pub envelope: Option<String>,
}

impl Import {
    /// What stands behind the name of a conversation until the import is finished.
    pub const UNFINISHED: &str = " (importing)";

    /// Into this store. The settings must have no tools: steps count on an empty log. Set them when
    /// the import is finished.
    pub fn new(recto: &Recto, naming: Naming, settings: Settings) -> Import {
        let (made, lines, names) = (Vec::new(), Vec::new(), Names::default());
        Import { recto: recto.clone(), naming, settings, made, lines, line: 0, names }
    }

    /// Performs the next step. If it is refused, what was made before is still there: give it up
    /// with [`abandon`](Self::abandon).
    pub async fn step(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::Start(start) => self.start(start).await,
            Step::Append(messages) => self.apply(recto_core::Append { messages }).await,
            Step::Apply(request) => self.apply(request).await,
            Step::Fork { name, of, version } => self.fork(&name, of, version).await,
            Step::Line(line) => {
                self.line = line;
                Ok(())
            }
            Step::Envelope(envelope) => {
                let base = self.lines.first().ok_or_else(too_early)?;
                self.made[*base].envelope = Some(envelope);
                Ok(())
            }
        }
    }

    async fn start(&mut self, start: Start) -> Result<(), Error> {
        if !self.settings.tools.is_empty() {
            let reason = "a conversation is imported without tools; set them afterwards";
            let field = Some("tools".to_owned());
            return Err(recto_core::Error::InvalidOperation { reason: reason.into(), field }.into());
        }
        let (wanted, is_fixed) = match &self.naming {
            Naming::Exactly(name) => (name.clone(), self.made.is_empty()),
            Naming::AsTitled { otherwise } => {
                let title = start.name.as_deref().map(titled).filter(|title| !title.is_empty());
                (title.unwrap_or_else(|| otherwise.clone()), false)
            }
        };
        let name = match is_fixed {
            true if self.is_taken(&wanted).await? => {
                return Err(StoreError::ConversationExists { name: wanted }.into());
            }
            true => self.names.take(&wanted),
            false => self.free(&wanted).await?,
        };
        let called = self.free(&format!("{name}{}", Self::UNFINISHED)).await?;
        let talk = self.recto.create(&called, self.settings.clone()).await?;
        (self.lines, self.line) = (vec![self.made.len()], 0);
        let (envelope, fork_of) = (None, None);
        let version = talk.version().await?;
        self.made.push(Made { talk, version, called, name, is_fixed, start, envelope, fork_of });
        Ok(())
    }

    async fn fork(&mut self, name: &str, of: usize, version: Version) -> Result<(), Error> {
        let from = *self.lines.get(of).ok_or_else(too_early)?;
        let base = self.made[self.lines[0]].name.clone();
        let name = self.free(&format!("{base}/{}", titled(name))).await?;
        let called = self.free(&format!("{name}{}", Self::UNFINISHED)).await?;
        let talk = self.made[from].talk.fork(&called, version).await?;
        self.line = self.lines.len();
        self.lines.push(self.made.len());
        let (start, envelope, fork_of) = (Start::default(), None, Some((from, version)));
        let version = talk.version().await?;
        self.made.push(Made {
            talk,
            version,
            called,
            name,
            is_fixed: false,
            start,
            envelope,
            fork_of,
        });
        Ok(())
    }

    async fn apply(&mut self, request: impl Into<Request>) -> Result<(), Error> {
        let place = *self.lines.get(self.line).ok_or_else(too_early)?;
        let made = &mut self.made[place];
        // Steps count on what the steps before them left.
        let write = Write { expected_version: Some(made.version), key: None };
        made.version = made.talk.apply_with(request, write).await?.version;
        Ok(())
    }

    /// Gives the conversations their names. If it fails, [`abandon`](Self::abandon) removes them.
    pub async fn finish(&mut self) -> Result<Vec<Imported>, Error> {
        for place in 0..self.made.len() {
            let Made { called, name, is_fixed, .. } = &self.made[place];
            let (called, mut name, is_fixed) = (called.clone(), name.clone(), *is_fixed);
            loop {
                match self.recto.rename(&called, &name).await {
                    // Somebody took the name meanwhile.
                    Err(Error::Store(StoreError::ConversationExists { .. })) if !is_fixed => {
                        name = self.free(&name).await?;
                    }
                    renamed => break renamed?,
                }
            }
            self.made[place].called = name;
        }
        let mut imported = Vec::new();
        for made in &self.made {
            let info = self.recto.info(&made.called).await?;
            imported.push(Imported {
                name: info.name,
                id: info.id,
                version: info.version,
                messages: info.messages,
                fork_of: made.fork_of,
                start: made.start.clone(),
                envelope: made.envelope.clone(),
            });
        }
        Ok(imported)
    }

    /// Removes everything that the steps made. Answers what could not be removed, and why: the name
    /// that it is found by, and the error.
    pub async fn abandon(&mut self) -> Vec<(String, Error)> {
        let mut left = Vec::new();
        for made in self.made.drain(..).rev() {
            if let Err(error) = self.recto.remove(&made.called).await {
                left.push((made.called, error));
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

    /// The name, with a number behind it if it is taken.
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

/// A title that can be a name: on one line, and not endless.
fn titled(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(120).collect()
}

/// The names that were given out, each with the number to try next.
#[derive(Debug, Default)]
struct Names(HashMap<String, u32>);

impl Names {
    /// The name itself the first time, then with a number behind it.
    fn take(&mut self, name: &str) -> String {
        let Some(&(mut number)) = self.0.get(name) else {
            self.0.insert(name.to_owned(), 2);
            return name.to_owned();
        };
        loop {
            let numbered = format!("{name} {number}");
            number += 1;
            // "a 2" may have been given out as a name of its own.
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
    fn no_name_is_given_out_twice() {
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
