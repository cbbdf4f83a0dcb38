//! Rewriting rows, and checks for damage.

use recto_store::{Commit, Error, Page, PageKind, Rewrite, Seal, Store};

use crate::sample::{commit, fork, grown, id, page, row, row_with_body, tenant, words};

async fn packed(store: &dyn Store) {
    grown(store, 1, "a", 4).await;
    let pages = vec![page(PageKind::Records, 0, 3), page(PageKind::Entries, 0, 3)];
    let seal = Some(Seal { below: 3, pages, rows: None });
    let words = vec![words(5, "secret open"), words(6, "secret")];
    store.commit(Commit { seal, words, ..commit(id(1), 5) }).await.unwrap();
}

pub(super) async fn rows_are_replaced_and_words_removed(store: &dyn Store) {
    packed(store).await;
    let replaced = Page { body: b"empty".to_vec(), ..page(PageKind::Entries, 0, 3) };
    let rewrite = Rewrite {
        commits: vec![row_with_body(4, "nothing")],
        pages: vec![replaced.clone()],
        forget: vec![5, 77],
        forks: None,
        known: None,
    };
    store.rewrite(id(1), 5, rewrite.clone()).await.unwrap();
    let rows = vec![row(3), row_with_body(4, "nothing"), row(5)];
    assert_eq!(store.commits(id(1), None).await, Ok(rows));
    assert_eq!(store.pages(id(1), PageKind::Entries, 0..9, true).await, Ok(vec![replaced]));
    let kept = vec![page(PageKind::Records, 0, 3)];
    assert_eq!(store.pages(id(1), PageKind::Records, 0..9, true).await, Ok(kept));
    let entries = |hits: Vec<recto_store::Hit>| hits.into_iter().map(|hit| hit.entry).collect();
    let found = store.search(&tenant(), &["secret".into()], 9).await.map(entries);
    assert_eq!(found, Ok(vec![6]));
    assert_eq!(store.search(&tenant(), &["open".into()], 9).await, Ok(vec![]));
    // The rewrite can be repeated, and the conversation accepts requests after it.
    store.rewrite(id(1), 5, rewrite).await.unwrap();
    store.commit(commit(id(1), 6)).await.unwrap();
}

pub(super) async fn a_rewrite_of_another_version_is_refused(store: &dyn Store) {
    packed(store).await;
    for at in [0, 4, 6] {
        let rewrite = Rewrite { commits: vec![row_with_body(4, "lost")], ..Rewrite::default() };
        let conflict = Err(Error::VersionConflict { expected: at, current: 5 });
        assert_eq!(store.rewrite(id(1), at, rewrite).await, conflict);
    }
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(3), row(4), row(5)]));
}

pub(super) async fn only_existing_rows_can_be_replaced(store: &dyn Store) {
    packed(store).await;
    let good = Rewrite { commits: vec![row_with_body(4, "lost")], ..Rewrite::default() };
    let mut rewrites = Vec::new();
    for version in [0, 2, 6] {
        let mut rewrite = good.clone();
        rewrite.commits.push(row(version));
        rewrites.push(rewrite);
    }
    rewrites.push(Rewrite { pages: vec![page(PageKind::Entries, 1, 2)], ..good });
    for rewrite in rewrites {
        let refused = store.rewrite(id(1), 5, rewrite).await;
        assert_eq!(refused, Err(Error::RowsChanged));
    }
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(3), row(4), row(5)]));
    assert_eq!(store.pages(id(1), PageKind::Entries, 0..9, true).await.unwrap().len(), 1);
}

pub(super) async fn a_rewrite_that_ignores_a_fork_is_refused(store: &dyn Store) {
    packed(store).await;
    let rewrite_for = |forks: &[u128]| Rewrite {
        commits: vec![row_with_body(4, "nothing")],
        forks: Some(forks.iter().map(|&number| id(number)).collect()),
        ..Rewrite::default()
    };
    store.create(fork(id(2), "b", &[id(1)], 4)).await.unwrap();
    store.create(fork(id(3), "c", &[id(1), id(2)], 4)).await.unwrap();
    for forks in [&[][..], &[2], &[3, 4]] {
        assert_eq!(store.rewrite(id(1), 5, rewrite_for(forks)).await, Err(Error::Forked));
    }
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(3), row(4), row(5)]));
    store.rewrite(id(2), 4, Rewrite { commits: vec![], ..rewrite_for(&[3]) }).await.unwrap();
    store.rewrite(id(3), 4, Rewrite { commits: vec![], ..rewrite_for(&[]) }).await.unwrap();
    // A rewrite may list a fork that was removed.
    store.remove(&tenant(), "b").await.unwrap();
    store.rewrite(id(1), 5, rewrite_for(&[2, 3])).await.unwrap();
    assert_eq!(store.commits(id(1), Some(3)).await, Ok(vec![row_with_body(4, "nothing"), row(5)]));
}

pub(super) async fn a_check_of_an_undamaged_store_finds_nothing(store: &dyn Store) {
    packed(store).await;
    assert_eq!(store.check().await, Ok(vec![]));
    if let Some(size) = store.size().await.unwrap() {
        assert!((10_000..1_000_000).contains(&size), "{size} bytes");
    }
}

/// Otherwise the rewrite would restore messages that were erased since its rows were read.
pub(super) async fn a_rewrite_of_rows_that_have_changed_is_refused(store: &dyn Store) {
    packed(store).await;
    let read_page = page(PageKind::Entries, 0, 3);
    let emptied = |body: &[u8]| Page { body: body.to_vec(), ..read_page.clone() };
    let commit = |body: &str| {
        let mut rewrite = Rewrite::default();
        rewrite.replace_commit(&row(4), row_with_body(4, body).body);
        rewrite
    };
    let paged = |body: &[u8]| {
        let mut rewrite = Rewrite::default();
        rewrite.replace_page(&read_page, emptied(body));
        rewrite
    };
    for (first, second) in [(commit("one"), commit("two")), (paged(b"one"), paged(b"two"))] {
        store.rewrite(id(1), 5, first.clone()).await.unwrap();
        assert_eq!(store.rewrite(id(1), 5, second).await, Err(recto_store::Error::RowsChanged));
        // Rows that the rewrite itself wrote are accepted.
        store.rewrite(id(1), 5, first).await.unwrap();
    }
    assert_eq!(store.commits(id(1), None).await.unwrap()[1], row_with_body(4, "one"));
    let pages = store.pages(id(1), PageKind::Entries, 0..9, true).await;
    assert_eq!(pages, Ok(vec![emptied(b"one")]));
}
