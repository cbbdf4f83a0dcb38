//! Replay: builds conversations in memory from the steps of an import.

use recto_core::{Conversation, Settings, Timestamp};

use crate::Error;
use crate::export::Container;
use crate::import::{Sink, Start, Step, TranscriptWarning};

/// A sink that builds the conversations of a file, with their versions and forks.
///
/// ```
/// use recto_core::{Approx, Settings};
/// use recto_format::{ImportOptions, Replay, import};
///
/// let rollout = concat!(
///     r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"One"}}"#, "\n",
///     r#"{"type":"compacted","payload":{"message":"They counted."}}"#, "\n",
///     r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"Two"}}"#, "\n",
/// );
/// let mut replay = Replay::new(Settings::counting_with(Approx), 0);
/// import(rollout, None, &ImportOptions::default(), &mut replay)?;
/// let conversation = &replay.conversations[0].branches[0].conversation;
/// let reasons: Vec<String> = conversation.versions().map(|version| version.reason).collect();
/// assert_eq!(reasons[2], "the session was compacted");
/// // The view is what the session's program would continue from. The log has every message.
/// assert_eq!((conversation.view().len(), conversation.log().len()), (3, 3));
/// # Ok::<(), recto_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Replay {
    settings: Settings,
    now: Timestamp,
    /// Index of the branch that the next step changes.
    branch: usize,
    /// The conversations of the file.
    pub conversations: Vec<Replayed>,
    /// The warnings, in order.
    pub warnings: Vec<TranscriptWarning>,
}

/// One conversation of a file, with its forks.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replayed {
    /// Metadata of the conversation in the file.
    pub start: Start,
    /// The JSON around the messages; see [`Step::Envelope`].
    pub envelope: Option<String>,
    /// The conversation itself (branch 0), followed by its forks.
    pub branches: Vec<Branch>,
}

/// A conversation or one of its forks.
#[derive(Debug)]
#[non_exhaustive]
pub struct Branch {
    /// Name of the fork in the file. Empty for branch 0.
    pub name: String,
    /// The messages and versions of the branch.
    pub conversation: Conversation,
}

impl Replayed {
    /// The container of the messages in the file. With it, [`export`](crate::export) writes the same
    /// layout.
    ///
    /// ```
    /// use recto_core::Settings;
    /// use recto_format::{Container, ImportOptions, Replay, import};
    ///
    /// let file = r#"{"role":"user","content":"2 + 2?"}"#;
    /// let mut replay = Replay::new(Settings::default(), 0);
    /// import(file, None, &ImportOptions::default(), &mut replay)?;
    /// assert_eq!(replay.conversations[0].container(), Container::Lines);
    /// # Ok::<(), recto_format::Error>(())
    /// ```
    pub fn container(&self) -> Container<'_> {
        match (&self.envelope, self.start.is_json_lines) {
            (Some(envelope), _) => Container::Envelope(envelope),
            (None, true) => Container::Lines,
            (None, false) => Container::List,
        }
    }
}

impl Replay {
    /// A replay that creates conversations with these settings, at this time.
    pub fn new(settings: Settings, now: Timestamp) -> Replay {
        Replay { settings, now, branch: 0, conversations: Vec::new(), warnings: Vec::new() }
    }

    fn change(
        &mut self,
        change: impl FnOnce(&Conversation) -> Result<Conversation, recto_core::Error>,
    ) -> Result<(), Error> {
        let replayed = self.conversations.last_mut();
        let branch = replayed.and_then(|replayed| replayed.branches.get_mut(self.branch));
        let Some(Branch { conversation, .. }) = branch else {
            return Err(Error::Stopped("a step came before its conversation started".into()));
        };
        *conversation = change(conversation)?;
        Ok(())
    }
}

impl Sink for Replay {
    fn step(&mut self, step: Step) -> Result<(), Error> {
        let now = self.now;
        match step {
            Step::Start(start) => {
                let conversation = Conversation::new(self.settings.clone(), now)?;
                let branches = vec![Branch { name: String::new(), conversation }];
                self.conversations.push(Replayed { start, envelope: None, branches });
                self.branch = 0;
                Ok(())
            }
            Step::Append(messages) => self.change(|branch| Ok(branch.append(messages, now)?.0)),
            Step::Apply(request) => self.change(|branch| Ok(branch.apply(request, now)?.0)),
            Step::Envelope(envelope) => {
                if let Some(replayed) = self.conversations.last_mut() {
                    replayed.envelope = Some(envelope);
                }
                Ok(())
            }
            Step::Fork { name, parent_branch, version } => {
                let branches = self.conversations.last_mut().map(|replayed| &mut replayed.branches);
                let Some((parent, branches)) = branches.and_then(|branches| {
                    Some((branches.get(parent_branch)?.conversation.clone(), branches))
                }) else {
                    return Err(Error::Stopped(format!("there is no branch {parent_branch}")));
                };
                branches.push(Branch { name, conversation: parent.at(version)? });
                self.branch = branches.len() - 1;
                Ok(())
            }
            Step::SwitchBranch(branch) => {
                self.branch = branch;
                Ok(())
            }
        }
    }

    fn warning(&mut self, warning: TranscriptWarning) {
        self.warnings.push(warning);
    }
}
