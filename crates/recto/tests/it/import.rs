//! Transcripts that are imported into a store.

use recto::{Import, Naming, Recto, Settings, Version};
use recto_core::{Approx, Message};
use recto_format::{Collected, ImportOptions, Start, Step, import};

fn settings() -> Settings {
    Settings::counting_with(Approx)
}

async fn names(recto: &Recto) -> Vec<String> {
    let listed = recto.list(None, 100).await.unwrap();
    listed.into_iter().map(|info| info.name).collect()
}

fn exactly(name: &str) -> Naming {
    Naming::Exactly(name.to_owned())
}

fn titled() -> Naming {
    Naming::AsTitled { otherwise: "untitled".to_owned() }
}

fn start(name: Option<&str>) -> Step {
    Step::Start(name.map_or_else(Start::default, Start::named))
}

#[tokio::test]
async fn a_session_comes_with_its_versions_and_its_compaction() {
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
    let talk = recto.conversation("counting").await.unwrap();
    let versions = talk.versions(0..imported[0].version.0 + 1).await.unwrap();
    let told: Vec<&str> = versions.iter().map(|version| &*version.description).collect();
    assert!(told.contains(&"the session was compacted"), "{told:?}");
    assert_eq!(talk.messages_at(Version(1)).await.unwrap().len(), 1);
    assert!(talk.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn until_it_is_finished_a_conversation_is_called_so() {
    let recto = Recto::open("memory:").await.unwrap();
    recto.create("talk (importing)", settings()).await.unwrap();
    let mut into = Import::new(&recto, exactly("talk"), settings());
    into.step(start(None)).await.unwrap();
    into.step(Step::Append(vec![Message::user("a")])).await.unwrap();
    let fork = Step::Fork { name: "side\nway".to_owned(), parent_branch: 0, version: Version(0) };
    into.step(fork).await.unwrap();
    into.step(Step::Append(vec![Message::user("b"), Message::user("c")])).await.unwrap();
    into.step(Step::SwitchBranch(0)).await.unwrap();
    into.step(Step::Append(vec![Message::user("d")])).await.unwrap();
    let left = "talk (importing)";
    let side = "talk/side way (importing)";
    assert_eq!(names(&recto).await, [left, "talk (importing) 2", side]);
    let imported = into.finish().await.unwrap();
    assert_eq!(names(&recto).await, ["talk", left, "talk/side way"]);
    let [whole, side] = &imported[..] else { panic!("{imported:?}") };
    assert_eq!((whole.messages, whole.version, whole.fork_of), (2, Version(2), None));
    let from = Some((0, Version(0)));
    assert_eq!((side.messages, side.version, side.fork_of), (2, Version(1), from));
}

#[tokio::test]
async fn what_is_abandoned_leaves_nothing_behind() {
    let recto = Recto::open("memory:").await.unwrap();
    let mut into = Import::new(&recto, titled(), settings());
    into.step(start(Some("one"))).await.unwrap();
    into.step(Step::Append(vec![Message::user("a")])).await.unwrap();
    let fork = Step::Fork { name: "side".to_owned(), parent_branch: 0, version: Version(1) };
    into.step(fork).await.unwrap();
    into.step(start(Some("two"))).await.unwrap();
    let refused = Step::Apply(recto::Rollback::ToVersion(Version(9)).into());
    assert_eq!(into.step(refused).await.unwrap_err().code(), "version_not_found");
    assert_eq!(into.abandon().await, []);
    assert_eq!(names(&recto).await, [""; 0]);
}

#[tokio::test]
async fn an_import_stops_when_somebody_else_writes_to_it() {
    let recto = Recto::open("memory:").await.unwrap();
    let mut into = Import::new(&recto, exactly("talk"), settings());
    into.step(start(None)).await.unwrap();
    into.step(Step::Append(vec![Message::user("a")])).await.unwrap();
    let other = recto.conversation("talk (importing)").await.unwrap();
    other.append([Message::user("not in the file")]).await.unwrap();
    let next = into.step(Step::Append(vec![Message::user("b")])).await;
    assert_eq!(next.unwrap_err().code(), "version_conflict");
    assert_eq!(into.abandon().await, []);
}

#[tokio::test]
async fn a_name_that_was_asked_for_must_be_free_and_others_get_numbers() {
    let recto = Recto::open("memory:").await.unwrap();
    recto.create("talk", settings()).await.unwrap();
    let mut into = Import::new(&recto, exactly("talk"), settings());
    assert_eq!(into.step(start(None)).await.unwrap_err().code(), "conversation_exists");
    assert_eq!(into.abandon().await, []);
    let mut into = Import::new(&recto, titled(), settings());
    for title in [Some("talk"), None, Some("talk"), Some(" "), Some("other")] {
        into.step(start(title)).await.unwrap();
    }
    // Somebody takes a name in the meantime.
    recto.create("other", settings()).await.unwrap();
    let imported = into.finish().await.unwrap();
    let called: Vec<&str> = imported.iter().map(|made| &*made.name).collect();
    assert_eq!(called, ["talk 2", "untitled", "talk 3", "untitled 2", "other 2"]);
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
        let mut into = Import::new(&recto, exactly("talk"), settings());
        assert_eq!(into.step(step).await.unwrap_err().code(), "invalid_operation");
    }
    let tools = vec![recto::Tool::new("ls", "lists")];
    let mut into = Import::new(&recto, exactly("talk"), Settings { tools, ..settings() });
    assert_eq!(into.step(start(None)).await.unwrap_err().code(), "invalid_operation");
}
