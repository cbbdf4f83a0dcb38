//! `recto info`: shows the sizes, marks and warnings of a conversation.

use clap::Args;
use recto::{Warning, WarningCode};
use recto_service::{ConversationSummary, Info as InfoRequest, MarkedEntries, True};

use crate::advice;
use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{counted, grouped, runs};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, Line, Page, STRONG};
use crate::time;

/// Show the sizes, marks and warnings of a conversation.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto info
  recto info -c support --json")]
pub(crate) struct Info {
    #[command(flatten)]
    of: ConversationArgument,
}

impl Info {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let request = InfoRequest { conversation: named.name, info: True };
        context.print(&session.run(request)?)
    }
}

impl CommandResult for ConversationSummary {
    fn show(&self, page: &mut Page) {
        let ConversationSummary { listed, stats, .. } = self;
        let mut field = |name: &str, value: String| {
            page.line(Line::wrapping().styled(FAINT, format!("{name:<9}")).text(value));
        };
        field("name", listed.name.clone());
        field("id", listed.id.clone());
        if let Some(from) = &listed.forked_from {
            field("fork of", format!("{} at v{}", from.id, from.version));
        }
        field("created", time::shown(listed.created));
        field("updated", time::shown(listed.updated));
        field("version", format!("v{}", listed.version));
        let view = counted(stats.current_batch_messages as u64, "message");
        field("view", format!("{view}, {}", counted(stats.tokens, "token")));
        if let Some(limit) = self.token_limit {
            let over = match stats.tokens.checked_sub(limit) {
                Some(over @ 1..) => format!("; the view is {} over it", grouped(over)),
                _ => String::new(),
            };
            field("limit", format!("{}{over}", counted(limit, "token")));
        }
        field("log", counted(stats.total_messages as u64, "message"));
        let current = stats.current_batch_index;
        field(
            "batch",
            format!("{current}, {} on the live path", grouped(stats.total_batches as u64)),
        );
        field("counter", self.counter.clone());
        if !self.tools.is_empty() {
            field("tools", self.tools.join(", "));
        }
        for MarkedEntries { mark, indices, .. } in &self.marks {
            field("mark", format!("{mark} {}", runs(indices.iter().copied())));
        }
        field("link", listed.link.clone());
        show_warnings(&self.warnings, None, page);
    }
}

/// Writes one line per warning, with advice if there is any. `empty_view_advice` is the advice for an empty
/// view.
pub(crate) fn show_warnings(
    warnings: &[Warning],
    empty_view_advice: Option<&str>,
    page: &mut Page,
) {
    for warning in warnings {
        let line = Line::wrapping().styled(BAD, "warning  ");
        let line = line.styled(STRONG, runs(warning.indices.iter().copied()));
        let (problem, advice) = advice::warning_text(warning.code);
        let advice = match warning.code {
            WarningCode::ViewEmpty => empty_view_advice.unwrap_or_default(),
            _ => advice,
        };
        let semicolon = if advice.is_empty() { "" } else { "; " };
        page.line(line.text(format!(" {problem}{semicolon}{advice}")));
    }
}
