//! `recto list`: the conversations of a store.

use anstyle::Style;
use clap::Args;
use recto::ConversationInfo;
use serde::Serialize;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::output::Answer;
use crate::page::{FAINT, Line, Page, STRONG};
use crate::place::Source;
use crate::table::Table;
use crate::time;

/// List the conversations of a store, by name.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto list
  recto list --after m --limit 20
  recto list --json | jq -r '.conversations[].name'")]
pub(crate) struct List {
    /// Only those behind this name
    #[arg(long, value_name = "NAME")]
    after: Option<String>,

    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: usize,
}

impl List {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let found = match desk.session() {
            Ok(session) => {
                session.recto.list(self.after.as_deref(), self.limit.saturating_add(1))?
            }
            // Nobody has begun yet. A store that somebody named should be there.
            Err(Failure::NoStore { said_by: Source::DataFolder, .. }) => Vec::new(),
            Err(failure) => return Err(failure),
        };
        let more = found.len() > self.limit;
        let mut conversations: Vec<Listed> = found.into_iter().map(Listed::from).collect();
        conversations.truncate(self.limit);
        desk.answer(&Conversations { conversations, more })
    }
}

/// A conversation in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) version: u32,
    /// The length of the log.
    pub(crate) messages: u32,
    pub(crate) created: i64,
    pub(crate) updated: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<ForkedFrom>,
    /// What the chain has come to.
    pub(crate) link: String,
}

#[derive(Serialize)]
pub(crate) struct ForkedFrom {
    pub(crate) id: String,
    pub(crate) version: u32,
}

impl From<ConversationInfo> for Listed {
    fn from(info: ConversationInfo) -> Listed {
        Listed {
            name: info.name,
            id: info.id.to_string(),
            version: info.version.0,
            messages: info.messages,
            created: info.created,
            updated: info.updated,
            forked_from: info
                .forked_from
                .map(|(id, version)| ForkedFrom { id: id.to_string(), version: version.0 }),
            link: info.link.0.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

#[derive(Serialize)]
struct Conversations {
    conversations: Vec<Listed>,
    /// Whether there are more behind them.
    more: bool,
}

impl Answer for Conversations {
    fn show(&self, page: &mut Page) {
        if self.conversations.is_empty() {
            let begin = "`recto new NAME` creates one, `recto import FILE` brings one in";
            return page.line(format!("no conversations yet; {begin}"));
        }
        let mut table = Table::new(&["name", ">version", ">messages", "updated", ""]);
        let name_of = |id: &str| {
            let named = self.conversations.iter().find(|other| other.id == id);
            named.map_or_else(|| id.to_owned(), |other| other.name.clone())
        };
        for listed in &self.conversations {
            let origin = listed.forked_from.as_ref().map_or_else(String::new, |from| {
                format!("forked from {} at v{}", name_of(&from.id), from.version)
            });
            table.row([
                (STRONG, listed.name.clone()),
                (Style::new(), format!("v{}", listed.version)),
                (Style::new(), grouped(u64::from(listed.messages))),
                (FAINT, time::shown(listed.updated)),
                (FAINT, origin),
            ]);
        }
        table.show(page);
        if self.more {
            let count = counted(self.conversations.len() as u64, "conversation");
            let note = format!("{count} shown; there are more: use --after or --limit");
            page.line(Line::new().styled(FAINT, note));
        }
    }
}
