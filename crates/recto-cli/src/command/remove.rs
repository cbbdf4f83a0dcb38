//! `recto remove`: deletes a conversation.

use clap::Args;
use recto::Version;
use recto_service::{At, Remove as RemoveRequest, Removed, True};

use crate::arguments::DestructiveArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page, STRONG};

/// Delete a conversation permanently.
///
/// Forks keep the messages that their versions show; other messages in their logs are overwritten. In a
/// SQLite store the deleted text is overwritten in the file, its log and its search index. In PostgreSQL it
/// stays in the files of the server until `recto clean`. Earlier backups keep it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto remove old-chat --dry-run
  recto remove old-chat
  recto remove old-chat --yes")]
pub(crate) struct Remove {
    /// Conversation: name, id, a unique prefix of either, or @ for the last one used
    conversation: String,

    #[command(flatten)]
    destructive: DestructiveArguments,
}

impl Remove {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let name = session.name_of(&self.conversation)?;
        let DestructiveArguments { dry_run, expect_version, yes } = self.destructive;
        let expected_version = expect_version.map(|version| At(Version(version)));
        let request = |dry_run: bool| RemoveRequest {
            conversation: name.clone(),
            remove: True,
            expected_version,
            dry_run: Some(dry_run),
        };
        // The dry run comes first, so that a request that would fail asks for no confirmation.
        let would = session.run(request(true))?;
        if dry_run {
            return context.print(&would);
        }
        context.confirm(&format!("removing {name:?}"), yes)?;
        context.print(&session.run(request(false))?)
    }
}

impl CommandResult for Removed {
    fn show(&self, page: &mut Page) {
        match self {
            Removed::Done { removed } => {
                page.line(Line::new().text("removed ").styled(STRONG, removed));
            }
            Removed::DryRun { conversation, version, messages, forks, .. } => {
                let line = Line::new().text("would remove ").styled(STRONG, conversation);
                let count = counted(u64::from(*messages), "message");
                page.line(line.text(format!(", {count} at v{version}")));
                if !forks.is_empty() {
                    let forks =
                        format!("these forks keep the shared messages: {}", forks.join(", "));
                    page.line(Line::wrapping().styled(FAINT, forks));
                }
            }
            _ => {}
        }
    }
}
