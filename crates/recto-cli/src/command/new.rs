//! `recto new`: creates a conversation.

use clap::Args;
use recto::{Policy, Settings};
use recto_service::counter_named;
use serde::Serialize;

use super::settings::PolicyArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::CommandResult;
use crate::page::{Line, NOTE, Page, STRONG};
use crate::tool_input::read_tools;

/// Create a conversation.
#[derive(Args, Debug)]
#[command(after_help = "\
The file of --tools is a list such as [{\"name\": \"ls\", \"description\": \"List a folder.\",
\"input_schema\": {\"type\": \"object\"}}]; the forms of OpenAI, Anthropic, Gemini and MCP are accepted too.

Examples:
  recto new support
  recto new support --counter approx --tools tools.json
  recto new support --compress-over 80000 --compress-to 40000 --compress-with sliding-window")]
pub(crate) struct New {
    /// Name of the conversation
    name: String,

    /// Token counter: o200k_base, cl100k_base or approx. Default: o200k_base
    #[arg(long, value_name = "COUNTER")]
    counter: Option<String>,

    /// Tokens of an image, audio or file part. Default: 1000
    #[arg(long, value_name = "TOKENS")]
    media_tokens: Option<u64>,

    /// File with the tools that the model may call, as JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    tools: Option<String>,

    /// First line of the tool description. Default: "Available tools:"
    #[arg(long, value_name = "TEXT")]
    heading: Option<String>,

    #[command(flatten)]
    policy: PolicyArguments,
}

impl New {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        recto::check_name(&self.name)?;
        let mut settings = Settings::default();
        if let Some(counter) = &self.counter {
            settings.counter = counter_named(counter)?;
        }
        if let Some(tokens) = self.media_tokens {
            settings.media_tokens = tokens;
        }
        if let Some(file) = &self.tools {
            settings.tools = read_tools(&context.read(file)?)?;
        }
        if let Some(heading) = self.heading {
            settings.heading = heading;
        }
        let policy = self.policy.changed(Policy::default())?;
        let counter = settings.counter.name().to_owned();
        let session = context.new_session()?;
        let handle = session.recto.create(&self.name, settings)?;
        if policy != Policy::default() {
            handle.set_policy(&policy)?;
        }
        session.record_use(&self.name, &handle);
        let id = handle.id().to_string();
        context.print(&Created { conversation: self.name, id, version: 0, counter })?;
        if session.is_in_memory() {
            let text = "the store is in memory, so the conversation ends with this command";
            let line = Line::wrapping().styled(NOTE, "note: ").text(text);
            context.output.note(&line, context.environment)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Created {
    conversation: String,
    id: String,
    version: u32,
    counter: String,
}

impl CommandResult for Created {
    fn show(&self, page: &mut Page) {
        let line = Line::new().text("created ").styled(STRONG, &self.conversation);
        page.line(line.text(format!(", counted by {}", self.counter)));
    }
}
