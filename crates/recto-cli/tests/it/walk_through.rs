//! The `console` blocks of the README and of the pages in `docs/`: every command is executed, and its
//! output is compared with what the page shows.
//!
//! | in a block | meaning |
//! |---|---|
//! | `$ COMMAND` | a command of the shell |
//! | `> LINE` | the next line of the same command |
//! | other lines | the output; without any, the output is not compared |
//! | `…` | any text; a line that is only `…` stands for one or more lines |
//!
//! Each `##` section starts with an empty store and an empty folder, in which `examples` is the
//! repository's. The blocks above the first section are executed before each section.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::Stage;

/// A command of a page, and the output that the page shows.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    command: String,
    prints: String,
}

/// The commands of a section of a page.
#[derive(Debug, Default)]
struct Section {
    title: String,
    commands: Vec<Shown>,
}

/// The sections of a page. The first one is the text above the first `##` heading.
fn sections(page: &str) -> Vec<Section> {
    let mut all = vec![Section::default()];
    let mut block = None;
    for line in page.lines() {
        let section = all.last_mut().expect("there is always a section");
        match (block, line) {
            (None, _) if line.starts_with("```") => block = Some(line == "```console"),
            (None, _) => {
                if let Some(title) = line.strip_prefix("## ") {
                    all.push(Section { title: title.to_owned(), commands: Vec::new() });
                }
            }
            (Some(_), "```") => block = None,
            (Some(false), _) => {}
            (Some(true), _) => {
                if let Some(command) = line.strip_prefix("$ ") {
                    let command = command.to_owned();
                    section.commands.push(Shown { command, prints: String::new() });
                    continue;
                }
                let last = section.commands.last_mut().expect("a block begins with a command");
                match line.strip_prefix("> ") {
                    Some(more) if last.prints.is_empty() => {
                        last.command.push_str(&format!("\n{more}"));
                    }
                    _ => last.prints.push_str(&format!("{line}\n")),
                }
            }
        }
    }
    all
}

/// How an output is compared with a page.
#[derive(Clone, Copy, Debug)]
enum Comparison {
    /// Byte for byte.
    Exact,
    /// Word by word: the width of columns does not matter, and `…` stands for any text.
    Words,
}

impl Comparison {
    fn accepts(self, printed: &str, shown: &str) -> bool {
        match self {
            Comparison::Exact => printed == shown,
            Comparison::Words => {
                shown.is_empty()
                    || is_like(&words(printed), &words(shown).split('…').collect::<Vec<_>>())
            }
        }
    }
}

/// The words of each line, separated by single spaces.
fn words(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a text consists of these pieces, with any text between two of them.
fn is_like(text: &str, pieces: &[&str]) -> bool {
    let [first, middle @ .., last] = pieces else { return pieces == [text] };
    let Some(mut rest) = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder in which `cargo xtask test` installs programs.
fn tools() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    home.expect("cargo has a home directory").join("recto-tools")
}

/// The folders of the programs that pages use.
fn path() -> std::ffi::OsString {
    let recto = Path::new(env!("CARGO_BIN_EXE_recto")).parent().expect("it is in a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [recto.to_owned(), tools().join("bin")];
    std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path)))
        .expect("no folder has a colon in its name")
}

/// A page whose commands are executed.
#[cfg(unix)]
struct Page<'a> {
    text: &'a str,
    comparison: Comparison,
    /// Variables of the commands, in addition to `PATH`, `HOME` and `RECTO_STORE`.
    variables: Vec<(&'static str, String)>,
    /// Files in the folder of each section.
    files: Vec<(&'static str, String)>,
    /// Links in the folder of each section, with their targets.
    links: Vec<(&'static str, PathBuf)>,
}

#[cfg(unix)]
impl<'a> Page<'a> {
    fn new(text: &'a str) -> Page<'a> {
        Page {
            text,
            comparison: Comparison::Words,
            variables: Vec::new(),
            files: Vec::new(),
            links: vec![("examples", root().join("examples"))],
        }
    }

    /// Executes the commands. Returns the number of sections that have some.
    fn run(&self) -> usize {
        let sections = sections(self.text);
        let (start, rest) = sections.split_first().expect("a page has a first section");
        let with_commands = |section: &&Section| !section.commands.is_empty();
        let rest: Vec<&Section> = rest.iter().filter(with_commands).collect();
        if rest.is_empty() {
            self.run_commands(&start.title, &start.commands);
        }
        for section in &rest {
            self.run_commands(&section.title, &[&start.commands[..], &section.commands].concat());
        }
        rest.len()
    }

    fn run_commands(&self, title: &str, commands: &[Shown]) {
        let stage = Stage::new();
        let folder = stage.folder.path();
        for (name, target) in &self.links {
            std::os::unix::fs::symlink(target, folder.join(name)).expect("a link can be made");
        }
        for (name, text) in &self.files {
            stage.file(name, text);
        }
        for Shown { command, prints } in commands {
            let output = Command::new("sh")
                .args(["-c", &format!("{{ {command}\n}} 2>&1")])
                .current_dir(folder)
                .env_clear()
                .envs(self.variables.iter().map(|(name, value)| (name, value)))
                .env("PATH", path())
                .env("RECTO_STORE", &stage.store)
                .env("HOME", folder)
                .output()
                .expect("there is a shell");
            let printed = String::from_utf8(output.stdout).expect("recto prints UTF-8");
            let place = format!("{title}\n$ {command}\n{printed}");
            assert!(self.comparison.accepts(&printed, prints), "{place}--- the page has\n{prints}");
            let is_checked = matches!(self.comparison, Comparison::Words);
            assert!(output.status.success() || !is_checked, "{place}--- failed");
        }
    }
}

#[cfg(unix)]
#[test]
fn the_walk_through_of_the_readme_is_exact() {
    let page =
        Page { comparison: Comparison::Exact, ..Page::new(include_str!("../../../../README.md")) };
    let all = sections(page.text);
    for part in ["import", "lint", "compress", "--dry-run", "rollback", "render"] {
        let has_part =
            |section: &Section| section.commands.iter().any(|it| it.command.contains(part));
        assert!(all.iter().any(has_part), "{part} is missing");
    }
    page.run();
}

#[cfg(unix)]
#[test]
fn the_commands_of_the_concepts_page_work() {
    Page::new(include_str!("../../../../docs/concepts.md")).run();
}

const FORMATS: &str = include_str!("../../../../docs/formats.md");

#[cfg(unix)]
#[test]
fn the_commands_of_the_formats_page_work() {
    Page::new(FORMATS).run();
}

#[test]
fn the_formats_page_lists_every_format() {
    // `ALL` is in the order of recognition, the page in the order of a reader.
    let mut all: Vec<&str> = recto_format::Format::ALL.iter().map(|format| format.name()).collect();
    let mut listed = first_cells(FORMATS, "## The formats");
    all.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, all);
}

/// A server that returns this answer to every request, and a configuration for it.
#[cfg(all(unix, feature = "chat"))]
fn model_server(answer: &'static str) -> (testserver::ModelServer, String) {
    let server = testserver::ModelServer::answering(move |_| crate::chat::text_reply(answer));
    let configuration = serde_json::json!({
        "provider": "openai-chat", "model": "m", "baseUrl": format!("{}/v1", server.url()),
    });
    (server, configuration.to_string())
}

#[cfg(all(unix, feature = "chat", feature = "postgres"))]
#[test]
fn the_recipes_work() {
    let (_server, configuration) = model_server("Yes, since 08:40.");
    let page = Page {
        variables: vec![("POSTGRES", testserver::PostgresServer::shared().database())],
        files: vec![("agent.json", configuration)],
        ..Page::new(include_str!("../../../../docs/recipes.md"))
    };
    let recipes = page.run();
    assert!(recipes >= 21, "{recipes}");
}

#[cfg(all(unix, feature = "postgres"))]
#[test]
fn the_commands_of_the_postgres_page_work() {
    let server = testserver::PostgresServer::shared();
    let owner = server.database();
    let (start, database) = owner.rsplit_once('/').expect("an address names a database");
    let with_role = |role: &str, database: &str| {
        format!("{}/{database}", start.replace("postgres@", &format!("{role}:secret@")))
    };
    let page = Page {
        variables: vec![
            ("SERVER", start.to_owned()),
            ("STORE", with_role("recto", "recto")),
            ("WRITER_STORE", with_role("writer", database)),
            ("OWNER_STORE", owner.clone()),
        ],
        ..Page::new(include_str!("../../../../docs/postgres.md"))
    };
    page.run();
    // The server is shared with other tests.
    let clean_up = "```console\n\
        $ psql -q \"$OWNER_STORE\" -c 'DROP OWNED BY writer' -c 'DROP ROLE writer'\n\
        $ psql -q \"$SERVER/postgres\" -c 'DROP DATABASE recto WITH (FORCE)' -c 'DROP ROLE recto'\n\
        ```\n";
    Page { text: clean_up, ..page }.run();
}

/// The programs are requirements of `cargo xtask test`.
#[cfg(unix)]
#[test]
fn the_clients_of_the_exec_page_work() {
    let compiler = tools().join("bin/tsc");
    assert!(compiler.exists(), "no {}: `cargo xtask test` installs it", compiler.display());
    let page = Page {
        links: vec![
            ("examples", root().join("examples")),
            ("node_modules", tools().join("lib/node_modules")),
        ],
        ..Page::new(include_str!("../../../../docs/exec.md"))
    };
    page.run();
}

#[cfg(feature = "chat")]
const AGENT: &str = include_str!("../../../../docs/agent.md");

#[cfg(all(unix, feature = "chat"))]
#[test]
fn the_commands_of_the_agent_page_work() {
    let replies = [
        crate::chat::call_reply("disk", "{}"),
        crate::chat::text_reply("The disks are nearly empty."),
    ];
    let server = testserver::ModelServer::replying(replies);
    let (_, block) = AGENT.split_once("```json\n").expect("the page has a configuration");
    let (block, _) = block.split_once("```").expect("the block ends");
    let mut configuration = block.to_owned();
    for (shown, used) in [
        ("http://localhost:11434/v1", format!("{}/v1", server.url())),
        (
            r#""mcp-server-filesystem", "args": ["/srv/data"]"#,
            r#""sh", "args": ["server.sh"]"#.into(),
        ),
    ] {
        assert!(configuration.contains(shown), "{shown}");
        configuration = configuration.replace(shown, &used);
    }
    let page = Page {
        variables: vec![("KUBECONFIG", "/none".to_owned())],
        files: vec![("agent.json", configuration), ("server.sh", crate::chat::GREETER.to_owned())],
        ..Page::new(AGENT)
    };
    page.run();
    let second = server.received()[1].body.clone();
    let second = String::from_utf8(second).expect("a request is UTF-8");
    assert!(second.contains("Filesystem") && second.contains("files__greet"), "{second}");
}

/// An error about an unknown field lists the fields that exist.
#[cfg(feature = "chat")]
#[test]
fn the_agent_page_lists_every_field_of_the_configuration() {
    use std::collections::BTreeSet;

    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    let tool = r#"{"tools": [{"name": "t", "description": "d", "unknown": 1}]}"#;
    for (heading, configuration) in [
        ("## Configuration file", r#"{"unknown": 1}"#),
        ("## Tools that are programs", tool),
        ("## MCP servers", r#"{"mcpServers": {"s": {"unknown": 1}}}"#),
    ] {
        let configuration = match configuration.starts_with(r#"{"unknown"#) {
            true => configuration.to_owned(),
            false => configuration.replacen(
                '{',
                r#"{"provider": "anthropic", "model": "m", "baseUrl": "http://127.0.0.1:9", "#,
                1,
            ),
        };
        let file = stage.file("agent.json", &configuration);
        let refused = stage.run(&["chat", "--config", &file, "Hi"]);
        let (_, fields) = refused.errors.split_once("; use ").expect(&refused.errors);
        let fields: BTreeSet<&str> = fields.trim_end().split(", ").collect();
        let listed = first_cells(AGENT, heading);
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), fields, "{heading}");
    }
}

/// The names in the first column of the first table below a heading.
fn first_cells<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, below) = page.split_once(&format!("{heading}\n")).expect(heading);
    let rows = below.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    rows.filter_map(|row| row.split('`').nth(1)).collect()
}

#[test]
fn commands_are_found_with_their_output() {
    let page = "before\n```console\n$ zero\n```\n## One\n```console\n$ one\na\n\nb\n$ two\n> more\n\
                ```\n$ no\n```sh\n$ no\n## no\n```\n## Two\n";
    let found: Vec<(String, Vec<Shown>)> =
        sections(page).into_iter().map(|section| (section.title, section.commands)).collect();
    let shown = |command: &str, prints: &str| Shown {
        command: command.to_owned(),
        prints: prints.to_owned(),
    };
    let one = vec![shown("one", "a\n\nb\n"), shown("two\nmore", "")];
    let expected = [("", vec![shown("zero", "")]), ("One", one), ("Two", Vec::new())];
    assert_eq!(found, expected.map(|(title, commands)| (title.to_owned(), commands)));
}

#[test]
fn an_output_is_compared_word_by_word() {
    let accepts = |printed: &str, shown: &str| Comparison::Words.accepts(printed, shown);
    assert!(accepts("anything\n", ""));
    assert!(accepts("a   b\nc\n", "a b\nc\n"));
    assert!(!accepts("a b\nc\n", "a b\n"));
    assert!(accepts("v2 of x: CUT\n1\n2\nlast\n", "v2 of …: CUT\n…\nlast\n"));
    assert!(accepts("v2\nmore\n", "v2\n…\n"));
    assert!(!accepts("v2\nmore\n", "v3\n…\n"));
    assert!(!accepts("v2\n", "v2\n…\n"));
    assert!(!Comparison::Exact.accepts("a  b\n", "a b\n"));
}
