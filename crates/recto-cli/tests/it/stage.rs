//! Runs `recto` in process, with a temporary folder, its own environment variables and captured streams.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use recto_cli::{Environment, StreamInfo};
use serde_json::Value;

/// An environment for commands: a temporary folder and a store.
pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: String,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) errors: String,
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Captured {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).expect("recto prints UTF-8")
    }
}

impl Stage {
    /// An environment with a store in a file.
    pub(crate) fn new() -> Stage {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let store = format!("sqlite:{}", folder.path().join("recto.db").display());
        Stage { folder, store }
    }

    pub(crate) fn with_store(store: impl Into<String>) -> Stage {
        let folder = tempfile::tempdir().expect("a folder can be made");
        Stage { folder, store: store.into() }
    }

    /// Writes a file to the folder and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    }

    /// Runs a command with this standard input and this kind of standard output.
    pub(crate) fn perform(&self, arguments: &[&str], input: &str, screen: StreamInfo) -> Ran {
        self.perform_on(arguments, input, screen, StreamInfo::default())
    }

    /// Like [`perform`](Self::perform), with another kind of standard error.
    pub(crate) fn perform_on(
        &self,
        arguments: &[&str],
        input: &str,
        screen: StreamInfo,
        errors_screen: StreamInfo,
    ) -> Ran {
        let (out, errors) = (Captured::default(), Captured::default());
        let home = self.folder.path().display().to_string();
        let variables = HashMap::from([
            ("HOME", home.clone()),
            ("XDG_DATA_HOME", home),
            ("RECTO_STORE", self.store.clone()),
        ]);
        let mut environment = Environment {
            variable: Box::new(move |name| variables.get(name).map(OsString::from)),
            input: Box::new(Cursor::new(input.as_bytes().to_vec())),
            input_is_terminal: false,
            output: Box::new(out.clone()),
            output_info: screen,
            errors: Box::new(errors.clone()),
            errors_info: errors_screen,
            owns_process: false,
        };
        let arguments = std::iter::once("recto").chain(arguments.iter().copied());
        let code = recto_cli::run(arguments.map(OsString::from), &mut environment);
        Ran { code, out: out.text(), errors: errors.text() }
    }

    /// Runs a command whose output is a pipe.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.perform(arguments, "", StreamInfo::default())
    }

    /// The output, in a pipe, of a command that must succeed and print no errors.
    pub(crate) fn plain(&self, arguments: &[&str]) -> String {
        self.run(arguments).succeeded(arguments)
    }

    /// The output, on a terminal of 80 columns with colours, of a command that must succeed.
    pub(crate) fn terminal(&self, arguments: &[&str]) -> String {
        let screen = StreamInfo { size: Some((80, 10_000)), colours: true };
        self.perform(arguments, "", screen).succeeded(arguments)
    }

    /// The JSON document of a command that must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut with_json = arguments.to_vec();
        with_json.push("--json");
        let text = self.plain(&with_json);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// The responses of `exec` to these requests.
    pub(crate) fn exec(&self, requests: &[Value]) -> Vec<Value> {
        let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
        let ran = self.perform(&["exec"], &lines.join("\n"), StreamInfo::default());
        let out = ran.succeeded(&["exec"]);
        let answers: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        assert_eq!(answers.len(), requests.len());
        answers
    }
}

impl Ran {
    pub(crate) fn succeeded(self, arguments: &[&str]) -> String {
        assert_eq!((self.code, &*self.errors), (0, ""), "{arguments:?}: {}", self.out);
        self.out
    }
}
