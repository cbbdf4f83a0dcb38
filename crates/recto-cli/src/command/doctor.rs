//! `recto doctor`: what is wrong, and what to do about it.

use clap::Args;
use serde::Serialize;

use crate::advice;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{bytes, counted, runs};
use crate::output::Answer;
use crate::page::{BAD, FAINT, GOOD, Line, NOTE, Page, STRONG};
use crate::place::{Place, data_folder};
use crate::session::Session;

/// Look at the store, the settings and the surroundings: what is wrong, and what to do.
///
/// `recto verify` looks more closely: at every version.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto doctor
  recto doctor --store sqlite:talks.db --json")]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let mut findings = vec![Finding::good(
            "program",
            format!(
                "recto {} on {} {}",
                env!("CARGO_PKG_VERSION"),
                std::env::consts::OS,
                std::env::consts::ARCH
            ),
        )];
        let place = Place::find(desk.general, desk.surroundings);
        match place {
            Err(failure) => findings.push(Finding::bad(
                "store",
                failure.to_string(),
                "say --store sqlite:PATH, or set RECTO_STORE",
            )),
            Ok(place) => {
                let source = place.source.name();
                findings.push(Finding::good("store", format!("{} ({source})", place.shown())));
                match desk.session() {
                    Err(Failure::NoStore { .. }) => findings.push(Finding::note(
                        "store",
                        "it is not there yet".to_owned(),
                        "`recto new NAME` or `recto import FILE` creates it",
                    )),
                    Err(failure) => findings.push(Finding::bad(
                        "store",
                        failure.to_string(),
                        "look at the path, its permissions, the disk or the server",
                    )),
                    Ok(session) => examine(&session, desk, &mut findings)?,
                }
            }
        }
        surroundings(desk, &mut findings);
        let is_well = findings.iter().all(|finding| finding.state != State::Bad);
        desk.answer(&Diagnosis { well: is_well, findings })?;
        match is_well {
            true => Ok(()),
            false if desk.output.is_json() => Err(Failure::Told(3)),
            false => Err(Failure::Unsound("not all is well; see above".to_owned())),
        }
    }
}

fn examine(session: &Session, desk: &Desk<'_>, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    const ADVICE: &str =
        "keep the file, and restore a backup into a new store: `recto restore-backup`";
    let store = session.recto.inner().store();
    if let Ok(Some(size)) = session.recto.wait(store.size()) {
        findings.push(Finding::good("size", bytes(size)));
    }
    let damage = match desk.wait(session, async { Ok(store.check().await?) }) {
        Ok(damage) => damage,
        Err(Failure::Interrupted) => return Err(Failure::Interrupted),
        Err(failure) => vec![failure.to_string()],
    };
    match damage.is_empty() {
        true => findings.push(Finding::good("rows", "every row is what was written".to_owned())),
        false => {
            let faults = damage.into_iter().map(|fault| Finding::bad("rows", fault, ADVICE));
            findings.extend(faults);
        }
    }
    match store.keeps_words() {
        true => findings.push(Finding::good("search", "it has an index".to_owned())),
        false => findings.push(Finding::note(
            "search",
            "it was created without an index".to_owned(),
            "to have one, back it up and restore it into a new store",
        )),
    }
    let all = match session.recto.list(None, usize::MAX) {
        Ok(all) => all,
        Err(error) => {
            findings.push(Finding::bad("holds", error.to_string(), ADVICE));
            return Ok(());
        }
    };
    let messages: u64 = all.iter().map(|info| u64::from(info.messages)).sum();
    let count = counted(all.len() as u64, "conversation");
    findings.push(Finding::good("holds", format!("{count}, {}", counted(messages, "message"))));
    for info in &all {
        if info.name.contains(recto::Import::UNFINISHED) {
            findings.push(Finding::note(
                "conversation",
                format!("{}: its import goes on, or was never finished", info.name),
                "if nobody is importing it, `recto remove` it and import it again",
            ));
        }
        let warnings = session.recto.conversation(&info.name).and_then(|talk| talk.warnings());
        match warnings {
            Err(error) => findings.push(Finding::bad(
                "conversation",
                format!("{}: {error}", info.name),
                "`recto verify` says more; restore it from a backup",
            )),
            Ok(warnings) => findings.extend(warnings.into_iter().map(|warning| {
                let indices = runs(warning.indices);
                let (torn, advice) = advice::of_warning(warning.code);
                Finding::note("conversation", format!("{}: {indices} {torn}", info.name), advice)
            })),
        }
    }
    Ok(())
}

/// Variables that change what is printed.
fn surroundings(desk: &Desk<'_>, findings: &mut Vec<Finding>) {
    if let Ok(folder) = data_folder(desk.surroundings) {
        findings.push(Finding::good("data folder", folder.display().to_string()));
    }
    for name in ["NO_COLOR", "RECTO_PAGER", "PAGER"] {
        if let Some(value) = desk.surroundings.text(name) {
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

impl Answer for Diagnosis {
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
