//! `recto apply`: applies operations that are given as JSON.

use clap::Args;
use recto::{Message, Operation, Request};
use recto_format::Format;
use recto_service::check_names;
use serde_json::value::RawValue;

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::page::{Line, NOTE};
use crate::printable::one_line;

/// Apply operations from a JSON file as one version.
///
/// All operations are applied, or none. The file contains one operation in any of the three forms,
/// {"op": …}, {"ops": […]}, or a list of operations.
#[derive(Args, Debug)]
#[command(after_help = r#"Examples:
  recto apply cut.json
  echo '{"operation": "TRUNCATE", "keepLast": 20}' | recto apply -
  echo '[{"operation": "FIT", "maxTokens": 900}, {"operation": "UNMARK", "indices": [1], "mark": "pinned"}]' |
    recto apply - --dry-run"#)]
pub(crate) struct Apply {
    /// File with the operations; - for standard input
    file: String,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Apply {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let text = context.read(&self.file)?;
        let request = match text.trim_start().starts_with('[') {
            true => format!("{{\"ops\":{text}}}"),
            false => text,
        };
        if let Ok(raw) = serde_json::from_str::<&RawValue>(&request) {
            check_names(raw, "")?;
        }
        let request = Request::from_json(&request)?;
        let foreign: Vec<_> = added_messages(&request)
            .filter_map(|message| Some((message, Format::of_foreign_message(message.json())?)))
            .map(|(message, format)| {
                let text = one_line(message.json(), 60);
                let text = format!(
                    "{text} is stored unchanged, but is in the format {format}, so models do not read \
                     all of it; `recto append --messages FILE --format {format}` converts it"
                );
                Line::wrapping().styled(NOTE, "note: ").text(text)
            })
            .collect();
        self.change.perform(request, context)?;
        for line in foreign {
            context.output.note(&line, context.environment)?;
        }
        Ok(())
    }
}

/// The messages that a request adds.
fn added_messages(request: &Request) -> impl Iterator<Item = &Message> {
    request.steps.iter().flat_map(|step| match &step.operation {
        Operation::Append(append) => &*append.messages,
        Operation::Insert(insert) => &*insert.messages,
        Operation::Replace(replace) => std::slice::from_ref(&replace.message),
        Operation::ReplaceEntries(replace) => &*replace.messages,
        Operation::Compress(compress) => compress.summary.as_slice(),
        _ => &[],
    })
}
