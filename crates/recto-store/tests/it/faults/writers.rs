//! Many writers on one conversation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use recto_store::{SqliteOptions, SqliteStore, Store};

use super::{child, note};
use crate::sample::{grown, id};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_make_dense_versions_and_none_starves() {
    for writers in [8, 32, 64] {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions { search: false, ..SqliteOptions::default() };
        let store = SqliteStore::open(folder.path().join("a.db"), options).await.unwrap();
        grown(&store, 1, "a", 0).await;
        let store = Arc::new(store);
        let counts = child::compete(&store, 0..writers, Duration::from_millis(200)).await;
        check(&*store, &counts).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_make_dense_versions_and_none_starves() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
    grown(&store, 1, "a", 0).await;
    let start = |process: u64| {
        let mut command = child::command("writes_against_others", &file);
        command.env("RECTO_CHILD_WRITER", (process * 2).to_string());
        command.env("RECTO_CHILD_MILLISECONDS", "400").spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    let mut counts = Vec::new();
    for child in children {
        let printed =
            tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
        assert!(printed.status.success());
        let printed = String::from_utf8(printed.stdout).unwrap();
        let printed = printed.lines().filter_map(|line| line.strip_prefix(child::ACCEPTED));
        counts.extend(printed.map(|count| count.parse::<u64>().unwrap()));
    }
    assert_eq!(counts.len(), 8);
    check(&store, &counts).await;
}

/// Checks that the commits of every writer are stored in their order, and no others.
async fn check(store: &dyn Store, counts: &[u64]) {
    note(&format!("{} writers: {counts:?}", counts.len()));
    let rows = store.commits(id(1), Some(0)).await.unwrap();
    assert_eq!(rows.len() as u64, counts.iter().sum::<u64>());
    assert!((1..).zip(&rows).all(|(version, row)| row.head.version == version));
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for row in rows {
        let text = String::from_utf8(row.body).unwrap();
        let (writer, number) = text.split_once(' ').unwrap();
        let next = found.entry(writer.parse().unwrap()).or_default();
        assert_eq!(number.parse(), Ok(*next));
        *next += 1;
    }
    for (writer, &count) in (0..).zip(counts) {
        assert_eq!(found.get(&writer).copied().unwrap_or(0), count);
        assert!(count > 0, "writer {writer} starved");
    }
}
