//! Import of a transcript into a store, in one call.
//!
//! ```text
//! reading thread                            future of the caller
//!   file ─► recto_format::import              ┌─► progress callback
//!             └─ steps, byte counts ─ channel ┴─► Import::step: commits in groups
//! ```
//!
//! Reading a transcript is blocking code that calls a sink, so it runs on a separate thread. The
//! channel is bounded: the thread waits while the store is slower.

mod steps;

use std::collections::HashSet;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use recto_core::Settings;
use recto_format::{EnvelopeInfo, Format, Input, Sink, Step, TranscriptWarning};
use tokio::sync::mpsc;
use tracing::Instrument;

pub use self::steps::{Import, ImportName, Imported};
use crate::{Error, Recto};

/// The number of steps that the reading thread may be ahead.
const MAX_STEPS_AHEAD: usize = 4;

/// Options of [`Recto::import`]. Fields may be added: construct it with `..ImportOptions::default()` or
/// from [`ImportOptions::new`].
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The format of the transcript. Default: recognised from the first bytes.
    pub format: Option<Format>,
    /// Limits of reading. Default: [`recto_format::ImportOptions::default`].
    pub reading: recto_format::ImportOptions,
    /// The names of the conversations.
    pub naming: ImportName,
    /// The settings of the conversations. They must not have tools: set tools after the import.
    pub settings: Settings,
    /// Cancels the import.
    pub cancel: CancelFlag,
}

impl ImportOptions {
    /// Options with names and settings.
    pub fn new(naming: ImportName, settings: Settings) -> ImportOptions {
        let reading = recto_format::ImportOptions::default();
        ImportOptions { format: None, reading, naming, settings, cancel: CancelFlag::default() }
    }
}

#[cfg(feature = "bpe")]
impl Default for ImportOptions {
    /// Names from the transcript, else "imported"; default settings.
    fn default() -> ImportOptions {
        let naming = ImportName::FromTitle { default: "imported".to_owned() };
        ImportOptions::new(naming, Settings::default())
    }
}

/// A flag that cancels work. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Cancels the work. It ends at its next step.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The result of an import.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImportedTranscript {
    /// The format of the transcript.
    pub format: Format,
    /// The imported conversations, in the order of the transcript.
    pub conversations: Vec<Imported>,
    /// What the conversations cannot express.
    pub warnings: Vec<TranscriptWarning>,
}

impl Recto {
    /// Imports a transcript: the conversations in it, with their versions, forks and tools. Everything is
    /// imported or nothing: after an error, the conversations that were already written are removed.
    ///
    /// The input is a file, or text in memory (`Vec<u8>`, `String`). Until the import is complete,
    /// the conversations have names that end with ` (importing)`. If the future is dropped before it is
    /// ready, the conversations that were written so far stay in the store under these names.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Approx, ImportOptions, ImportName, Recto, Settings};
    ///
    /// let transcript = r#"[{"role":"user","content":"2 + 2?"},{"role":"assistant","content":"4"}]"#;
    /// let recto = Recto::open("memory:").await?;
    /// let naming = ImportName::Exactly("sums".into());
    /// let options = ImportOptions::new(naming, Settings::counting_with(Approx));
    /// let imported = recto.import(transcript.to_owned().into_bytes(), options).await?;
    /// assert_eq!(imported.format.name(), "openai-chat");
    /// assert_eq!(recto.conversation("sums").await?.messages().await?.len(), 2);
    /// # Ok::<(), recto::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn import(
        &self,
        input: impl Input + Send + 'static,
        options: ImportOptions,
    ) -> Result<ImportedTranscript, Error> {
        self.import_with_progress(input, options, &mut |_| {}).await
    }

    /// [`import`](Self::import) with a callback that receives the number of bytes read so far. Bytes of
    /// a compressed transcript are counted after decompression.
    pub async fn import_with_progress(
        &self,
        input: impl Input + Send + 'static,
        options: ImportOptions,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<ImportedTranscript, Error> {
        let span = tracing::info_span!("import");
        self.import_all(Box::new(input), options, progress).instrument(span).await
    }

    async fn import_all(
        &self,
        input: Box<dyn Input + Send>,
        options: ImportOptions,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<ImportedTranscript, Error> {
        let ImportOptions { format, reading, naming, settings, cancel } = options;
        let mut import = Import::new(self, naming, settings);
        let mut transcript = Reader::start(input, format, reading, cancel.clone())?;
        let done = loop {
            let event = transcript.events.recv().await;
            if cancel.is_cancelled() {
                break Err(Error::Cancelled);
            }
            match event {
                Some(Event::Progress(bytes)) => progress(bytes),
                Some(Event::Step(step)) => {
                    if let Err(error) = import.step(step).await {
                        break Err(error);
                    }
                }
                Some(Event::End(Ok(format), warnings)) => {
                    break finish(&mut import, format, warnings).await;
                }
                Some(Event::End(Err(error), _)) => break Err(error.into()),
                // Only a panic ends the thread without an end event.
                None => break Err(recto_format::Error::Stopped("it panicked".to_owned()).into()),
            }
        };
        // The thread stops at its next read or step.
        drop(transcript);
        match done {
            Ok(imported) => Ok(imported),
            Err(cause) => {
                let left = import.abandon().await.into_iter();
                let left = left.map(|(name, error)| (name, error.to_string())).collect();
                Err(Error::NotImported { cause: Box::new(cause), left })
            }
        }
    }
}

/// Sets the tools and gives the conversations their final names.
async fn finish(
    import: &mut Import,
    format: Format,
    mut warnings: Vec<TranscriptWarning>,
) -> Result<ImportedTranscript, Error> {
    import.set_tools(format).await?;
    let conversations = import.finish().await?;
    // A provider request without messages is imported as a conversation without messages: it may have tools.
    let has_requests = matches!(
        format,
        Format::OpenAiChat
            | Format::OpenAiResponses
            | Format::Anthropic
            | Format::Gemini
            | Format::BedrockConverse
    );
    let is_request = |imported: &Imported| {
        let envelope = imported.envelope.as_deref();
        has_requests && envelope.is_some_and(|envelope| envelope.starts_with('{'))
    };
    if conversations.iter().all(|imported| imported.messages == 0 && !is_request(imported)) {
        return Err(Error::NothingToImport { format });
    }
    warnings.extend(envelope_warning(&conversations, format));
    Ok(ImportedTranscript { format, conversations, warnings })
}

/// A transcript that is read on a separate thread. Dropping the value stops the thread.
struct Reader {
    events: mpsc::Receiver<Event>,
    is_dropped: CancelFlag,
}

/// What the reading thread sends.
enum Event {
    Step(Step),
    /// The number of bytes read so far.
    Progress(u64),
    /// The last event.
    End(Result<Format, recto_format::Error>, Vec<TranscriptWarning>),
}

impl Reader {
    fn start(
        input: Box<dyn Input + Send>,
        format: Option<Format>,
        options: recto_format::ImportOptions,
        cancel: CancelFlag,
    ) -> Result<Reader, Error> {
        let (sender, events) = mpsc::channel(MAX_STEPS_AHEAD);
        let is_dropped = CancelFlag::default();
        let input = Cancellable { input, flags: [cancel, is_dropped.clone()] };
        let read = move || {
            let mut sink = Sender { events: sender, warnings: Vec::new() };
            let read = recto_format::import(&input, format, &options, &mut sink);
            // If the future was dropped, there is no receiver.
            let _receiver_is_gone = sink.events.blocking_send(Event::End(read, sink.warnings));
        };
        let thread = std::thread::Builder::new().name("recto-import".to_owned()).spawn(read);
        thread.map_err(recto_format::Error::Io)?;
        Ok(Reader { events, is_dropped })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.is_dropped.cancel();
    }
}

/// Sends steps to the future.
struct Sender {
    events: mpsc::Sender<Event>,
    warnings: Vec<TranscriptWarning>,
}

impl Sink for Sender {
    fn step(&mut self, step: Step) -> Result<(), recto_format::Error> {
        let stopped = |_| recto_format::Error::Stopped("the import has ended".to_owned());
        self.events.blocking_send(Event::Step(step)).map_err(stopped)
    }

    fn warning(&mut self, warning: TranscriptWarning) {
        self.warnings.push(warning);
    }

    fn progress(&mut self, bytes: u64) {
        // If there is no receiver, the next step fails.
        let _receiver_is_gone = self.events.blocking_send(Event::Progress(bytes));
    }
}

/// An input whose reads fail after one of the flags was set.
struct Cancellable {
    input: Box<dyn Input + Send>,
    flags: [CancelFlag; 2],
}

impl Input for Cancellable {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(CancellableRead { bytes: self.input.open()?, flags: &self.flags }))
    }
}

struct CancellableRead<'a> {
    bytes: Box<dyn Read + 'a>,
    flags: &'a [CancelFlag],
}

impl Read for CancellableRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.flags.iter().any(CancelFlag::is_cancelled) {
            true => Err(io::Error::other("the import was cancelled")),
            false => self.bytes.read(buffer),
        }
    }
}

/// The warning about the fields of envelopes that are not stored.
fn envelope_warning(conversations: &[Imported], format: Format) -> Option<TranscriptWarning> {
    let mut lost: Vec<String> = Vec::new();
    let mut lines = 0;
    for envelope in conversations.iter().filter_map(|imported| imported.envelope.as_deref()) {
        let envelope = EnvelopeInfo::of(envelope, format);
        lines += envelope.trailing_lines;
        lost.extend(envelope.unsupported_fields.into_iter().map(|name| match &*name {
            "tools" | "functions" => format!("{name} that are not functions"),
            _ => name,
        }));
    }
    let mut known = HashSet::new();
    lost.retain(|field| known.insert(field.clone()));
    match lines {
        0 => {}
        1 => lost.push("1 line after the last message".to_owned()),
        lines => lost.push(format!("{lines} lines after the last message")),
    }
    let (line, field) = (0, "around the messages".to_owned());
    let message = format!("not kept: {}", lost.join(", "));
    (!lost.is_empty()).then_some(TranscriptWarning::new(line, field, message))
}
