//! Commits: versions, keys, and packing into pages.

use std::time::Duration;

use recto_store::{Commit, CommitRow, Error, IdempotencyKey, PageKind, Rewrite, Seal, Store};

use crate::sample::{commit, grown, id, key, new, page, row, row_with_body, tenant, words};

pub(super) async fn versions_are_dense(store: &dyn Store) {
    grown(store, 1, "a", 2).await;
    for version in [0, 1, 2, 4, u32::MAX] {
        let expected = version.saturating_sub(1);
        let conflict = Err(Error::VersionConflict { expected, current: 2 });
        assert_eq!(store.commit(commit(id(1), version)).await, conflict);
    }
    store.commit(commit(id(1), 3)).await.unwrap();
    let rows: Vec<_> = (0..=3).map(row).collect();
    assert_eq!(store.commits(id(1), None).await, Ok(rows));
}

pub(super) async fn exactly_one_of_two_writers_succeeds(store: &dyn Store) {
    grown(store, 1, "a", 0).await;
    for version in 1..=20 {
        let saying = |text| Commit { row: row_with_body(version, text), ..commit(id(1), version) };
        let (one, other) = tokio::join!(store.commit(saying("one")), store.commit(saying("other")));
        let winner = if one.is_ok() { "one" } else { "other" };
        let lost = if one.is_ok() { other } else { one };
        assert_eq!(lost, Err(Error::VersionConflict { expected: version - 1, current: version }));
        let newest = store.commits(id(1), Some(version - 1)).await.unwrap();
        assert_eq!(newest, [row_with_body(version, winner)]);
    }
}

pub(super) async fn all_of_many_writers_succeed_if_they_retry(store: &dyn Store) {
    grown(store, 1, "a", 0).await;
    let writer = |writer: u32| async move {
        let mut version = 1;
        for number in 0..10 {
            loop {
                let row = row_with_body(version, &format!("{writer} {number}"));
                match store.commit(Commit { row, ..commit(id(1), version) }).await {
                    Ok(()) => break,
                    Err(Error::VersionConflict { current, .. }) => version = current + 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    };
    tokio::join!(writer(0), writer(1), writer(2), writer(3));
    let rows = store.commits(id(1), Some(0)).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.head.version).collect::<Vec<_>>(), Vec::from_iter(1..=40));
    for writer in 0..4 {
        let prefix = format!("{writer} ");
        let said = rows.iter().filter(|row| row.body.starts_with(prefix.as_bytes()));
        let said: Vec<_> = said.map(|row| String::from_utf8_lossy(&row.body)).collect();
        let expected: Vec<_> = (0..10).map(|number| format!("{writer} {number}")).collect();
        assert_eq!(said, expected);
    }
}

pub(super) async fn commits_above_a_version_are_returned_in_order(store: &dyn Store) {
    grown(store, 1, "a", 5).await;
    // Another conversation, whose rows must not be returned.
    grown(store, 2, "b", 3).await;
    let above = async |above| {
        let rows = store.commits(id(1), above).await.unwrap();
        rows.into_iter().map(|row| row.head.version).collect::<Vec<_>>()
    };
    assert_eq!(above(None).await, [0, 1, 2, 3, 4, 5]);
    assert_eq!(above(Some(3)).await, [4, 5]);
    for nothing in [5, 6, u32::MAX - 1, u32::MAX] {
        assert_eq!(above(Some(nothing)).await, [0; 0]);
    }
}

pub(super) async fn a_conversation_that_does_not_exist_is_named_in_the_error(store: &dyn Store) {
    fn unknown<T>() -> Result<T, Error> {
        Err(Error::ConversationNotFound { name: id(9).to_string() })
    }
    assert_eq!(store.commits(id(9), None).await, unknown());
    assert_eq!(store.commits(id(9), Some(u32::MAX)).await, unknown());
    assert_eq!(store.pages(id(9), PageKind::Entries, 0..9, true).await, unknown());
    assert_eq!(store.pages(id(9), PageKind::Entries, 0..0, true).await, unknown());
    assert_eq!(store.commit(commit(id(9), 1)).await, unknown());
    assert_eq!(store.remember(id(9), key("k", 0)).await, unknown());
    assert_eq!(store.key(id(9), "k").await, unknown());
    assert_eq!(store.rewrite(id(9), 0, Default::default()).await, unknown());
    assert_eq!(store.forks(id(9)).await, unknown());
    let unknown = Err(Error::ConversationNotFound { name: "x".into() });
    assert_eq!(store.remove(&tenant(), "x").await, unknown);
}

pub(super) async fn a_key_is_kept_with_its_request_and_only_once(store: &dyn Store) {
    grown(store, 1, "a", 0).await;
    grown(store, 2, "b", 0).await;
    let keyed =
        |number, version| Commit { key: Some(key("k", version)), ..commit(id(number), version) };
    assert_eq!(store.key(id(1), "k").await, Ok(None));
    store.commit(keyed(1, 1)).await.unwrap();
    assert_eq!(store.key(id(1), "k").await, Ok(Some(key("k", 1))));
    assert_eq!(store.commit(keyed(1, 2)).await, Err(Error::KeyReused { key: "k".into() }));
    assert_eq!(store.commits(id(1), Some(0)).await, Ok(vec![row(1)]));
    // A conflict of versions is reported first, because the key may have an outcome by now.
    let conflict = Err(Error::VersionConflict { expected: 0, current: 1 });
    assert_eq!(store.commit(keyed(1, 1)).await, conflict);
    // Keys belong to a conversation.
    assert_eq!(store.key(id(2), "k").await, Ok(None));
    store.commit(keyed(2, 1)).await.unwrap();
}

pub(super) async fn a_key_can_be_kept_for_a_request_that_changed_nothing(store: &dyn Store) {
    grown(store, 1, "a", 3).await;
    for text in ["k", "日本", "'"] {
        let unchanged = IdempotencyKey { changed: false, ..key(text, 3) };
        store.remember(id(1), unchanged.clone()).await.unwrap();
        assert_eq!(store.key(id(1), text).await, Ok(Some(unchanged.clone())));
        let reused = Err(Error::KeyReused { key: text.into() });
        assert_eq!(store.remember(id(1), unchanged).await, reused);
    }
    for text in ["", "\0"] {
        let refused = store.remember(id(1), key(text, 3)).await;
        assert!(matches!(refused, Err(Error::InvalidText { what: "key", .. })), "{refused:?}");
    }
    assert_eq!(store.find(&tenant(), "a").await.unwrap().unwrap().head, row(3).head);
}

pub(super) async fn a_refused_request_leaves_nothing(store: &dyn Store) {
    grown(store, 1, "a", 2).await;
    store.remember(id(1), key("used", 2)).await.unwrap();
    let seal = Seal { below: 2, pages: vec![page(PageKind::Records, 0, 2)], rows: None };
    let full = Commit {
        key: Some(key("fresh", 5)),
        words: vec![words(5, "lost")],
        seal: Some(seal),
        ..commit(id(1), 5)
    };
    store.commit(full.clone()).await.unwrap_err();
    let reused = Commit { row: row(3), key: Some(key("used", 3)), ..full };
    store.commit(reused).await.unwrap_err();
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(0), row(1), row(2)]));
    assert_eq!(store.pages(id(1), PageKind::Records, 0..9, true).await, Ok(vec![]));
    assert_eq!(store.key(id(1), "fresh").await, Ok(None));
    assert_eq!(store.search(&tenant(), &["lost".into()], 9).await, Ok(vec![]));
}

pub(super) async fn packed_rows_become_pages_in_one_step(store: &dyn Store) {
    grown(store, 1, "a", 5).await;
    grown(store, 2, "b", 5).await;
    let pages = vec![page(PageKind::Records, 0, 4), page(PageKind::Entries, 0, 4)];
    let seal = Some(Seal { below: 4, pages: pages.clone(), rows: None });
    store.commit(Commit { seal, ..commit(id(1), 6) }).await.unwrap();
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(4), row(5), row(6)]));
    for (kind, expected) in [PageKind::Records, PageKind::Entries].into_iter().zip(&pages) {
        let found = store.pages(id(1), kind, 0..u32::MAX, true).await.unwrap();
        assert_eq!(found, std::slice::from_ref(expected));
        assert_eq!(store.pages(id(2), kind, 0..u32::MAX, true).await, Ok(vec![]));
    }
    assert_eq!(store.commits(id(2), None).await.unwrap().len(), 6);
    // A page that was not full is packed again.
    let longer = page(PageKind::Records, 0, 7);
    let seal = Some(Seal { below: 7, pages: vec![longer.clone()], rows: None });
    store.commit(Commit { seal, ..commit(id(1), 7) }).await.unwrap();
    assert_eq!(store.pages(id(1), PageKind::Records, 6..7, true).await, Ok(vec![longer]));
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(7)]));
}

pub(super) async fn the_newest_row_is_never_packed(store: &dyn Store) {
    grown(store, 1, "a", 1).await;
    let seal = Some(Seal { below: 3, pages: vec![page(PageKind::Records, 0, 3)], rows: None });
    let refused = store.commit(Commit { seal, ..commit(id(1), 2) }).await;
    assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(0), row(1)]));
    let seal = Some(Seal { below: 2, pages: vec![page(PageKind::Records, 0, 2)], rows: None });
    store.commit(Commit { seal, ..commit(id(1), 2) }).await.unwrap();
    assert_eq!(store.find(&tenant(), "a").await.unwrap().unwrap().head, row(2).head);
}

pub(super) async fn rows_that_have_changed_are_not_packed(store: &dyn Store) {
    grown(store, 1, "a", 3).await;
    let known = |rows: &[CommitRow]| rows.iter().map(|row| row.body.clone()).collect();
    let sealed = |below, rows: &[CommitRow]| {
        let pages = vec![page(PageKind::Records, 0, below)];
        let seal = Some(Seal { below, pages, rows: Some(known(rows)) });
        Commit { seal, key: Some(key("k", 4)), ..commit(id(1), 4) }
    };
    let changed = row_with_body(1, "changed");
    let rewrite = Rewrite { commits: vec![changed.clone()], ..Rewrite::default() };
    store.rewrite(id(1), 3, rewrite).await.unwrap();
    let before = sealed(3, &[row(0), row(1), row(2)]);
    assert_eq!(store.commit(before).await, Err(Error::RowsChanged));
    let rows = vec![row(0), changed.clone(), row(2), row(3)];
    assert_eq!(store.commits(id(1), None).await, Ok(rows));
    assert_eq!(store.pages(id(1), PageKind::Records, 0..9, true).await, Ok(vec![]));
    assert_eq!(store.key(id(1), "k").await, Ok(None));
    store.commit(sealed(3, &[row(0), changed.clone(), row(2)])).await.unwrap();
    // A writer that still has the old rows cannot pack them again.
    let mut again = sealed(5, &[row(0), changed, row(2), row(3), row(4)]);
    (again.row, again.key) = (row(5), None);
    assert_eq!(store.commit(again).await, Err(Error::RowsChanged));
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(3), row(4)]));
}

pub(super) async fn pages_are_found_by_the_numbers_that_they_contain(store: &dyn Store) {
    grown(store, 1, "a", 0).await;
    let pages: Vec<_> = [(3, 4), (7, 1), (8, 10), (u32::MAX - 2, 2)]
        .map(|(first, count)| page(PageKind::Entries, first, count))
        .into();
    let seal = Seal { below: 1, pages: pages.clone(), rows: None };
    store.commit(Commit { seal: Some(seal), ..commit(id(1), 1) }).await.unwrap();
    let firsts = async |numbers| {
        let found = store.pages(id(1), PageKind::Entries, numbers, false).await.unwrap();
        for found in &found {
            let page = pages.iter().find(|page| page.first == found.first).unwrap();
            assert_eq!((&found.meta, found.count), (&page.meta, page.count));
            assert!(found.body.is_empty());
        }
        found.into_iter().map(|page| page.first).collect::<Vec<_>>()
    };
    assert_eq!(firsts(0..u32::MAX).await, [3, 7, 8, u32::MAX - 2]);
    assert_eq!(firsts(0..3).await, [0; 0]);
    assert_eq!(firsts(0..4).await, [3]);
    assert_eq!(firsts(6..8).await, [3, 7]);
    assert_eq!(firsts(7..8).await, [7]);
    assert_eq!(firsts(17..18).await, [8]);
    assert_eq!(firsts(18..100).await, [0; 0]);
    assert_eq!(firsts(12..12).await, [0; 0]);
    assert_eq!(firsts(u32::MAX - 1..u32::MAX).await, [u32::MAX - 2]);
    assert_eq!(store.pages(id(1), PageKind::Entries, 7..9, true).await.unwrap(), pages[1..3]);
    assert_eq!(store.pages(id(1), PageKind::Records, 0..100, true).await, Ok(vec![]));
}

pub(super) async fn rows_of_several_conversations_are_those_of_each(store: &dyn Store) {
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        grown(store, number, name, number as u32).await;
        let pages = [0, 4].map(|first| page(PageKind::Entries, first, 4)).into();
        let seal = Seal { below: 1, pages, rows: None };
        let version = number as u32 + 1;
        if number != 2 {
            let commit = Commit { seal: Some(seal), ..commit(id(number), version) };
            store.commit(commit).await.unwrap();
        }
    }
    let parts = vec![(id(3), 0..3), (id(1), 3..5), (id(2), 0..9), (id(1), 8..9), (id(3), 0..0)];
    for bodies in [true, false] {
        let found = store.pages_of(parts.clone(), PageKind::Entries, bodies).await.unwrap();
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 0, 0, 0]);
        for ((id, numbers), found) in parts.iter().zip(found) {
            let alone = store.pages(*id, PageKind::Entries, numbers.clone(), bodies).await;
            assert_eq!(alone, Ok(found));
        }
    }
    let ids = vec![id(2), id(1), id(3), id(1)];
    let found = store.unpacked_of(ids.clone()).await.unwrap();
    assert_eq!(found.len(), ids.len());
    for (id, found) in ids.into_iter().zip(found) {
        assert_eq!(store.unpacked(id, None).await, Ok(found));
    }
    let unknown = Error::ConversationNotFound { name: id(9).to_string() };
    assert_eq!(store.unpacked_of(vec![id(1), id(9)]).await, Err(unknown.clone()));
    let parts = vec![(id(9), 0..1), (id(1), 0..1)];
    assert_eq!(store.pages_of(parts, PageKind::Entries, true).await, Err(unknown));
    assert_eq!(store.unpacked_of(vec![]).await, Ok(vec![]));
    assert_eq!(store.pages_of(vec![], PageKind::Entries, true).await, Ok(vec![]));
}

pub(super) async fn large_and_unusual_bytes_are_returned_unchanged(store: &dyn Store) {
    store.create(new(id(1), "a")).await.unwrap();
    let mut rows = Vec::new();
    let lens = [0, 1, 900, 4_000, 4_060, 4_100, 70_000, 3_000_000];
    for (version, len) in (1..).zip(lens) {
        let mut row = row(version);
        row.body = (0..len).map(|at: u64| ((at * at) >> 3) as u8).collect();
        row.head.committed = [i64::MIN, i64::MAX, -1, 0][version as usize % 4];
        row.head.entries = u32::MAX - version;
        store.commit(Commit { row: row.clone(), ..commit(id(1), version) }).await.unwrap();
        rows.push(row);
    }
    assert_eq!(store.commits(id(1), Some(0)).await, Ok(rows));
}

pub(super) async fn a_request_that_is_dropped_is_applied_completely_or_not_at_all(
    store: &dyn Store,
) {
    grown(store, 1, "a", 0).await;
    drop(store.commit(commit(id(1), 1)));
    drop(store.create(new(id(2), "b")));
    assert_eq!(store.find(&tenant(), "b").await, Ok(None));
    // A request that is dropped while it runs leaves the store usable.
    for _ in 0..50 {
        let current = store.find(&tenant(), "a").await.unwrap().unwrap().head.version;
        let wait = Duration::from_micros(u64::from(current) * 20);
        let _ = tokio::time::timeout(wait, store.commit(commit(id(1), current + 1))).await;
    }
    // The last request may still run: the next request finds its row, or it was not applied.
    let mut next = 0;
    loop {
        match store.commit(commit(id(1), next)).await {
            Err(Error::VersionConflict { current, .. }) => next = current + 1,
            accepted => break accepted.unwrap(),
        }
    }
    let rows = store.commits(id(1), None).await.unwrap();
    assert_eq!(rows.len() as u32, next + 1);
    assert!((0..).map(row).zip(&rows).all(|(expected, row)| expected == *row));
}
