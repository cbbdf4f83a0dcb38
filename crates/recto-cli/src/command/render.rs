//! `recto render`: the request that a provider is sent.

use clap::Args;
use recto::Warning;
use recto_service::{RenderWarning, ShownFinding, render_warnings};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::WhichVersion;
use crate::page::{BAD, Line, NOTE};
use crate::provider::{Reader, sent_at};

/// Print the request that says a view to a provider: valid, whatever was done to the view.
///
/// The request goes to standard output, what had to be repaired to standard error. The tools of the
/// conversation are in it. What the provider demands beside messages and tools is for you to add:
/// with --field, or in the program that sends it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto render --for anthropic --model claude-sonnet-4-5 --field max_tokens=1024 > request.json
  recto render --for gemini --at now-1
  recto render --for openai-chat --json          # the request, and its repairs")]
pub(crate) struct Render {
    #[command(flatten)]
    of: OfConversation,

    #[command(flatten)]
    reader: Reader,

    /// A field of the request and its JSON: max_tokens=1024; may be given several times
    #[arg(long = "field", value_name = "NAME=JSON")]
    fields: Vec<Field>,

    /// What the model read at this version: 12, or now-3 for three before the newest
    #[arg(long, value_name = "VERSION")]
    at: Option<WhichVersion>,
}

/// A field of the request.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    json: String,
}

impl std::str::FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Field, String> {
        let (name, json) = text.split_once('=').ok_or("use NAME=JSON, such as max_tokens=1024")?;
        Ok(Field { name: name.to_owned(), json: json.to_owned() })
    }
}

impl Render {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let sent = sent_at(&session, &named, self.at)?;
        let target = self.reader.target.unwrap_or_else(|| sent.likely_target());
        let model = self.reader.model.as_deref();
        let fields: Vec<(&str, &str)> =
            self.fields.iter().map(|Field { name, json }| (&**name, &**json)).collect();
        let rendered = sent.render(target, model, &fields)?;
        let torn: Vec<Warning> = match sent.version == named.talk.version()? {
            true => named.talk.warnings()?,
            false => Vec::new(),
        };
        let warnings = render_warnings(&torn, &rendered);
        if desk.output.is_json() {
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
            return desk.output.json(&document, desk.surroundings);
        }
        for finding in sent.findings(&rendered.findings) {
            let ShownFinding { rule, index, message, repair, entry, .. } = finding;
            let line = Line::wrapping()
                .styled(NOTE, format!("#{entry} at {index}"))
                .text(format!(": {message}; {rule}: "))
                .text(repair);
            desk.output.aside(&line, desk.surroundings)?;
        }
        let is_about_tools = |warning: &&RenderWarning| {
            warning.code == "renamed_tool" || warning.code == "changed_tool"
        };
        for warning in warnings.iter().filter(is_about_tools) {
            let line = Line::wrapping().styled(BAD, "warning").text(": ").text(&warning.message);
            desk.output.aside(&line, desk.surroundings)?;
        }
        desk.output.document(&rendered.body, desk.surroundings)
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
    /// So many bytes at the front of the request stay as they are, whatever is appended.
    stable: usize,
}
