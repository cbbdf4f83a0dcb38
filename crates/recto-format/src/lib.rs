//! Import and export of transcripts, and rendering of views as provider requests.
//!
//! Transcripts come in many [`Format`]s, and each provider accepts its own kind of request. Edits of
//! a view separate tool calls from their results, drop signatures, and leave ids that a provider
//! rejects. [`render`] repairs all of this: the request is valid for the provider whatever was edited,
//! and every repair is listed.
//!
//! | task | use |
//! |---|---|
//! | read a file of any [`Format`] | [`import`]: it produces [`Step`]s, and a [`TranscriptWarning`] for content that no step represents |
//! | build conversations with their versions and forks | [`Replay`], a [`Sink`] for the steps |
//! | import into a store | `recto::Import` (feature `format` of the crate `recto`) |
//! | read the tools and other fields around the messages | [`EnvelopeInfo`] |
//! | write a view as a file | [`export`]: messages that came from the same format keep their bytes |
//! | write a whole log, with its rewinds | [`export_log`] |
//! | send a view to a provider | [`render`] it for a [`Target`]: a valid request, and a [`Finding`] per repair |
//! | check a view before sending it | [`lint`]; [`fix`] returns the operations that repair the view |
//! | fit or repair a list of messages in memory | [`ForeignList`]: which positions stay, and which messages are new |
//! | compute what an edit costs at the provider's prompt cache | [`CachePlan`] |
//!
//! # From a file to a provider and back
//!
//! ```
//! use recto_core::{Settings, Truncate};
//! use recto_format::{ExportOptions, ImportOptions, RenderOptions, Replay, Target};
//! use recto_format::{export, import, render};
//!
//! let file = r#"{"model":"gpt-4.1","messages":[
//! {"role": "user", "content": "Why does checkout fail?"},
//! {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read_logs", "arguments": "{}"}}]},
//! {"role": "tool", "tool_call_id": "c1", "content": "08:02 timeout"},
//! {"role": "assistant", "content": "The gateway times out."}]}
//! "#;
//! let mut replay = Replay::new(Settings::default(), 0);
//! let format = import(file, None, &ImportOptions::default(), &mut replay)?;
//! let replayed = &replay.conversations[0];
//! let whole = &replayed.branches[0].conversation; // forks follow at 1, 2, …
//!
//! // The edit separates a result from its call. The request is still valid.
//! let (cut, _) = whole.apply(Truncate::keep_last(2), 1)?;
//! let fields = [("model", r#""claude-sonnet-4-5""#), ("max_tokens", "1024")];
//! let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
//! let request = render(cut.messages(), Target::Anthropic, &options)?;
//! assert_eq!(request.findings[0].rule.name, "results_have_calls");
//!
//! // Export keeps the bytes of each message. Only white space between messages is lost.
//! let mut written = Vec::new();
//! let options = ExportOptions { container: replayed.container(), ..ExportOptions::default() };
//! export(whole.messages(), format, &options, &mut written)?;
//! assert_eq!(String::from_utf8(written).unwrap(), file.replace('\n', "") + "\n");
//! # Ok::<(), recto_format::Error>(())
//! ```
//!
//! # Data flow
//!
//! ```text
//! file ──► Values ──► a codec reads foreign messages ──► Recto messages, Steps ──► Conversation
//!          (one JSON value at a time)                    metadata.source
//!
//! view ──► MessageParts ──► rules ──► a request, and findings
//! messages ──► MessageParts ──► a codec writes ──► file
//! ```
//!
//! Recto's own messages are the neutral form between all formats. [`MessageParts`] reads them without
//! changing a byte and documents the fields that have a meaning beyond the contract. [`Source`]
//! documents how a message records its origin. Codecs are in `format/`, one file per format: start with
//! `format/mod.rs`, which lists what a new format needs, then `format/openai_chat.rs`. Rendering is in
//! `render/`: start with `render/mod.rs`. `ARCHITECTURE.md` of the repository lists what a new provider
//! needs.
//!
//! The crate is pure: bytes in, values out. It opens no paths and no connections; URLs in messages are
//! passed on and never fetched.
//!
//! # Features
//!
//! - `zstd` (default): reads files that are compressed with zstd, through the C library. Without it,
//!   such a file is [`Error::Unsupported`].

mod cache_plan;
mod envelope;
mod error;
mod export;
mod flat;
mod foreign_list;
mod foreign_message;
mod format;
mod format_name;
mod import;
mod json;
mod lint;
mod media;
mod parts;
mod prices;
mod render;
mod replay;
mod select;
mod source;
mod step_writer;
mod unpack;
mod values;
mod zip;

pub use cache_plan::{CachePlan, PaysOff};
pub use envelope::EnvelopeInfo;
pub use error::Error;
pub use export::{Container, ExportOptions, export, export_log};
pub use foreign_list::{ForeignList, ListItem};
pub use format_name::Format;
pub use import::{Collected, ImportOptions, Input, Sink, Start, Step, TranscriptWarning, import};
pub use json::Str;
pub use lint::{fix, lint};
pub use media::{Media, MediaBody, MediaKind};
pub use parts::{MessageParts, Part};
pub use prices::{CacheTime, Price, PriceTable, PriceTier};
pub use render::{
    Evidence, EvidenceKind, Finding, NO_MESSAGE, NO_RESULT, RULES, RenamedTool, RenderOptions,
    Rendered, Rule, Severity, Target, ToolFinding, binds_thinking, render,
};
pub use replay::{Branch, Replay, Replayed};
pub use select::{Selection, find_messages, select_messages, select_messages_of};
pub use source::{Layout, Source};
