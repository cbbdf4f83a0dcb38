//! The commands that change the view or the marks with one operation, and `apply`, which reads operations
//! from a file.
//!
//! Each builds one [`Request`], which [`ChangeArguments::perform`] applies. With `--dry-run`, `perform`
//! applies nothing, and prints the difference and the cost in a provider's prompt cache.

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
    Entry, LogIndex, MessageTotals, Operation, Outcome, Pick, Preview, Query, Request, Role, Scope,
    Step, Tool, Version, WriteOptions,
};
use recto_service::{Plan, ProviderView};
use serde::Serialize;

use super::info::show_warnings;
use crate::advice;
use crate::arguments::ConversationArgument;
use crate::cache_plan::{PlanArguments, ShowPlan as _};
use crate::context::Context;
use crate::difference::Difference;
use crate::failure::Failure;
use crate::numbers::{VersionArgument, counted, grouped, runs};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, GOOD, Line, Page, STRONG};
use crate::provider::sent_at;
use crate::reason;
use crate::session::{NamedConversation, Session};

/// Options of every command that changes the view.
#[derive(Args, Debug)]
pub(crate) struct ChangeArguments {
    #[command(flatten)]
    of: ConversationArgument,

    /// Print the difference and its cost in the prompt cache, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    pub(crate) plan: PlanArguments,

    /// Fail with `version_conflict` unless this is the newest version
    #[arg(long, value_name = "VERSION")]
    expect_version: Option<u32>,

    /// Idempotency key: a repeated request with the same key is not applied again
    #[arg(long, value_name = "KEY", conflicts_with = "dry_run")]
    key: Option<String>,

    /// Reason, which is stored after the description of the operation; `log` and `blame` show it
    #[arg(long, value_name = "REASON", alias = "because")]
    reason: Option<String>,
}

impl ChangeArguments {
    /// The argument that names the conversation.
    pub(crate) fn conversation(&self) -> &str {
        &self.of.conversation
    }

    /// The version that `VersionArgument::from` needs: the newest one if `version` is relative to it.
    /// Otherwise the value is not used, so the store is not opened and the result is version 0.
    pub(crate) fn newest_for(
        &self,
        version: VersionArgument,
        context: &mut Context<'_>,
    ) -> Result<Version, Failure> {
        match version.is_relative() {
            true => Ok(context.session()?.conversation(&self.of.conversation)?.handle.version()?),
            false => Ok(Version(0)),
        }
    }

    /// Applies one operation, or previews it with `--dry-run`.
    pub(crate) fn operation(
        self,
        operation: impl Into<Operation>,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        self.perform(Step::from(operation.into()).into(), context)
    }

    /// Applies a request, or previews it with `--dry-run`.
    pub(crate) fn perform(
        self,
        request: Request,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        self.plan.check(self.dry_run)?;
        self.perform_for(request, context)
    }

    /// Like [`perform`](Self::perform), for a request that was made for a provider: all options of
    /// [`PlanArguments`] are allowed without `--dry-run`, because some of them select that provider.
    pub(crate) fn perform_for(
        self,
        mut request: Request,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        if let Some(reason) = &self.reason {
            for step in &mut request.steps {
                let described = step.reason.take().unwrap_or_else(|| step.operation.describe());
                step.reason = Some(reason::with_reason(&described, reason));
            }
        }
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let write = WriteOptions {
            expected_version: self.expect_version.map(Version),
            idempotency_key: self.key,
            ..WriteOptions::default()
        };
        let operations: Vec<&str> =
            request.steps.iter().map(|step| step.operation.kind().as_str()).collect();
        let title = operations.join(", ");
        let starts_batch = matches!(
            request.steps.last().map(|step| &step.operation),
            Some(Operation::BatchStart(_))
        );
        if self.dry_run {
            let preview = named.handle.preview_with(request, write)?;
            let change =
                preview_change(&session, named, title, preview, None, &self.plan, context)?;
            return context.print(&Change { starts_batch, ..change });
        }
        let fitted = matches!(&*operations, ["FIT"]);
        let unaffected = Unaffected::of(&request);
        let outcome = named
            .handle
            .apply_with(request, write)
            .map_err(|error| advice::of_budget(error, &named.handle))?;
        let title = match outcome.changed {
            true => {
                let title = |version| {
                    let info = named.handle.version_info(version)?;
                    Ok::<_, Failure>(reason::version_title(info.operation, &info.reason))
                };
                let made = title(outcome.version)?;
                match named.handle.undo_target(outcome.version)? {
                    Some(target) => reason::title_of(&made, target, Some(&title(target)?)),
                    None => made,
                }
            }
            false => title,
        };
        let mut notes: Vec<String> =
            unaffected.and_then(|it| it.note(&outcome)).into_iter().collect();
        if fitted {
            notes.extend(first_user_message_note(&outcome, &named)?);
        }
        let change = Change::new(named.name, title, &outcome, None);
        context.print(&Change { starts_batch, notes, ..change })
    }
}

/// The entries that a DELETE, a COMPRESS or a RESTORE names. Those that were hidden or visible already do
/// not change.
struct Unaffected {
    named: Vec<LogIndex>,
    /// Whether the operation hides the entries. Otherwise it shows them.
    hides: bool,
}

impl Unaffected {
    fn of(request: &Request) -> Option<Unaffected> {
        let [step] = &*request.steps else { return None };
        let (named, hides) = match &step.operation {
            Operation::Delete(delete) => (&delete.indices, true),
            Operation::Compress(compress) => (&compress.indices, true),
            Operation::Restore(restore) => (&restore.indices, false),
            _ => return None,
        };
        Some(Unaffected { named: named.clone(), hides })
    }

    /// A note that lists the entries on which the operation had no effect. `None` if there are none.
    fn note(self, outcome: &Outcome) -> Option<String> {
        let before = outcome.before();
        let mut same: Vec<LogIndex> =
            self.named.into_iter().filter(|&index| before.contains(index) != self.hides).collect();
        same.sort_unstable();
        same.dedup();
        let verb = if same.len() == 1 { "was" } else { "were" };
        let state = if self.hides { "hidden" } else { "visible" };
        (!same.is_empty()).then(|| format!("{} {verb} {state} already", runs(same)))
    }
}

/// A note that says what to do if a FIT has hidden the first user message, which often describes the task.
fn first_user_message_note(
    outcome: &Outcome,
    named: &NamedConversation,
) -> Result<Option<String>, Failure> {
    if outcome.hidden().is_empty() {
        return Ok(None);
    }
    let query = Query {
        roles: Some(Role::User.into()),
        scope: Scope::All,
        pick: Pick::First(1),
        ..Query::default()
    };
    let first = named.handle.query(&query)?.into_iter().map(|entry| entry.index).next();
    Ok(first.filter(|first| outcome.hidden().contains(first)).map(|first| {
        format!("the first user message #{first} is hidden; `recto undo` and `recto pin {first}` keep it")
    }))
}

/// The change that a preview describes: its difference, and its cost in a prompt cache. `tools` are the
/// tools that the request would set; `None` if it does not change them.
pub(crate) fn preview_change(
    session: &Session,
    named: NamedConversation,
    title: String,
    preview: Preview,
    tools: Option<Vec<Tool>>,
    plan: &PlanArguments,
    context: &mut Context<'_>,
) -> Result<Change, Failure> {
    let Preview { outcome, added, descriptions, .. } = preview;
    let is_sendable =
        [outcome.before(), outcome.view()].iter().all(|view| view.tokens() <= MAX_PLANNED_TOKENS);
    let plan = match is_sendable || plan.is_given() {
        true => {
            let before = sent_at(session, &named, None)?;
            let tools = tools.unwrap_or_else(|| before.tools.clone());
            let mut entries = view_after(&outcome, &before, &added, &named)?;
            entries.retain(|entry| descriptions.binary_search(&entry.index).is_err());
            let after = before.edited(outcome.version, entries, tools);
            let counter = named.handle.settings()?.counter;
            Some(plan.compare(&before, &after, &counter, context)?)
        }
        false => None,
    };
    let added: Vec<_> = added.into_iter().map(Into::into).collect();
    let difference = Difference::of(&outcome.diff(), &named.handle, &added)?;
    Ok(Change::new(named.name, title, &outcome, Some((difference, plan))))
}

/// Maximum size, in tokens, of a view for which a dry run makes a cache plan if no option asks for one. No
/// model reads more, so no cache contains a longer view, and rendering one takes long.
const MAX_PLANNED_TOKENS: u64 = 2_000_000;

/// The entries of the view after a preview.
fn view_after(
    outcome: &Outcome,
    before: &ProviderView,
    added: &[Entry],
    named: &NamedConversation,
) -> Result<Vec<Entry>, Failure> {
    let mut known: HashMap<LogIndex, &Entry> =
        before.entries.iter().chain(added).map(|entry| (entry.index, entry)).collect();
    let view = outcome.view();
    let hidden: Vec<LogIndex> = view.iter().filter(|index| !known.contains_key(index)).collect();
    let shown = if hidden.is_empty() { Vec::new() } else { named.handle.entries(&hidden)? };
    known.extend(shown.iter().map(|entry| (entry.index, entry)));
    Ok(view.iter().filter_map(|index| known.get(&index).copied().cloned()).collect())
}

/// The result of a request, or of its preview.
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
    /// Whether the request ends with `BATCH_START`.
    #[serde(skip)]
    starts_batch: bool,
    /// Notes, which only the text output contains.
    #[serde(skip)]
    notes: Vec<String>,
}

/// How much of the view a prompt cache can still use, how much it cannot, and what that costs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CachePlan {
    /// The messages at the start of the view that the request did not change.
    reused: MessageTotals,
    /// The rest of the view, which the provider must process again.
    read_anew: MessageTotals,
    /// The cache plan for a provider. Only for a dry run.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
}

impl Change {
    fn new(
        conversation: String,
        title: String,
        outcome: &Outcome,
        preview: Option<(Difference, Option<Plan>)>,
    ) -> Change {
        let (diff, plan) = preview.unzip();
        let plan = plan.flatten();
        let (stats, prefix) = (outcome.stats(), outcome.shared_prefix());
        let cache_plan = CachePlan {
            reused: MessageTotals::new(prefix.messages, prefix.tokens),
            read_anew: MessageTotals::new(
                stats.current_batch_messages - prefix.messages,
                stats.tokens - prefix.tokens,
            ),
            plan,
        };
        let dry_run = diff.is_some();
        let outcome = outcome.clone();
        let (starts_batch, notes) = (false, Vec::new());
        Change { conversation, dry_run, outcome, diff, cache_plan, title, starts_batch, notes }
    }
}

impl CommandResult for Change {
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
            field("prefix", format!("{same} unchanged, {anew} to process again"));
        }
        if self.starts_batch {
            let batch = outcome.stats().current_batch_index;
            let before = batch.0.saturating_sub(1);
            let text = format!("{batch}; `recto batch end` returns to batch {before}");
            page.line(Line::new().styled(FAINT, format!("{:<9}", "batch")).text(text));
        }
        if let Some(plan) = plan {
            plan.show(page);
        }
        let notes = if page.has_remarks() { &*self.notes } else { &[] };
        for note in notes {
            page.line(Line::wrapping().styled(FAINT, format!("{:<9}", "note")).text(note));
        }
        let advice = advice::empty_view_advice(outcome);
        show_warnings(&outcome.warnings(), advice, page);
    }
}
