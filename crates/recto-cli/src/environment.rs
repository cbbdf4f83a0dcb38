//! What a command finds around it: variables, streams, and whether these are a terminal.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal, Read, Write};

/// Looks a variable up.
pub type Variables = dyn Fn(&str) -> Option<OsString>;

/// What a command finds around it.
pub struct Surroundings {
    /// The variables of the environment.
    pub variable: Box<Variables>,
    /// Standard input.
    pub input: Box<dyn Read>,
    /// Whether somebody types it.
    pub input_is_terminal: bool,
    /// Standard output.
    pub output: Box<dyn Write>,
    /// What standard output is shown on.
    pub screen: Screen,
    /// Standard error.
    pub errors: Box<dyn Write>,
    /// What standard error is shown on.
    pub errors_screen: Screen,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Surroundings({:?})", self.screen)
    }
}

/// What a stream is shown on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Columns and rows, if it is a terminal.
    pub size: Option<(usize, usize)>,
    /// Whether colours are wanted on it.
    pub colours: bool,
}

impl Screen {
    /// Whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.size.is_some()
    }

    fn of(is_terminal: bool, variable: &Variables) -> Screen {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
        let is_forced = variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        Screen {
            size: is_terminal.then(size),
            colours: !is_set("NO_COLOR") && (is_forced || is_terminal && !is_dumb),
        }
    }
}

/// How large the terminal is.
fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    size.map_or((80, 24), |(columns, rows)| (columns.0.max(20).into(), rows.0.max(5).into()))
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Surroundings {
        let variable: Box<Variables> = Box::new(|name| std::env::var_os(name));
        let screen = Screen::of(io::stdout().is_terminal(), &variable);
        let errors_screen = Screen::of(io::stderr().is_terminal(), &variable);
        Surroundings {
            screen,
            errors_screen,
            variable,
            input: Box::new(io::stdin().lock()),
            input_is_terminal: io::stdin().is_terminal(),
            output: Box::new(io::BufWriter::with_capacity(1 << 16, io::stdout().lock())),
            errors: Box::new(io::stderr()),
        }
    }

    /// A variable, unless it is missing or empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name)?.into_string().ok().filter(|value| !value.is_empty())
    }
}
