//! `recto settings`: how a conversation is set up.

use clap::Args;
use recto::{SavedSettings, Tool, Version, Write};
use serde::Serialize;

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::Answer;
use crate::page::{FAINT, Line, Page};

/// Show how a conversation is set up, or set other tools.
///
/// The counter stays as it was when the conversation was created: every message was counted by it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto settings
  recto settings --tools tools.json
  recto settings --no-tools -c support")]
pub(crate) struct Settings {
    #[command(flatten)]
    of: OfConversation,

    /// A file with the tools that the model may call, as a JSON list; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "no_tools")]
    tools: Option<String>,

    /// The model may call no tools any more
    #[arg(long)]
    no_tools: bool,

    /// Refuse if this is not the newest version any more
    #[arg(long, value_name = "VERSION")]
    expect_version: Option<u32>,
}

impl Settings {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let tools = match (&self.tools, self.no_tools) {
            (Some(file), _) => Some(Tool::list_from_json(&desk.read(file)?)?),
            (None, true) => Some(Vec::new()),
            (None, false) => None,
        };
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let write =
            Write { expected_version: self.expect_version.map(Version), ..Write::default() };
        let changed = tools.map(|tools| named.talk.set_tools(tools, write)).transpose()?;
        let talk = named.talk.inner();
        let SavedSettings { counter, media_tokens, heading } =
            session.recto.wait(talk.settings())?;
        desk.answer(&Setup {
            conversation: named.name,
            version: changed.map(|outcome| outcome.version.0),
            counter,
            media_tokens,
            heading,
            tools: session.recto.wait(talk.tools())?,
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Setup {
    conversation: String,
    /// The version that a change made.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    counter: String,
    media_tokens: u64,
    heading: String,
    tools: Vec<Tool>,
}

impl Answer for Setup {
    fn show(&self, page: &mut Page) {
        let mut field = |name: &str, value: String| {
            page.line(Line::new().styled(FAINT, format!("{name:<12}")).text(value));
        };
        if let Some(version) = self.version {
            field("changed by", format!("v{version}"));
        }
        field("counter", self.counter.clone());
        field("mediaTokens", self.media_tokens.to_string());
        field("heading", self.heading.clone());
        field("tools", counted(self.tools.len() as u64, "tool"));
        for tool in &self.tools {
            field("", format!("{}: {}", tool.name(), tool.description()));
        }
    }
}
