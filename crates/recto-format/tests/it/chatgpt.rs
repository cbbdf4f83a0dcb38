//! ChatGPT's data export: graphs, hidden messages, calls, and ZIP files of all kinds.

use std::io::Write as _;

use recto_core::{Conversation, Message, Version};
use recto_format::{Collected, Container, Error, Format, ImportOptions, Replay, import};
use serde_json::{Value, json};

use crate::files::{exported, imported, messages};

const CHATGPT: Format = Format::ChatGpt;

fn corpus() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/chatgpt/conversations.json");
    std::fs::read_to_string(path).unwrap()
}

fn texts_by_role(conversation: &Conversation) -> Vec<String> {
    let describe = |message: &Message| {
        let text = message.text();
        format!("{}: {}", message.role().as_str(), text.lines().next().unwrap_or_default())
    };
    conversation.messages().map(describe).collect()
}

fn first(replay: &Replay) -> &Conversation {
    &replay.conversations[0].branches[0].conversation
}

/// A node with a user's text.
fn node(id: &str, parent: Option<&str>, children: &[&str]) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    let children: Vec<String> = children.iter().map(|child| format!("\"{child}\"")).collect();
    let children = children.join(",");
    format!(
        r#""{id}":{{"id":"{id}","message":{{"author":{{"role":"user"}},"content":{{"content_type":"text","parts":["{id}"]}}}},"parent":{parent},"children":[{children}]}}"#
    )
}

fn one_conversation(current: &str, nodes: &[String]) -> String {
    format!(r#"[{{"mapping":{{{}}},"current_node":{current}}}]"#, nodes.join(","))
}

#[test]
fn the_current_branch_is_what_the_model_reads() {
    let replay = imported(&corpus(), CHATGPT);
    assert_eq!(replay.warnings, []);
    assert_eq!(replay.conversations.len(), 2);
    let start = &replay.conversations[0].start;
    assert_eq!(start.name.as_deref(), Some("Checkout"));
    assert_eq!(start.id.as_deref(), Some("c0ffee00-0000-4000-8000-000000000001"));
    assert_eq!(start.created, Some(1_714_557_600_123));
    first(&replay).verify().unwrap();
    assert_eq!(
        texts_by_role(first(&replay)),
        [
            "user: Why does checkout fail?",
            "assistant: ",
            r#"assistant: python "print(1)""#,
            "tool: 1",
            "tool: quoted",
            "assistant: See",
            "user: Thanks",
        ]
    );
    assert_eq!(
        texts_by_role(&replay.conversations[1].branches[0].conversation),
        ["user: Second conversation"]
    );
}

#[test]
fn abandoned_branches_are_versions_and_hidden_messages_are_in_the_log() {
    let replay = imported(&corpus(), CHATGPT);
    let conversation = first(&replay);
    assert_eq!(conversation.log().len(), 10);
    let left = conversation.versions().find(|info| {
        conversation
            .at(info.version)
            .unwrap()
            .messages()
            .any(|message| message.text() == "First try.")
    });
    let left = conversation.at(left.unwrap().version).unwrap();
    assert_eq!(texts_by_role(&left), ["user: Why does checkout fail?", "assistant: First try."]);
    let call = conversation
        .messages()
        .find_map(|message| message.tool_calls().next().map(|it| it.id.into_owned()));
    let answered: Vec<_> = conversation.messages().flat_map(Message::tool_result_ids).collect();
    assert_eq!(call.as_deref(), Some("a3"));
    assert_eq!(answered, ["a3", "a3"]);
}

#[test]
fn an_exported_conversation_is_imported_with_the_same_messages() {
    let text = corpus();
    let replay = imported(&text, CHATGPT);
    let expected: Value = serde_json::from_str(&text).unwrap();
    for (number, replayed) in replay.conversations.iter().enumerate() {
        let log: Vec<Message> = replayed.branches[0]
            .conversation
            .log()
            .iter()
            .map(|entry| entry.message.clone())
            .collect();
        let container = Container::Envelope(replayed.envelope.as_deref().unwrap());
        let written: Value = serde_json::from_str(&exported(&log, CHATGPT, container)).unwrap();
        assert_eq!(written[0], expected[number]);
    }
}

#[test]
fn an_edited_conversation_is_exported_with_new_links() {
    let replay = imported(&corpus(), CHATGPT);
    let mut messages: Vec<Message> = first(&replay).messages().cloned().collect();
    messages.remove(1);
    messages.push(Message::assistant("Welcome."));
    let envelope = replay.conversations[0].envelope.as_deref().unwrap();
    let written = exported(&messages, CHATGPT, Container::Envelope(envelope));
    let again = imported(&written, CHATGPT);
    assert_eq!(again.warnings, []);
    let mut expected = texts_by_role(first(&replay));
    expected.remove(1);
    expected.push("assistant: Welcome.".into());
    // The export has the title of the envelope, and only the messages of the view.
    assert_eq!(again.conversations[0].start.name.as_deref(), Some("Checkout"));
    assert_eq!(texts_by_role(first(&again)), expected);
}

#[test]
fn graphs_of_all_shapes_are_imported_completely() {
    // The current node has children.
    let nodes = [node("a", None, &["b"]), node("b", Some("a"), &["c"]), node("c", Some("b"), &[])];
    let replay = imported(&one_conversation("\"b\"", &nodes), CHATGPT);
    assert_eq!(texts_by_role(first(&replay)), ["user: a", "user: b"]);
    assert_eq!(first(&replay).log().len(), 3);
    // Without a current node, the newest message is the last one.
    let nodes =
        [node("a", None, &["b", "c"]), node("b", Some("a"), &[]), node("c", Some("a"), &[])];
    let replay = imported(&one_conversation("null", &nodes), CHATGPT);
    assert_eq!(texts_by_role(first(&replay)), ["user: a", "user: c"]);
    // Branches of branches, and a child that its parent does not list.
    let nodes = [
        node("a", None, &["b", "c"]),
        node("b", Some("a"), &["d", "e"]),
        node("c", Some("a"), &[]),
        node("d", Some("b"), &[]),
        node("e", Some("b"), &[]),
        node("f", Some("a"), &[]),
    ];
    let replay = imported(&one_conversation("\"c\"", &nodes), CHATGPT);
    assert_eq!(texts_by_role(first(&replay)), ["user: a", "user: c"]);
    let seen: Vec<Vec<String>> = (0..=first(&replay).version().0)
        .map(|it| texts_by_role(&first(&replay).at(Version(it)).unwrap()))
        .collect();
    for branch in [["a", "b", "d"], ["a", "b", "e"]] {
        let branch: Vec<String> = branch.iter().map(|text| format!("user: {text}")).collect();
        assert!(seen.contains(&branch), "{branch:?} in {seen:?}");
    }
    // Two roots, and a cycle.
    let nodes = [
        node("a", None, &[]),
        node("b", None, &[]),
        node("x", Some("y"), &["y"]),
        node("y", Some("x"), &["x"]),
    ];
    let replay = imported(&one_conversation("\"a\"", &nodes), CHATGPT);
    assert_eq!(texts_by_role(first(&replay)), ["user: a"]);
    // Two for the cycle, and one for the order: the current branch is last.
    assert_eq!(replay.warnings.len(), 3);
}

#[test]
fn a_long_chain_does_not_overflow_the_stack() {
    let ids: Vec<String> = (0..20_000).map(|number| format!("n{number}")).collect();
    let nodes: Vec<String> = (0..ids.len())
        .map(|at| {
            let parent = at.checked_sub(1).map(|before| &*ids[before]);
            let next: Vec<&str> = ids.get(at + 1).map(|next| &**next).into_iter().collect();
            node(&ids[at], parent, &next)
        })
        .collect();
    let replay = imported(&one_conversation("\"n19999\"", &nodes), CHATGPT);
    assert_eq!(first(&replay).view().len(), 20_000);
}

// ---- ZIP files ----

struct Entry<'a> {
    name: &'a str,
    body: &'a [u8],
    is_packed: bool,
    is_streamed: bool,
}

/// A ZIP file with only the start of its central directory.
fn zip(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut file = Vec::new();
    for entry in entries {
        let mut sum = flate2::Crc::new();
        sum.update(entry.body);
        let packed = match entry.is_packed {
            true => {
                let mut encoder =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(entry.body).unwrap();
                encoder.finish().unwrap()
            }
            false => entry.body.to_vec(),
        };
        let sizes = [sum.sum(), packed.len() as u32, entry.body.len() as u32];
        let shown = if entry.is_streamed { [0; 3] } else { sizes };
        file.extend(b"PK\x03\x04");
        let method = if entry.is_packed { 8 } else { 0 };
        let flags = if entry.is_streamed { 8 } else { 0 };
        for short in [20_u16, flags, method, 0, 0] {
            file.extend(short.to_le_bytes());
        }
        shown.iter().for_each(|size| file.extend(size.to_le_bytes()));
        file.extend((entry.name.len() as u16).to_le_bytes());
        file.extend(0_u16.to_le_bytes());
        file.extend(entry.name.as_bytes());
        file.extend(&packed);
        if entry.is_streamed {
            file.extend(b"PK\x07\x08");
            sizes.iter().for_each(|size| file.extend(size.to_le_bytes()));
        }
    }
    file.extend(b"PK\x01\x02");
    file
}

fn read(file: &[u8]) -> Result<Collected, Error> {
    let mut collected = Collected::default();
    import(file, None, &ImportOptions::default(), &mut collected).map(|_| collected)
}

#[test]
fn conversations_are_found_in_zip_files_of_all_kinds() {
    let text = corpus();
    let body = text.as_bytes();
    let mut plain = Collected::default();
    import(&*text, None, &ImportOptions::default(), &mut plain).unwrap();
    for (is_packed, is_streamed) in [(true, false), (false, false), (true, true)] {
        let image = vec![0x50, 0x4b, 3, 4, 9];
        let file = zip(&[
            Entry { name: "user.json", body: b"{}", is_packed, is_streamed },
            Entry { name: "a/file-abc.png", body: &image, is_packed, is_streamed },
            Entry { name: "conversations.json", body, is_packed, is_streamed },
        ]);
        assert_eq!(read(&file).unwrap().steps, plain.steps, "{is_packed} {is_streamed}");
    }
    let parts = zip(&[
        Entry { name: "conversations-000.json", body, is_packed: true, is_streamed: false },
        Entry { name: "conversations-001.json", body, is_packed: true, is_streamed: false },
    ]);
    assert_eq!(read(&parts).unwrap().steps.len(), 2 * plain.steps.len());
}

#[test]
fn names_of_zip_entries_are_not_used_as_paths() {
    let secret = std::env::temp_dir().join("recto-zip-slip-conversations.json");
    let name = format!("../../../../../..{}", secret.display());
    let file = zip(&[
        Entry { name: &name, body: b"[]", is_packed: true, is_streamed: false },
        Entry {
            name: "../../conversations.json",
            body: b"[]",
            is_packed: true,
            is_streamed: false,
        },
        Entry {
            name: "C:\\x\\conversations.json",
            body: b"[]",
            is_packed: true,
            is_streamed: false,
        },
    ]);
    assert_eq!(read(&file).unwrap().steps, []);
    assert!(!secret.exists());
}

#[test]
fn zip_bombs_are_refused_in_every_entry_that_is_decompressed() {
    let bomb = vec![b' '; 40 << 20];
    for is_streamed in [false, true] {
        let file =
            zip(&[Entry { name: "conversations.json", body: &bomb, is_packed: true, is_streamed }]);
        assert!(file.len() < 100 << 10);
        let error = read(&file).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
    // In an entry that is skipped without decompression, a bomb does no harm. An entry that has to be
    // decompressed to find its end fails.
    let entry = |name, is_streamed| Entry { name, body: &bomb, is_packed: true, is_streamed };
    let good =
        Entry { name: "conversations.json", body: b"[]", is_packed: true, is_streamed: false };
    assert!(read(&zip(&[entry("x", false), good])).is_ok());
    assert!(matches!(read(&zip(&[entry("conversations", true)])), Err(Error::TooLarge { .. })));
}

#[test]
fn damaged_zip_files_are_errors() {
    let text = corpus();
    let entry = || Entry {
        name: "conversations.json",
        body: text.as_bytes(),
        is_packed: true,
        is_streamed: false,
    };
    let whole = zip(&[entry()]);
    for len in 4..whole.len() {
        assert!(read(&whole[..len]).is_err(), "cut at {len}");
    }
    let mut wrong = whole.clone();
    wrong[14] ^= 1; // the checksum
    assert!(read(&wrong).unwrap_err().to_string().contains("checksum"));
    let mut locked = whole.clone();
    locked[6] |= 1;
    assert!(read(&locked).unwrap_err().to_string().contains("encrypted"));
    let mut strange = whole;
    strange[8] = 99;
    assert!(read(&strange).unwrap_err().to_string().contains("method 99"));
    let other = zip(&[Entry {
        name: "conversations.txt",
        body: b"",
        is_packed: false,
        is_streamed: false,
    }]);
    assert!(read(&other).unwrap_err().to_string().contains("no conversations.json"));
}

#[test]
fn unreadable_content_is_reported_with_its_node() {
    let nodes = [
        node("a", None, &["b"]),
        r#""b":{"id":"b","message":{"author":{"role":"wizard"},"content":{}},"parent":"a","children":[]}"#.to_owned(),
    ];
    let replay = imported(&one_conversation("\"b\"", &nodes), CHATGPT);
    let fields: Vec<&str> = replay.warnings.iter().map(|warning| &*warning.field).collect();
    // The second warning: nodes behind the last message are not kept.
    assert_eq!(fields, ["mapping.b.message.author.role", "mapping"]);
    assert_eq!(texts_by_role(first(&replay)), ["user: a"]);
}

/// One node calls one tool, so parallel calls become several nodes.
#[test]
fn parallel_calls_are_exported_one_by_one() {
    let call = |id: &str, name: &str, n: u8| json!({"type": "tool_use", "id": id, "name": name, "input": {"n": n}});
    let result =
        |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let message = |value: Value| Message::from_json(&value.to_string()).unwrap();
    let view = [
        Message::user("Compare."),
        message(json!({"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            call("a", "load", 1), call("b", "load", 2), call("c", "count", 3),
        ]})),
        message(json!({"role": "tool", "content": [result("a", "one"), result("b", "two")]})),
        message(json!({"role": "tool", "content": [result("c", "three")]})),
        Message::assistant("Done."),
    ];
    let file = exported(&view, Format::ChatGpt, Container::List);
    let (again, warnings) = messages(&file, Format::ChatGpt);
    assert_eq!(warnings, []);
    let texts: Vec<String> = again.iter().map(|message| message.text().into_owned()).collect();
    let said = ["Compare.", "I look.", "load {\"n\":1}", "load {\"n\":2}", "count {\"n\":3}"];
    assert_eq!(texts, [&said[..], &["one", "two", "three", "Done."]].concat());
    let ids = |which: &[Message], uses: bool| -> Vec<String> {
        let ids = which.iter().flat_map(|message| match uses {
            true => message.tool_calls().map(|call| call.id.into_owned()).collect::<Vec<_>>(),
            false => message.tool_result_ids().map(|id| id.into_owned()).collect(),
        });
        ids.collect()
    };
    assert_eq!(ids(&again, true), ids(&again, false), "each result answers its call");
}

#[test]
fn links_that_contradict_the_graph_are_reported() {
    let remarks = |nodes: &[String]| {
        let read = read(one_conversation("\"b\"", nodes).as_bytes()).unwrap();
        let remarks = read.warnings.iter().map(|it| format!("{}: {}", it.field, it.message));
        remarks.collect::<Vec<String>>()
    };
    let sound = [node("a", None, &["b"]), node("b", Some("a"), &[])];
    assert_eq!(remarks(&sound), [""; 0]);
    let dangling = [node("a", Some("gone"), &["lost", "b"]), node("b", Some("a"), &[])];
    let found = remarks(&dangling);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("mapping.a.parent: the parent \"gone\" is not in"), "{found:?}");
    assert!(found[1].starts_with("mapping.a.children: \"lost\" is not a child"), "{found:?}");
    let reversed = [node("b", Some("a"), &[]), node("a", None, &["b"])];
    let order =
        "mapping: export writes the nodes in the order of the branches, the current one last";
    assert_eq!(remarks(&reversed), [order]);
    let spaced =
        one_conversation("\"a\"", &[node("a", None, &[])]).replace(",\"current", ", \"current");
    let read = read(spaced.as_bytes()).unwrap();
    let [remark] = &read.warnings[..] else { panic!("{:?}", read.warnings) };
    assert!(remark.message.contains("no white space between"), "{remark:?}");
    let unlisted = [node("a", None, &[]), node("b", Some("a"), &[])];
    let found = remarks(&unlisted);
    assert_eq!(
        found,
        ["mapping.a.children: the node \"b\" names this parent: export adds the link"]
    );
}
