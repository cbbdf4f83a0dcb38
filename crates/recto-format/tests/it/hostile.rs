//! Malicious files: every importer produces steps or a typed error, and never panics.

use std::fs;
use std::path::Path;

use recto_core::{Approx, Limits, Message, Settings};
use recto_format::{
    Branch, Collected, Container, Error, ExportOptions, Format, ImportOptions, RenderOptions,
    Replay, Step, Target, export, export_log, import,
};

use crate::render::check;

fn corpus() -> Vec<(Format, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = Vec::new();
    for folder in fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let format = Format::named(folder.file_name().unwrap().to_str().unwrap()).unwrap();
        for file in fs::read_dir(folder).unwrap() {
            files.push((format, fs::read(file.unwrap().path()).unwrap()));
        }
    }
    files
}

/// Imports a file in a format. The result can be verified and exported.
fn read(file: &[u8], format: Format) {
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    let _ = import(file, Some(format), &ImportOptions::default(), &mut replay)
        .map_err(|error| assert_ne!(error.code(), "storage", "{format}: {error}"));
    for replayed in &replay.conversations {
        for Branch { conversation, .. } in &replayed.branches {
            conversation.verify().unwrap();
            let log: Vec<_> = conversation.log().iter().map(|it| it.message.clone()).collect();
            let options = ExportOptions::default();
            export_log(&log, format, &options, &mut Vec::new()).unwrap();
            export(conversation.messages(), format, &options, &mut Vec::new()).unwrap();
        }
    }
}

#[test]
fn every_file_of_the_corpus_is_read_in_every_format() {
    for (_, file) in corpus() {
        for format in Format::ALL.iter().copied() {
            read(&file, format);
        }
    }
}

/// Importing a file as another format causes warnings; if nothing is readable, the error names the
/// format that the file looks like.
#[test]
fn the_error_for_a_file_of_another_format_names_that_format() {
    let mut refused = Vec::new();
    for (format, file) in corpus() {
        for other in Format::ALL.iter().copied().filter(|other| *other != format) {
            let mut collected = Collected::default();
            let options = ImportOptions::default();
            let read = import(&file, Some(other), &options, &mut collected);
            if let Err(Error::OtherFormat { format: named, looks_like }) = read {
                assert_eq!((named, looks_like), (other, format));
                assert!(!collected.warnings.is_empty());
                refused.push((format, other));
            }
        }
    }
    for pair in [
        (Format::ClaudeCode, Format::Codex),
        (Format::ClaudeCode, Format::OpenAiChat),
        (Format::ClaudeCode, Format::OpenAiResponses),
        (Format::ClaudeCode, Format::LangChain),
        (Format::Codex, Format::ClaudeCode),
        (Format::Codex, Format::OpenAiChat),
        (Format::Gemini, Format::Anthropic),
        (Format::ShareGpt, Format::Vercel),
        (Format::LangChain, Format::OpenAiChat),
    ] {
        assert!(refused.contains(&pair), "{pair:?}");
    }
}

#[test]
fn files_that_are_cut_or_changed_anywhere_are_imported_or_refused() {
    for (format, file) in corpus() {
        for at in (0..file.len()).step_by(97) {
            read(&file[..at], format);
            let mut damaged = file.clone();
            damaged[at] = b"\0\"\\{}[],:0e\xff"[at % 12];
            read(&damaged, format);
        }
    }
}

#[test]
fn unusual_values_are_imported_or_refused() {
    let values = [
        "",
        " ",
        "\0",
        "null",
        "0",
        "-0",
        "1e400",
        "\"\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "{\"\":{}}",
        "\u{feff}[]",
        "[null]",
        "[1,",
        "{\"a\":",
        "\"\\ud800\"",
        "123456789012345678901234567890",
        r#"{"role":null,"content":null}"#,
        r#"{"role":"user","content":[{}]}"#,
        r#"{"role":"user","role":"assistant","content":"a","content":"b"}"#,
        r#"{"role":"user","content":"\ud800\u0000\u001b[31m"}"#,
        r#"{"type":"user","uuid":"a","parentUuid":"a","message":{"role":"user","content":"x"}}"#,
        r#"{"type":"compacted","payload":{}}"#,
        r#"{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":99999999999999999999}}"#,
        r#"{"mapping":{"a":null},"current_node":"a"}"#,
        r#"{"mapping":{"a":{"parent":"a","children":["a"],"message":{}}}}"#,
        r#"{"conversations":[{"from":"gpt"}]}"#,
        r#"{"parts":[{"functionCall":{}}]}"#,
        r#"{"lc":1}"#,
        r#"{"type":"ai","data":7}"#,
        r#"{"role":"assistant","parts":[{"type":"tool-"}]}"#,
        "PK\u{3}\u{4}",
        "(\u{b5}/\u{fd}",
    ];
    for value in values {
        for format in Format::ALL.iter().copied() {
            read(value.as_bytes(), format);
            read(format!("[{value}]").as_bytes(), format);
            read(format!("{{\"messages\":[{value}],\"input\":[{value}]}}").as_bytes(), format);
            read(format!("{value}\n{value}\n").as_bytes(), format);
        }
    }
    for bytes in
        [&b"\xff\xfe"[..], b"{\"role\":\"\xff\"}", b"\x28\xb5\x2f\xfd", b"PK\x03\x04\x00\x00"]
    {
        for format in Format::ALL.iter().copied() {
            read(bytes, format);
        }
    }
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = "[".repeat(100_000);
    let closed = format!("{deep}{}", "]".repeat(100_000));
    let options = ImportOptions {
        limits: Limits { message_bytes: 64 << 10, ..Limits::default() },
        ..ImportOptions::default()
    };
    let endless = format!(r#"{{"role":"user","content":"{}"}}"#, "a".repeat(1 << 20));
    for format in Format::ALL.iter().copied() {
        for file in [&deep, &closed, &format!("[{closed}]"), &endless, &format!("[{endless}]")] {
            let _ = import(file.as_bytes(), Some(format), &options, &mut Collected::default());
        }
        for line in [
            format!(
                r#"{{"type":"user","uuid":"a","message":{{"role":"user","content":{closed}}}}}"#
            ),
            format!(r#"{{"type":"response_item","payload":{closed}}}"#),
            format!(r#"{{"mapping":{{"a":{{"message":{closed}}}}}}}"#),
        ] {
            read(line.as_bytes(), format);
        }
    }
}

#[test]
fn the_time_to_import_is_linear() {
    let says = |uuid: usize, parent: usize| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":"{parent}","message":{{"role":"user","content":"x"}}}}"#
        )
    };
    let mut lines = vec![says(0, 0)];
    // Every line rewinds to the first line, and results are replaced repeatedly.
    lines.extend((1..3_000).map(|uuid| says(uuid, 0)));
    let boundary = |number: usize| {
        format!(
            r#"{{"type":"system","subtype":"compact_boundary","uuid":"c{number}","parentUuid":null}}"#
        )
    };
    for number in 0..1_000 {
        lines.push(boundary(number));
        lines.push(
            says(10_000 + number, 9_999_999)
                .replace("\"type\"", "\"isCompactSummary\":true,\"type\""),
        );
    }
    let clock = std::time::Instant::now();
    import(
        lines.join("\n").as_bytes(),
        Some(Format::ClaudeCode),
        &ImportOptions::default(),
        &mut Collected::default(),
    )
    .unwrap();
    assert!(clock.elapsed().as_secs() < 20, "{:?}", clock.elapsed());
}

/// Every file or view here once took time quadratic in its length.
#[test]
fn no_file_or_view_takes_quadratic_time() {
    let clock = std::time::Instant::now();
    let import = |file: &str, format| {
        let mut collected = Collected::default();
        import(file, Some(format), &ImportOptions::default(), &mut collected).unwrap();
    };
    // A long message leaves a long buffer, followed by many short ones on the same line.
    let long = format!(r#"[{{"role":"user","content":"{}"}}"#, "x".repeat(3 << 20));
    let short = r#",{"role":"user","content":"a"}"#.repeat(100_000);
    import(&format!("{long}{short}]"), Format::OpenAiChat);
    import(&format!("{long}{short}\n]"), Format::OpenAiChat);
    // Calls without results, and results of other calls.
    let call = r#"{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}}]},"#;
    let result = r#"{"role":"user","parts":[{"functionResponse":{"name":"b","response":{}}}]},"#;
    let (calls, results) = (call.repeat(20_000), result.repeat(20_000));
    import(&format!("[{calls}{results}{{\"parts\":[]}}]"), Format::Gemini);
    // Ids with a common prefix, each used twice.
    let ids = (0..4_000).map(|id| format!("{}{id:04}", "x".repeat(36)));
    let ids: Vec<String> = ids.clone().chain(ids).collect();
    let message = |json: String| Message::from_json(&json).unwrap();
    let calls = |id: &String| Message::tool_call(id, "f", &serde_json::json!({}));
    let render = |view: &[Message], target| {
        let _ = recto_format::render(view, target, &RenderOptions::default());
    };
    render(&ids.iter().map(calls).collect::<Vec<_>>(), Target::OpenAiChat);
    // Only system messages.
    let system = message(r#"{"role":"system","content":"a"}"#.into());
    render(&vec![system; 100_000], Target::OpenAiChat);
    // Server calls with results in reverse order, or without results.
    let call = |id| format!(r#"{{"type":"server_tool_use","id":"s{id}","name":"w","input":{{}}}}"#);
    let result =
        |id| format!(r#"{{"type":"web_search_tool_result","tool_use_id":"s{id}","content":[]}}"#);
    let torn = (0..20_000).map(|id| call(20_000 + id));
    let parts = (0..20_000).map(call).chain(torn).chain((0..20_000).rev().map(result));
    let parts = parts.collect::<Vec<_>>().join(",");
    let source = r#"{"source":{"provider":"anthropic"}}"#;
    let answer = format!(r#"{{"role":"assistant","content":[{parts}],"metadata":{source}}}"#);
    render(&[Message::user("a"), message(answer)], Target::Anthropic);
    // Thousands of pieces of a response after thousands of results.
    let piece = |id: usize| {
        format!(
            r#"{{"type":"assistant","uuid":"a{id}","parentUuid":"a0","message":{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"c{id}","name":"f","input":{{}}}}]}}}}"#
        )
    };
    let result = |id: usize| {
        format!(
            r#"{{"type":"user","uuid":"r{id}","parentUuid":"a0","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{id}","content":"x"}}]}}}}"#
        )
    };
    let lines = [0].map(piece).into_iter().chain((0..5_000).map(result));
    let lines: Vec<String> = lines.chain((1..5_000).map(piece)).collect();
    import(&lines.join("\n"), Format::ClaudeCode);
    // Many consecutive lines without a message.
    let line = r#"{"type":"user","parentUuid":null,"message":{"role":"user","content":[{"type":"text"}]}}"#;
    let said = line.replace(r#"[{"type":"text"}]"#, r#""hi""#);
    import(&format!("{}{said}", format!("{line}\n").repeat(20_000)), Format::ClaudeCode);
    // Many compactions that keep the messages of the user.
    let says = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}}"#;
    let compacted = r#"{"type":"compacted","payload":{"message":"s"}}"#;
    import(&format!("{says}\n{compacted}\n").repeat(10_000), Format::Codex);
    assert!(clock.elapsed().as_secs() < 60, "{:?}", clock.elapsed());
}

/// A program can write any `metadata.source`.
#[test]
fn a_forged_source_is_exported_as_valid_json() {
    let lies = [
        r#""original":1"#,
        r#""original":"x","before":[1,"x",null,{}]"#,
        r#""original":[[]],"layout":"spaced""#,
        r#""original":{"a":null},"hole":"content","hole_at":5"#,
        r#""original":{},"hole":"result","hole_at":99999999999999999999"#,
        r#""original":{},"of":"a","piece":18446744073709551615,"pieces":2"#,
        r#""of":"a","piece":0,"pieces":18446744073709551615,"original":true"#,
    ];
    for format in Format::ALL {
        for lie in lies {
            let json = format!(
                r#"{{"role":"user","content":"a","metadata":{{"source":{{"format":"{format}",{lie}}}}}}}"#
            );
            let message = Message::from_json(&json).unwrap();
            for other in Format::ALL.iter().copied() {
                let mut file = Vec::new();
                let options = ExportOptions { container: Container::Lines, ..Default::default() };
                export([&message, &message], other, &options, &mut file).unwrap();
                let values = serde_json::Deserializer::from_slice(&file);
                for value in values.into_iter::<serde_json::Value>() {
                    value.unwrap_or_else(|error| panic!("{other}: {error} in {json}"));
                }
            }
        }
    }
}

#[test]
fn every_imported_file_is_rendered_as_a_valid_request() {
    for (format, file) in corpus() {
        // The validator accepts plain numbers only.
        let file = String::from_utf8(file).unwrap().replace("1e400", "1.5e4");
        let mut replay = Replay::new(Settings::counting_with(Approx), 0);
        import(&*file, Some(format), &ImportOptions::default(), &mut replay).unwrap();
        for replayed in &replay.conversations {
            for Branch { conversation, .. } in &replayed.branches {
                for version in conversation.versions() {
                    let view: Vec<_> =
                        conversation.at(version.version).unwrap().messages().cloned().collect();
                    for target in Target::ALL {
                        check(&view, target, None);
                    }
                }
            }
        }
    }
}

#[test]
fn an_exported_file_is_recognised_as_its_format() {
    for (format, file) in corpus() {
        let mut replay = Replay::new(Settings::counting_with(Approx), 0);
        import(&file, Some(format), &ImportOptions::default(), &mut replay).unwrap();
        for replayed in &replay.conversations {
            let messages: Vec<_> = replayed.branches[0].conversation.messages().cloned().collect();
            for other in Format::ALL.iter().copied() {
                let container = match other {
                    Format::ShareGpt => Container::Envelope(r#"{"conversations":null}"#),
                    _ => Container::List,
                };
                let mut written = Vec::new();
                export(
                    &messages,
                    other,
                    &ExportOptions { container, ..Default::default() },
                    &mut written,
                )
                .unwrap();
                read(&written, other);
            }
        }
    }
}

/// Mutates a file: changes, duplicates or removes bytes and ranges, or copies them from another file.
fn spoil(file: &mut Vec<u8>, other: &[u8], dice: &mut impl FnMut(usize) -> usize) {
    for _ in 0..=dice(6) {
        if file.is_empty() {
            return;
        }
        let (at, len) = (dice(file.len()), dice(40));
        let end = (at + len).min(file.len());
        match dice(6) {
            0 => file[at] = b"\0\"\\{}[],:0e\xff\n"[dice(13)],
            1 => drop(file.drain(at..end)),
            2 => {
                let stretch = file[at..end].to_vec();
                let to = dice(file.len());
                file.splice(to..to, stretch);
            }
            3 => {
                let from = dice(other.len().max(1)).min(other.len());
                let stretch = other[from..(from + 10 * len).min(other.len())].to_vec();
                file.splice(at..end, stretch);
            }
            4 => {
                // Replaces a value with another one.
                let values: [&[u8]; 8] = [
                    b"null",
                    b"[]",
                    b"{}",
                    b"\"\"",
                    b"-1",
                    b"\"user\"",
                    b"true",
                    b"\"tool_result\"",
                ];
                let value = values[dice(values.len())];
                let start =
                    file[at..].iter().position(|byte| *byte == b':').map_or(at, |it| at + it + 1);
                let end = file[start..].iter().position(|byte| b",}".contains(byte));
                let end = end.map_or(start, |it| start + it);
                file.splice(start..end, value.iter().copied());
            }
            _ => file.truncate(at),
        }
    }
}

#[test]
fn randomly_changed_files_are_imported_or_refused() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (mut seed, files) = (number("RECTO_SEED", 1), number("RECTO_FILES", 1_500));
    let corpus = corpus();
    for _ in 0..files {
        let start = seed;
        let mut dice = |sides: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 11) as usize % sides.max(1)
        };
        let (format, mut file) = corpus[dice(corpus.len())].clone();
        let other = &corpus[dice(corpus.len())].1;
        spoil(&mut file, other, &mut dice);
        let read = || read(&file, format);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
        assert!(outcome.is_ok(), "{format}: RECTO_SEED={start} RECTO_FILES=1 repeats it");
    }
}

/// Lines without a message are held until the next message, up to a limit.
#[test]
fn the_size_of_pending_lines_is_limited() {
    let filler = "x".repeat(1_000);
    let aside = format!(r#"{{"type":"progress","data":"{filler}"}}"#);
    let says =
        r#"{"type":"user","uuid":"1","parentUuid":null,"message":{"role":"user","content":"a"}}"#;
    let event = format!(r#"{{"type":"event_msg","payload":{{"type":"x","data":"{filler}"}}}}"#);
    let item =
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"a"}}"#;
    let limits = Limits { message_bytes: 80_000, ..Limits::default() };
    let options = ImportOptions { limits, ..ImportOptions::default() };
    for (format, line, message) in
        [(Format::ClaudeCode, &aside, says), (Format::Codex, &event, item)]
    {
        let file = format!(
            "{}{message}\n{}",
            format!("{line}\n").repeat(500),
            format!("{line}\n").repeat(500)
        );
        let mut collected = Collected::default();
        import(file.as_str(), Some(format), &options, &mut collected).unwrap();
        let warnings: Vec<(u64, &str)> =
            collected.warnings.iter().map(|it| (it.line, it.message.as_str())).collect();
        let [(60..80, before), (560..581, behind)] = warnings[..] else { panic!("{warnings:?}") };
        assert!(before.starts_with("skipped") && behind.starts_with("skipped"), "{warnings:?}");
        let kept: usize = collected
            .steps
            .iter()
            .map(|step| match step {
                Step::Append(messages) => messages.iter().map(|it| it.json().len()).sum(),
                Step::Envelope(envelope) => envelope.len(),
                _ => 0,
            })
            .sum();
        assert!((100_000..200_000).contains(&kept), "{kept}");
    }
}

/// Switching between two long branches takes about as long as continuing one.
#[test]
fn switching_between_branches_of_a_session_is_cheap() {
    let says = |(branch, depth): (usize, usize)| {
        let parent = match depth {
            0 => "null".to_owned(),
            _ => format!("\"{branch}.{}\"", depth - 1),
        };
        format!(
            r#"{{"type":"user","parentUuid":{parent},"uuid":"{branch}.{depth}","message":{{"role":"user","content":"a"}}}}"#
        )
    };
    let took = |lines: Vec<(usize, usize)>| {
        let file: Vec<String> = lines.into_iter().map(says).collect();
        let file = file.join("\n");
        let clock = std::time::Instant::now();
        let mut collected = Collected::default();
        import(&*file, Some(Format::ClaudeCode), &ImportOptions::default(), &mut collected)
            .unwrap();
        assert_eq!(collected.warnings, []);
        clock.elapsed()
    };
    let branches = || (0..2).flat_map(|branch| (0..20_000).map(move |depth| (branch, depth)));
    let on = branches().chain((20_000..40_000).map(|depth| (1, depth)));
    let to_and_fro = branches().chain((40_000..60_000).map(|line| (line % 2, line / 2)));
    let (on, to_and_fro): (Vec<_>, Vec<_>) = (on.collect(), to_and_fro.collect());
    // The minimum of several runs: other processes can only make a run slower.
    let mut shortest = [std::time::Duration::MAX; 2];
    let is_in_proportion = (0..10).any(|_| {
        shortest[0] = shortest[0].min(took(on.clone()));
        shortest[1] = shortest[1].min(took(to_and_fro.clone()));
        shortest[1] < shortest[0] * 4
    });
    assert!(is_in_proportion, "{:?} instead of {:?}", shortest[1], shortest[0]);
}

/// One limit for a message of a list, a line of a session and a node of a graph.
#[test]
fn every_format_has_the_same_size_limit() {
    let text = "a".repeat(9_000);
    for (format, file) in [
        (Format::OpenAiChat, format!(r#"[{{"role":"user","content":"{text}"}}]"#)),
        (Format::Gemini, format!(r#"[{{"role":"user","parts":[{{"text":"{text}"}}]}}]"#)),
        (
            Format::ClaudeCode,
            format!(
                r#"{{"type":"user","uuid":"1","parentUuid":null,"message":{{"role":"user","content":"{text}"}}}}"#
            ),
        ),
        (
            Format::Codex,
            format!(
                r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":"{text}"}}}}"#
            ),
        ),
        (
            Format::ChatGpt,
            format!(
                r#"[{{"mapping":{{"a":{{"id":"a","message":{{"author":{{"role":"user"}},"content":{{"content_type":"text","parts":["{text}"]}}}},"parent":null,"children":[]}}}}}}]"#
            ),
        ),
    ] {
        let read = |message_bytes: usize| {
            let limits = Limits { message_bytes, ..Limits::default() };
            let options = ImportOptions { limits, ..ImportOptions::default() };
            let mut replay = Replay::new(Settings::counting_with(Approx), 0);
            let imported = import(&*file, Some(format), &options, &mut replay);
            let branches = replay.conversations.iter().flat_map(|it| it.branches.first());
            let count: usize = branches.map(|it| it.conversation.log().len()).sum();
            (imported.is_ok() && replay.warnings.is_empty(), count)
        };
        assert_eq!(read(9_500), (true, 1), "{format}");
        assert_eq!(read(8_500), (false, 0), "{format}");
    }
}
