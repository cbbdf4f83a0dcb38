//! `recto salvage`: copies what can be read of a damaged conversation.

use clap::Args;
use recto::Recto;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{counted, runs};
use crate::output::CommandResult;
use crate::page::{BAD, Line, Page, STRONG};

/// Copy what can be read of a damaged conversation.
///
/// The new conversation has every message that can be read, byte for byte and in order, and the view of
/// the newest version that can be read. It has no earlier versions, no marks and no tools. What is missing
/// is listed, and the damaged conversation stays as it is. A store whose structures are damaged may refuse to
/// store anything; --into names another one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto verify
  recto salvage support --to support-2
  recto salvage support --to support --into sqlite:rescued.db
  recto salvage support --to support-2 --json | jq .missingMessages")]
pub(crate) struct Salvage {
    /// Damaged conversation: its whole name or its id
    conversation: String,

    /// Name of the new conversation
    #[arg(long, value_name = "NAME")]
    to: String,

    /// Store of the new conversation, which is created if it does not exist. Default: the same store
    #[arg(long, value_name = "ADDRESS")]
    into: Option<String>,
}

impl Salvage {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        recto::check_name(&self.to)?;
        let session = context.session()?;
        let recto = session.recto.inner();
        let salvage = async {
            let target = match &self.into {
                Some(address) => &Recto::open(address).await?,
                None => recto,
            };
            recto.salvage_into(&self.conversation, target, &self.to).await
        };
        let salvaged = context.wait(&session, salvage)?;
        context.print(&SalvageReport {
            conversation: self.to,
            messages: salvaged.messages,
            missing_messages: salvaged.missing_messages.iter().map(|index| index.0).collect(),
            view_of: salvaged.view_of.map(|version| version.0),
            missing_versions: salvaged.missing_versions.iter().map(|version| version.0).collect(),
            faults: salvaged.faults,
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SalvageReport {
    conversation: String,
    messages: usize,
    missing_messages: Vec<u32>,
    view_of: Option<u32>,
    missing_versions: Vec<u32>,
    faults: Vec<String>,
}

impl CommandResult for SalvageReport {
    fn show(&self, page: &mut Page) {
        let line = Line::new().text("copied ").text(counted(self.messages as u64, "message"));
        page.line(line.text(" to ").styled(STRONG, &self.conversation));
        if let Some(version) = self.view_of {
            page.line(format!("its view is that of v{version}, as far as it can be read"));
        }
        if !self.missing_messages.is_empty() {
            let missing = runs(self.missing_messages.iter().copied().map(recto::LogIndex));
            page.line(Line::wrapping().styled(BAD, "missing  ").text(missing));
        }
        for fault in &self.faults {
            page.line(Line::wrapping().styled(BAD, "damaged  ").text(fault));
        }
    }
}
