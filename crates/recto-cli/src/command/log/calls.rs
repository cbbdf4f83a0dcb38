//! `recto log --calls`: what models were sent.

use recto_agent::Call;
use serde::Serialize;

use crate::numbers::{counted, grouped};
use crate::output::Answer;
use crate::page::{BAD, FAINT, Line, Page, STRONG};
use crate::time;

#[derive(Serialize)]
pub(super) struct Calls {
    conversation: String,
    /// Newest first.
    calls: Vec<Call>,
    /// So many are not listed.
    older: usize,
}

impl Calls {
    /// The newest of these, which are in order.
    pub(super) fn newest(conversation: String, mut calls: Vec<Call>, most: usize) -> Calls {
        let older = calls.len().saturating_sub(most);
        calls.drain(..older);
        calls.reverse();
        Calls { conversation, calls, older }
    }
}

impl Answer for Calls {
    fn show(&self, page: &mut Page) {
        for call in &self.calls {
            let line = Line::new().styled(STRONG, format!("call {}", call.number));
            let line = line.styled(FAINT, format!(" of v{}  ", call.version));
            let line = line.text(format!("{} {}", call.target, call.model));
            let line = match &call.failure {
                Some(failure) => line.styled(BAD, format!("  {failure}")),
                None => line,
            };
            page.line(line.styled(FAINT, format!("  {}", told(call))));
            for done in &call.compressed {
                let text = format!("       {} before it: {}", done.strategy, done.why);
                page.line(Line::new().styled(FAINT, text));
            }
        }
        if let Some(newest) = self.calls.first() {
            let (all, here) = (newest.lifetime, newest.cumulative);
            let sums = format!(
                "{} in all, {} of them up to here: {} read, {} written",
                counted(all.calls, "call"),
                here.calls,
                counted(here.usage.input, "token"),
                grouped(here.usage.output),
            );
            page.line(Line::new().styled(FAINT, sums));
        }
        if self.older > 0 {
            let older = format!("{} older calls; --all shows them", grouped(self.older as u64));
            page.line(Line::new().styled(FAINT, older));
        }
    }
}

/// What was sent, what it used, and when.
fn told(call: &Call) -> String {
    let usage = match call.usage {
        Some(usage) => format!(
            "{} read ({} cached), {} written",
            counted(usage.input, "token"),
            grouped(usage.cached),
            grouped(usage.output)
        ),
        None => format!("about {}", counted(call.expected, "token")),
    };
    let hash = call.sha256.get(..12).unwrap_or_default();
    let bytes = counted(call.bytes, "byte");
    format!("{usage}; {bytes}, {hash}  {}", time::shown(call.at))
}
