//! Unreadable foreign messages and parts. The original message is preserved as a whole, and its readable
//! parts are converted.

use recto_core::{Message, Role};

use super::read::parse_converted;
use super::{Draft, FieldError, MessageCodec, ReadState};
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::Source;

/// The part that replaces an unreadable part. The original message is preserved as a whole; no provider
/// receives this part.
pub(crate) const UNREADABLE_PART: &str = r#"{"type":"unread"}"#;

/// Maximum number of unreadable parts of one message that are reported one by one.
pub(super) const MAX_PART_WARNINGS: usize = 8;

/// The drafts with [`UNREADABLE_PART`] in place of every part that the engine rejects, and the errors of
/// those parts. `None` if the engine still rejects the drafts or no part is readable.
pub(crate) fn without_unreadable_parts(
    drafts: &[Draft],
    foreign: &str,
) -> Option<(Vec<Draft>, Vec<FieldError>)> {
    let mut state = ReadState::default();
    let mut readable = Vec::with_capacity(drafts.len());
    let (mut number, mut count) = (0, 0);
    for draft in drafts {
        let (role, content) = match draft {
            Draft::Unchanged => {
                let role = json::get_str(foreign, "role")?.text();
                (Role::named(&role)?, json::get(foreign, "content")?)
            }
            Draft::Converted { role, content, .. } => (*role, &**content),
        };
        if !json::is_list(content) {
            readable.push(draft.clone());
            continue;
        }
        let mut parts = Vec::new();
        for part in json::items(content) {
            let alone = format!(r#"{{"role":"{}","content":[{part}]}}"#, role.as_str());
            match parse_converted(&alone) {
                Ok(_) => {
                    parts.push(part);
                    count += 1;
                }
                Err(error) => {
                    let FieldError { field, reason } = FieldError::of(&error);
                    let field = field.trim_start_matches("content[0]").trim_start_matches('.');
                    state.unreadable_part(
                        &format!("content[{number}]"),
                        FieldError::new(field, reason),
                    );
                    parts.push(UNREADABLE_PART);
                }
            }
            number += 1;
        }
        let content = format!("[{}]", parts.join(","));
        readable.push(match draft {
            Draft::Unchanged => {
                let mut fields = String::new();
                json::push_fields(foreign, &["name"], &mut fields);
                Draft::Converted { role, content, fields, provider: None, model: None }
            }
            Draft::Converted { role, fields, provider, model, .. } => Draft::Converted {
                role: *role,
                content,
                fields: fields.clone(),
                provider: provider.clone(),
                model: model.clone(),
            },
        });
    }
    let is_accepted =
        |draft: &Draft| parse_converted(&draft.to_json(foreign, Source::default())).is_ok();
    (count > 0 && readable.iter().all(is_accepted)).then_some((readable, state.warnings))
}

/// True if a message consists of unreadable parts only.
pub(super) fn is_unreadable(message: &Message) -> bool {
    let is_unread = |part: &Part<'_>| matches!(part, Part::Other { kind, .. } if kind.is("unread"));
    MessageParts::of(message).parts.iter().all(is_unread)
}

/// A message that preserves an unreadable foreign message. Export restores it; no provider receives it.
pub(super) fn unreadable_message(
    codec: &dyn MessageCodec,
    foreign: &str,
) -> Result<Message, recto_core::Error> {
    let source = Source {
        format: Some(Str::plain(codec.format().name())),
        pieces: 1,
        original: Some(foreign),
        ..Source::default()
    };
    let content = format!("[{UNREADABLE_PART}]");
    parse_converted(&Draft::converted(Role::User, content).to_json(foreign, source))
}
