//! `recto settings`: how a conversation is set up, and what is wanted of it.

use clap::Args;
use recto::{Compression, Policy, SavedSettings, Tool, Version, WriteOptions};
use recto_service::DEFAULT_STRATEGY;
use serde::Serialize;

use super::change::{Change, would_be};
use crate::arguments::OfConversation;
use crate::cache_plan::PlanArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::output::Answer;
use crate::page::{FAINT, Line, Page};

/// Show how a conversation is set up, or change its tools, its token limit and its compression.
///
/// The counter, what media count for (mediaTokens) and the heading of the description of the tools
/// stay as they were when the conversation was created: the log was counted with them, and
/// descriptions in it are known by their heading. `recto new` sets them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto settings
  recto settings --tools tools.json --dry-run
  recto settings --tools tools.json
  recto settings --token-limit 100000
  recto settings --compress-over 80000 --compress-to 40000 --compress-with sliding-window
  recto settings --no-compression --no-tools -c support")]
pub(crate) struct Settings {
    #[command(flatten)]
    of: OfConversation,

    /// A file with the tools that the model may call, as a JSON list; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "no_tools")]
    tools: Option<String>,

    /// The model may call no tools any more
    #[arg(long)]
    no_tools: bool,

    /// With --tools or --no-tools: refuse if this is not the newest version any more
    #[arg(long, value_name = "VERSION")]
    expect_version: Option<u32>,

    /// Print what would change and what other tools cost at the prompt cache, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    plan: PlanArguments,

    #[command(flatten)]
    policy: PolicyArguments,

    /// There is no token limit any more
    #[arg(long, conflicts_with = "token_limit")]
    no_token_limit: bool,

    /// The view is not compressed any more
    #[arg(long, conflicts_with = "compress_over")]
    no_compression: bool,
}

/// What is wanted of a conversation.
#[derive(Args, Debug)]
pub(crate) struct PolicyArguments {
    /// More tokens than this should not be sent to a model
    #[arg(long, value_name = "TOKENS")]
    token_limit: Option<u64>,

    /// Compression is due over so many tokens
    #[arg(long, value_name = "TOKENS", requires = "compress_to")]
    compress_over: Option<u64>,

    /// It goes down to so many tokens
    #[arg(long, value_name = "TOKENS", requires = "compress_over")]
    compress_to: Option<u64>,

    /// The strategies, separated by commas: clear-tool-results, keep-recent, keep-system-and-recent,
    /// sliding-window, summarise. Default: clear-tool-results,keep-system-and-recent
    #[arg(long, value_name = "STRATEGY", requires = "compress_over", value_parser = recto_service::read_strategies)]
    compress_with: Option<String>,
}

impl PolicyArguments {
    /// The policy with what the arguments say, which must hold together.
    pub(crate) fn changed(&self, before: Policy) -> Result<Policy, Failure> {
        let compression = match (self.compress_over, self.compress_to, &self.compress_with) {
            (Some(threshold), Some(target_tokens), strategy) => {
                let strategy = strategy.as_deref().unwrap_or(DEFAULT_STRATEGY).to_owned();
                Some(Compression { enabled: true, threshold, target_tokens, strategy })
            }
            _ => before.compression,
        };
        let policy = Policy { token_limit: self.token_limit.or(before.token_limit), compression };
        policy.check()?;
        Ok(policy)
    }
}

impl Settings {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.plan.check(self.dry_run)?;
        let tools = match (&self.tools, self.no_tools) {
            (Some(file), _) => Some(Tool::list_from_json(&desk.read(file)?)?),
            (None, true) => Some(Vec::new()),
            (None, false) => None,
        };
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let before = named.talk.policy()?;
        let policy = self.changed(&before)?;
        let write = WriteOptions {
            expected_version: self.expect_version.map(Version),
            ..WriteOptions::default()
        };
        let talk = named.talk.inner();
        let SavedSettings { counter, media_tokens, heading } =
            session.recto.wait(talk.settings())?;
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
            setup.tools = tools.clone().unwrap_or(session.recto.wait(talk.tools())?);
            if let Some(tools) = tools {
                let preview = session.recto.wait(talk.preview_tools_with(tools.clone(), write))?;
                let title = "SET_TOOLS".to_owned();
                let plan = &self.plan;
                setup.change =
                    Some(would_be(&session, named, title, preview, Some(tools), plan, desk)?);
            }
            return desk.answer(&setup);
        }
        // Whatever can be refused comes first.
        let changed = tools.map(|tools| named.talk.set_tools_with(tools, write)).transpose()?;
        if setup.policy != before {
            named.talk.set_policy(&setup.policy)?;
        }
        setup.version = changed.map(|outcome| outcome.version.0);
        setup.tools = session.recto.wait(talk.tools())?;
        desk.answer(&setup)
    }

    /// The policy with what the arguments say.
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
    /// The version that a change of the tools made.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    counter: String,
    media_tokens: u64,
    heading: String,
    tools: Vec<Tool>,
    #[serde(flatten)]
    policy: Policy,
    /// What other tools would do to the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Change>,
}

impl Answer for Setup {
    fn show(&self, page: &mut Page) {
        let mut field = |name: &str, value: String| {
            page.line(Line::wrapping().styled(FAINT, format!("{name:<12}")).text(value));
        };
        if let Some(version) = self.version {
            field("changed by", format!("v{version}"));
        }
        field("counter", self.counter.clone());
        field("mediaTokens", self.media_tokens.to_string());
        field("heading", format!("{} (of the message that describes tools)", self.heading));
        field("tools", counted(self.tools.len() as u64, "tool"));
        for tool in &self.tools {
            field("", format!("{}: {}", tool.name(), tool.description()));
        }
        let limit = self.policy.token_limit.map_or_else(|| "none".to_owned(), grouped);
        field("tokenLimit", limit);
        let compression = match &self.policy.compression {
            None => "none".to_owned(),
            Some(Compression { enabled, threshold, target_tokens, strategy }) => format!(
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
