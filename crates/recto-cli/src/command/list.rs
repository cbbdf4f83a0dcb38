//! `recto list`: lists the conversations of a store.

use anstyle::Style;
use clap::Args;
use recto_service::{Conversations, List as ListRequest, ListOptions, TrueOr};

use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page, STRONG};
use crate::store_location::LocationSource;
use crate::table::Table;
use crate::time;

/// List the conversations of the store.
///
/// They are sorted by name.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto list
  recto list --after m --limit 20
  recto list --json | jq -r '.conversations[].name'")]
pub(crate) struct List {
    /// Name after which the list starts. Default: the whole list
    #[arg(long, value_name = "NAME")]
    after: Option<String>,

    /// Maximum number of conversations
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: usize,
}

impl List {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let found = match context.session() {
            Ok(session) => {
                let (after, limit) = (self.after, Some(self.limit as u64));
                session.run(ListRequest { list: TrueOr(ListOptions { after, limit }) })?
            }
            // A missing default store is an empty list; any other missing store is an error.
            Err(Failure::NoStore { named_by: LocationSource::DataFolder, .. }) => {
                Conversations::default()
            }
            Err(failure) => return Err(failure),
        };
        context.print(&found)
    }
}

impl CommandResult for Conversations {
    fn show(&self, page: &mut Page) {
        if self.conversations.is_empty() {
            let begin = "`recto new NAME` creates one, `recto import FILE` imports one";
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
