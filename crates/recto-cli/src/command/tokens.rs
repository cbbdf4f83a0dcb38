//! `recto tokens`: shows the use of tokens.

use clap::Args;
use recto_service::{At, TokenShare, TokenShares, Tokens as TokensRequest, TokensOptions, TrueOr};

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::entry_line::{EntryLine as _, heading};
use crate::failure::Failure;
use crate::numbers::{VersionArgument, counted, grouped};
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page, STRONG};
use crate::printable;

/// Show token use by role, tool and message.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto tokens
  recto tokens --largest 20
  recto tokens --at now-3                  # three versions ago
  recto tokens --json | jq .byTool")]
pub(crate) struct Tokens {
    #[command(flatten)]
    of: ConversationArgument,

    /// Version to read: 12, or now-3 for three before the newest. Default: the newest
    #[arg(long, value_name = "VERSION")]
    at: Option<VersionArgument>,

    /// Number of largest messages to list
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    largest: usize,
}

impl Tokens {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let newest = named.handle.version()?;
        let version = self.at.unwrap_or(VersionArgument::Back(0)).from(newest)?;
        let tokens = TrueOr(TokensOptions { largest: Some(self.largest as u64) });
        let request = TokensRequest { conversation: named.name, tokens, at: Some(At(version)) };
        context.print(&session.run(request)?)
    }
}

impl CommandResult for TokenShares {
    fn show(&self, page: &mut Page) {
        let messages = counted(self.messages as u64, "message");
        let title = format!("{} in {messages}", counted(self.tokens, "token"));
        let line = Line::new().styled(STRONG, title);
        page.line(
            line.styled(FAINT, format!(" at v{}, counted by {}", self.version, self.counter)),
        );
        // On a terminal a name takes at most a quarter of the width, so that the bar fits.
        let longest = if page.cuts_lines() { page.columns() / 4 } else { usize::MAX };
        let names = self.by_role.iter().chain(&self.by_tool);
        let names = names.map(|share| printable::width(&printable::escaped(&share.name)));
        let width = names.max().unwrap_or(0).max(18).min(longest.max(18));
        for (title, shares) in [("by role", &self.by_role), ("by tool", &self.by_tool)] {
            if shares.is_empty() {
                continue;
            }
            page.line(Line::new().styled(FAINT, title));
            for share in shares {
                page.line(bar(share, self.tokens, width, page.columns()));
            }
        }
        if !self.largest.is_empty() {
            page.line(Line::new().styled(FAINT, "largest"));
            page.line(heading(""));
            for entry in &self.largest {
                let line = entry.line(Default::default(), &[], page);
                page.line(line);
            }
        }
    }
}

fn bar(share: &TokenShare, all: u64, width: usize, columns: usize) -> Line {
    let part = share.tokens as f64 / all.max(1) as f64;
    // The tokens and the percentage follow the name; the number of messages follows the bar.
    let before = 2 + width + 20;
    let room = columns.saturating_sub(before + 16).clamp(10, 40);
    Line::new()
        .text("  ")
        .text(printable::one_line(&share.name, width))
        .pad_to(2 + width)
        .text(format!(" {:>9} {:>4.0} %  ", grouped(share.tokens), part * 100.0))
        .text(bar_of(part, room))
        .pad_to(before + room)
        .styled(FAINT, counted(share.messages as u64, "message"))
}

/// A bar in steps of an eighth of a character.
pub(crate) fn bar_of(share: f64, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}
