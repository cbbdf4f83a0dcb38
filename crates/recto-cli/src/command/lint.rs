//! `recto lint`: reports what a provider would reject in a view, and repairs the view with `--fix`.

use anstyle::Style;
use clap::Args;
use recto_format::{Finding, RenderOptions, Rule, Severity, Target};
use recto_service::{ProviderView, RenderWarning, ShownFinding};
use serde::Serialize;

use super::change::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{VersionArgument, counted};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, GOOD, Line, NOTE, Page};
use crate::provider::{Field, pairs, sent_at};
use crate::remarks::ranges;
use crate::table::Table;

/// Report what a provider would reject in the view.
///
/// An error is content that the provider would reject. A warning is content that rendering drops or
/// moves, a note is content that it writes in another form. The exit code is 1 if there are errors. --fix repairs the view
/// with one request, which can be undone.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto lint --for anthropic
  recto lint --for gemini --at now-1
  recto lint --for openai-responses --field store=false
  recto lint --for openai-chat --fix --dry-run
  recto lint --for openai-chat --fix")]
pub(crate) struct Lint {
    /// Repair the view
    #[arg(long)]
    fix: bool,

    /// Version to check: 12, or now-3 for three before the newest. Default: the newest
    #[arg(long, value_name = "VERSION", conflicts_with = "fix")]
    at: Option<VersionArgument>,

    /// Other field of the request, with its JSON value: thinking={"type":"enabled"}; can be repeated. Some
    /// rules depend on them
    #[arg(long = "field", value_name = "NAME=JSON")]
    fields: Vec<Field>,

    #[command(flatten)]
    change: ChangeArguments,
}

impl Lint {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(self.change.conversation())?;
        let sent = sent_at(&session, &named, self.at)?;
        let to = self.change.plan.provider.recipient(&sent);
        let target = to.target;
        let fields = pairs(&self.fields);
        let mut is_fixable = false;
        if self.at.is_none() {
            let entries = sent.entries.iter().map(|entry| (entry.index, &entry.message));
            let options = RenderOptions { fields: &fields, ..sent.options(to) };
            match recto_format::fix(entries, target, &options)? {
                Some(request) if self.fix => {
                    drop(session);
                    return self.change.perform_for(request, context);
                }
                fix => is_fixable = fix.is_some(),
            }
        }
        let findings = sent.lint(to, &fields);
        let has_errors = findings.iter().any(|finding| finding.rule.severity == Severity::Error);
        let conversation = named.name;
        let version = sent.version.0;
        context.print(&Findings { conversation, version, target, findings, is_fixable, sent })?;
        match has_errors {
            true => Err(Failure::Reported(1)),
            false => Ok(()),
        }
    }
}

struct Findings {
    conversation: String,
    version: u32,
    target: Target,
    findings: Vec<Finding>,
    /// Whether `--fix` would change the view. False with `--at`.
    is_fixable: bool,
    sent: ProviderView,
}

impl Serialize for Findings {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            conversation: &'a str,
            version: u32,
            #[serde(rename = "for")]
            target: &'static str,
            findings: Vec<ShownFinding>,
            #[serde(skip_serializing_if = "Option::is_none")]
            warnings: Option<[RenderWarning; 1]>,
        }
        let document = Document {
            conversation: &self.conversation,
            version: self.version,
            target: self.target.name(),
            findings: self.sent.findings(&self.findings),
            warnings: self.sent.placeholder_warning().map(|warning| [warning]),
        };
        document.serialize(serializer)
    }
}

impl CommandResult for Findings {
    fn show(&self, page: &mut Page) {
        let plain = Style::new();
        if !self.findings.is_empty() {
            let mut table =
                Table::new(&["severity", ">position", ">entry", "rule", "what is wrong"]);
            let mut rules: Vec<&Rule> = Vec::new();
            for finding in &self.findings {
                let rule = finding.rule;
                let ShownFinding { index, entry, .. } = self.sent.finding(finding);
                table.row([
                    (style(rule.severity), rule.severity.to_string()),
                    (plain, index.to_string()),
                    (FAINT, format!("#{entry}")),
                    (plain, rule.name.to_owned()),
                    (plain, finding.message.clone()),
                ]);
                if !rules.iter().any(|known| known.name == rule.name) {
                    rules.push(rule);
                }
            }
            table.show(page);
            for rule in rules {
                let line = Line::wrapping().styled(FAINT, "repair ").text(rule.name);
                page.line(line.text(": ").text(rule.repair));
            }
        }
        let count = |severity: Severity| {
            let found = self.findings.iter().filter(|finding| finding.rule.severity == severity);
            counted(found.count() as u64, severity.as_str())
        };
        let summary = format!(
            "{}, {}, {} for {} in {} at v{}",
            count(Severity::Error),
            count(Severity::Warning),
            count(Severity::Note),
            self.target,
            self.conversation,
            self.version
        );
        let placeholders = self.sent.placeholder_warning();
        let is_well = self.findings.is_empty() && placeholders.is_none();
        if let Some(RenderWarning { indices, message, .. }) = placeholders {
            let entries = ranges(indices.into_iter().map(u64::from), "#");
            page.line(Line::wrapping().styled(NOTE, entries).text(": ").text(message));
        }
        if self.is_fixable {
            let hint = format!("`recto lint --for {} --fix` repairs the view", self.target);
            page.line(Line::wrapping().styled(FAINT, hint));
        }
        page.line(Line::new().styled(if is_well { GOOD } else { FAINT }, summary));
    }
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => NOTE,
        _ => FAINT,
    }
}
