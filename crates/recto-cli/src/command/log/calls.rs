//! `recto log --calls`: what models were sent.

use std::collections::BTreeMap;

use recto_agent::{Calibration, Call};
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
    /// What is known of the tokens of each model that was asked.
    models: Vec<Known>,
}

/// How a model's tokens compare with those that the conversation counts, as its reports tell.
#[derive(Serialize)]
struct Known {
    model: String,
    factor: f64,
    error: Option<f64>,
    reports: u64,
}

impl Known {
    /// Of every model, by name.
    fn of(calls: &[Call]) -> Vec<Known> {
        let mut models: BTreeMap<&str, Calibration> = BTreeMap::new();
        for call in calls.iter().filter(|call| call.about.is_none()) {
            if let Some(usage) = call.usage {
                models.entry(&call.model).or_default().learn(call.counted, usage.input);
            }
        }
        let known = |(model, known): (&str, Calibration)| Known {
            model: model.to_owned(),
            factor: known.factor,
            error: known.error,
            reports: known.reports,
        };
        models.into_iter().map(known).filter(|known| known.reports > 0).collect()
    }
}

impl Calls {
    /// The newest of these, which are in order.
    pub(super) fn newest(conversation: String, mut calls: Vec<Call>, most: usize) -> Calls {
        let models = Known::of(&calls);
        let older = calls.len().saturating_sub(most);
        calls.drain(..older);
        calls.reverse();
        Calls { conversation, calls, older, models }
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
                "{} in all, {} of them up to here: {} read, {} written{}",
                counted(all.calls, "call"),
                here.calls,
                counted(here.usage.input, "token"),
                grouped(here.usage.output),
                cost(here.cost, all.cost),
            );
            page.line(Line::new().styled(FAINT, sums));
        }
        for Known { model, factor, error, reports } in &self.models {
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
