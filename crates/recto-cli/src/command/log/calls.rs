//! `recto log --calls`: what models were sent.

use recto_agent::Call;
use recto_service::{CallList, ModelTokens};

use crate::numbers::{counted, grouped};
use crate::output::Answer;
use crate::page::{BAD, FAINT, Line, Page, STRONG};
use crate::time;

impl Answer for CallList {
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
                let text = format!("       {} before it: {}", done.strategy, done.reason);
                page.line(Line::new().styled(FAINT, text));
            }
        }
        if let Some(newest) = self.calls.first() {
            let (all, here) = (newest.lifetime, newest.cumulative);
            let sums = format!(
                "{} in all, {} of them up to here: {} read, {} written{}",
                counted(all.calls, "call"),
                here.calls,
                counted(here.usage.input, "token"),
                grouped(here.usage.output),
                cost(here.cost, all.cost),
            );
            page.line(Line::new().styled(FAINT, sums));
        }
        for ModelTokens { model, factor, error, reports } in &self.models {
            let error = error.map(|error| format!(", off by {:.0} % of late", error * 100.0));
            let error = error.unwrap_or_default();
            let reports = counted(*reports, "report");
            let text = format!(
                "{model}: a token counted here is {factor:.2} of its own{error} ({reports})"
            );
            page.line(Line::new().styled(FAINT, text));
        }
        if self.older > 0 {
            let older = format!("{} older calls; --all shows them", grouped(self.older as u64));
            page.line(Line::new().styled(FAINT, older));
        }
    }
}

/// What it cost, as far as prices are known.
fn cost(here: f64, all: f64) -> String {
    match all > 0.0 {
        true => format!("; ${here:.4}, in all ${all:.4}"),
        false => String::new(),
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
