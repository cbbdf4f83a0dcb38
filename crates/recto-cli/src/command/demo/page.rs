//! The scenario as text, on one screen.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use recto::{Diff, Effect, LogIndex, MessageTotals, OperationKind, Outcome, VersionInfo, View};

use super::scenario::Scenario;
use crate::failure::Failure;
use crate::printable::one_line;
use crate::role_label::RoleLabel;

const WIDTH: usize = 96;

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

pub(super) fn print(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let claim = "Recto keeps every message, decides which of them the model reads, \
                 and can undo every cut.";
    writeln!(out, "{STRONG}{claim}{STRONG:#}\n")?;
    conversation(scenario, out)?;
    writeln!(out)?;
    cut(scenario, out)?;
    writeln!(out)?;
    compression(scenario, out)?;
    trial(scenario, out)?;
    writeln!(out)?;
    blame(scenario, out)?;
    repair(scenario, out)?;
    diff(scenario, out)?;
    writeln!(out)?;
    log(scenario, out)
}

/// The first messages of the scenario.
fn conversation(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let counter = scenario.conversation.counter().name();
    let rest =
        format!("an agent's conversation: {}, counted by {counter}", size(&scenario.recorded));
    step(out, scenario, &scenario.recorded, &rest)?;
    for index in scenario.recorded.view().iter() {
        message_line(scenario, index, out)?;
    }
    Ok(())
}

fn message_line(scenario: &Scenario, index: LogIndex, out: &mut impl Write) -> Result<(), Failure> {
    let message = scenario.message(index);
    let label = RoleLabel::of(message);
    let style = label.style();
    let number = format!("#{index}");
    let tokens = scenario.conversation.log().tokens(index).unwrap_or_default();
    let text = one_line(&message.text(), WIDTH - 24);
    writeln!(out, "  {number:>4} {style}{:<9}{style:#} {tokens:>4}  {text}", label.name())?;
    Ok(())
}

/// FIT compared with a plain cut, then UNDO.
fn cut(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let Scenario { recorded, plain_cut, fitted, undone, .. } = scenario;
    let all = recorded.stats().tokens;
    let rest = format!("{all} tokens cut to the {} that the model can read", scenario.budget);
    step(out, scenario, fitted, &rest)?;
    let plain = format!("keep last {}", plain_cut.stats().current_batch_messages);
    for (name, outcome) in [(&*plain, plain_cut), ("Recto", fitted)] {
        let view = ranges(outcome.view().iter());
        let tokens = outcome.stats().tokens;
        writeln!(out, "     {name:<12} {view:<9} {tokens:>4} tokens   {}", verdict(outcome))?;
    }
    let rest = format!("all {} again: a cut hides messages and deletes nothing", size(undone));
    step(out, scenario, undone, &rest)
}

/// Says whether a provider would accept the view.
fn verdict(outcome: &Outcome) -> String {
    match outcome.warnings().first() {
        None => format!("{GOOD}every result has its call{GOOD:#}"),
        Some(warning) => {
            let torn = ranges(warning.indices.iter().copied());
            format!("{BAD}{torn} is a result without its call: the provider answers 400{BAD:#}")
        }
    }
}

fn compression(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let compressed = &scenario.compressed;
    let hidden = ranges(compressed.hidden().into_iter());
    let (before, after) = (compressed.before().tokens(), compressed.stats().tokens);
    let rest = format!("a summary replaces {hidden}: {before} → {after} tokens");
    step(out, scenario, compressed, &rest)?;
    for index in compressed.added() {
        message_line(scenario, index, out)?;
    }
    Ok(())
}

/// A temporary batch, and what the agent does in it.
fn trial(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let rest = "a temporary batch, in which the agent continues and reads only the summary";
    step(out, scenario, &scenario.opened, rest)?;
    for index in scenario.tried.added() {
        message_line(scenario, index, out)?;
    }
    Ok(())
}

/// The versions, up to the agent's mistake, that changed whether the rule is visible.
fn blame(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let rule = scenario.rule;
    heading(out, &format!("blame #{rule}"), "why did the agent not know the user's rule?")?;
    let mut blames = scenario.conversation.blame(rule)?;
    blames.retain(|blame| blame.version <= scenario.tried.version);
    for (number, blame) in blames.iter().enumerate() {
        let effect = match blame.effect {
            Effect::Added => "added",
            Effect::AddedHidden => "added, but not shown",
            Effect::Hidden => "hidden",
            Effect::Shown => "shown",
            _ => "changed",
        };
        let style = if number + 1 == blames.len() { BAD } else { Style::new() };
        let (version, operation) = (blame.version, blame.operation);
        let by = match reason(operation, &blame.reason) {
            Reason::Given(why) => format!("{operation}: {why}"),
            Reason::Generated("") => operation.to_string(),
            Reason::Generated(what) => format!("{operation} {what}"),
        };
        let by = one_line(&by, WIDTH - 20);
        writeln!(out, "     v{version} {style}{effect} by {by}{style:#}")?;
    }
    Ok(())
}

fn repair(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let Scenario { rolled_back, restored, .. } = scenario;
    let gone = ranges(rolled_back.hidden().into_iter());
    let batch = rolled_back.affected_batch();
    let rest = format!("to batch {batch}: {gone} are out of the view, and still in the log");
    step(out, scenario, rolled_back, &rest)?;
    let shown = ranges(restored.shown().into_iter());
    let view = ranges(restored.view().iter());
    step(out, scenario, restored, &format!("{shown} is back: the model reads {view}"))
}

fn diff(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    let (from, to) = (scenario.recorded.version, scenario.restored.version);
    let Diff { kept, hidden, shown, .. } = scenario.conversation.diff(from, to)?;
    let (before, after) = (scenario.recorded.stats().tokens, scenario.restored.stats().tokens);
    let rest = format!("{before} → {after} tokens; {} are in both", totals(kept));
    heading(out, &format!("diff v{from} v{to}"), &rest)?;
    for (style, sign, entries) in [(BAD, "- hidden", hidden), (GOOD, "+ shown", shown)] {
        let size = MessageTotals::new(entries.indices.len(), entries.tokens);
        let indices = ranges(entries.indices.into_iter());
        writeln!(out, "     {style}{sign:<9} {indices:<6} {}{style:#}", totals(size))?;
    }
    Ok(())
}

/// The versions, newest first, and what the model read at each.
fn log(scenario: &Scenario, out: &mut impl Write) -> Result<(), Failure> {
    heading(out, "log", "a letter per message that the model read, a dot per hidden one")?;
    // Version 0 is empty.
    for version in scenario.conversation.versions().rev().filter(|made| made.version.0 > 0) {
        version_line(scenario, &version, out)?;
    }
    Ok(())
}

fn version_line(
    scenario: &Scenario,
    version: &VersionInfo,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let then = scenario.conversation.at(version.version)?;
    let strip = strip(scenario, then.log().len(), then.view());
    let VersionInfo { version, operation, tokens, reason: given, .. } = version;
    let (Reason::Given(why) | Reason::Generated(why)) = reason(*operation, given);
    let why = one_line(why, WIDTH - 45);
    let line = format!("v{version} {operation:<11} {tokens:>4} tokens  {strip}  {why}");
    writeln!(out, "{}", line.trim_end())?;
    Ok(())
}

/// The reason that a request gave for an operation, or the generated description if it gave none.
enum Reason<'a> {
    Given(&'a str),
    /// The description without the name of the operation, which is printed before it.
    Generated(&'a str),
}

fn reason(operation: OperationKind, description: &str) -> Reason<'_> {
    match description.strip_prefix(operation.as_str()) {
        Some(what) => Reason::Generated(what.trim_start()),
        None => Reason::Given(description),
    }
}

/// One character for each entry of the final log: a letter if it is visible, a dot if it is hidden, and a
/// space if it was not added yet, which is the case for all but the first `logged` entries.
fn strip(scenario: &Scenario, logged: usize, view: &View) -> String {
    let mut strip = String::new();
    for index in scenario.conversation.log().as_view().iter() {
        let letter = if index.as_usize() >= logged {
            " ".to_owned()
        } else if view.contains(index) {
            let label = RoleLabel::of(scenario.message(index));
            let style = label.style();
            format!("{style}{}{style:#}", label.letter())
        } else {
            format!("{FAINT}·{FAINT:#}")
        };
        strip.push_str(&letter);
    }
    strip
}

/// The first line of a step: its version, its operation and its effect.
fn step(
    out: &mut impl Write,
    scenario: &Scenario,
    outcome: &Outcome,
    rest: &str,
) -> Result<(), Failure> {
    let VersionInfo { version, operation, .. } =
        scenario.conversation.version_info(outcome.version)?;
    heading(out, &format!("v{version} {operation}"), rest)
}

fn heading(out: &mut impl Write, word: &str, rest: &str) -> Result<(), Failure> {
    writeln!(out, "{STRONG}{word:<14}{STRONG:#} {rest}")?;
    Ok(())
}

fn size(outcome: &Outcome) -> String {
    let stats = outcome.stats();
    totals(MessageTotals::new(stats.current_batch_messages, stats.tokens))
}

fn totals(MessageTotals { messages, tokens, .. }: MessageTotals) -> String {
    let noun = if messages == 1 { "message" } else { "messages" };
    format!("{messages} {noun} ({tokens} tokens)")
}

/// Formats log indices as ranges: `#0 #6-#10`.
fn ranges(indices: impl Iterator<Item = LogIndex>) -> String {
    let mut runs: Vec<(LogIndex, LogIndex)> = Vec::new();
    for index in indices {
        match runs.last_mut() {
            Some((_, end)) if end.0 + 1 == index.0 => *end = index,
            _ => runs.push((index, index)),
        }
    }
    let written = runs.iter().map(|(start, end)| {
        if start == end { format!("#{start}") } else { format!("#{start}-#{end}") }
    });
    written.collect::<Vec<_>>().join(" ")
}
