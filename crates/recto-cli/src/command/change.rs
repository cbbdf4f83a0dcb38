//! The commands that change what the model reads: one for each operation, and `apply`.
//!
//! All of them make one [`Request`] and hand it to [`ChangeArguments::perform`], which applies it,
//! or with `--dry-run` says what it would do, and what that costs at a provider's prompt cache.

pub(crate) mod append;
pub(crate) mod apply;
pub(crate) mod arrange;
pub(crate) mod batch;
pub(crate) mod clear;
pub(crate) mod compress;
pub(crate) mod delete;
pub(crate) mod filter;
pub(crate) mod fit;
pub(crate) mod insert;
pub(crate) mod mark;
pub(crate) mod replace;
pub(crate) mod restore;
pub(crate) mod rollback;
pub(crate) mod truncate;
pub(crate) mod undo;

use std::collections::HashMap;

use clap::Args;
use recto::{
    Entry, LogIndex, Operation, Outcome, Portion, Preview, Request, Step, Tool, Version, Write,
};
use recto_service::{Plan, Sent};
use serde::Serialize;

use super::info::show_warnings;
use crate::arguments::OfConversation;
use crate::cache_plan::{PlanArguments, ShowPlan as _};
use crate::desk::Desk;
use crate::difference::Difference;
use crate::failure::Failure;
use crate::numbers::{WhichVersion, counted, grouped, runs};
use crate::output::Answer;
use crate::page::{BAD, FAINT, GOOD, Line, Page, STRONG};
use crate::provider::sent_at;
use crate::reason;
use crate::session::{Named, Session};

/// What every changing command takes.
#[derive(Args, Debug)]
pub(crate) struct ChangeArguments {
    #[command(flatten)]
    of: OfConversation,

    /// Print what would change and what that costs at the prompt cache, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    pub(crate) plan: PlanArguments,

    /// Refuse if this is not the newest version any more
    #[arg(long, value_name = "VERSION")]
    expect_version: Option<u32>,

    /// A key for this request: repeated with the same key, it is not applied again
    #[arg(long, value_name = "KEY", conflicts_with = "dry_run")]
    key: Option<String>,

    /// Why it is done; kept with the version, shown by log and blame
    #[arg(long, value_name = "WHY")]
    because: Option<String>,
}

impl ChangeArguments {
    /// The conversation as it was named.
    pub(crate) fn conversation(&self) -> &str {
        &self.of.conversation
    }

    /// The newest version, if it takes that to know which version is meant.
    pub(crate) fn newest_for(
        &self,
        version: WhichVersion,
        desk: &mut Desk<'_>,
    ) -> Result<Version, Failure> {
        match version.is_relative() {
            true => Ok(desk.session()?.conversation(&self.of.conversation)?.talk.version()?),
            false => Ok(Version(0)),
        }
    }

    /// Applies one operation.
    pub(crate) fn operation(
        self,
        operation: impl Into<Operation>,
        desk: &mut Desk<'_>,
    ) -> Result<(), Failure> {
        let operation: Operation = operation.into();
        let step = match self.because.clone() {
            Some(reason) => operation.reason(reason),
            None => Step::from(operation),
        };
        self.perform(step.into(), desk)
    }

    /// Applies a request, or says what it would do.
    pub(crate) fn perform(self, request: Request, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.plan.check(self.dry_run)?;
        self.perform_for(request, desk)
    }

    /// The same for a request that was made for a provider.
    pub(crate) fn perform_for(
        self,
        mut request: Request,
        desk: &mut Desk<'_>,
    ) -> Result<(), Failure> {
        if let (Some(because), [step]) = (&self.because, &mut *request.steps) {
            step.reason.get_or_insert_with(|| because.clone());
        }
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let write = Write { expected_version: self.expect_version.map(Version), key: self.key };
        let operations: Vec<&str> =
            request.steps.iter().map(|step| step.operation.kind().as_str()).collect();
        let title = operations.join(", ");
        if self.dry_run {
            let talk = named.talk.inner();
            let preview = session.recto.wait(talk.preview_with(request, write))?;
            let change = would_be(&session, named, title, preview, None, &self.plan, desk)?;
            return desk.answer(&change);
        }
        let outcome = named.talk.apply_with(request, write)?;
        let title = match outcome.changed {
            true => {
                let info = named.talk.inner().version_info(outcome.version);
                let info = session.recto.wait(info)?;
                reason::told(info.operation, &info.description)
            }
            false => title,
        };
        desk.answer(&Change::new(named.name, title, &outcome, None))
    }
}

/// What a preview shows: the difference, and what it costs at a prompt cache. `tools` are those that
/// would be set.
pub(crate) fn would_be(
    session: &Session,
    named: Named,
    title: String,
    preview: Preview,
    tools: Option<Vec<Tool>>,
    plan: &PlanArguments,
    desk: &mut Desk<'_>,
) -> Result<Change, Failure> {
    let Preview { outcome, added, descriptions } = preview;
    let is_sendable =
        [outcome.before(), outcome.view()].iter().all(|view| view.tokens() <= LONGEST);
    let plan = match is_sendable || plan.is_given() {
        true => {
            let before = sent_at(session, &named, None)?;
            let tools = tools.unwrap_or_else(|| before.tools.clone());
            let mut entries = view_after(&outcome, &before, &added, &named)?;
            entries.retain(|entry| descriptions.binary_search(&entry.index).is_err());
            let after = Sent { version: outcome.version, entries, tools };
            let counter = session.recto.wait(named.talk.inner().settings())?.counter;
            Some(plan.compare(&before, &after, &counter, desk)?)
        }
        false => None,
    };
    let added: Vec<_> = added.into_iter().map(Into::into).collect();
    let difference = Difference::of(&outcome.diff(), &named.talk, &added)?;
    Ok(Change::new(named.name, title, &outcome, Some((difference, plan))))
}

/// No model reads more tokens than this, so a longer view was never sent, and no cache has it. It is
/// planned for only if somebody names a provider: rendering it takes a while.
const LONGEST: u64 = 2_000_000;

/// The entries of the view that a preview leads to.
fn view_after(
    outcome: &Outcome,
    before: &Sent,
    added: &[Entry],
    named: &Named,
) -> Result<Vec<Entry>, Failure> {
    let mut known: HashMap<LogIndex, &Entry> =
        before.entries.iter().chain(added).map(|entry| (entry.index, entry)).collect();
    let view = outcome.view();
    let hidden: Vec<LogIndex> = view.iter().filter(|index| !known.contains_key(index)).collect();
    let shown = if hidden.is_empty() { Vec::new() } else { named.talk.entries(&hidden)? };
    known.extend(shown.iter().map(|entry| (entry.index, entry)));
    Ok(view.iter().filter_map(|index| known.get(&index).copied().cloned()).collect())
}

/// What a request did, or would do.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    conversation: String,
    dry_run: bool,
    #[serde(flatten)]
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Difference>,
    cache_plan: CachePlan,
    #[serde(skip)]
    title: String,
}

/// What a provider's prompt cache can still use.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CachePlan {
    /// The front of the view that is as it was.
    reused: Portion,
    /// What must be read anew behind it.
    read_anew: Portion,
    /// What that costs at a provider.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
}

impl Change {
    fn new(
        conversation: String,
        title: String,
        outcome: &Outcome,
        would: Option<(Difference, Option<Plan>)>,
    ) -> Change {
        let (diff, plan) = would.unzip();
        let plan = plan.flatten();
        let (stats, prefix) = (outcome.stats(), outcome.shared_prefix());
        let cache_plan = CachePlan {
            reused: Portion { messages: prefix.messages, tokens: prefix.tokens },
            read_anew: Portion {
                messages: stats.current_batch_messages - prefix.messages,
                tokens: stats.tokens - prefix.tokens,
            },
            plan,
        };
        let dry_run = diff.is_some();
        let outcome = outcome.clone();
        Change { conversation, dry_run, outcome, diff, cache_plan, title }
    }
}

impl Answer for Change {
    fn show(&self, page: &mut Page) {
        let Change { outcome, cache_plan, .. } = self;
        let would_be = if self.dry_run && outcome.changed { "would be " } else { "" };
        let line = Line::new().styled(STRONG, format!("{would_be}v{}", outcome.version));
        let line = line.styled(FAINT, " of ").text(&self.conversation).styled(FAINT, ": ");
        let line = if outcome.changed { line } else { line.text("nothing to do: ") };
        let line = line.text(&self.title);
        page.line(line);
        match &self.diff {
            Some(difference) => difference.show(page),
            None => {
                for (name, style, indices) in [
                    ("hidden", BAD, outcome.hidden()),
                    ("shown", GOOD, outcome.shown()),
                    ("added", GOOD, outcome.added()),
                ] {
                    if !indices.is_empty() {
                        let count = counted(indices.len() as u64, "message");
                        let line = Line::new().styled(style, format!("{name:<9}{count}  "));
                        page.line(line.styled(FAINT, runs(indices)));
                    }
                }
            }
        }
        let (before, after) = (outcome.before(), outcome.view());
        let CachePlan { reused, read_anew, plan } = cache_plan;
        let mut field = |name: &str, value: String| {
            page.line(Line::new().styled(FAINT, format!("{name:<9}")).text(value));
        };
        let (messages, tokens) =
            (counted(after.len() as u64, "message"), counted(after.tokens(), "token"));
        if before.len() == after.len() && reused.messages == after.len() {
            field("view", format!("{messages}, {tokens}, as before"));
        } else {
            let (had, counted_before) = (grouped(before.len() as u64), grouped(before.tokens()));
            field("view", format!("{had} → {messages}, {counted_before} → {tokens}"));
            let anew = counted(read_anew.tokens, "token");
            let same = counted(reused.tokens, "token");
            field("prefix", format!("{same} unchanged, {anew} behind it read anew"));
        }
        if let Some(plan) = plan {
            plan.show(page);
        }
        show_warnings(&outcome.warnings(), page);
    }
}
