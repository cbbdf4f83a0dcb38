//! The `tracing` events of the crate. A separate program, because its subscriber is global.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use recto::{
    Approx, Compress, Counter, LogIndex, MemoryStore, Message, Options, Recto, Settings, Store,
    Temporary, Tool, Version, WriteOptions,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes every span and event with all fields into a text.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").expect("a text can be written");
    }
}

impl Captured {
    fn line(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Fields<'_>)) {
        let mut text = self.0.lock().unwrap();
        write!(text, "{} {} {}", metadata.level(), metadata.target(), metadata.name()).unwrap();
        record(&mut Fields(&mut text));
        text.push('\n');
    }
}

impl Subscriber for Captured {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("recto")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.line(span.metadata(), |fields| span.record(fields));
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        self.line(event.metadata(), |fields| event.record(fields));
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A text that no event may contain.
const SECRET: &str = "s3cret";

/// A counter that a second process does not have.
#[derive(Debug)]
struct OwnCounter;

impl Counter for OwnCounter {
    fn name(&self) -> &str {
        SECRET
    }

    fn count(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

/// Opening a conversation ends its expired scopes. That fails here, and no caller gets the error.
async fn cause_a_warning() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let counters: Vec<Arc<dyn Counter>> = vec![Arc::new(OwnCounter)];
    let options = Options { counters, ..Options::default() };
    let first = Recto::with_store(store.clone(), options);
    first.create("a", Settings::counting_with(OwnCounter)).await.unwrap();
    let second = Recto::with_store(store, Options::default());
    let conversation = second.conversation("a").await.unwrap();
    assert_eq!(conversation.stats().await.unwrap_err().code(), "storage");
}

/// Many small requests: older rows are packed, and the words are moved to a damaged search index.
async fn append_to_a_damaged_search_index(folder: &Path) {
    let path = folder.join("damaged.db");
    let address = format!("sqlite:{}", path.display());
    drop(Recto::open(&address).await.unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    assert!(db.execute("DELETE FROM words_data", []).unwrap() > 0);
    drop(db);
    let recto = Recto::open(&address).await.unwrap();
    let conversation = recto.create("a", Settings::counting_with(Approx)).await.unwrap();
    for _ in 0..65 {
        conversation.append((0..4).map(|_| Message::user(SECRET))).await.unwrap();
    }
    recto.rename("a", SECRET).await.unwrap();
}

#[tokio::test]
async fn spans_and_events_contain_no_content_no_keys_and_no_passwords() {
    let captured = Captured::default();
    tracing::subscriber::set_global_default(captured.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join(format!("{SECRET}.db")).display());
    let recto = Recto::open_with(&address, Options::default()).await.unwrap();
    let name = format!("name {SECRET}");
    let conversation = recto.create(&name, Settings::counting_with(Approx)).await.unwrap();
    let append = recto::Append { messages: vec![Message::user(&format!("content {SECRET}"))] };
    let key = WriteOptions::keyed(format!("key {SECRET}"));
    conversation.apply_with(append, key).await.unwrap();
    let summary = Some(Message::system(&format!("summary {SECRET}")));
    let summary = Compress { indices: vec![LogIndex(0)], summary };
    conversation.apply(summary.reason(format!("reason {SECRET}"))).await.unwrap();
    conversation.set_tools(vec![Tool::new(SECRET, SECRET)]).await.unwrap();
    conversation.fork(&format!("fork {SECRET}"), Version(1)).await.unwrap();
    let reason = format!("scope {SECRET}");
    let scope = Temporary { reason, ..Temporary::default() };
    conversation.with_temporary(scope, conversation.stats()).await.unwrap().unwrap();
    recto.search(SECRET, 9).await.unwrap();
    conversation.verify().await.unwrap();
    conversation.erase(LogIndex(0)).await.unwrap();
    conversation.prune(&recto::Keep::newest()).await.unwrap();
    recto.backup(folder.path().join(format!("backup {SECRET}.db"))).await.unwrap();
    #[cfg(feature = "format")]
    {
        let naming = recto::ImportName::Exactly(format!("import {SECRET}"));
        let options = recto::ImportOptions::new(naming, Settings::counting_with(Approx));
        let transcript = format!(r#"[{{"role":"user","content":"{SECRET}"}}]"#);
        recto.import(transcript, options).await.unwrap();
    }
    // Errors too: a name that is taken, an address that is wrong, a server that does not exist.
    recto.create(&name, Settings::counting_with(Approx)).await.unwrap_err();
    let password = format!("postgres://user:{SECRET}@127.0.0.1:1/recto");
    Recto::open(&password).await.unwrap_err();
    Recto::open(&format!("wrong:{SECRET}")).await.unwrap_err();
    cause_a_warning().await;
    append_to_a_damaged_search_index(folder.path()).await;

    let text = captured.0.lock().unwrap().clone();
    for expected in [
        "INFO recto::recto open store=\"sqlite\"",
        "DEBUG recto::reading load conversation=",
        "DEBUG recto::apply apply conversation=",
        "DEBUG recto::apply commit version=1",
        "DEBUG recto::fork fork conversation=",
        "INFO recto::verify verify conversation=",
        "INFO recto::erase erase conversation=",
        "INFO recto::prune prune conversation=",
        "INFO recto::backup backup",
        "WARN recto::recto event",
        "DEBUG recto::recto create conversation=",
        "DEBUG recto::recto rename",
        "DEBUG recto::packing pack rows=64",
        "the search index is damaged; new words stay in the waiting table error=",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    #[cfg(feature = "format")]
    for expected in ["requests=1", "DEBUG recto::apply commit version=1 versions=1"] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    for forbidden in [SECRET, "content", "postgres://"] {
        let line = text.lines().find(|line| line.contains(forbidden));
        assert_eq!(line, None, "an event contains {forbidden:?}");
    }
}
