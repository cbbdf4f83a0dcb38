//! What is behind summaries, and what is gone behind temporary scopes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use recto::{Carry, Compress, Conversation, LogIndex, Message, Recto, Role, Settings, Version};
use recto_agent::{Budget, Gap, Stop, Strategy, Target, Temporary, expand, gaps, sources};
use testserver::ModelServer;

use crate::streams::Says;
use crate::{agent, example, talk};

async fn texts(talk: &Conversation) -> Vec<String> {
    let entries = talk.messages().await.unwrap();
    entries.iter().map(|entry| entry.message.text().into_owned()).collect()
}

#[tokio::test]
async fn summaries_of_summaries_open_again_in_order() {
    let target = Target::Anthropic;
    let server = ModelServer::answering(move |received| {
        let body = String::from_utf8_lossy(&received.body);
        let text = if body.contains("The older part") { "Much was said." } else { "Fine." };
        Says { usage: None, ..Says::text(text) }.streamed(target)
    });
    let strategies = vec![Strategy::Summarise];
    let (limit, threshold) = (Some(4_000), Some(1_200));
    let budget = Budget { limit, threshold, target: 700, strategies, horizon: None };
    let agent = agent(target, &server).await.budget(budget);
    let talk = agent.conversation();
    let mut all = Vec::new();
    for turn in 0..60 {
        let question = format!("question {turn}: {}", "why is that so ".repeat(8));
        agent.say(Message::user(&question)).await.unwrap();
        all.extend([question, "Fine.".to_owned()]);
    }
    assert_eq!(gaps(talk).await.unwrap(), []);
    let view = talk.messages().await.unwrap();
    let summary = view.iter().find(|entry| entry.message.text().starts_with("Summary of")).unwrap();
    assert!(summary.index > LogIndex(20));
    let behind = sources(talk, summary.index).await.unwrap();
    let direct = recto_agent::stands_for(&summary.message).unwrap();
    assert!(behind.len() > direct.len(), "it stands for other summaries");
    expand(talk, summary.index).await.unwrap();
    assert_eq!(texts(talk).await, all);
    let error = expand(talk, LogIndex(0)).await.unwrap_err().to_string();
    assert!(error.contains("entry 0 is no summary"), "{error}");
}

#[tokio::test]
async fn a_summary_that_leaves_something_out_is_found() {
    let talk = talk().await;
    talk.append(["a", "b", "c"].map(Message::user)).await.unwrap();
    let summary = r#"{"role":"user","content":"a","metadata":{"summary":{"of":[0]}}}"#;
    let summary = Some(Message::from_json(summary).unwrap());
    talk.apply(Compress { indices: vec![LogIndex(0), LogIndex(1)], summary }).await.unwrap();
    assert_eq!(gaps(&talk).await.unwrap(), [Gap { version: Version(2), entry: LogIndex(1) }]);
}

#[tokio::test]
async fn a_model_looks_behind_a_summary() {
    let target = Target::OpenAiChat;
    let server = ModelServer::playing([
        Says::call("c1", "recto_search", r#"{"text":"marmalade"}"#).streamed(target),
        Says::call("c2", "recto_expand", r#"{"from":1,"to":1}"#).streamed(target),
        Says::text("It is marmalade.").streamed(target),
    ]);
    let agent = agent(target, &server).await.look_back();
    let talk = agent.conversation();
    let secret = format!("{} The word is marmalade. Keep it.", "Blah. ".repeat(50));
    talk.append([Message::user("Listen."), Message::user(&secret)]).await.unwrap();
    let summary = r#"{"role":"user","content":"Summary of the entries 0 to 1 of this conversation: a word was said.","metadata":{"summary":{"of":[0,1]}}}"#;
    let summary = Some(Message::from_json(summary).unwrap());
    talk.apply(Compress { indices: vec![LogIndex(0), LogIndex(1)], summary }).await.unwrap();
    let run = agent.say(Message::user("Which word?")).await.unwrap();
    assert_eq!((run.stop, run.turns), (Stop::Done, 3));
    let received = server.received();
    let body = |at: usize| String::from_utf8(received[at].body.clone()).unwrap();
    assert!(!body(0).contains("marmalade"));
    assert!(body(1).contains("entry 1, user: ") && body(1).contains("The word is marmalade."));
    assert!(body(2).contains("[entry 1, user]") && body(2).contains("Keep it."));
}

#[tokio::test]
async fn what_is_temporary_is_gone_whatever_happened() {
    let talk = talk().await;
    talk.append([Message::user("a")]).await.unwrap();
    let scope = |carry| Temporary { carry, ..Temporary::default() };
    let work = async |text: &str| {
        talk.append([Message::user(text), Message::assistant(text)]).await.unwrap();
    };
    talk.with_temporary(scope(Carry::None), work("b")).await.unwrap();
    assert_eq!(texts(&talk).await, ["a"]);
    // One inside the other.
    let inner = async {
        work("c").await;
        talk.with_temporary(scope(Carry::Roles(Role::Assistant.into())), work("d")).await.unwrap();
    };
    talk.with_temporary(scope(Carry::Roles(Role::User.into())), inner).await.unwrap();
    assert_eq!(texts(&talk).await, ["a", "c"]);
    // A panic.
    let (other, copy) = (talk.clone(), talk.clone());
    let panicking = tokio::spawn(async move {
        other
            .with_temporary(Temporary::default(), async {
                copy.append([Message::user("e")]).await.unwrap();
                panic!("as the test wants");
            })
            .await
    });
    assert!(panicking.await.is_err());
    assert_eq!(texts(&talk).await, ["a", "c"]);
    assert!(talk.marks().await.unwrap().iter().all(|(_, entries)| entries.is_empty()));
}

/// A process that is inside a temporary scope, and the conversation as others see it.
async fn holding(address: &str, name: &str, seconds: u64) -> (Child, Conversation) {
    let recto = Recto::open(address).await.unwrap();
    let talk = recto.create(name, Settings::default()).await.unwrap();
    talk.append([Message::user("a")]).await.unwrap();
    let mut process = Command::new(example("held_scope"))
        .args([address, name, &seconds.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "inside\n");
    assert_eq!(texts(&talk).await, ["a", "a secret"]);
    (process, talk)
}

/// Opens a conversation as a new program would.
async fn opened(address: &str, name: &str) -> Conversation {
    Recto::open(address).await.unwrap().conversation(name).await.unwrap()
}

/// SIGKILL: it has no chance to do anything.
fn kill(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

#[tokio::test]
async fn a_scope_whose_process_was_killed_is_ended_by_the_next_open() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("talks.db").display());
    let (process, talk) = holding(&address, "talk", 600).await;
    // As long as it lives, nobody takes the scope away.
    assert_eq!(texts(&opened(&address, "talk").await).await, ["a", "a secret"]);
    assert_eq!(talk.end_expired_scopes().await.unwrap(), 0);
    kill(process);
    let talk = opened(&address, "talk").await;
    assert_eq!(texts(&talk).await, ["a"]);
    assert!(talk.marks().await.unwrap().iter().all(|(_, entries)| entries.is_empty()));
    assert_eq!(talk.end_all_scopes().await.unwrap(), 0);
    talk.append([Message::user("b")]).await.unwrap();
    assert_eq!(texts(&talk).await, ["a", "b"]);
    talk.verify().await.unwrap();
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_holder_lives_and_runs_out_when_it_is_dead() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("talks.db").display());
    let (process, talk) = holding(&address, "talk", 2).await;
    // Without its lock the holder could as well be on another machine: only the time is known.
    let marks = talk.marks().await.unwrap();
    let (_, notes) = marks.into_iter().find(|(label, _)| label == "lease").unwrap();
    let note = talk.message(notes[0]).await.unwrap().unwrap();
    let note: serde_json::Value = serde_json::from_str(note.json()).unwrap();
    let scope = note["metadata"]["lease"]["scope"].as_str().unwrap();
    std::fs::remove_file(std::env::temp_dir().join("recto-scopes").join(scope)).unwrap();
    let before = talk.version().await.unwrap();
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    assert_eq!(talk.end_expired_scopes().await.unwrap(), 0);
    let renewals = talk.version().await.unwrap().0 - before.0;
    assert!((1..=4).contains(&renewals), "{renewals}");
    assert_eq!(texts(&talk).await, ["a", "a secret"]);
    kill(process);
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    assert_eq!(texts(&opened(&address, "talk").await).await, ["a"]);
}

#[tokio::test]
async fn a_scope_that_was_dropped_is_ended_by_the_next_and_one_that_is_held_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("talks.db").display());
    let recto = Recto::open(&address).await.unwrap();
    let talk = recto.create("talk", Settings::default()).await.unwrap();
    talk.append([Message::user("a")]).await.unwrap();
    let work = async {
        talk.append([Message::user("secret")]).await.unwrap();
        assert_eq!(texts(&opened(&address, "talk").await).await, ["a", "secret"]);
        std::future::pending::<()>().await;
    };
    let scope = talk.with_temporary(Temporary::default(), work);
    assert!(tokio::time::timeout(Duration::from_millis(500), scope).await.is_err());
    assert_eq!(texts(&talk).await, ["a", "secret"]);
    assert_eq!(texts(&opened(&address, "talk").await).await, ["a"]);
    // Who knows that nobody else is there need not wait for anything.
    let work = async {
        talk.append([Message::user("secret")]).await.unwrap();
        assert_eq!(talk.end_all_scopes().await.unwrap(), 1);
    };
    talk.with_temporary(Temporary::default(), work).await.unwrap();
    assert_eq!(texts(&talk).await, ["a"]);
    talk.verify().await.unwrap();
}
