//! What a command works with: its general options, what is around it, and how it answers.

use std::io::{Read, Write};

use crate::Surroundings;
use crate::arguments::General;
use crate::failure::Failure;
use crate::output::{Answer, Output};
use crate::page::Line;
use crate::progress::Bar;
use crate::session::{IfMissing, Search, Session};

/// What a command works with.
pub(crate) struct Desk<'a> {
    pub(crate) general: &'a General,
    pub(crate) surroundings: &'a mut Surroundings,
    pub(crate) output: &'a Output,
}

impl Desk<'_> {
    /// The store that is meant, which must be there.
    pub(crate) fn session(&self) -> Result<Session, Failure> {
        Session::open(self.general, self.surroundings)
    }

    /// The store that is meant; it is created if there is none.
    pub(crate) fn new_session(&self) -> Result<Session, Failure> {
        Session::open_or(self.general, self.surroundings, IfMissing::Create, Search::Yes)
    }

    /// The same for programs that ask for no search.
    pub(crate) fn service_session(&self) -> Result<Session, Failure> {
        Session::open_or(self.general, self.surroundings, IfMissing::Create, Search::NotInMemory)
    }

    pub(crate) fn answer(&mut self, answer: &impl Answer) -> Result<(), Failure> {
        self.output.answer(answer, self.surroundings)
    }

    /// A bar that shows how far something has come.
    pub(crate) fn bar(&self, label: impl Into<String>) -> Bar {
        let is_wanted = !self.output.is_json();
        Bar::new(label, self.surroundings.errors_screen.size.filter(|_| is_wanted))
    }

    /// What a file says; `-` is standard input.
    pub(crate) fn read(&mut self, file: &str) -> Result<String, Failure> {
        let failed = |reason: String| Failure::Input { file: file.to_owned(), reason };
        let mut bytes = Vec::new();
        let read = match file {
            "-" => self.surroundings.input.read_to_end(&mut bytes),
            path => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
        };
        read.map_err(|error| failed(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| {
            failed(format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
        })
    }

    /// Asks before something that cannot be taken back.
    pub(crate) fn confirm(&mut self, what: &str, is_confirmed: bool) -> Result<(), Failure> {
        if is_confirmed {
            return Ok(());
        }
        let can_ask = self.surroundings.input_is_terminal
            && self.surroundings.errors_screen.is_terminal()
            && !self.output.is_json();
        if !can_ask {
            return Err(Failure::NotConfirmed(what.to_owned()));
        }
        let question = Line::new().text(what).text(" cannot be taken back. Go on? [y/N] ");
        let question = question.render(None, false);
        write!(self.surroundings.errors, "{question} ")?;
        self.surroundings.errors.flush()?;
        let mut answer = [0; 64];
        let length = self.surroundings.input.read(&mut answer).unwrap_or(0);
        let answer = String::from_utf8_lossy(&answer[..length]).trim().to_lowercase();
        match matches!(&*answer, "y" | "yes") {
            true => Ok(()),
            false => Err(Failure::NotConfirmed(what.to_owned())),
        }
    }

    /// Waits for long work, which Ctrl-C ends: what is dropped half way has changed nothing.
    pub(crate) fn wait<T>(
        &self,
        session: &Session,
        work: impl Future<Output = Result<T, recto::Error>>,
    ) -> Result<T, Failure> {
        session.recto.wait(async {
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
                done = work => Ok(done?),
            }
        })
    }
}
