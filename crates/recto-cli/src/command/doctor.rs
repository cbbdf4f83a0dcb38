//! `recto doctor`: checks the store and the environment.

use clap::Args;
use serde::Serialize;

use crate::advice;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{bytes, counted, runs};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, GOOD, Line, NOTE, Page, STRONG};
use crate::session::Session;
use crate::store_location::{StoreLocation, data_folder};

/// Check the store and the environment for problems.
///
/// `recto verify` checks more: it replays every version.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto doctor
  recto doctor --store sqlite:chats.db --json")]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let mut findings = vec![Finding::good(
            "program",
            format!(
                "recto {} on {} {}",
                env!("CARGO_PKG_VERSION"),
                std::env::consts::OS,
                std::env::consts::ARCH
            ),
        )];
        let location = StoreLocation::find(context.general, context.environment);
        match location {
            Err(failure) => findings.push(Finding::bad(
                "store",
                failure.to_string(),
                "use --store sqlite:PATH, or set RECTO_STORE",
            )),
            Ok(location) => {
                let source = location.source.name();
                findings.push(Finding::good("store", format!("{} ({source})", location.shown())));
                match context.session() {
                    Err(Failure::NoStore { .. }) => findings.push(Finding::note(
                        "store",
                        "it does not exist yet".to_owned(),
                        "`recto new NAME` or `recto import FILE` creates it",
                    )),
                    Err(failure) => findings.push(Finding::bad(
                        "store",
                        failure.to_string(),
                        "check the path, its permissions, the disk or the server",
                    )),
                    Ok(session) => examine(&session, context, &mut findings)?,
                }
            }
        }
        check_environment(context, &mut findings);
        let is_well = findings.iter().all(|finding| finding.state != State::Bad);
        context.print(&Diagnosis { well: is_well, findings })?;
        match is_well {
            true => Ok(()),
            false if context.output.is_json() => Err(Failure::Reported(3)),
            false => Err(Failure::Unsound("there are problems; see above".to_owned())),
        }
    }
}

fn examine(
    session: &Session,
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    const ADVICE: &str =
        "keep the file, and restore a backup into a new store: `recto restore-backup`";
    let store = session.recto.store();
    match session.recto.wait(store.size()) {
        Ok(Some(size)) => findings.push(Finding::good("size", bytes(size))),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "the size of the store cannot be read"),
    }
    let damage = match context.wait(session, session.recto.inner().check()) {
        Ok(damage) => damage,
        Err(Failure::Recto(error)) => {
            findings.push(unreadable("rows", error.to_string(), &error, ADVICE));
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    let (index, rows): (Vec<_>, Vec<_>) =
        damage.into_iter().partition(|fault| fault.contains("search index"));
    if rows.is_empty() {
        findings.push(Finding::good("rows", "no row is damaged".to_owned()));
    }
    findings.extend(rows.into_iter().map(|fault| Finding::bad("rows", fault, ADVICE)));
    let index_is_sound = index.is_empty();
    findings.extend(
        index
            .into_iter()
            .map(|fault| Finding::bad("search", fault, "build the index again with `recto clean`")),
    );
    match store.keeps_words() {
        true if !index_is_sound => {}
        true => findings.push(Finding::good("search", "it has an index".to_owned())),
        false => findings.push(Finding::note(
            "search",
            "it was created without an index".to_owned(),
            "to get one, back it up and restore it into a new store",
        )),
    }
    let all = match context.wait(session, session.recto.inner().examine()) {
        Ok(all) => all,
        Err(Failure::Recto(error)) => {
            findings.push(unreadable("holds", error.to_string(), &error, ADVICE));
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    let messages: u64 = all.iter().map(|found| u64::from(found.info.messages)).sum();
    let count = counted(all.len() as u64, "conversation");
    findings.push(Finding::good("holds", format!("{count}, {}", counted(messages, "message"))));
    for found in all {
        let name = found.info.name;
        if name.contains(recto::Import::UNFINISHED) {
            findings.push(Finding::note(
                "conversation",
                format!("{name}: its import is running, or was interrupted"),
                "if no import is running, remove it with `recto remove` and import it again",
            ));
        }
        match found.warnings {
            Err(error) => findings.push(unreadable(
                "conversation",
                format!("{name}: {error}"),
                &error,
                "`recto verify` lists the damage; restore it from a backup, or copy what can be read with \
                 `recto salvage`",
            )),
            Ok(warnings) => findings.extend(warnings.into_iter().map(|warning| {
                let indices = runs(warning.indices);
                let (torn, advice) = advice::warning_text(warning.code);
                Finding::note("conversation", format!("{name}: {indices} {torn}"), advice)
            })),
        }
    }
    Ok(())
}

/// The finding about data that cannot be read. If the error reports damage, the finding has `advice`; a store
/// that is locked or cannot be reached is not damaged.
fn unreadable(
    about: &'static str,
    found: String,
    error: &recto::Error,
    advice: &'static str,
) -> Finding {
    match error.reports_damage() {
        true => Finding::bad(about, found, advice),
        false => Finding::bad(about, found, "try again when the store is free and can be reached"),
    }
}

/// Lists the data folder and the variables that change the output.
fn check_environment(context: &Context<'_>, findings: &mut Vec<Finding>) {
    if let Ok(folder) = data_folder(context.environment) {
        findings.push(Finding::good("data folder", folder.display().to_string()));
    }
    for name in ["NO_COLOR", "RECTO_PAGER", "PAGER"] {
        if let Some(value) = context.environment.text(name) {
            findings.push(Finding::good("variable", format!("{name}={value}")));
        }
    }
}

#[derive(Serialize)]
struct Diagnosis {
    well: bool,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    state: State,
    about: &'static str,
    found: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    advice: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    Good,
    Note,
    Bad,
}

impl Finding {
    fn good(about: &'static str, found: String) -> Finding {
        Finding { state: State::Good, about, found, advice: "" }
    }

    fn note(about: &'static str, found: String, advice: &'static str) -> Finding {
        Finding { state: State::Note, about, found, advice }
    }

    fn bad(about: &'static str, found: String, advice: &'static str) -> Finding {
        Finding { state: State::Bad, about, found, advice }
    }
}

impl CommandResult for Diagnosis {
    fn show(&self, page: &mut Page) {
        for Finding { state, about, found, advice } in &self.findings {
            let (sign, style) = match state {
                State::Good => ("✓", GOOD),
                State::Note => ("!", NOTE),
                State::Bad => ("✗", BAD),
            };
            let line = Line::wrapping().styled(style, sign).styled(FAINT, format!(" {about:<13}"));
            page.line(line.text(found));
            if !advice.is_empty() {
                page.line(Line::wrapping().text("                ").styled(STRONG, *advice));
            }
        }
    }
}
