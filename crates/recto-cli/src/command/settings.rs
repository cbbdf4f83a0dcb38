//! `recto settings`: shows and changes the settings of a conversation.

use clap::Args;
use recto::{Compression, Policy, SavedSettings, Tool, Version, WriteOptions};
use recto_service::DEFAULT_STRATEGY;
use serde::Serialize;

use super::change::{Change, preview_change};
use crate::arguments::ConversationArgument;
use crate::cache_plan::PlanArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page};
use crate::tool_input::read_tools;

/// Show or change tools, token limit and compression.
///
/// The counter, mediaTokens and the heading of the tool description are set by `recto new` and cannot be
/// changed: all messages were counted with the first two, and the heading identifies tool descriptions
/// in the log.
#[derive(Args, Debug)]
#[command(after_help = "\
The file of --tools is a list such as [{\"name\": \"ls\", \"description\": \"List a folder.\",
\"input_schema\": {\"type\": \"object\"}}]; the forms of OpenAI, Anthropic, Gemini and MCP are accepted too.

Examples:
  recto settings
  recto settings --tools tools.json --dry-run
  recto settings --tools tools.json
  recto settings --token-limit 100000
  recto settings --compress-over 80000 --compress-to 40000 --compress-with sliding-window
  recto settings --no-compression --no-tools -c support")]
pub(crate) struct Settings {
    #[command(flatten)]
    of: ConversationArgument,

    /// File with the tools that the model may call, as JSON; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "no_tools")]
    tools: Option<String>,

    /// Remove all tools
    #[arg(long)]
    no_tools: bool,

    /// Fail with `version_conflict` unless this is the newest version (with --tools or --no-tools)
    #[arg(long, value_name = "VERSION")]
    expect_version: Option<u32>,

    /// Print the new settings and the cost of other tools in the prompt cache, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    plan: PlanArguments,

    #[command(flatten)]
    policy: PolicyArguments,

    /// Remove the token limit
    #[arg(long, conflicts_with = "token_limit")]
    no_token_limit: bool,

    /// Remove the compression
    #[arg(long, conflicts_with = "compress_over")]
    no_compression: bool,
}

/// Options for the token limit and the compression.
#[derive(Args, Debug)]
pub(crate) struct PolicyArguments {
    /// Maximum number of tokens of a model request. Default: no limit
    #[arg(long, value_name = "TOKENS")]
    token_limit: Option<u64>,

    /// Number of tokens above which the view is compressed. At most the token limit
    #[arg(long, value_name = "TOKENS", requires = "compress_to")]
    compress_over: Option<u64>,

    /// Number of tokens that a compression aims for. At most --compress-over
    #[arg(long, value_name = "TOKENS", requires = "compress_over")]
    compress_to: Option<u64>,

    /// Strategies, separated by commas: clear-tool-results, keep-recent, keep-system-and-recent,
    /// sliding-window, summarise. Default: clear-tool-results,keep-system-and-recent
    #[arg(long, value_name = "STRATEGY", requires = "compress_over", value_parser = recto_service::read_strategies)]
    compress_with: Option<String>,
}

impl PolicyArguments {
    /// The policy with these options applied. Fails if it is inconsistent.
    pub(crate) fn changed(&self, before: Policy) -> Result<Policy, Failure> {
        let compression = match (self.compress_over, self.compress_to, &self.compress_with) {
            (Some(threshold), Some(target_tokens), strategy) => {
                let strategy = strategy.as_deref().unwrap_or(DEFAULT_STRATEGY).to_owned();
                Some(Compression::new(threshold, target_tokens, strategy))
            }
            _ => before.compression,
        };
        let policy = Policy { token_limit: self.token_limit.or(before.token_limit), compression };
        policy.check()?;
        Ok(policy)
    }
}

impl Settings {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.plan.check(self.dry_run)?;
        let tools = match (&self.tools, self.no_tools) {
            (Some(file), _) => Some(read_tools(&context.read(file)?)?),
            (None, true) => Some(Vec::new()),
            (None, false) => None,
        };
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let before = named.handle.policy()?;
        let policy = self.changed(&before)?;
        let write = WriteOptions {
            expected_version: self.expect_version.map(Version),
            ..WriteOptions::default()
        };
        let SavedSettings { counter, media_tokens, heading, .. } = named.handle.settings()?;
        let mut setup = Setup {
            conversation: named.name.clone(),
            dry_run: self.dry_run,
            version: None,
            counter,
            media_tokens,
            heading,
            tools: Vec::new(),
            policy,
            change: None,
        };
        if self.dry_run {
            setup.tools = tools.clone().unwrap_or(named.handle.tools()?);
            if let Some(tools) = tools {
                let preview = named.handle.preview_tools_with(tools.clone(), write)?;
                let title = "SET_TOOLS".to_owned();
                let plan = &self.plan;
                setup.change = Some(preview_change(
                    &session,
                    named,
                    title,
                    preview,
                    Some(tools),
                    plan,
                    context,
                )?);
            }
            return context.print(&setup);
        }
        // The tools come first, because the store can refuse them.
        let changed = tools.map(|tools| named.handle.set_tools_with(tools, write)).transpose()?;
        if setup.policy != before {
            named.handle.set_policy(&setup.policy)?;
        }
        setup.version = changed.map(|outcome| outcome.version.0);
        setup.tools = named.handle.tools()?;
        context.print(&setup)
    }

    /// The policy with all options applied.
    fn changed(&self, before: &Policy) -> Result<Policy, Failure> {
        let kept = Policy {
            token_limit: before.token_limit.filter(|_| !self.no_token_limit),
            compression: before.compression.clone().filter(|_| !self.no_compression),
        };
        self.policy.changed(kept)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Setup {
    conversation: String,
    dry_run: bool,
    /// The version that set the tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    counter: String,
    media_tokens: u64,
    heading: String,
    tools: Vec<Tool>,
    #[serde(flatten)]
    policy: Policy,
    /// The effect of other tools on the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Change>,
}

impl CommandResult for Setup {
    fn show(&self, page: &mut Page) {
        let mut field = |name: &str, value: String| {
            page.line(Line::wrapping().styled(FAINT, format!("{name:<13}")).text(value));
        };
        field("conversation", self.conversation.clone());
        if let Some(version) = self.version {
            field("changed by", format!("v{version}"));
        }
        field("counter", self.counter.clone());
        field("mediaTokens", self.media_tokens.to_string());
        field("heading", format!("{} (first line of the tool description)", self.heading));
        field("tools", counted(self.tools.len() as u64, "tool"));
        for tool in &self.tools {
            field("", format!("{}: {}", tool.name(), tool.description()));
        }
        let limit = self.policy.token_limit.map_or_else(|| "none".to_owned(), grouped);
        field("tokenLimit", limit);
        let compression = match &self.policy.compression {
            None => "none".to_owned(),
            Some(Compression { enabled, threshold, target_tokens, strategy, .. }) => format!(
                "{strategy}, over {} down to {}{}",
                counted(*threshold, "token"),
                grouped(*target_tokens),
                if *enabled { "" } else { " (switched off)" }
            ),
        };
        field("compression", compression);
        if let Some(change) = &self.change {
            change.show(page);
        }
    }
}
