//! Environment of a command: variables, standard streams, and whether these are terminals.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal, Read, Write};

/// Looks up an environment variable.
pub type VariableLookup = dyn Fn(&str) -> Option<OsString>;

/// Environment of a command. Tests replace it to run commands in process.
pub struct Environment {
    /// The environment variables.
    pub variable: Box<VariableLookup>,
    /// Standard input.
    pub input: Box<dyn Read>,
    /// Whether standard input is a terminal.
    pub input_is_terminal: bool,
    /// Standard output.
    pub output: Box<dyn Write>,
    /// Terminal size and colours of standard output.
    pub output_info: StreamInfo,
    /// Standard error.
    pub errors: Box<dyn Write>,
    /// Terminal size and colours of standard error.
    pub errors_info: StreamInfo,
    /// Whether the command is the only one in the process and may change settings of the whole process:
    /// `chat` then hides the memory of the process from the programs that it starts, and kills them all
    /// when it ends.
    pub owns_process: bool,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({:?})", self.output_info)
    }
}

/// Terminal size and colours of an output stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamInfo {
    /// Columns and rows, if the stream is a terminal.
    pub size: Option<(usize, usize)>,
    /// Whether to use colours.
    pub colours: bool,
}

impl StreamInfo {
    /// Whether the stream is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.size.is_some()
    }

    fn of(is_terminal: bool, variable: &VariableLookup) -> StreamInfo {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
        let is_forced = variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        StreamInfo {
            size: is_terminal.then(terminal_size),
            colours: !is_set("NO_COLOR") && (is_forced || is_terminal && !is_dumb),
        }
    }
}

/// Columns and rows of the terminal: 80 × 24 if unknown, and at least 20 × 5.
fn terminal_size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    size.map_or((80, 24), |(columns, rows)| (columns.0.max(20).into(), rows.0.max(5).into()))
}

/// The variables of this process, and those that `chat` has hidden from the programs that it starts.
fn variables_of_process() -> Box<VariableLookup> {
    #[cfg(feature = "chat")]
    {
        let hidden = recto_agent::hidden_variables();
        let hidden: std::collections::HashMap<OsString, OsString> = hidden.into_iter().collect();
        Box::new(move |name| {
            let hidden = hidden.get(std::ffi::OsStr::new(name));
            hidden.cloned().or_else(|| std::env::var_os(name))
        })
    }
    #[cfg(not(feature = "chat"))]
    Box::new(|name| std::env::var_os(name))
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Environment {
        let variable = variables_of_process();
        let output_info = StreamInfo::of(io::stdout().is_terminal(), &variable);
        let errors_info = StreamInfo::of(io::stderr().is_terminal(), &variable);
        Environment {
            output_info,
            errors_info,
            variable,
            input: Box::new(io::stdin().lock()),
            input_is_terminal: io::stdin().is_terminal(),
            output: Box::new(io::BufWriter::with_capacity(1 << 16, io::stdout().lock())),
            errors: Box::new(io::stderr()),
            owns_process: true,
        }
    }

    /// The value of a variable. `None` if it is missing, empty or not UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name)?.into_string().ok().filter(|value| !value.is_empty())
    }
}
