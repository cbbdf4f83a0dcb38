//! The story on one screen, for people.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use recto::{Diff, Effect, LogIndex, OperationKind, Outcome, Portion, VersionInfo, View};

use super::story::Story;
use crate::failure::Failure;
use crate::printable::one_line;
use crate::speaker::Speaker;

const WIDTH: usize = 96;

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

pub(super) fn print(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    let claim = "Recto keeps every message, decides which of them the model reads, \
                 and can take every cut back.";
    writeln!(out, "{STRONG}{claim}{STRONG:#}\n")?;
    conversation(story, out)?;
    writeln!(out)?;
    cut(story, out)?;
    writeln!(out)?;
    compression(story, out)?;
    trial(story, out)?;
    writeln!(out)?;
    blame(story, out)?;
    repair(story, out)?;
    diff(story, out)?;
    writeln!(out)?;
    log(story, out)
}

/// The messages that the story starts with.
fn conversation(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    let counter = story.conversation.counter().name();
    let rest = format!("an agent's conversation: {}, counted by {counter}", size(&story.told));
    step(out, story, &story.told, &rest)?;
    for index in story.told.view().iter() {
        message_line(story, index, out)?;
    }
    Ok(())
}

fn message_line(story: &Story, index: LogIndex, out: &mut impl Write) -> Result<(), Failure> {
    let message = story.message(index);
    let speaker = Speaker::of(message);
    let style = speaker.style();
    let number = format!("#{index}");
    let tokens = story.conversation.log().tokens(index).unwrap_or_default();
    let text = one_line(&message.text(), WIDTH - 24);
    writeln!(out, "  {number:>4} {style}{:<9}{style:#} {tokens:>4}  {text}", speaker.name())?;
    Ok(())
}

/// FIT beside a plain cut, and UNDO.
fn cut(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    let Story { told, plain_cut, fitted, undone, .. } = story;
    let all = told.stats().tokens;
    let rest = format!("{all} tokens into the {} that the model can read", story.budget);
    step(out, story, fitted, &rest)?;
    let plain = format!("keep last {}", plain_cut.stats().current_batch_messages);
    for (name, outcome) in [(&*plain, plain_cut), ("Recto", fitted)] {
        let view = ranges(outcome.view().iter());
        let tokens = outcome.stats().tokens;
        writeln!(out, "     {name:<12} {view:<9} {tokens:>4} tokens   {}", verdict(outcome))?;
    }
    let rest = format!("all {} again: a cut hides, it deletes nothing", size(undone));
    step(out, story, undone, &rest)
}

/// What a provider would say to the view.
fn verdict(outcome: &Outcome) -> String {
    match outcome.warnings().first() {
        None => format!("{GOOD}every result has its call{GOOD:#}"),
        Some(warning) => {
            let torn = ranges(warning.indices.iter().copied());
            format!("{BAD}{torn} is a result without its call: the provider answers 400{BAD:#}")
        }
    }
}

fn compression(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    let compressed = &story.compressed;
    let hidden = ranges(compressed.hidden().into_iter());
    let (before, after) = (compressed.before().tokens(), compressed.stats().tokens);
    let rest = format!("a summary in the place of {hidden}: {before} → {after} tokens");
    step(out, story, compressed, &rest)?;
    for index in compressed.added() {
        message_line(story, index, out)?;
    }
    Ok(())
}

/// A temporary batch, and what the agent does in it.
fn trial(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    let rest = "a batch can be thrown away; in it the agent goes on, and knows only the summary";
    step(out, story, &story.opened, rest)?;
    for index in story.tried.added() {
        message_line(story, index, out)?;
    }
    Ok(())
}

/// Why the model did not see the rule.
fn blame(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    let rule = story.rule;
    heading(out, &format!("blame #{rule}"), "why did the agent not know the user's rule?")?;
    let mut blames = story.conversation.blame(rule)?;
    blames.retain(|blame| blame.version <= story.tried.version);
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
        let by = match reason(operation, &blame.description) {
            Reason::Given(why) => format!("{operation}: {why}"),
            Reason::MadeUp("") => operation.to_string(),
            Reason::MadeUp(what) => format!("{operation} {what}"),
        };
        let by = one_line(&by, WIDTH - 20);
        writeln!(out, "     v{version} {style}{effect} by {by}{style:#}")?;
    }
    Ok(())
}

fn repair(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    let Story { rolled_back, restored, .. } = story;
    let gone = ranges(rolled_back.hidden().into_iter());
    let batch = rolled_back.affected_batch();
    let rest = format!("to batch {batch}: {gone} are out of the view, and still in the log");
    step(out, story, rolled_back, &rest)?;
    let shown = ranges(restored.shown().into_iter());
    let view = ranges(restored.view().iter());
    step(out, story, restored, &format!("{shown} is back: the model reads {view}"))
}

fn diff(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    let (from, to) = (story.told.version, story.restored.version);
    let Diff { kept, hidden, shown, .. } = story.conversation.diff(from, to)?;
    let (before, after) = (story.told.stats().tokens, story.restored.stats().tokens);
    let rest = format!("{before} → {after} tokens; {} are in both", portion(kept));
    heading(out, &format!("diff v{from} v{to}"), &rest)?;
    for (style, sign, entries) in [(BAD, "- hidden", hidden), (GOOD, "+ shown", shown)] {
        let size = Portion { messages: entries.indices.len(), tokens: entries.tokens };
        let indices = ranges(entries.indices.into_iter());
        writeln!(out, "     {style}{sign:<9} {indices:<6} {}{style:#}", portion(size))?;
    }
    Ok(())
}

/// The versions, newest first, and what the model read at each.
fn log(story: &Story, out: &mut impl Write) -> Result<(), Failure> {
    heading(
        out,
        "log",
        "a letter for each message that the model read, a dot for each hidden one",
    )?;
    // Version 0 is empty: not worth a line here.
    for version in story.conversation.versions().rev().filter(|made| made.version.0 > 0) {
        version_line(story, &version, out)?;
    }
    Ok(())
}

fn version_line(story: &Story, version: &VersionInfo, out: &mut impl Write) -> Result<(), Failure> {
    let then = story.conversation.at(version.version)?;
    let strip = strip(story, then.log().len(), then.view());
    let VersionInfo { version, operation, tokens, description, .. } = version;
    let (Reason::Given(why) | Reason::MadeUp(why)) = reason(*operation, description);
    let why = one_line(why, WIDTH - 45);
    let line = format!("v{version} {operation:<11} {tokens:>4} tokens  {strip}  {why}");
    writeln!(out, "{}", line.trim_end())?;
    Ok(())
}

/// Why an operation was asked for, or, where nobody said so, what it did.
enum Reason<'a> {
    Given(&'a str),
    /// Without the name of the operation, which stands beside it already.
    MadeUp(&'a str),
}

fn reason(operation: OperationKind, description: &str) -> Reason<'_> {
    match description.strip_prefix(operation.as_str()) {
        Some(what) => Reason::MadeUp(what.trim_start()),
        None => Reason::Given(description),
    }
}

/// A letter for each entry of the log that the model reads, a dot for each that it does not.
fn strip(story: &Story, logged: usize, view: &View) -> String {
    let mut strip = String::new();
    for index in story.conversation.log().as_view().iter() {
        let letter = if index.as_usize() >= logged {
            " ".to_owned()
        } else if view.contains(index) {
            let speaker = Speaker::of(story.message(index));
            let style = speaker.style();
            format!("{style}{}{style:#}", speaker.letter())
        } else {
            format!("{FAINT}·{FAINT:#}")
        };
        strip.push_str(&letter);
    }
    strip
}

/// The first line of a step: its version, its operation and what it means.
fn step(out: &mut impl Write, story: &Story, outcome: &Outcome, rest: &str) -> Result<(), Failure> {
    let VersionInfo { version, operation, .. } =
        story.conversation.version_info(outcome.version)?;
    heading(out, &format!("v{version} {operation}"), rest)
}

fn heading(out: &mut impl Write, word: &str, rest: &str) -> Result<(), Failure> {
    writeln!(out, "{STRONG}{word:<14}{STRONG:#} {rest}")?;
    Ok(())
}

fn size(outcome: &Outcome) -> String {
    let stats = outcome.stats();
    portion(Portion { messages: stats.current_batch_messages, tokens: stats.tokens })
}

fn portion(Portion { messages, tokens }: Portion) -> String {
    let noun = if messages == 1 { "message" } else { "messages" };
    format!("{messages} {noun} ({tokens} tokens)")
}

/// Runs of log indices: `#0 #6-#10`.
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
