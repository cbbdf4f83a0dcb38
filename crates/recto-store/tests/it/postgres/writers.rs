//! Many writers on one conversation, through two open stores with separate connections.

use std::collections::BTreeSet;
use std::sync::Arc;

use recto_store::{Error, PostgresStore, Seal, Store, pack_records};
use testserver::PostgresServer;

use super::{commit, create, open, texts, version};

/// Writes until `each` commits are accepted.
async fn write(
    store: Arc<PostgresStore>,
    id: recto_store::ConversationId,
    writer: usize,
    each: u32,
) {
    let mut newest = version(&*store, id).await;
    let mut done = 0;
    while done < each {
        let text = format!("writer {writer} request {done}");
        match store.commit(commit(id, newest + 1, &text)).await {
            Ok(()) => {
                done += 1;
                newest += 1;
            }
            Err(Error::VersionConflict { expected, current }) => {
                assert_eq!(expected, newest);
                assert!(current > expected, "{current} {expected}");
                newest = current;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

async fn race(writers: usize, each: u32) {
    let address = PostgresServer::shared().database();
    let stores = [Arc::new(open(&address).await), Arc::new(open(&address).await)];
    let id = create(&*stores[0], "shared").await;
    let tasks: Vec<_> = (0..writers)
        .map(|writer| tokio::spawn(write(Arc::clone(&stores[writer % 2]), id, writer, each)))
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let texts = texts(&*stores[0], id).await;
    assert_eq!(texts.len(), writers * each as usize);
    assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len(), "each once");
    for writer in 0..writers {
        let prefix = format!("writer {writer} ");
        let of_writer: Vec<&String> =
            texts.iter().filter(|text| text.starts_with(&prefix)).collect();
        let expected: Vec<String> = (0..each).map(|n| format!("{prefix}request {n}")).collect();
        assert!(of_writer.into_iter().eq(&expected), "in the order they were made");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_writers_make_dense_versions_and_none_starves() {
    race(8, 25).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_writers_make_dense_versions_and_none_starves() {
    race(32, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_writers_make_dense_versions_and_none_starves() {
    race(64, 3).await;
}

/// Two of eight writers pack all older rows with every commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_was_packed_is_not_written_again() {
    let address = PostgresServer::shared().database();
    let stores = [Arc::new(open(&address).await), Arc::new(open(&address).await)];
    let id = create(&*stores[0], "packed").await;
    let tasks: Vec<_> = (0..8)
        .map(|writer| {
            let store = Arc::clone(&stores[writer % 2]);
            tokio::spawn(async move {
                let mut accepted = Vec::new();
                let mut newest = version(&*store, id).await;
                while accepted.len() < 25 {
                    let mut commit = commit(id, newest + 1, &format!("{writer}"));
                    if writer < 2 {
                        // All rows below the new one are packed.
                        let pages =
                            vec![pack_records(newest, [("packed", recto_store::Link([0; 32]))])];
                        commit.seal = Some(Seal { below: newest + 1, pages, rows: None });
                    }
                    match store.commit(commit).await {
                        Ok(()) => {
                            accepted.push(newest + 1);
                            newest += 1;
                        }
                        Err(Error::VersionConflict { current, .. }) => newest = current,
                        Err(other) => panic!("{other}"),
                    }
                }
                accepted
            })
        })
        .collect();
    let mut accepted = Vec::new();
    for task in tasks {
        accepted.extend(task.await.unwrap());
    }
    accepted.sort_unstable();
    assert_eq!(accepted, (1..=200).collect::<Vec<u32>>(), "each version was accepted once");
    let rows = stores[0].commits(id, None).await.unwrap();
    assert!(rows.windows(2).all(|pair| pair[0].head.version + 1 == pair[1].head.version));
    assert_eq!(rows.last().unwrap().head.version, 200);
}

/// Four writers, and two that pack all rows that they have read with each commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packing_beside_other_writers_keeps_every_row_once() {
    let address = PostgresServer::shared().database();
    let stores = [Arc::new(open(&address).await), Arc::new(open(&address).await)];
    let id = create(&*stores[0], "packed").await;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = Arc::clone(&stores[writer % 2]);
            tokio::spawn(async move {
                let (mut newest, mut accepted) = (0, 0);
                while accepted < 50 {
                    match store.commit(commit(id, newest + 1, "text")).await {
                        Ok(()) => (newest, accepted) = (newest + 1, accepted + 1),
                        Err(Error::VersionConflict { current, .. }) => newest = current,
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        })
        .collect();
    let packers: Vec<_> = (0..2)
        .map(|packer| {
            let store = Arc::clone(&stores[packer]);
            tokio::spawn(async move {
                let (mut packed, mut accepted) = (Vec::new(), 0);
                while accepted < 10 {
                    let rows = store.commits(id, None).await.unwrap();
                    let (oldest, newest) = (rows[0].head, rows.last().unwrap().head);
                    let records = rows.iter().map(|_| ("record", recto_store::Link([0; 32])));
                    let pages = vec![pack_records(oldest.version, records)];
                    let bodies = Some(rows.iter().map(|row| row.body.clone()).collect());
                    let mut commit = commit(id, newest.version + 1, "text of a packer");
                    commit.seal = Some(Seal { below: newest.version + 1, pages, rows: bodies });
                    match store.commit(commit).await {
                        Ok(()) => {
                            accepted += 1;
                            packed.extend(rows.iter().map(|row| row.head.version));
                        }
                        Err(Error::VersionConflict { .. } | Error::RowsChanged) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                packed
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut packed = Vec::new();
    for packer in packers {
        packed.extend(packer.await.unwrap());
    }
    packed.extend(stores[0].commits(id, None).await.unwrap().iter().map(|row| row.head.version));
    packed.sort_unstable();
    assert_eq!(packed, (0..=220).collect::<Vec<u32>>(), "each row is packed once or not at all");
    let pages = stores[0].pages(id, recto_store::PageKind::Records, 0..220, false).await.unwrap();
    assert!(pages.windows(2).all(|pair| pair[0].end() == pair[1].first));
    assert_eq!(stores[0].check().await.unwrap(), Vec::<String>::new());
}
