//! Context of a command: global options, environment and output.

use std::io::{Read, Write};

use recto_service::Perform;

use crate::Environment;
use crate::advice;
use crate::arguments::General;
use crate::failure::Failure;
use crate::output::{CommandResult, Output};
use crate::page::Line;
use crate::progress::Bar;
use crate::session::{IfMissing, Search, Session};

/// Context of a command: global options, environment and output.
pub(crate) struct Context<'a> {
    pub(crate) general: &'a General,
    pub(crate) environment: &'a mut Environment,
    pub(crate) output: &'a Output,
}

impl Context<'_> {
    /// Opens the selected store. Fails if it does not exist.
    pub(crate) fn session(&self) -> Result<Session, Failure> {
        Session::open(self.general, self.environment)
    }

    /// Opens the selected store, and creates it if it does not exist.
    pub(crate) fn new_session(&self) -> Result<Session, Failure> {
        Session::open_or(self.general, self.environment, IfMissing::Create, Search::Yes)
    }

    /// Like [`new_session`](Self::new_session), but a store in memory gets no search index: `exec`
    /// searches without one, and building it would slow down every append.
    pub(crate) fn service_session(&self) -> Result<Session, Failure> {
        Session::open_or(self.general, self.environment, IfMissing::Create, Search::NotInMemory)
    }

    /// Adds the name of the conversation to an error about its versions: the one that was used last.
    pub(crate) fn naming_conversation(&self, failure: Failure) -> Failure {
        if failure.code() != "version_not_found" {
            return failure;
        }
        match self.session().and_then(|session| session.name_of("@")) {
            Ok(name) => advice::of_version(failure, &name),
            Err(_) => failure,
        }
    }

    /// Prints the result of the command.
    pub(crate) fn print(&mut self, result: &impl CommandResult) -> Result<(), Failure> {
        self.output.print(result, self.environment)
    }

    /// A progress bar on standard error.
    pub(crate) fn bar(&self, label: impl Into<String>) -> Bar {
        let is_wanted = !self.output.is_json();
        Bar::new(label, self.environment.errors_info.size.filter(|_| is_wanted))
    }

    /// Reads a file as UTF-8; `-` is standard input.
    pub(crate) fn read(&mut self, file: &str) -> Result<String, Failure> {
        let failed = |reason: String| Failure::Input { file: file.to_owned(), reason };
        let mut bytes = Vec::new();
        let read = match file {
            "-" => self.environment.input.read_to_end(&mut bytes),
            path => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
        };
        read.map_err(|error| failed(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| {
            failed(format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
        })
    }

    /// Asks for confirmation before a change that cannot be undone.
    pub(crate) fn confirm(&mut self, what: &str, is_confirmed: bool) -> Result<(), Failure> {
        if is_confirmed {
            return Ok(());
        }
        let can_ask = self.environment.input_is_terminal
            && self.environment.errors_info.is_terminal()
            && !self.output.is_json();
        if !can_ask {
            return Err(Failure::NotConfirmed(what.to_owned()));
        }
        let question = Line::new().text(what).text(" cannot be undone. Continue? [y/N] ");
        let question = question.render(None, false);
        write!(self.environment.errors, "{question} ")?;
        self.environment.errors.flush()?;
        let mut answer = [0; 64];
        let length = self.environment.input.read(&mut answer).unwrap_or(0);
        let answer = String::from_utf8_lossy(&answer[..length]).trim().to_lowercase();
        match matches!(&*answer, "y" | "yes") {
            true => Ok(()),
            false => Err(Failure::NotConfirmed(what.to_owned())),
        }
    }

    /// Runs a future that Ctrl-C cancels. The store's operations are atomic, so a cancelled one has
    /// changed nothing.
    pub(crate) fn wait<T, E: Into<Failure>>(
        &self,
        session: &Session,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure> {
        session.recto.wait(async {
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
                done = work => done.map_err(Into::into),
            }
        })
    }

    /// Performs a request of `recto-service` that Ctrl-C cancels.
    pub(crate) fn run<R: Perform>(
        &self,
        session: &Session,
        request: R,
    ) -> Result<R::Response, Failure> {
        self.wait(session, session.service().run(request))
    }
}
