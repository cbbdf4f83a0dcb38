//! Import of transcripts into a store.

use std::sync::Arc;

use recto::{Import, ImportName, Options, Recto, Settings, Version};
use recto_core::{Approx, Message};
use recto_format::{Collected, ImportOptions, Start, Step, import};

use crate::interrupted_store::InterruptedStore;

fn settings() -> Settings {
    Settings::counting_with(Approx)
}

async fn names(recto: &Recto) -> Vec<String> {
    let listed = recto.list(None, 100).await.unwrap();
    listed.into_iter().map(|info| info.name).collect()
}

fn exactly(name: &str) -> ImportName {
    ImportName::Exactly(name.to_owned())
}

fn titled() -> ImportName {
    ImportName::FromTitle { default: "untitled".to_owned() }
}

fn start(name: Option<&str>) -> Step {
    Step::Start(name.map_or_else(Start::default, Start::named))
}

#[tokio::test]
async fn a_session_is_imported_with_its_versions_and_its_compaction() {
    let rollout = concat!(
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"One"}}"#,
        "\n",
        r#"{"type":"compacted","payload":{"message":"They counted."}}"#,
        "\n",
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"Two"}}"#,
        "\n",
    );
    let mut read = Collected::default();
    import(rollout, None, &ImportOptions::default(), &mut read).unwrap();
    let recto = Recto::open("memory:").await.unwrap();
    let mut into = Import::new(&recto, exactly("counting"), settings());
    for step in read.steps {
        into.step(step).await.unwrap();
    }
    let imported = into.finish().await.unwrap();
    assert_eq!((imported.len(), &*imported[0].name, imported[0].messages), (1, "counting", 3));
    let conversation = recto.conversation("counting").await.unwrap();
    let versions =
        conversation.versions(Version(0)..Version(imported[0].version.0 + 1)).await.unwrap();
    let reasons: Vec<&str> = versions.iter().map(|version| &*version.reason).collect();
    assert!(reasons.contains(&"the session was compacted"), "{reasons:?}");
    assert_eq!(conversation.messages_at(Version(1)).await.unwrap().len(), 1);
    assert!(conversation.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn unfinished_conversations_have_names_that_end_with_importing() {
    let recto = Recto::open("memory:").await.unwrap();
    recto.create("conversation (importing)", settings()).await.unwrap();
    let mut into = Import::new(&recto, exactly("conversation"), settings());
    into.step(start(None)).await.unwrap();
    into.step(Step::Append(vec![Message::user("a")])).await.unwrap();
    let fork = Step::Fork { name: "side\nway".to_owned(), parent_branch: 0, version: Version(0) };
    into.step(fork).await.unwrap();
    into.step(Step::Append(vec![Message::user("b"), Message::user("c")])).await.unwrap();
    into.step(Step::SwitchBranch(0)).await.unwrap();
    into.step(Step::Append(vec![Message::user("d")])).await.unwrap();
    let left = "conversation (importing)";
    let side = "conversation/side way (importing)";
    assert_eq!(names(&recto).await, [left, "conversation (importing) 2", side]);
    let imported = into.finish().await.unwrap();
    assert_eq!(names(&recto).await, ["conversation", left, "conversation/side way"]);
    let [whole, side] = &imported[..] else { panic!("{imported:?}") };
    assert_eq!((whole.messages, whole.version, whole.fork_of), (2, Version(2), None));
    let from = Some((0, Version(0)));
    assert_eq!((side.messages, side.version, side.fork_of), (2, Version(1), from));
}

#[tokio::test]
async fn an_abandoned_import_leaves_nothing() {
    let recto = Recto::open("memory:").await.unwrap();
    let mut into = Import::new(&recto, titled(), settings());
    into.step(start(Some("one"))).await.unwrap();
    into.step(Step::Append(vec![Message::user("a")])).await.unwrap();
    let fork = Step::Fork { name: "side".to_owned(), parent_branch: 0, version: Version(1) };
    into.step(fork).await.unwrap();
    into.step(start(Some("two"))).await.unwrap();
    let refused = Step::Apply(recto::Rollback::ToVersion(Version(9)).into());
    into.step(refused).await.unwrap(); // it waits for the other requests of its group
    assert_eq!(into.finish().await.unwrap_err().code(), "version_not_found");
    assert!(into.abandon().await.is_empty());
    assert_eq!(names(&recto).await, [""; 0]);
}

#[tokio::test]
async fn an_import_stops_when_another_writer_changes_its_conversation() {
    let recto = Recto::open("memory:").await.unwrap();
    let mut into = Import::new(&recto, exactly("conversation"), settings());
    into.step(start(None)).await.unwrap();
    into.step(Step::Append(vec![Message::user("a")])).await.unwrap();
    let other = recto.conversation("conversation (importing)").await.unwrap();
    other.append([Message::user("not in the file")]).await.unwrap();
    // Versions are committed in groups, so the conflict is detected when the group is committed.
    into.step(Step::Append(vec![Message::user("b")])).await.unwrap();
    assert_eq!(into.finish().await.unwrap_err().code(), "version_conflict");
    assert!(into.abandon().await.is_empty());
}

#[tokio::test]
async fn an_exact_name_must_be_free_and_other_names_get_numbers() {
    let recto = Recto::open("memory:").await.unwrap();
    recto.create("conversation", settings()).await.unwrap();
    let mut into = Import::new(&recto, exactly("conversation"), settings());
    assert_eq!(into.step(start(None)).await.unwrap_err().code(), "conversation_exists");
    assert!(into.abandon().await.is_empty());
    let mut into = Import::new(&recto, titled(), settings());
    for title in [Some("conversation"), None, Some("conversation"), Some(" "), Some("other")] {
        into.step(start(title)).await.unwrap();
    }
    // Another conversation gets the name in the meantime.
    recto.create("other", settings()).await.unwrap();
    let imported = into.finish().await.unwrap();
    let names: Vec<&str> = imported.iter().map(|made| &*made.name).collect();
    assert_eq!(names, ["conversation 2", "untitled", "conversation 3", "untitled 2", "other 2"]);
    let mut into = Import::new(&recto, exactly("many"), settings());
    into.step(start(Some("x"))).await.unwrap();
    into.step(start(Some("y"))).await.unwrap();
    let imported = into.finish().await.unwrap();
    assert_eq!((&*imported[0].name, &*imported[1].name), ("many", "many 2"));
}

#[tokio::test]
async fn steps_out_of_order_and_tools_are_refused() {
    let recto = Recto::open("memory:").await.unwrap();
    let steps = [
        Step::Append(vec![Message::user("a")]),
        Step::Envelope("{}".to_owned()),
        Step::Fork { name: "f".to_owned(), parent_branch: 0, version: Version(0) },
    ];
    for step in steps {
        let mut into = Import::new(&recto, exactly("conversation"), settings());
        assert_eq!(into.step(step).await.unwrap_err().code(), "invalid_operation");
    }
    let tools = vec![recto::Tool::new("ls", "lists")];
    let mut into = Import::new(&recto, exactly("conversation"), Settings { tools, ..settings() });
    assert_eq!(into.step(start(None)).await.unwrap_err().code(), "invalid_operation");
}

/// A transcript of many lines, one message each.
fn long_transcript(lines: usize) -> String {
    let line = |number| format!("{{\"role\":\"user\",\"content\":\"message {number}\"}}\n");
    (0..lines).map(line).collect()
}

fn options(naming: ImportName) -> recto::ImportOptions {
    recto::ImportOptions::new(naming, settings())
}

#[tokio::test]
async fn one_call_imports_a_transcript() {
    let recto = Recto::open("memory:").await.unwrap();
    let transcript = long_transcript(1_000);
    let bytes = transcript.len() as u64;
    let mut read = 0;
    let progress = &mut |bytes| read = bytes;
    let imported = recto.import_with_progress(transcript, options(exactly("a")), progress).await;
    let imported = imported.unwrap();
    assert_eq!(imported.format.name(), "openai-chat");
    assert_eq!((imported.conversations.len(), imported.conversations[0].messages), (1, 1_000));
    assert!(read >= bytes - 1, "{read} of {bytes} bytes were reported");
    let conversation = recto.conversation("a").await.unwrap();
    assert_eq!(conversation.messages().await.unwrap()[999].message.text(), "message 999");
    assert_eq!(names(&recto).await, ["a"]);
}

#[tokio::test]
async fn a_failed_import_leaves_nothing() {
    let recto = Recto::open("memory:").await.unwrap();
    // A list that ends in the middle, after two steps of 256 messages.
    let broken = format!("[{}", long_transcript(600).replace('\n', ","));
    let error = recto.import(broken, options(exactly("a"))).await.unwrap_err();
    let recto::Error::NotImported { cause, left } = &error else { panic!("{error:?}") };
    assert!(matches!(**cause, recto::Error::Format(_)), "{cause:?}");
    assert!(left.is_empty());
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(error.code(), "invalid_json");
    assert_eq!(error.to_json()["error"]["details"]["left"], serde_json::json!([]));
    assert!(error.to_string().ends_with("; nothing was imported"), "{error}");
    assert_eq!(names(&recto).await, [""; 0]);

    let empty = recto.import("[]".to_owned(), options(exactly("a"))).await.unwrap_err();
    assert!(["empty_content", "invalid_operation"].contains(&empty.code()), "{empty}");
    recto.create("a", settings()).await.unwrap();
    let taken = recto.import(long_transcript(3), options(exactly("a"))).await.unwrap_err();
    assert_eq!(taken.code(), "conversation_exists");
    assert_eq!(names(&recto).await, ["a"]);
}

#[tokio::test]
async fn a_cancelled_import_leaves_nothing() {
    let recto = Recto::open("memory:").await.unwrap();
    for bytes_before in [0, 30_000] {
        let options = options(exactly("a"));
        let cancel = options.cancel.clone();
        let progress = &mut |bytes: u64| {
            if bytes > bytes_before {
                cancel.cancel();
            }
        };
        let imported = recto.import_with_progress(long_transcript(2_000), options, progress).await;
        let error = imported.unwrap_err();
        assert_eq!(error.code(), "interrupted", "{error}");
        assert_eq!(names(&recto).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_dropped_import_leaves_conversations_that_are_named_as_incomplete() {
    let recto = Recto::open("memory:").await.unwrap();
    let import = recto.import(long_transcript(50_000), options(exactly("a")));
    let dropped = tokio::time::timeout(std::time::Duration::from_millis(5), import).await;
    assert!(dropped.is_err(), "the import took less than 5 ms");
    assert!(names(&recto).await.iter().all(|name| name == "a (importing)"));
}

#[tokio::test]
async fn a_file_is_imported_and_a_remark_lists_its_other_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("request.json");
    let request = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"top_k":3}"#;
    std::fs::write(&path, request).unwrap();
    let recto = Recto::open("memory:").await.unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let imported = recto.import(file, options(titled())).await.unwrap();
    assert_eq!(imported.conversations[0].name, "untitled");
    let remark = imported.warnings.last().unwrap();
    assert_eq!(remark.field, "around the messages");
    assert!(remark.message.contains("top_k"), "{remark:?}");
}

#[tokio::test]
async fn the_tools_of_a_request_become_those_of_its_conversation() {
    let request = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"ls","description":"Lists files.","parameters":{"type":"object","properties":{}}}},{"type":"web_search"}]}"#;
    let recto = Recto::open("memory:").await.unwrap();
    let imported = recto.import(request.to_owned(), options(exactly("a"))).await.unwrap();
    let tools = recto.conversation("a").await.unwrap().tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["ls", "web_search"]);
    let remark = imported.warnings.last().unwrap();
    assert_eq!(remark.message, "not kept: model");
}

#[tokio::test]
async fn f18_an_import_commits_its_steps_in_groups() {
    let line = |number: usize| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":"{number}"}}}}"#
        )
    };
    let rollout: Vec<String> = (0..500).map(line).collect();
    let store = InterruptedStore::counting(Arc::new(recto_store::MemoryStore::default()));
    let recto = Recto::with_store(store.clone(), Options::default());
    recto.import(rollout.join("\n"), options(exactly("a"))).await.unwrap();
    let version = recto.conversation("a").await.unwrap().version().await.unwrap();
    assert_eq!(version, Version(500));
    assert!(store.commits() <= 50, "{} commits for 500 versions", store.commits());
}

/// Groups end where rows are packed, and rewinds read packed rows.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_session_that_is_committed_in_groups_has_the_versions_of_its_steps() {
    let line = |number: usize, parent: String| {
        let text = format!("{number} {}", "and so on ".repeat(number % 400));
        format!(
            r#"{{"type":"message","id":"m{number}","parentId":"{parent}","timestamp":"2026-05-01T10:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        )
    };
    let header = r#"{"type":"session","id":"s","timestamp":"2026-05-01T10:00:00.000Z","cwd":"/"}"#;
    let mut lines = vec![header.to_owned()];
    for number in 0..600 {
        // Every 50th line goes back to one of the first.
        let parent = if number % 50 == 49 { number / 7 } else { number.max(1) - 1 };
        lines.push(line(number, if number == 0 { "s".to_owned() } else { format!("m{parent}") }));
    }
    let session = lines.join("\n");
    let mut replay = recto_format::Replay::new(settings(), 0);
    let options = recto_format::ImportOptions::default();
    recto_format::import(&session, None, &options, &mut replay).unwrap();
    let expected = &replay.conversations[0].branches[0].conversation;

    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("groups.db").display());
    let recto = Recto::open(&address).await.unwrap();
    let options = recto::ImportOptions::new(exactly("grouped"), settings());
    recto.import(session.clone().into_bytes(), options).await.unwrap();
    drop(recto);
    let recto = Recto::open(&address).await.unwrap();
    let conversation = recto.conversation("grouped").await.unwrap();
    assert_eq!(conversation.version().await.unwrap(), expected.version());
    for version in (0..=expected.version().0).step_by(37).chain([expected.version().0]) {
        let version = recto::Version(version);
        let expected: Vec<String> =
            expected.at(version).unwrap().messages().map(|it| it.json().to_owned()).collect();
        let found = conversation.messages_at(version).await.unwrap();
        let found: Vec<&str> = found.iter().map(|entry| entry.message.json()).collect();
        assert_eq!(found, expected, "{version}");
    }
}

/// An answer with signed thinking.
fn thinking(text: &str) -> Message {
    let json = format!(
        r#"{{"role":"assistant","content":[{{"type":"thinking","text":"Hm.","signature":"AAAA"}},{{"type":"text","text":"{text}"}}]}}"#
    );
    Message::from_json(&json).unwrap()
}

#[tokio::test]
async fn thinking_is_bound_to_the_messages_and_tools_before_it() {
    use recto::Tool;
    use recto_core::{ReplaceEntries, Undo};
    let recto = Recto::open("memory:").await.unwrap();
    let conversation = recto.create("c", settings()).await.unwrap();
    conversation.set_tools(vec![Tool::new("f", "d")]).await.unwrap();
    let edited = async || {
        let version = conversation.version().await.unwrap();
        let entries = conversation.messages_to_send(version).await.unwrap();
        conversation.invalid_thinking(version, &entries).await.unwrap().len()
    };
    conversation.append([Message::user("One")]).await.unwrap();
    let version = conversation.version().await.unwrap();
    let index = conversation.messages_to_send(version).await.unwrap().last().unwrap().index;
    conversation.append([thinking("a"), Message::user("Two"), thinking("b")]).await.unwrap();
    assert_eq!(edited().await, 0);
    let (indices, messages) = (vec![index], vec![Message::user("ONE")]);
    conversation.apply(ReplaceEntries { indices, messages }).await.unwrap();
    assert_eq!(edited().await, 2, "messages without a model count");
    conversation.apply(Undo).await.unwrap();
    assert_eq!(edited().await, 0, "after UNDO the messages are the same again");
    conversation.set_tools(vec![Tool::new("g", "d")]).await.unwrap();
    assert_eq!(edited().await, 2, "the tools are other ones");
}

#[tokio::test]
async fn thinking_behind_a_signed_compaction_block_stays_valid() {
    use recto_core::{Compress, ReplaceEntries, Undo};
    let recto = Recto::open("memory:").await.unwrap();
    let conversation = recto.create("c", settings()).await.unwrap();
    let messages = [
        Message::system("Be brief."),
        Message::user("One"),
        thinking("a"),
        Message::user("Two"),
        thinking("b"),
        Message::user("Three"),
        thinking("c"),
    ];
    for message in messages {
        conversation.append([message]).await.unwrap();
    }
    let invalid = async || {
        let version = conversation.version().await.unwrap();
        let entries = conversation.messages_to_send(version).await.unwrap();
        let invalid = conversation.invalid_thinking(version, &entries).await.unwrap();
        invalid.iter().map(|&at| entries[at].message.text().into_owned()).collect::<Vec<_>>()
    };
    let compress = async |signature: &str| {
        let json = format!(
            r#"{{"role":"assistant","content":[{{"type":"compaction","content":"So far."{signature}}}],"metadata":{{"source":{{"provider":"anthropic"}}}}}}"#
        );
        let summary = Message::from_json(&json).unwrap();
        let indices = [recto::LogIndex(1), recto::LogIndex(2)];
        conversation.apply(Compress::with_summary(indices, summary)).await.unwrap();
    };
    compress(r#","signature":"AAAA""#).await;
    assert_eq!(invalid().await, [""; 0], "the kept turns follow the block unchanged");
    // An edit between the block and the thinking.
    let (indices, messages) = (vec![recto::LogIndex(3)], vec![Message::user("TWO")]);
    conversation.apply(ReplaceEntries { indices, messages }).await.unwrap();
    assert_eq!(invalid().await, ["b", "c"]);
    conversation.apply(Undo).await.unwrap();
    conversation.apply(Undo).await.unwrap();
    // A summary without a signature is an edit.
    compress("").await;
    assert_eq!(invalid().await, ["b", "c"]);
}

#[tokio::test]
async fn a_change_of_the_tools_of_an_imported_request_is_an_edit_before_its_thinking() {
    use recto::Tool;
    let request = r#"{"model":"claude-x","max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"One"},{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"AAAA"},{"type":"text","text":"a"}]},{"role":"user","content":"Two"}]}"#;
    let recto = Recto::open("memory:").await.unwrap();
    recto.import(request.to_owned(), options(exactly("c"))).await.unwrap();
    let conversation = recto.conversation("c").await.unwrap();
    let edited = async || {
        let version = conversation.version().await.unwrap();
        let entries = conversation.messages_to_send(version).await.unwrap();
        conversation.invalid_thinking(version, &entries).await.unwrap().len()
    };
    assert_eq!(edited().await, 0);
    conversation.set_tools(vec![Tool::new("g", "d")]).await.unwrap();
    assert_eq!(edited().await, 1);
}
