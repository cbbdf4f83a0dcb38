//! `recto render`: renders the view as a provider request.

use clap::Args;
use recto::{LogIndex, Warning};
use recto_format::Target;
use recto_service::{RenderWarning, ShownFinding};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{VersionArgument, runs};
use crate::page::{BAD, FAINT, Line, NOTE};
use crate::provider::{Field, ProviderArguments, pairs, sent_at};
use crate::remarks::{groups, ranges, times};

/// Render the view as a provider request, with repairs.
///
/// The request is printed on standard output, repairs and warnings on standard error. It contains the
/// messages and the tools. Add other fields that the provider requires with --field, or in the program
/// that sends the request.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto render --for anthropic --model claude-sonnet-4-5 --field max_tokens=1024 > request.json
  recto render --for gemini --at now-1
  recto render --for openai-chat --json          # the request, repairs and warnings")]
pub(crate) struct Render {
    #[command(flatten)]
    of: ConversationArgument,

    #[command(flatten)]
    provider: ProviderArguments,

    /// Field to add to the request, with its JSON value: max_tokens=1024; can be repeated
    #[arg(long = "field", value_name = "NAME=JSON")]
    fields: Vec<Field>,

    /// Version to render: 12, or now-3 for three before the newest. Default: the newest
    #[arg(long, value_name = "VERSION")]
    at: Option<VersionArgument>,
}

impl Render {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let sent = sent_at(&session, &named, self.at)?;
        let to = self.provider.recipient(&sent);
        let target = to.target;
        let rendered = sent.render(to, &pairs(&self.fields))?;
        let torn: Vec<Warning> = match sent.version == named.handle.version()? {
            true => named.handle.warnings()?,
            false => Vec::new(),
        };
        let warnings = sent.render_warnings(&torn, &rendered);
        if context.output.is_json() {
            let request = serde_json::from_str(&rendered.body).map_err(std::io::Error::other)?;
            let document = Document {
                conversation: &named.name,
                version: sent.version.0,
                target: target.name(),
                request,
                repairs: sent.findings(&rendered.findings),
                warnings,
                stable: rendered.stable,
            };
            return context.output.json(&document, context.environment);
        }
        let findings = sent.findings(&rendered.findings);
        for ((rule, message, repair), group) in
            groups(&findings, |finding| (finding.rule, &*finding.message, finding.repair))
        {
            let entries = ranges(group.iter().map(|finding| u64::from(finding.entry)), "#");
            let line = Line::wrapping()
                .styled(NOTE, entries)
                .text(format!(": {message}; {repair}"))
                .styled(FAINT, format!(" [{rule}]"))
                .text(times(group.len()));
            context.output.note(&line, context.environment)?;
        }
        let is_repaired = |warning: &&RenderWarning| {
            let rule = match &*warning.code {
                "torn_call" => "answered_calls",
                "torn_result" => "results_have_calls",
                _ => return false,
            };
            let repaired = |&entry: &u32| {
                findings.iter().any(|finding| finding.rule == rule && finding.entry == entry)
            };
            warning.indices.iter().all(repaired)
        };
        for RenderWarning { indices, message, .. } in
            warnings.iter().filter(|warning| !is_repaired(warning))
        {
            let entries = runs(indices.iter().copied().map(LogIndex));
            let place = if entries.is_empty() { entries } else { format!("{entries} ") };
            let line = Line::wrapping().styled(BAD, "warning").text(": ").text(place).text(message);
            context.output.note(&line, context.environment)?;
        }
        if let Some(missing) = self.missing_fields(target) {
            let line = Line::wrapping().styled(NOTE, "note: ").text(missing);
            context.output.note(&line, context.environment)?;
        }
        context.output.document(&rendered.body, context.environment)
    }

    /// What to add to the request, if the provider refuses it without.
    fn missing_fields(&self, target: Target) -> Option<&'static str> {
        let has = |name: &str| self.fields.iter().any(|field| field.name == name);
        let has_model = self.provider.model.is_some() || has("model");
        match (target, has_model, has("max_tokens")) {
            (Target::Anthropic, false, false) => Some(
                "the request has no `model` and no `max_tokens`; add `--model MODEL` and \
                 `--field max_tokens=1024`",
            ),
            (Target::Anthropic, false, true) => {
                Some("the request has no `model`; add `--model MODEL`")
            }
            (Target::Anthropic, true, false) => {
                Some("the request has no `max_tokens`; add `--field max_tokens=1024`")
            }
            _ => None,
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    conversation: &'a str,
    version: u32,
    #[serde(rename = "for")]
    target: &'static str,
    request: &'a RawValue,
    repairs: Vec<ShownFinding>,
    warnings: Vec<RenderWarning>,
    /// Number of bytes at the front of the request that appending messages does not change.
    stable: usize,
}
