//! Summaries and the messages they replace; temporary scopes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use recto::{
    Carry, Compress, Conversation, LogIndex, Message, Recto, Role, Settings, Temporary, Version,
};
use recto_agent::{Budget, ConversationExt as _, Stop, Strategy, Target};
use testserver::ModelServer;

use crate::streams::ScriptedReply;
use crate::{agent, conversation, example};

async fn texts(conversation: &Conversation) -> Vec<String> {
    let entries = conversation.messages().await.unwrap();
    entries.iter().map(|entry| entry.message.text().into_owned()).collect()
}

#[tokio::test]
async fn expanding_nested_summaries_restores_all_messages_in_order() {
    let target = Target::Anthropic;
    let server = ModelServer::answering(move |received| {
        let body = String::from_utf8_lossy(&received.body);
        let text = if body.contains("The older part") { "Much was said." } else { "Fine." };
        ScriptedReply { usage: None, ..ScriptedReply::text(text) }.streamed(target)
    });
    let strategies = vec![Strategy::Summarise];
    let (limit, threshold) = (Some(4_000), Some(1_200));
    let budget = Budget { limit, threshold, target: 700, strategies, horizon: None };
    let agent = agent(target, &server).await.budget(budget);
    let conversation = agent.conversation();
    let mut all = Vec::new();
    for turn in 0..60 {
        let question = format!("question {turn}: {}", "why is that so ".repeat(8));
        agent.send(Message::user(&question)).await.unwrap();
        all.extend([question, "Fine.".to_owned()]);
    }
    assert_eq!(conversation.summary_gaps().await.unwrap(), []);
    let view = conversation.messages().await.unwrap();
    let summary = view.iter().find(|entry| entry.message.text().starts_with("Summary of")).unwrap();
    assert!(summary.index > LogIndex(20));
    let behind = conversation.summary_sources(summary.index).await.unwrap();
    let direct = recto_agent::summarised_entries(&summary.message).unwrap();
    assert!(behind.len() > direct.len(), "it replaces other summaries");
    conversation.expand_summary(summary.index).await.unwrap();
    assert_eq!(texts(conversation).await, all);
    let error = conversation.expand_summary(LogIndex(0)).await.unwrap_err().to_string();
    assert!(error.contains("entry 0 is not a summary"), "{error}");
}

#[tokio::test]
async fn a_summary_that_omits_a_hidden_entry_is_reported() {
    let conversation = conversation().await;
    conversation.append(["a", "b", "c"].map(Message::user)).await.unwrap();
    let summary = r#"{"role":"user","content":"a","metadata":{"summary":{"of":[0]}}}"#;
    let summary = Some(Message::from_json(summary).unwrap());
    conversation
        .apply(Compress { indices: vec![LogIndex(0), LogIndex(1)], summary })
        .await
        .unwrap();
    let gaps = conversation.summary_gaps().await.unwrap();
    let gaps: Vec<_> = gaps.iter().map(|gap| (gap.version, gap.entry)).collect();
    assert_eq!(gaps, [(Version(2), LogIndex(1))]);
}

#[tokio::test]
async fn a_model_reads_messages_that_a_summary_replaces() {
    let target = Target::OpenAiChat;
    let server = ModelServer::replying([
        ScriptedReply::call("c1", "recto_search", r#"{"text":"marmalade"}"#).streamed(target),
        ScriptedReply::call("c2", "recto_expand", r#"{"from":1,"to":1}"#).streamed(target),
        ScriptedReply::text("It is marmalade.").streamed(target),
    ]);
    let agent = agent(target, &server).await.history_tools();
    let conversation = agent.conversation();
    let secret = format!("{} The word is marmalade. Keep it.", "Blah. ".repeat(50));
    conversation.append([Message::user("Listen."), Message::user(&secret)]).await.unwrap();
    let summary = r#"{"role":"user","content":"Summary of the entries 0 to 1 of this conversation: a word was said.","metadata":{"summary":{"of":[0,1]}}}"#;
    let summary = Some(Message::from_json(summary).unwrap());
    conversation
        .apply(Compress { indices: vec![LogIndex(0), LogIndex(1)], summary })
        .await
        .unwrap();
    let run = agent.send(Message::user("Which word?")).await.unwrap();
    assert_eq!((run.stop, run.turns), (Stop::Done, 3));
    let received = server.received();
    let body = |at: usize| String::from_utf8(received[at].body.clone()).unwrap();
    assert!(!body(0).contains("marmalade"));
    assert!(body(1).contains("entry 1, user: ") && body(1).contains("The word is marmalade."));
    assert!(body(2).contains("[entry 1, user]") && body(2).contains("Keep it."));
}

#[tokio::test]
async fn temporary_messages_are_hidden_after_success_nesting_and_a_panic() {
    let conversation = conversation().await;
    conversation.append([Message::user("a")]).await.unwrap();
    let scope = |carry| Temporary { carry, ..Temporary::default() };
    let work = async |text: &str| {
        conversation.append([Message::user(text), Message::assistant(text)]).await.unwrap();
    };
    conversation.with_temporary(scope(Carry::None), work("b")).await.unwrap();
    assert_eq!(texts(&conversation).await, ["a"]);
    // Nested scopes.
    let inner = async {
        work("c").await;
        conversation
            .with_temporary(scope(Carry::Roles(Role::Assistant.into())), work("d"))
            .await
            .unwrap();
    };
    conversation.with_temporary(scope(Carry::Roles(Role::User.into())), inner).await.unwrap();
    assert_eq!(texts(&conversation).await, ["a", "c"]);
    // A panic.
    let (other, copy) = (conversation.clone(), conversation.clone());
    let panicking = tokio::spawn(async move {
        other
            .with_temporary(Temporary::default(), async {
                copy.append([Message::user("e")]).await.unwrap();
                panic!("as the test wants");
            })
            .await
    });
    assert!(panicking.await.is_err());
    assert_eq!(texts(&conversation).await, ["a", "c"]);
    assert!(conversation.marks().await.unwrap().iter().all(|(_, entries)| entries.is_empty()));
}

/// A process that holds a temporary scope, and the conversation in this process.
async fn holding(address: &str, name: &str, lease: Duration) -> (Child, Conversation) {
    let recto = Recto::open(address).await.unwrap();
    let conversation = recto.create(name, Settings::default()).await.unwrap();
    conversation.append([Message::user("a")]).await.unwrap();
    let mut process = Command::new(example("held_scope"))
        .args([address, name, &lease.as_secs_f64().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "inside\n");
    assert_eq!(texts(&conversation).await, ["a", "a secret"]);
    (process, conversation)
}

/// The scope of the newest lease, and the time at which it expires.
async fn newest_lease(conversation: &Conversation) -> (String, i64) {
    let marks = conversation.marks().await.unwrap();
    let (_, notes) = marks.into_iter().find(|(label, _)| label == "lease").unwrap();
    let note = conversation.message(*notes.last().unwrap()).await.unwrap().unwrap();
    let note: serde_json::Value = serde_json::from_str(note.json()).unwrap();
    let lease = &note["metadata"]["lease"];
    (lease["scope"].as_str().unwrap().to_owned(), lease["until"].as_i64().unwrap())
}

/// Removes the lock file of the process that holds a scope. Then only the lease shows whether that process
/// may still run, as for a process on another machine.
async fn forget_holder(conversation: &Conversation) {
    let (scope, _) = newest_lease(conversation).await;
    std::fs::remove_file(std::env::temp_dir().join("recto-scopes").join(scope)).unwrap();
}

/// Repeats a check until it is true. Fails after 30 seconds.
async fn eventually(mut check: impl AsyncFnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !check().await {
        assert!(std::time::Instant::now() < deadline, "not within 30 seconds");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Opens a conversation as a new process does.
async fn opened(address: &str, name: &str) -> Conversation {
    Recto::open(address).await.unwrap().conversation(name).await.unwrap()
}

/// Sends SIGKILL, so that the process cannot clean up.
fn kill(mut process: Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

#[tokio::test]
async fn a_scope_whose_process_was_killed_is_ended_by_the_next_open() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("conversations.db").display());
    let (process, conversation) = holding(&address, "conversation", Duration::from_secs(600)).await;
    // While the process that holds the scope runs, the scope is not ended.
    assert_eq!(texts(&opened(&address, "conversation").await).await, ["a", "a secret"]);
    assert_eq!(conversation.end_expired_scopes().await.unwrap(), 0);
    kill(process);
    let conversation = opened(&address, "conversation").await;
    assert_eq!(texts(&conversation).await, ["a"]);
    assert!(conversation.marks().await.unwrap().iter().all(|(_, entries)| entries.is_empty()));
    assert_eq!(conversation.end_all_scopes().await.unwrap(), 0);
    conversation.append([Message::user("b")]).await.unwrap();
    assert_eq!(texts(&conversation).await, ["a", "b"]);
    conversation.verify().await.unwrap();
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_holder_lives() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("conversations.db").display());
    let (process, conversation) =
        holding(&address, "conversation", Duration::from_millis(300)).await;
    let (_, first) = newest_lease(&conversation).await;
    eventually(async || newest_lease(&conversation).await.1 > first).await;
    assert_eq!(texts(&conversation).await, ["a", "a secret"]);
    kill(process);
}

#[tokio::test]
async fn a_scope_of_an_unknown_holder_ends_when_its_lease_has_run_out() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("conversations.db").display());
    let (process, conversation) = holding(&address, "long", Duration::from_secs(600)).await;
    forget_holder(&conversation).await;
    kill(process);
    assert_eq!(conversation.end_expired_scopes().await.unwrap(), 0);
    assert_eq!(texts(&opened(&address, "long").await).await, ["a", "a secret"]);
    let (process, conversation) = holding(&address, "short", Duration::from_millis(300)).await;
    forget_holder(&conversation).await;
    kill(process);
    eventually(async || texts(&opened(&address, "short").await).await == ["a"]).await;
}

#[tokio::test]
async fn the_next_open_ends_a_dropped_scope_but_not_a_held_one() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("conversations.db").display());
    let recto = Recto::open(&address).await.unwrap();
    let conversation = recto.create("conversation", Settings::default()).await.unwrap();
    conversation.append([Message::user("a")]).await.unwrap();
    let work = async {
        conversation.append([Message::user("secret")]).await.unwrap();
        assert_eq!(texts(&opened(&address, "conversation").await).await, ["a", "secret"]);
        std::future::pending::<()>().await;
    };
    let scope = conversation.with_temporary(Temporary::default(), work);
    assert!(tokio::time::timeout(Duration::from_millis(500), scope).await.is_err());
    assert_eq!(texts(&conversation).await, ["a", "secret"]);
    assert_eq!(texts(&opened(&address, "conversation").await).await, ["a"]);
    // `end_all` ends scopes of living holders as well.
    let work = async {
        conversation.append([Message::user("secret")]).await.unwrap();
        assert_eq!(conversation.end_all_scopes().await.unwrap(), 1);
    };
    conversation.with_temporary(Temporary::default(), work).await.unwrap();
    assert_eq!(texts(&conversation).await, ["a"]);
    conversation.verify().await.unwrap();
}
