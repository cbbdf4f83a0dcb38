//! Failures during `recto chat`: the received text is stored, and the error says what to do.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use recto_cli::StreamInfo;
use serde_json::{Value, json};
use testserver::{ModelServer, Reply};

use crate::chat::{call_reply, slow_reply, stream, text_reply};
use crate::stage::Stage;
use crate::terminal::Session;

pub(crate) fn chat<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["chat", "--for", "openai-chat", "--base-url", url, "--model", "m"];
    words.iter().chain(more).copied().collect()
}

pub(crate) fn staged() -> Stage {
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    stage
}

pub(crate) fn url(server: &ModelServer) -> String {
    format!("{}/v1", server.url())
}

/// A configuration with these tools.
pub(crate) fn with_tools(stage: &Stage, server: &ModelServer, tools: &Value) -> String {
    let configuration =
        json!({"provider": "openai-chat", "model": "m", "baseUrl": url(server), "tools": tools});
    stage.file("agent.json", &configuration.to_string())
}

pub(crate) fn recto(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recto"));
    command.args(arguments).env("RECTO_STORE", &stage.store).env("HOME", stage.folder.path());
    command.env("XDG_DATA_HOME", stage.folder.path());
    command.stdin(Stdio::null());
    command
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process with this id runs.
fn runs(process: &str) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", process]).output().unwrap();
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn a_tool_sees_its_configured_variables_but_not_the_key() {
    let server = ModelServer::replying([call_reply("env", "{}"), text_reply("I see.")]);
    let stage = staged();
    let tool = json!({"name": "env", "description": "Says what it sees.", "command": ["env"],
        "env": {"GIVEN": "yes"}, "variables": ["LISTED"]});
    let file = with_tools(&stage, &server, &json!([tool]));
    let key = ["--key-variable", "OPENAI_API_KEY"];
    let chat = [&["chat", "--config", &file][..], &key, &["What do you see?"]].concat();
    let mut command = recto(&stage, &chat);
    command.env("OPENAI_API_KEY", "sk-very-secret").env("LISTED", "too").env("OTHER", "hidden");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let received = server.received();
    assert_eq!(received[0].header("authorization"), Some("Bearer sk-very-secret"));
    let body = String::from_utf8(received[1].body.clone()).unwrap();
    assert!(body.contains("GIVEN=yes") && body.contains("LISTED=too"), "{body}");
    assert!(!body.contains("sk-very-secret") && !body.contains("hidden"), "{body}");
}

#[test]
fn an_error_in_the_configuration_of_a_tool_names_the_tool() {
    let server = ModelServer::replying([]);
    let stage = staged();
    let tool = json!({"name": "t", "description": "d", "command": ["true"]});
    let with = |field: &str, value: Value| {
        let mut tool = tool.clone();
        tool[field] = value;
        json!([tool])
    };
    for (tools, words) in [
        (
            with("environment", json!({})),
            "tool \"t\" in the configuration: environment is not known here",
        ),
        (
            with("command", json!("df -h")),
            "tool \"t\" in the configuration: command must be a list, not \"df -h\"",
        ),
        (with("variables", json!(["NOT_SET"])), "NOT_SET is not set"),
        (with("timeout", json!(-1)), "timeout"),
        (with("command", json!([])), "command is empty"),
        (with("description", json!(7)), "tool \"t\" in the configuration"),
        (json!([{"description": "d", "command": ["true"]}]), "tool number 1"),
        (json!([tool, tool]), "the configuration has two tools with the name \"t\""),
    ] {
        let file = with_tools(&stage, &server, &tools);
        let ran = stage.run(&["chat", "--config", &file, "Hi"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.errors.contains(words), "{words}: {ran:?}");
    }
    // A schema that no provider accepts is refused before it is stored in the conversation.
    let file = with_tools(&stage, &server, &with("input_schema", json!({"type": "array"})));
    let ran = stage.run(&["chat", "--config", &file, "Hi"]);
    assert!(ran.code != 0 && ran.errors.contains("\"t\""), "{ran:?}");
    assert!(stage.plain(&["show"]).starts_with("0 messages"));
    stage.plain(&["append", "--text", "Hi"]);
    stage.plain(&["render", "--quiet"]);
}

#[test]
fn the_result_of_a_tool_that_times_out_has_its_output() {
    let server = ModelServer::replying([call_reply("t", "{}"), text_reply("I see.")]);
    let stage = staged();
    let command = ["sh", "-c", "echo begun; sleep 30"];
    let tool = json!({"name": "t", "description": "d", "command": command, "timeout": 0.3});
    let file = with_tools(&stage, &server, &json!([tool]));
    assert_eq!(stage.run(&["chat", "--config", &file, "Hi"]).code, 0);
    let body = String::from_utf8(server.received()[1].body.clone()).unwrap();
    assert!(body.contains(r"took longer than 300ms\nbegun"), "{body}");
}

#[test]
fn a_partial_answer_is_stored_after_a_closed_pipe_or_a_signal() {
    for signal in [None, Some(("TERM", 143)), Some(("HUP", 129))] {
        let server = ModelServer::replying([slow_reply()]);
        let stage = staged();
        let url = url(&server);
        let mut command = recto(&stage, &chat(&url, &["Tell me."]));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let (mut read, mut piece) = (String::new(), [0; 64]);
        while !read.contains("word3 ") {
            let len = std::io::Read::read(&mut out, &mut piece).unwrap();
            assert!(len > 0, "{read}");
            read.push_str(&String::from_utf8_lossy(&piece[..len]));
        }
        match signal {
            None => drop(out),
            Some((name, _)) => {
                let (name, id) = (format!("-{name}"), child.id().to_string());
                assert!(Command::new("kill").args([name, id]).status().unwrap().success());
                // Read on, so that the pipe does not fill.
                std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
            }
        }
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(signal.map_or(0, |(_, code)| code)), "{signal:?}");
        let shown = stage.plain(&["show", "--full"]);
        assert!(shown.contains("word3") && !shown.contains("word1999"), "{signal:?}: {shown}");
        let listed = stage.json(&["log", "--calls"]);
        assert_eq!(listed["calls"][0]["failure"], "the call was cancelled", "{signal:?}");
        assert!(stage.plain(&["verify"]).starts_with("sound"));
    }
}

#[test]
fn an_interactive_chat_prints_an_error_and_prompts_again() {
    let refuses = || Reply::json(400, r#"{"error":{"message":"not today"}}"#);
    let server =
        ModelServer::replying([refuses(), refuses(), text_reply("Here I am."), text_reply("Bye.")]);
    let stage = staged();
    let url = url(&server);
    let mut session = Session::start(&stage, &chat(&url, &[]), &[]);
    session.wait_for("> ");
    session.press("Hi!\r");
    session.wait_for("not today");
    session.wait_for("press Enter to ask again");
    session.press("\r");
    wait_until("the error is not printed twice", || {
        session.raw().matches("not today").count() == 2
    });
    session.press("\r");
    session.wait_for("Here I am.");
    session.press("And?\r");
    session.wait_for("Bye.");
    session.press("\u{4}");
    assert_eq!(session.end(), 0, "{}", session.raw());
    // The retries added no message.
    let shown = stage.plain(&["show"]);
    assert!(shown.contains("4 messages"), "{shown}");
}

#[test]
fn answers_before_an_error_are_in_the_output() {
    let refuses = Reply::json(400, r#"{"error":{"message":"not today"}}"#);
    let server = ModelServer::replying([text_reply("One."), refuses, text_reply("Three.")]);
    let stage = staged();
    let url = url(&server);
    let ran = stage.perform(&chat(&url, &["--json"]), "a\nb\nc\n", StreamInfo::default());
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &document["answers"][0]["said"]), (1, &json!("One.")), "{document}");
    assert_eq!(document["error"]["code"], "upstream");
    let why = document["error"]["message"].as_str().unwrap();
    assert!(why.contains("not today") && why.contains("recto chat --again"), "{why}");
    // The message is stored, and `--again` sends it again.
    let again = stage.run(&chat(&url, &["--again"]));
    assert_eq!((again.code, again.out.as_str()), (0, "Three.\n"), "{again:?}");
    assert!(stage.plain(&["show"]).contains("4 messages"));
    let answered = stage.run(&chat(&url, &["--again"]));
    assert!(answered.code == 2 && answered.errors.contains("`recto delete 4`"), "{answered:?}");
}

#[test]
fn retries_refusals_and_failed_compressions_are_reported() {
    let busy = Reply::json(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "1");
    let refusal = stream(&[
        json!({"choices": [{"delta": {"refusal": "I will not do that."}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    ]);
    let server = ModelServer::replying([busy, refusal, text_reply("Fine.")]);
    let stage = staged();
    let url = url(&server);
    let ran = stage.run(&chat(&url, &["Do it."]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "I will not do that.\n"), "{ran:?}");
    assert!(ran.errors.contains("retrying in 1.") && ran.errors.contains("slow down"), "{ran:?}");
    stage.plain(&[
        "settings",
        "--compress-over",
        "10",
        "--compress-to",
        "5",
        "--compress-with",
        "clear-tool-results",
    ]);
    let ran = stage.run(&chat(&url, &["Then something else, which is longer than ten tokens."]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Fine.\n"), "{ran:?}");
    assert!(ran.errors.contains("clear-tool-results did not shorten the view"), "{ran:?}");
}

#[test]
fn show_call_prints_the_exact_bytes_without_a_terminal() {
    let server = ModelServer::replying([text_reply("Fine.")]);
    let stage = staged();
    stage.plain(&chat(&url(&server), &["Hi!"]));
    assert_eq!(stage.plain(&["show", "--call", "1"]).as_bytes(), server.received()[0].body);
}

#[test]
fn an_mcp_server_that_ignores_sigterm_is_killed_when_the_chat_ends() {
    let server = ModelServer::replying([]);
    let stage = staged();
    let script =
        crate::chat::GREETER.replacen("while", "echo $$ > \"$FILE\"\ntrap '' TERM\nwhile", 1)
            + "\nsleep 300 & wait; while true; do sleep 1; done\n";
    let (script, file) = (stage.file("stubborn.sh", &script), stage.file("id", ""));
    let greeter = json!({"command": "sh", "args": [script], "env": {"FILE": file, "WHO": "me"}});
    let configuration = json!({"provider": "openai-chat", "model": "m", "baseUrl": url(&server),
        "mcpServers": {"hall": greeter}});
    let configuration = stage.file("agent.json", &configuration.to_string());
    for (key, code) in [("\u{3}", 130), ("\u{4}", 0)] {
        let mut session = Session::start(&stage, &["chat", "--config", &configuration], &[]);
        session.wait_for("> ");
        let id = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        assert!(runs(&id), "{id}");
        session.press(key);
        assert_eq!(session.end(), code, "{}", session.raw());
        wait_until("it still runs", || !runs(&id));
    }
}

/// Runs a command as an unprivileged user, because the superuser may read the memory of every process. The
/// temporary folder of the test belongs to the user that runs the tests, so it is opened for all users.
#[cfg(target_os = "linux")]
fn as_plain_user(mut command: Command, stage: &Stage) -> Command {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let id = Command::new("id").arg("-u").output().unwrap();
    if String::from_utf8_lossy(&id.stdout).trim() == "0" {
        let open = |path: &std::path::Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        };
        for entry in std::fs::read_dir(stage.folder.path()).unwrap() {
            open(&entry.unwrap().path());
        }
        open(stage.folder.path());
        command.uid(65_534).gid(65_534);
    }
    command
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_cannot_read_the_key_of_the_process_that_started_it() {
    // The superuser, as in many containers, and an unprivileged user.
    peek_at_the_key(|command, _| command);
    peek_at_the_key(as_plain_user);
}

#[cfg(target_os = "linux")]
fn peek_at_the_key(started: impl Fn(Command, &Stage) -> Command) {
    const PEEK: &str = "tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/$PPID/environ \
        /proc/$PPID/cmdline; timeout 1 cat /proc/$PPID/fd/3 /dev/fd/3; echo over";
    let server = ModelServer::replying([
        call_reply("peek", "{}"),
        call_reply("hall__greet", r#"{"name":"Anna"}"#),
        text_reply("I see."),
    ]);
    let stage = staged();
    let tool = json!({"name": "peek", "description": "Looks.", "command": ["sh", "-c", PEEK]});
    let script = crate::chat::GREETER
        .replacen("while", "SEEN=$(tr '\\0' ' ' < /proc/$PPID/environ)\nwhile", 1)
        .replace("says '\"$WHO\"'.", "saw '\"$SEEN\"'.");
    let script = stage.file("peeker.sh", &script);
    let configuration = json!({"provider": "openai-chat", "model": "m", "baseUrl": url(&server),
        "keyVariable": "OPENAI_API_KEY", "tools": [tool],
        "mcpServers": {"hall": {"command": "sh", "args": [script]}}});
    let file = stage.file("agent.json", &configuration.to_string());
    let mut command =
        started(recto(&stage, &["chat", "--config", &file, "What do you see?"]), &stage);
    let ran = command.env("OPENAI_API_KEY", "sk-very-secret").output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let received = server.received();
    assert_eq!(received[0].header("authorization"), Some("Bearer sk-very-secret"));
    let body = String::from_utf8(received[2].body.clone()).unwrap();
    assert!(body.contains("over") && body.contains("Good day, Anna, saw"), "{body}");
    assert!(!body.contains("sk-very-secret"), "{body}");
}

#[cfg(target_os = "linux")]
#[test]
fn descendants_in_other_process_groups_are_killed_when_the_chat_ends() {
    let server = ModelServer::replying([call_reply("t", "{}"), text_reply("Started.")]);
    let stage = staged();
    let (of_server, of_tool) = (stage.file("server", ""), stage.file("tool", ""));
    let start = |file: &str| format!("setsid sh -c 'echo $$ > {file}; exec sleep 300' >&- 2>&- &");
    let script = format!("{}\n{}", start(&of_server), crate::chat::GREETER);
    let script = stage.file("starter.sh", &script);
    let tool = json!({"name": "t", "description": "d", "command": ["sh", "-c", start(&of_tool)]});
    let configuration = json!({"provider": "openai-chat", "model": "m", "baseUrl": url(&server),
        "tools": [tool], "mcpServers": {"hall": {"command": "sh", "args": [script], "env": {"WHO": "w"}}}});
    let file = stage.file("agent.json", &configuration.to_string());
    let mut session = Session::start(&stage, &["chat", "--config", &file], &[]);
    session.wait_for("> ");
    session.press("Go!\r");
    session.wait_for("Started.");
    let id = |file: &str| std::fs::read_to_string(file).unwrap().trim().to_owned();
    wait_until("they do not start", || !id(&of_server).is_empty() && !id(&of_tool).is_empty());
    let ids = [id(&of_server), id(&of_tool)];
    assert!(ids.iter().all(|id| runs(id)), "{ids:?}");
    session.press("\u{4}");
    assert_eq!(session.end(), 0, "{}", session.raw());
    wait_until("they still run", || !ids.iter().any(|id| runs(id)));
}

#[test]
fn a_key_is_sent_over_plain_http_to_another_machine_only_if_that_is_allowed() {
    let stage = staged();
    let named = ["--key-variable", "OPENAI_API_KEY", "Hi"];
    let mut command = recto(&stage, &chat("http://192.0.2.1:9/v1", &named));
    let ran = command.env("OPENAI_API_KEY", "sk-very-secret").output().unwrap();
    let errors = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{errors}");
    assert!(errors.contains("plain HTTP") && errors.contains("--allow-http"), "{errors}");
    assert!(stage.plain(&["show"]).starts_with("0 messages"), "the message is not kept");
    let servers =
        json!({"wiki": {"url": "http://192.0.2.1:9/mcp", "keyVariable": "OPENAI_API_KEY"}});
    let configuration = json!({"provider": "openai-chat", "model": "m",
        "baseUrl": "http://127.0.0.1:9/v1", "mcpServers": servers});
    let file = stage.file("agent.json", &configuration.to_string());
    let mut command = recto(&stage, &["chat", "--config", &file, "Hi"]);
    let ran = command.env("OPENAI_API_KEY", "sk-very-secret").output().unwrap();
    let errors = String::from_utf8(ran.stderr).unwrap();
    assert!(!ran.status.success() && errors.contains("plain HTTP"), "{errors}");
}

#[test]
fn a_missing_key_is_reported_before_anything_is_sent_or_stored() {
    let stage = staged();
    for (provider, variable) in [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai-chat", "OPENAI_API_KEY"),
        ("openai-responses", "OPENAI_API_KEY"),
    ] {
        let ran = stage.run(&["chat", "--for", provider, "--model", "m", "Hi"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.errors.contains(&format!("{variable} is not set")), "{ran:?}");
    }
    assert!(stage.plain(&["show"]).starts_with("0 messages"));
}

#[test]
fn a_chat_without_configured_tools_keeps_the_tools_of_the_conversation() {
    let server = ModelServer::replying([call_reply("ls", "{}"), text_reply("I cannot.")]);
    let stage = Stage::new();
    let tools = stage.file("tools.json", r#"[{"name":"ls","description":"Lists."}]"#);
    stage.plain(&["new", "talk", "--tools", &tools]);
    let ran = stage.run(&chat(&url(&server), &["Hi"]));
    assert_eq!((ran.code, ran.out.as_str()), (0, "I cannot.\n"), "{ran:?}");
    assert!(ran.errors.contains("have no program here") && ran.errors.contains("ls"), "{ran:?}");
    assert_eq!(stage.json(&["settings"])["tools"][0]["name"], "ls");
    let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    assert_eq!(sent["tools"][0]["function"]["name"], "ls");
    let log = stage.json(&["log"]);
    let operations = log["versions"].as_array().unwrap().iter();
    assert!(!operations.clone().any(|version| version["operation"] == "SET_TOOLS"), "{log}");
}
