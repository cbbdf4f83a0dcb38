//! Transcripts in and out of Recto, and views rendered for model providers.
//!
//! Users come with transcripts in a dozen shapes and leave through several providers' interfaces. In
//! between, edits tear tool calls from their results, signatures get lost, ids stop fitting, and the
//! provider answers 400 for ever. Here, whatever was done to a view, what is rendered of it is valid
//! for the provider, and the repairs are listed.
//!
//! | to | use |
//! |---|---|
//! | read a file of any [`Format`] | [`import`]: [`Step`]s for conversations, [`Remark`]s on what they cannot say |
//! | have conversations of it, with their versions and forks | [`Replay`], as what takes the steps |
//! | have them in a store | `recto::Import`, which takes the steps (feature `format` of the crate `recto`) |
//! | know what stood around the messages | [`Around`]: the tools, and what has no place |
//! | write a view as one | [`export`]: the same bytes, for messages that came from that format |
//! | write a whole log, with its rewinds | [`export_log`] |
//! | send a view to a provider | [`render`] it for a [`Target`]: a valid request, and [`Finding`]s on what was repaired |
//! | know what an edit costs at the provider's cache | [`CachePlan`] |
//! | know beforehand | [`lint`] a view for a target; [`fix`] gives the operations that put it right |
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
//! let talk = &replay.conversations[0];
//! let (_, whole) = &talk.lines[0]; // forks, such as other branches, stand behind it
//!
//! // An edit tears the result from its call; the request is valid all the same.
//! let (cut, _) = whole.apply(Truncate { keep_last: Some(2), ..Truncate::default() }, 1)?;
//! let fields = [("model", r#""claude-sonnet-4-5""#), ("max_tokens", "1024")];
//! let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
//! let request = render(cut.messages(), Target::Anthropic, &options)?;
//! assert_eq!(request.findings[0].rule.name, "results_have_calls");
//!
//! // Out again: each message with its bytes. Only the white space between them is not kept.
//! let mut written = Vec::new();
//! export(whole.messages(), format, &ExportOptions { container: talk.container(), times: &[] }, &mut written)?;
//! assert_eq!(String::from_utf8(written).unwrap(), file.replace('\n', "") + "\n");
//! # Ok::<(), recto_format::Error>(())
//! ```
//!
//! # The way of the data
//!
//! ```text
//! file ──► Values ──► a format reads foreign messages ──► Recto messages, Steps ──► Conversation
//!          (a value at a time)                            metadata.source
//!
//! view ──► MessageParts ──► rules ──► a request, and the repairs
//! messages ──► MessageParts ──► a format writes ──► file
//! ```
//!
//! Recto's own messages are the neutral form; [`MessageParts`] reads them without changing a byte, and
//! says which fields mean something beyond the contract. [`Source`] says how a message remembers
//! where it came from. Formats are in `format/`, one file each: start with `format/mod.rs`, then
//! `format/openai_chat.rs`.
//!
//! Pure: bytes in, values out. No paths, no network; URLs in messages are handed on, never fetched.

mod around;
mod cache_plan;
mod error;
mod export;
mod flat;
mod format;
mod import;
mod json;
mod lint;
mod media;
mod parts;
mod render;
mod source;
mod unpack;
mod values;
mod zip;

pub use around::Around;
pub use cache_plan::{CachePlan, PaysOff, Price, PriceTable};
pub use error::Error;
pub use export::{Container, ExportOptions, export, export_log};
pub use format::Format;
pub use import::{
    Collected, ImportOptions, Input, Remark, Replay, Replayed, Sink, Start, Step, import,
};
pub use json::Str;
pub use lint::{fix, lint};
pub use media::{Media, MediaBody, MediaKind};
pub use parts::{MessageParts, Part};
pub use render::{
    Finding, NO_MESSAGE, NO_RESULT, RULES, RenamedTool, RenderOptions, Rendered, Rule, Severity,
    Target, ToolFinding, render,
};
pub use source::{Layout, Source};
