//! Rows are returned unchanged, and every input of other stores is accepted.

use std::sync::Arc;
use std::time::Duration;

use recto_store::{
    Ancestor, Commit, Error, Link, NewConversation, PostgresOptions, PostgresStore, Rewrite, Seal,
    Store, Tenant, pack_entries, pack_records,
};
use testserver::PostgresServer;

use super::{commit, create, keyed, new, open, store, tenant, version};

#[tokio::test]
async fn names_and_keys_may_contain_almost_any_text() {
    let store = store().await;
    let odd = "quote ', \u{1}, \u{202e} and 🦀";
    let id = create(&store, odd).await;
    assert_eq!(store.find(&tenant(), odd).await.unwrap().unwrap().name, odd);
    store.commit(keyed(id, 1, odd)).await.unwrap();
    assert_eq!(store.key(id, odd).await.unwrap().unwrap().key, odd);
    let again = store.commit(keyed(id, 2, odd)).await;
    assert_eq!(again, Err(Error::KeyReused { key: odd.to_owned() }));
    assert_eq!(version(&store, id).await, 1, "the row is stored with the key");
}

#[tokio::test]
async fn a_message_of_very_many_words_can_be_searched() {
    let store = store().await;
    let id = create(&store, "words").await;
    // More than a megabyte of different words, which a tsvector could not hold.
    let text: String = (0..150_000).map(|n| format!("word{n} ")).collect();
    store.commit(commit(id, 1, &text)).await.unwrap();
    let words = ["word7".to_owned(), "word149999".to_owned()];
    let found = store.search(&tenant(), &words, 9).await.unwrap();
    assert_eq!(found.len(), 1);
    let other = Tenant("other".to_owned());
    assert_eq!(store.search(&other, &words, 9).await.unwrap(), []);
}

#[tokio::test]
async fn rows_are_found_by_their_keys_also_with_outdated_statistics() {
    let server = PostgresServer::shared();
    let address = server.database();
    let database = address.rsplit('/').next().unwrap();
    // No other connection has read before.
    let options = PostgresOptions { connections: 1, ..PostgresOptions::default() };
    drop(open(&address).await);
    server.sql(database, "VACUUM ANALYZE recto_commits");
    let store = PostgresStore::open(&address, options).await.unwrap();
    let id = create(&store, "many").await;
    let scans = || {
        let read = "SELECT pg_stat_force_next_flush(); \
                    SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'recto_commits'";
        server.sql(database, read)
    };
    let before = scans();
    for version in 1..=20 {
        store.commit(commit(id, version, "a word")).await.unwrap();
        assert_eq!(store.commits(id, Some(version - 1)).await.unwrap().len(), 1);
    }
    drop(store);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(scans(), before);
}

#[tokio::test]
async fn a_commit_is_stored_inline_beside_its_key() {
    let server = PostgresServer::shared();
    let address = server.database();
    let store = open(&address).await;
    let id = create(&store, "long").await;
    store.commit(commit(id, 1, &"many words ".repeat(300))).await.unwrap();
    let elsewhere = "SELECT pg_relation_size(reltoastrelid) FROM pg_class \
                     WHERE relname = 'recto_commits'";
    assert_eq!(server.sql(address.rsplit('/').next().unwrap(), elsewhere), "0");
}

/// The number of transactions that wrote the versions above 0.
fn transactions(server: &PostgresServer, address: &str) -> String {
    let read = "SELECT count(DISTINCT xmin::text) FROM recto_commits WHERE version > 0";
    server.sql(address.rsplit('/').next().unwrap(), read)
}

#[tokio::test]
async fn a_group_of_commits_is_one_transaction() {
    let server = PostgresServer::shared();
    let address = server.database();
    let store = open(&address).await;
    let id = create(&store, "grouped").await;
    store
        .commit_all((1..=20).map(|version| commit(id, version, "a word")).collect())
        .await
        .unwrap();
    assert_eq!(transactions(server, &address), "1");
    assert_eq!(version(&store, id).await, 20);
    for version in 21..=23 {
        store.commit(commit(id, version, "a word")).await.unwrap();
    }
    assert_eq!(transactions(server, &address), "4");
}

#[tokio::test]
async fn a_group_is_stored_as_a_whole_or_not_at_all() {
    let store = store().await;
    let id = create(&store, "grouped").await;
    let gap = vec![commit(id, 1, "a"), commit(id, 3, "b")];
    let refused = store.commit_all(gap).await;
    assert_eq!(refused, Err(Error::VersionConflict { expected: 2, current: 0 }));
    let twice = vec![keyed(id, 1, "k"), keyed(id, 2, "k")];
    assert_eq!(store.commit_all(twice).await, Err(Error::KeyReused { key: "k".to_owned() }));
    assert_eq!(version(&store, id).await, 0);
    store.commit_all(vec![commit(id, 1, "a"), commit(id, 2, "b")]).await.unwrap();
    let late = store.commit_all(vec![commit(id, 2, "c"), commit(id, 3, "d")]).await;
    assert_eq!(late, Err(Error::VersionConflict { expected: 1, current: 2 }));
    assert_eq!(super::texts(&store, id).await, ["a", "b"]);
}

fn fork(name: &str, of: &[recto_store::ConversationId]) -> NewConversation {
    let lineage = of.iter().map(|&id| Ancestor { id, versions: 1, entries: 1 }).collect();
    NewConversation { lineage, ..new(name) }
}

#[tokio::test]
async fn rows_stay_until_the_last_fork_is_removed() {
    let store = store().await;
    let first = create(&store, "first").await;
    let (second, third) = (fork("second", &[first]), fork("third", &[first]));
    let ids = [second.id, third.id];
    store.create(second).await.unwrap();
    store.create(third).await.unwrap();
    assert_eq!(store.forks(first).await.unwrap().len(), 2);
    store.remove(&tenant(), "first").await.unwrap();
    store.remove(&tenant(), "second").await.unwrap();
    assert_eq!(store.commits(first, None).await.unwrap().len(), 1);
    assert!(store.commits(ids[0], None).await.is_err());
    store.remove(&tenant(), "third").await.unwrap();
    assert!(store.commits(first, None).await.is_err());
    let late = store.create(fork("late", &[first])).await;
    assert_eq!(late, Err(Error::ConversationNotFound { name: first.to_string() }));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// Removing, writing, forking and storing keys at the same time leaves no rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_removed_beside_writers_leaves_no_rows() {
    let store = Arc::new(store().await);
    for round in 0..12 {
        let name = format!("round {round}");
        let id = create(&*store, &name).await;
        let writer = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                for at in 1.. {
                    match store.commit(keyed(id, at, &format!("text {at}"))).await {
                        Ok(()) => {}
                        Err(Error::ConversationNotFound { .. }) => break,
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        });
        let forker = tokio::spawn({
            let (store, name) = (Arc::clone(&store), format!("fork {round}"));
            async move { store.create(fork(&name, &[id])).await.is_ok() }
        });
        store.remove(&tenant(), &name).await.unwrap();
        if forker.await.unwrap() {
            assert!(store.commits(id, None).await.is_ok(), "the fork needs the rows");
            store.remove(&tenant(), &format!("fork {round}")).await.unwrap();
        }
        // With a row that is left, the writer would never end.
        let ended = tokio::time::timeout(Duration::from_secs(60), writer).await;
        ended.expect("the writer sees that the conversation is gone").unwrap();
    }
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    assert_eq!(store.list(&tenant(), None, 99).await.unwrap(), []);
}

/// Writers that had it open cannot write to it either, however many write while it is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_conversation_with_a_fork_accepts_no_commits() {
    let address = PostgresServer::shared().database();
    let machines = [Arc::new(open(&address).await), Arc::new(open(&address).await)];
    for round in 0..12 {
        let name = format!("round {round}");
        let id = create(&*machines[0], &name).await;
        machines[0].create(fork(&format!("fork {round}"), &[id])).await.unwrap();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = Arc::clone(&machines[writer % 2]);
                tokio::spawn(async move {
                    let (mut at, mut last) = (0, 0);
                    for _ in 0..5_000 {
                        let text = format!("{writer}");
                        let next = match writer {
                            0 => keyed(id, at + 1, &format!("{at}")),
                            _ => commit(id, at + 1, &text),
                        };
                        match store.commit(next).await {
                            Ok(()) => (at, last) = (at + 1, at + 1),
                            Err(Error::VersionConflict { current, .. }) => at = current,
                            Err(Error::KeyReused { .. }) => at += 1,
                            Err(Error::ConversationNotFound { .. }) => return last,
                            Err(other) => panic!("{other}"),
                        }
                    }
                    panic!("a removed conversation accepted a commit");
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(2 + 3 * (round % 4))).await;
        machines[1].remove(&tenant(), &name).await.unwrap();
        let newest = version(&*machines[1], id).await;
        let mut last = 0;
        for writer in writers {
            last = last.max(writer.await.unwrap());
        }
        assert_eq!(version(&*machines[0], id).await, newest, "no row was added after the removal");
        assert!(last <= newest, "no commit was accepted after the removal");
    }
    assert_eq!(machines[0].check().await.unwrap(), Vec::<String>::new());
}

/// The later removal sees that the other conversation has no name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_and_its_fork_removed_at_the_same_time_leave_no_rows() {
    let address = PostgresServer::shared().database();
    let (one, two) = (open(&address).await, open(&address).await);
    for round in 0..12 {
        let (name, forked) = (format!("round {round}"), format!("fork {round}"));
        let id = create(&one, &name).await;
        one.create(fork(&forked, &[id])).await.unwrap();
        let acme = tenant();
        let (first, second) = tokio::join!(one.remove(&acme, &name), two.remove(&acme, &forked));
        first.and(second).unwrap();
        assert!(one.rows(id).await.is_err(), "no fork shares its rows");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rewrite_waits_for_a_fork_that_is_being_made() {
    let address = PostgresServer::shared().database();
    let store = Arc::new(open(&address).await);
    let id = create(&*store, "a").await;
    let new = fork("b", &[id]);
    // The statements of `create`, stopped before the end.
    let (client, connection) =
        tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN").await.unwrap();
    let acme = tenant().0.into_bytes();
    for (sql, parameters) in [
        ("SELECT 1 FROM recto_conversations WHERE tenant = $1 AND id = $2 FOR SHARE", vec![id.0]),
        (
            "INSERT INTO recto_conversations SELECT tenant, $3, 'b', 0, '{}', \
                 '[{\"id\":\"' || id || '\",\"versions\":1,\"entries\":1}]' \
             FROM recto_conversations WHERE tenant = $1 AND id = $2",
            vec![id.0, new.id.0],
        ),
        ("INSERT INTO recto_parents VALUES ($1, $2, $3)", vec![new.id.0, id.0]),
    ] {
        let mut all: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![&acme];
        all.extend(parameters.iter().map(|id| id as &(dyn tokio_postgres::types::ToSql + Sync)));
        client.execute(sql, &all).await.unwrap();
    }
    let rewriting = tokio::spawn({
        let store = Arc::clone(&store);
        let rewrite = Rewrite { forks: Some(Vec::new()), ..Rewrite::default() };
        async move { store.rewrite(id, 0, rewrite).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!rewriting.is_finished());
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(rewriting.await.unwrap(), Err(Error::Forked));
}

#[tokio::test]
async fn a_damaged_index_never_leads_to_another_conversation() {
    let address = PostgresServer::shared().database();
    let id = create(&open(&address).await, "a").await;
    let run = async |sql: &str| {
        // A new connection each time: the server caches its catalogue for each.
        let connected = tokio_postgres::connect(&address, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
    };
    // The row changes without its indexes, as a changed bit changes it.
    let index = "WHERE indrelid = 'recto_commits'::regclass";
    run(&format!("UPDATE pg_index SET indislive = false {index}")).await;
    run("UPDATE recto_commits SET conversation = gen_random_uuid()").await;
    run(&format!("UPDATE pg_index SET indislive = true {index}")).await;
    let database = address.rsplit('/').next().unwrap();
    run(&format!("ALTER DATABASE \"{database}\" SET enable_seqscan = off")).await;
    let store = open(&address).await;
    match store.commits(id, None).await {
        Ok(rows) => assert!(rows.is_empty(), "the row of another conversation"),
        Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{error}"),
    }
}

#[tokio::test]
async fn a_moved_row_is_detected() {
    let server = PostgresServer::shared();
    for change in [
        "SELECT 1",
        "DELETE FROM recto_parents",
        "UPDATE recto_parents SET parent = fork",
        "UPDATE recto_commits SET version = 70 WHERE version = 5",
        "UPDATE recto_commits SET tenant = 'x' WHERE version = 5",
        "DELETE FROM recto_commits WHERE version = 3",
        "DELETE FROM recto_commits WHERE version = 4",
        "DELETE FROM recto_pages WHERE kind = 0 AND first = 0",
        "DELETE FROM recto_pages WHERE kind = 0 AND first = 1",
        "DELETE FROM recto_pages WHERE kind = 1 AND first = 0",
        "UPDATE recto_keys SET tenant = 'x'",
    ] {
        let address = server.database();
        let store = open(&address).await;
        let id = create(&store, "a").await;
        store.create(fork("b", &[id])).await.unwrap();
        for version in 1..=5 {
            let text = version.to_string();
            let first = match version {
                4 => Some((0, 1)),
                5 => Some((1, 2)),
                _ => None,
            };
            let seal = first.map(|(first, count)| {
                let records = (0..count).map(|_| ("{}", Link([0; 32])));
                let entries =
                    vec![
                        recto_store::Entry { meta: Default::default(), body: text.clone() };
                        count
                    ];
                let pages = vec![pack_records(first, records), pack_entries(first, &entries)];
                Seal { below: first + count as u32, pages, rows: None }
            });
            store.commit(Commit { seal, ..keyed(id, version, &text) }).await.unwrap();
        }
        let database = address.rsplit('/').next().unwrap();
        server.sql(database, change);
        let found = store.check().await.unwrap();
        assert_eq!(found.is_empty(), change == "SELECT 1", "{change}: {found:?}");
        if change.contains("recto_parents") {
            // What prune and remove delete depends on the forks.
            let refused = store.forks(id).await.unwrap_err();
            assert!(matches!(refused, Error::Damaged { .. }), "{change}: {refused}");
            let at = version(&store, id).await;
            let rewrite = Rewrite { forks: Some(Vec::new()), ..Rewrite::default() };
            let refused = store.rewrite(id, at, rewrite).await.unwrap_err();
            assert!(matches!(refused, Error::Damaged { .. }), "{change}: {refused}");
            let tenant = tenant();
            for name in ["a", "b"] {
                let refused = store.remove(&tenant, name).await.unwrap_err();
                assert!(matches!(refused, Error::Damaged { .. }), "{change}: {refused}");
                assert!(store.find(&tenant, name).await.is_ok(), "{change}: {name} is kept");
            }
        }
    }
}
