//! What could not be read of a foreign message: a part, or all of it. The message is kept whole, and what
//! can be read of it is read.

use recto_core::{Message, Role};

use super::{Draft, Memory, MessageForm, Misfit, made};
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::Source;

/// What stands for a part that could not be read. The foreign message is kept whole, and no provider
/// sees it.
pub(crate) const UNREAD: &str = r#"{"type":"unread"}"#;

/// How many parts of one message are reported one by one.
pub(super) const MOST_TOLD: usize = 8;

/// The drafts with [`UNREAD`] in the place of every part that no message can have, and what is wrong
/// with those; `None` if that does not help, or nothing is left.
pub(crate) fn readable(drafts: &[Draft], foreign: &str) -> Option<(Vec<Draft>, Vec<Misfit>)> {
    let mut memory = Memory::default();
    let mut readable = Vec::with_capacity(drafts.len());
    let (mut number, mut count) = (0, 0);
    for draft in drafts {
        let (role, content) = match draft {
            Draft::AsItIs => {
                let role = json::get_str(foreign, "role")?.text();
                (Role::named(&role)?, json::get(foreign, "content")?)
            }
            Draft::Made { role, content, .. } => (*role, &**content),
        };
        if !json::is_list(content) {
            readable.push(draft.clone());
            continue;
        }
        let mut parts = Vec::new();
        for part in json::items(content) {
            let alone = format!(r#"{{"role":"{}","content":[{part}]}}"#, role.as_str());
            match made(&alone) {
                Ok(_) => {
                    parts.push(part);
                    count += 1;
                }
                Err(error) => {
                    let Misfit { field, reason } = Misfit::of(&error);
                    let field = field.trim_start_matches("content[0]").trim_start_matches('.');
                    memory.unread(&format!("content[{number}]"), Misfit::new(field, reason));
                    parts.push(UNREAD);
                }
            }
            number += 1;
        }
        let content = format!("[{}]", parts.join(","));
        readable.push(match draft {
            Draft::AsItIs => {
                let mut fields = String::new();
                json::push_fields(foreign, &["name"], &mut fields);
                Draft::Made { role, content, fields, provider: None, model: None }
            }
            Draft::Made { role, fields, provider, model, .. } => Draft::Made {
                role: *role,
                content,
                fields: fields.clone(),
                provider: provider.clone(),
                model: model.clone(),
            },
        });
    }
    let is_made = |draft: &Draft| made(&draft.to_json(foreign, Source::default())).is_ok();
    (count > 0 && readable.iter().all(is_made)).then_some((readable, memory.remarks))
}

/// Whether nothing of a message could be read.
pub(super) fn says_nothing_that_was_read(message: &Message) -> bool {
    let is_unread = |part: &Part<'_>| matches!(part, Part::Other { kind, .. } if kind.is("unread"));
    MessageParts::of(message).parts.iter().all(is_unread)
}

/// A foreign message that could not be read, kept whole: it comes back on export, and no provider
/// sees it.
pub(super) fn unread(form: &dyn MessageForm, foreign: &str) -> Result<Message, recto_core::Error> {
    let source = Source {
        format: Some(Str::plain(form.format().name())),
        pieces: 1,
        original: Some(foreign),
        ..Source::default()
    };
    let content = format!("[{UNREAD}]");
    made(&Draft::made(Role::User, content).to_json(foreign, source))
}
