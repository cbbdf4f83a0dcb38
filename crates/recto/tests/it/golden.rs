//! Stores that earlier releases wrote. They must stay readable.
//!
//! `RECTO_GOLDEN=1 cargo test -p recto --features postgres golden -- --ignored` writes the files of
//! the newest format. Run it once, when a format is released, and never again.

use std::path::{Path, PathBuf};

use recto::{
    Approx, Arrange, BatchEnd, BatchIndex, BatchStart, Carry, Compress, Delete, LogIndex, Mark,
    Message, Recto, Rollback, Settings, Tenant, Tool, Truncate, Undo, Version, WriteOptions,
};
use serde_json::{Value, json};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Writes an example of each kind of data in a store.
async fn write(recto: &Recto) {
    let settings = Settings {
        tools: vec![Tool::new("search", "finds flights")],
        ..Settings::counting_with(Approx)
    };
    let conversation = recto.create("trip", settings).await.unwrap();
    conversation
        .append([
            Message::system("You plan trips."),
            Message::from_json(r#"{"role":"user","content":"Lisbon 🙂","n":1e400,"n":-0.0}"#)
                .unwrap(),
            Message::tool_call("c1", "search", &json!({"to": "LIS"})),
            Message::tool_result("c1", "TP 571, 07:05"),
        ])
        .await
        .unwrap();
    conversation.apply(Mark { indices: vec![LogIndex(2)], mark: "pinned".into() }).await.unwrap();
    for number in 0..80 {
        conversation.append([Message::user(&format!("message number {number}"))]).await.unwrap();
    }
    let write = WriteOptions { idempotency_key: Some("a key".into()), ..WriteOptions::default() };
    let cut = Truncate { keep_last: Some(20), ..Default::default() };
    conversation.apply_with(cut, write).await.unwrap();
    conversation.apply(Delete { indices: vec![LogIndex(70)] }).await.unwrap();
    conversation.apply(Undo).await.unwrap();
    conversation.apply(BatchStart::default()).await.unwrap();
    conversation.append([Message::assistant("thinking aloud")]).await.unwrap();
    let list: recto::Request =
        [60, 62, 64].map(|at| Delete { indices: vec![LogIndex(at)] }).into_iter().collect();
    conversation.apply(list).await.unwrap();
    conversation.apply(BatchEnd { target: Some(BatchIndex(1)), carry: Carry::All }).await.unwrap();
    let summary = Message::assistant("they talked");
    let indices = LogIndex::range(72..80);
    conversation.apply(Compress { indices, summary: Some(summary) }).await.unwrap();
    conversation.set_tools(vec![Tool::new("book", "books flights")]).await.unwrap();
    conversation.apply(Rollback::ToVersion(Version(40))).await.unwrap();
    // New in format 3.
    let indices = LogIndex::range(0..9).into_iter().rev().collect();
    conversation.apply(Arrange { indices }).await.unwrap();
    conversation
        .fork("what if", Version(30))
        .await
        .unwrap()
        .append([Message::user("else")])
        .await
        .unwrap();
    let fork = recto.conversation("what if").await.unwrap();
    fork.fork("what if not", Version(31)).await.unwrap();
    conversation.erase(LogIndex(10)).await.unwrap();
    let theirs = recto.for_tenant(Tenant("theirs".into()));
    theirs.create("trip", Settings::counting_with(Approx)).await.unwrap();
}

/// Everything that can be read from a store.
async fn read(recto: &Recto) -> Value {
    let mut found = Vec::new();
    for tenant in ["", "theirs"] {
        let recto = recto.for_tenant(Tenant(tenant.into()));
        for info in recto.list(None, 100).await.unwrap() {
            let conversation = recto.conversation(&info.name).await.unwrap();
            let report = conversation.verify().await.unwrap();
            assert_eq!(report.faults, Vec::<String>::new());
            let mut versions = Vec::new();
            for version in (0..=info.version.0).map(Version) {
                let entries = conversation.messages_at(version).await.unwrap();
                let about = conversation.version_info(version).await.unwrap();
                let view: Vec<u32> = entries.iter().map(|entry| entry.index.0).collect();
                versions.push(json!({ "why": about.reason, "view": view }));
            }
            let mut log = Vec::new();
            for index in (0..info.messages).map(LogIndex) {
                log.push(conversation.message(index).await.unwrap().unwrap().json().to_owned());
            }
            found.push(json!({
                "tenant": tenant, "name": info.name, "versions": versions, "log": log,
                "marks": conversation.marks().await.unwrap(), "tools": conversation.tools().await.unwrap(),
                "link": info.link.to_string(), "batches": conversation.mark_map(recto::Scope::All).await.unwrap(),
            }));
        }
    }
    json!(found)
}

/// The formats with golden files. The last one is the present format.
const FORMATS: [u32; 3] = [1, 2, 3];
const NEWEST: u32 = FORMATS[FORMATS.len() - 1];

#[tokio::test]
async fn a_store_of_every_format_is_read_as_it_was_written() {
    for format in FORMATS {
        // A copy, because opening a store may write to it.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("golden.db");
        std::fs::copy(golden(&format!("format-{format}.db")), &path).unwrap();
        let recto = Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
        read_and_continue(&recto, &format!("format-{format}.json")).await;
    }
}

#[tokio::test]
async fn the_golden_files_include_the_newest_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    drop(Recto::open(&format!("sqlite:{}", path.display())).await.unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    let present = db.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0));
    assert_eq!(present.unwrap(), NEWEST);
    for format in FORMATS {
        // The offset of `user_version` in a SQLite file.
        let file = std::fs::read(golden(&format!("format-{format}.db"))).unwrap();
        assert_eq!(file[60..64], format.to_be_bytes());
    }
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test]
async fn tables_of_every_format_are_read_as_they_were_written() {
    let server = testserver::PostgresServer::shared();
    for format in FORMATS {
        let address = server.database();
        let database = address.rsplit('/').next().unwrap();
        server.load(database, &golden(&format!("postgres-format-{format}.sql")));
        let recto = Recto::open(&address).await.unwrap();
        read_and_continue(&recto, &format!("postgres-format-{format}.json")).await;
        assert_eq!(recto.store().check().await, Ok(vec![]));
    }
}

/// Compares the content of a store with the golden file, and then writes to the store.
async fn read_and_continue(recto: &Recto, expected: &str) {
    let expected = std::fs::read_to_string(golden(expected)).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    assert_eq!(read(recto).await, expected);
    let conversation = recto.conversation("trip").await.unwrap();
    let version = conversation.version().await.unwrap();
    let again = WriteOptions { idempotency_key: Some("a key".into()), ..WriteOptions::default() };
    let cut = Truncate { keep_last: Some(20), ..Default::default() };
    assert_eq!(conversation.apply_with(cut, again).await.unwrap().version, Version(83));
    conversation.append([Message::user("and it continues")]).await.unwrap();
    assert_eq!(conversation.version().await.unwrap().0, version.0 + 1);
    assert_eq!(recto.search("lisbon", 9).await.unwrap().len(), 1);
    // New in format 2.
    let policy = recto::Policy { token_limit: Some(9), ..Default::default() };
    assert_eq!(conversation.policy().await.unwrap(), recto::Policy::default());
    conversation.set_policy(&policy).await.unwrap();
    assert_eq!(conversation.policy().await.unwrap(), policy);
}

#[tokio::test]
#[ignore = "writes the files that the test above reads; only when a format is released"]
async fn write_the_golden_files() {
    assert!(
        std::env::var_os("RECTO_GOLDEN").is_some(),
        "set RECTO_GOLDEN=1 to overwrite the golden files"
    );
    let path = golden(&format!("format-{NEWEST}.db"));
    let _ = std::fs::remove_file(&path);
    let recto = Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
    write(&recto).await;
    let content = serde_json::to_string_pretty(&read(&recto).await).unwrap();
    std::fs::write(golden(&format!("format-{NEWEST}.json")), content + "\n").unwrap();
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test]
#[ignore = "writes the files that a test above reads; only when a format is released"]
async fn write_the_golden_tables() {
    assert!(
        std::env::var_os("RECTO_GOLDEN").is_some(),
        "set RECTO_GOLDEN=1 to overwrite the golden files"
    );
    let server = testserver::PostgresServer::shared();
    let address = server.database();
    let recto = Recto::open(&address).await.unwrap();
    write(&recto).await;
    let content = serde_json::to_string_pretty(&read(&recto).await).unwrap();
    std::fs::write(golden(&format!("postgres-format-{NEWEST}.json")), content + "\n").unwrap();
    let dump = server.dump(address.rsplit('/').next().unwrap());
    std::fs::write(golden(&format!("postgres-format-{NEWEST}.sql")), dump).unwrap();
}
