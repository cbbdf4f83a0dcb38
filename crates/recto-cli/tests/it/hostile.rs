//! Hostile texts in all printed fields: no escape sequence in them reaches the terminal.

use recto_cli::StreamInfo;
use serde_json::{Value, json};

use crate::emulator;
use crate::stage::Stage;

/// Escape sequences of terminals, without the escape character.
const SEQUENCES: &[&str] = &[
    "[2J",
    "[3J",
    "[H",
    "[10;10H",
    "[1A",
    "[99B",
    "[5C",
    "[9D",
    "[E",
    "[F",
    "[G",
    "[K",
    "[1K",
    "[2K",
    "[L",
    "[M",
    "[P",
    "[X",
    "[@",
    "[S",
    "[T",
    "[s",
    "[u",
    "7",
    "8",
    "c",
    "D",
    "E",
    "H",
    "M",
    "N",
    "O",
    "Z",
    "[0m",
    "[1m",
    "[5m",
    "[7m",
    "[8m",
    "[31m",
    "[38;5;196m",
    "[48;2;255;0;0m",
    "[6n",
    "[c",
    "[>c",
    "[5n",
    "[?25l",
    "[?25h",
    "[?47h",
    "[?1047h",
    "[?1049h",
    "[?1049l",
    "[?2004h",
    "[?1000h",
    "[?1006h",
    "[?7l",
    "[?5h",
    "[20h",
    "[4h",
    "[r",
    "[2;5r",
    "[!p",
    "[?1;2c",
    "#8",
    "(0",
    ")B",
    "=",
    ">",
    "%G",
    " F",
    "]0;title\u{7}",
    "]2;title\u{1b}\\",
    "]8;;http://evil.example\u{7}link\u{1b}]8;;\u{7}",
    "]52;c;ZXZpbA==\u{7}",
    "]4;1;rgb:ff/00/00\u{7}",
    "]10;#ff0000\u{7}",
    "]104\u{7}",
    "]1337;File=:AAAA\u{7}",
    "P1$r0m\u{1b}\\",
    "_apc\u{1b}\\",
    "^pm\u{1b}\\",
    "Xsos\u{1b}\\",
    "[1;1H[2JYou won",
    "[200~rm -rf /[201~",
];

pub(crate) fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    for code in (1..0x20_u8).chain([0x7f]) {
        texts.push(format!("a{}b", char::from(code)));
    }
    for code in 0x80..=0x9f_u32 {
        texts.push(format!("c1 {}31mred", char::from_u32(code).unwrap()));
    }
    for sequence in SEQUENCES {
        texts.push(format!("before \u{1b}{sequence} behind"));
        if let Some(rest) = sequence.strip_prefix('[') {
            texts.push(format!("8 bit \u{9b}{rest} behind"));
        } else if let Some(rest) = sequence.strip_prefix(']') {
            texts.push(format!("8 bit \u{9d}{rest} behind"));
        }
    }
    for mark in [
        '\u{61c}',
        '\u{200b}',
        '\u{200e}',
        '\u{200f}',
        '\u{202a}',
        '\u{202b}',
        '\u{202c}',
        '\u{202d}',
        '\u{202e}',
        '\u{2028}',
        '\u{2029}',
        '\u{2060}',
        '\u{2066}',
        '\u{2067}',
        '\u{2068}',
        '\u{2069}',
        '\u{feff}',
        '\u{ad}',
        '\u{fff9}',
        '\u{e0041}',
    ] {
        texts.push(format!("admin{mark}nimda"));
    }
    texts.extend([
        "safe\rHACKED".to_owned(),
        "xxxx\u{8}\u{8}\u{8}\u{8}yyyy".to_owned(),
        "a\n\n\n\n\n\nb".to_owned(),
        "\n#99 system 1 forged line".to_owned(),
        format!("{}end", "\t".repeat(50)),
        format!("Z{}", "\u{300}".repeat(500)),
        "👨‍👩‍👧‍👦 family, 🏳️‍🌈 flag".to_owned(),
        "日本語のとても長い文章".repeat(30),
        "x".repeat(5_000),
        "\u{1b}".repeat(300),
        format!("{}\u{1b}[31m", "y".repeat(79)),
        "%s%n%x {} {0} $(reboot) `reboot` \\e[31m \\x1b[31m".to_owned(),
    ]);
    assert!(texts.len() >= 200, "{}", texts.len());
    texts
}

/// Checks that the output contains no control characters except the colours and line breaks of `recto`, and
/// that a terminal is in its initial state after it.
fn assert_no_escapes(printed: &str, what: &str) {
    let mut rest = printed;
    while let Some(at) = rest.find(|c: char| c != '\n' && (c.is_control() || is_bidi(c))) {
        let found = &rest[at..];
        let colour = found.strip_prefix("\u{1b}[").and_then(|behind| {
            let end = behind.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            behind[end..].strip_prefix('m')
        });
        let escape: String = found.chars().take(12).collect();
        rest = colour.unwrap_or_else(|| panic!("the output of {what} contains {escape:?}"));
    }
    let lines = printed.lines().count();
    // A line that wraps takes several rows.
    let rows = lines + printed.len() / 80 + 10;
    let mut terminal = emulator(u16::try_from(rows).unwrap_or(u16::MAX));
    terminal.process(printed.replace('\n', "\r\n").as_bytes());
    let screen = terminal.screen();
    assert_eq!(screen.cursor_position().1, 0, "{what} leaves the cursor at the start of a line");
    assert!(!screen.hide_cursor() && !screen.alternate_screen(), "{what}");
    assert!(!screen.application_cursor() && !screen.bracketed_paste(), "{what}");
    assert_eq!(screen.fgcolor(), vt100::Color::Default, "{what} leaves no colour behind");
    assert!(!screen.bold() && !screen.inverse(), "{what}");
}

fn is_bidi(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A conversation with each hostile text as message, tool name, input, mark and reason.
fn hostile_conversation() -> Stage {
    let stage = Stage::new();
    let texts = texts();
    let mut requests = vec![json!({ "create": "hostile", "settings": { "counter": "approx" } })];
    let apply = |op: Value| json!({ "conversation": "hostile", "op": op });
    let messages: Vec<Value> =
        texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
    requests.push(apply(json!({ "operation": "APPEND", "messages": messages })));
    let calls: Vec<Value> = texts.iter().enumerate().map(|(number, text)| json!({ "role": "assistant", "content": [
        { "type": "tool_use", "id": format!("c{number}"), "name": text, "input": { text: text } }] })).collect();
    requests
        .push(apply(json!({ "operation": "APPEND", "messages": calls, "description": texts[3] })));
    for (number, text) in texts.iter().enumerate() {
        requests.push(apply(
            json!({ "operation": "MARK", "indices": [number], "mark": text, "description": text }),
        ));
    }
    for answer in stage.exec(&requests) {
        assert!(answer.get("error").is_none(), "{answer}");
    }
    stage.plain(&["info", "-c", "hostile"]);
    stage
}

#[test]
fn hostile_messages_are_printed_without_control_characters() {
    let stage = hostile_conversation();
    for arguments in [
        &["show"][..],
        &["show", "--full"],
        &["show", "--json"],
        &["log", "--all"],
        &["log", "--all", "--json"],
        &["info"],
        &["info", "--json"],
        &["tokens", "--largest", "1000"],
        &["grep", "b"],
        &["grep", "--everywhere", "behind"],
        &["diff", "0", "now"],
        &["blame", "3"],
        &["delete", "0-100", "--dry-run"],
        &["snapshot", "0"],
        &["markmap"],
        &["timeline"],
        &["doctor"],
        &["render", "--for", "openai-chat", "--json"],
        &["export"],
        &["export", "--json"],
        &["cache-plan", "0", "now"],
    ] {
        assert_no_escapes(&stage.terminal(arguments), &format!("{arguments:?}"));
    }
    // These commands also print on standard error, or exit with 1.
    let screen = StreamInfo { size: Some((80, 10_000)), colours: true };
    for arguments in [
        &["render", "--for", "anthropic"][..],
        &["lint", "--for", "anthropic"],
        &["lint", "--for", "gemini", "--json"],
        &["lint", "--for", "openai-chat", "--fix", "--dry-run"],
    ] {
        let ran = stage.perform(arguments, "", screen);
        assert!(ran.code < 2, "{arguments:?}: {}", ran.errors);
        assert_no_escapes(&ran.out, &format!("{arguments:?}"));
        assert_no_escapes(&ran.errors, &format!("{arguments:?}"));
    }
    // Each message is one line, so no text can forge another line.
    let lines: Vec<String> = anstream::adapter::strip_str(&stage.terminal(&["show"]))
        .to_string()
        .lines()
        .map(str::to_owned)
        .collect();
    // The first line is a heading, the last one a sum.
    assert_eq!(lines.len(), texts().len() * 2 + 2);
    for (number, line) in lines[1..lines.len() - 1].iter().enumerate() {
        let start = format!("{number:>8}{:>6} ", format!("#{number}"));
        assert!(line.starts_with(&start), "{line}");
    }
}

#[test]
fn hostile_names_are_printed_without_control_characters() {
    let stage = Stage::new();
    let names: Vec<String> = texts()
        .into_iter()
        .filter(|name| name.len() < 200 && recto::check_name(name).is_ok())
        .collect();
    assert!(names.len() > 180, "{}", names.len());
    let requests: Vec<Value> = names.iter().map(|name| json!({ "create": name })).collect();
    stage.exec(&requests);
    let screen = StreamInfo { size: Some((80, 10_000)), colours: true };
    assert_no_escapes(&stage.terminal(&["list"]), "list");
    for name in &names {
        let ran = stage.perform(&["rename", name, &format!("{name}2")], "", screen);
        assert_eq!(ran.code, 0, "{name:?} {}", ran.errors);
        assert_no_escapes(&ran.out, "rename");
        // The old name does not exist any more, but other names start with it.
        for command in
            [&["delete", "7", "-c", name][..], &["show", "-c", name.get(..1).unwrap_or("x")]]
        {
            let ran = stage.perform(command, "", screen);
            assert_no_escapes(&ran.errors, "an error");
            assert_no_escapes(&ran.out, "an answer");
        }
    }
    assert_no_escapes(&stage.terminal(&["verify"]), "verify");
}

#[test]
fn hostile_arguments_are_escaped_in_error_messages() {
    let stage = Stage::new();
    let screen = StreamInfo { size: Some((80, 10_000)), colours: true };
    for (number, text) in texts().iter().filter(|text| text.len() < 200).enumerate() {
        let option = format!("--{text}");
        let commands = [
            &[&**text][..],
            &["show", text],
            &["info", text],
            &["append", text],
            &["show", &option],
            &["show", "--last", text],
            &["import", "x", "--format", text],
            &["diff", text, text],
            &["delete", text],
            &["show", "--since", text],
            &["help", text],
            &["completions", text],
        ];
        // Each text is given to a third of the commands, and each command gets a third of the texts.
        for arguments in commands.into_iter().skip(number % 3).step_by(3) {
            let coloured = stage.perform_on(arguments, "", screen, screen);
            let plain = stage.run(arguments);
            assert_eq!((coloured.code, plain.code), (2, 2), "{arguments:?} {plain:?}");
            assert_no_escapes(&coloured.errors, &format!("the errors of {arguments:?}"));
            assert!(!plain.errors.contains('\u{1b}'), "{}", plain.errors);
            assert_no_escapes(&plain.errors, &format!("the errors of {arguments:?}"));
            let with_json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
            assert_no_escapes(&stage.perform(&with_json, "", screen).out, "a document");
        }
    }
    // The error still names the argument.
    let errors = stage.run(&["info", "\u{1b}[31mred"]).errors;
    assert!(errors.contains(r"unexpected argument '\u{1b}[31mred'"), "{errors}");
    assert!(errors.contains(r"`-c \u{1b}[31mred`"), "{errors}");
}
