//! `recto log --calls`: lists the model calls.

use recto_agent::Call;
use recto_service::{CallList, ModelTokens};

use crate::numbers::{counted, grouped};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, Line, Page, STRONG};
use crate::time;

impl CommandResult for CallList {
    fn show(&self, page: &mut Page) {
        for call in &self.calls {
            let line = Line::new().styled(STRONG, format!("call {}", call.number));
            let line = line.styled(FAINT, format!(" of v{}  ", call.version));
            let line = line.text(format!("{} {}", call.target, call.model));
            let line = match &call.failure {
                Some(failure) => line.styled(BAD, format!("  {failure}")),
                None => line,
            };
            page.line(line.styled(FAINT, format!("  {}", call_summary(call))));
            for done in &call.compressed {
                let text = format!("       {} before it: {}", done.strategy, done.reason);
                page.line(Line::new().styled(FAINT, text));
            }
        }
        if let Some(newest) = self.calls.first() {
            let (all, here) = (newest.lifetime, newest.cumulative);
            let sums = format!(
                "{} in all, {} of them in this branch: {} read, {} written{}",
                counted(all.calls, "call"),
                here.calls,
                counted(here.usage.input, "token"),
                grouped(here.usage.output),
                cost(here.cost, all.cost),
            );
            page.line(Line::new().styled(FAINT, sums));
        }
        for ModelTokens { model, factor, error, reports, .. } in &self.models {
            let error = error.map(|error| format!(", recent error {:.0} %", error * 100.0));
            let error = error.unwrap_or_default();
            let reports = counted(*reports, "report");
            let text = format!("{model}: {factor:.2} tokens per counted token{error} ({reports})");
            page.line(Line::new().styled(FAINT, text));
        }
        if self.older > 0 {
            let older = format!("{} older calls; --all shows them", grouped(self.older as u64));
            page.line(Line::new().styled(FAINT, older));
        }
    }
}

/// The cost, if prices are known.
fn cost(here: f64, all: f64) -> String {
    match all > 0.0 {
        true => format!("; ${here:.4}, in all ${all:.4}"),
        false => String::new(),
    }
}

/// Usage, size, hash and time of a call.
fn call_summary(call: &Call) -> String {
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
