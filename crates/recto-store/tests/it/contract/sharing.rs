//! Forks, and the rows of removed conversations.

use recto_store::{Commit, Error, NewConversation, PageKind, Seal, Store, Tenant};

use crate::sample::{commit, fork, grown, id, key, new, page, row, tenant, words};

/// `a`, its fork `b`, and `c`, which is forked from `b`.
async fn three_generations(store: &dyn Store) {
    grown(store, 1, "a", 3).await;
    let seal = Some(Seal { below: 2, pages: vec![page(PageKind::Records, 0, 2)], rows: None });
    let words = vec![words(4, "shared")];
    store.commit(Commit { seal, words, ..commit(id(1), 4) }).await.unwrap();
    store.create(fork(id(2), "b", &[id(1)], 3)).await.unwrap();
    store.create(fork(id(3), "c", &[id(1), id(2)], 4)).await.unwrap();
}

pub(super) async fn rows_of_a_removed_conversation_stay_while_forks_share_them(store: &dyn Store) {
    three_generations(store).await;
    let rows = store.commits(id(1), None).await;
    let pages = store.pages(id(1), PageKind::Records, 0..9, true).await;
    store.remove(&tenant(), "a").await.unwrap();
    assert_eq!(store.find(&tenant(), "a").await, Ok(None));
    assert_eq!(store.list(&tenant(), None, 9).await.unwrap().len(), 2);
    store.remove(&tenant(), "b").await.unwrap();
    // `c` shares rows of both.
    assert_eq!(store.commits(id(1), None).await, rows);
    assert_eq!(store.pages(id(1), PageKind::Records, 0..9, true).await, pages);
    assert_eq!(store.commits(id(2), None).await, Ok(vec![row(3)]));
    assert_eq!(store.search(&tenant(), &["shared".into()], 9).await.unwrap().len(), 1);
    store.remove(&tenant(), "c").await.unwrap();
    for number in 1..=3 {
        let unknown = Err(Error::ConversationNotFound { name: id(number).to_string() });
        assert_eq!(store.commits(id(number), None).await, unknown);
    }
    assert_eq!(store.search(&tenant(), &["shared".into()], 9).await, Ok(vec![]));
}

pub(super) async fn several_conversations_are_found_by_their_ids(store: &dyn Store) {
    three_generations(store).await;
    let other = Tenant("other".into());
    store.create(NewConversation { tenant: other, ..new(id(4), "a") }).await.unwrap();
    store.remove(&tenant(), "b").await.unwrap();
    let mut found = store.get_all(&tenant(), (1..=5).map(id).collect()).await.unwrap();
    found.sort_by_key(|row| row.id);
    assert_eq!(found.len(), 2, "not the removed one, nor that of another tenant: {found:?}");
    for (row, number) in found.iter().zip([1, 3]) {
        assert_eq!(row.id, id(number));
        assert_eq!(store.get(&tenant(), id(number)).await.unwrap().as_ref(), Some(row));
        assert_eq!(row.lineage.len(), number as usize - 1);
    }
    assert_eq!(store.get_all(&tenant(), Vec::new()).await, Ok(Vec::new()));
}

pub(super) async fn removing_a_conversation_removes_all_of_its_rows(store: &dyn Store) {
    three_generations(store).await;
    store.remember(id(3), key("k", 4)).await.unwrap();
    store.remove(&tenant(), "c").await.unwrap();
    let unknown = Err(Error::ConversationNotFound { name: id(3).to_string() });
    assert_eq!(store.key(id(3), "k").await, unknown);
    // Other conversations keep their rows.
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(2), row(3), row(4)]));
    assert_eq!(store.commits(id(2), None).await, Ok(vec![row(3)]));
    // A new conversation finds none of its rows.
    store.create(new(id(4), "d")).await.unwrap();
    assert_eq!(store.key(id(4), "k").await, Ok(None));
    assert_eq!(store.commits(id(4), None).await, Ok(vec![row(0)]));
    assert_eq!(store.pages(id(4), PageKind::Records, 0..9, true).await, Ok(vec![]));
}

pub(super) async fn a_removed_conversation_accepts_no_requests_and_its_rows_stay_for_forks(
    store: &dyn Store,
) {
    three_generations(store).await;
    store.remove(&tenant(), "a").await.unwrap();
    let unknown = Err(Error::ConversationNotFound { name: id(1).to_string() });
    assert_eq!(store.commit(commit(id(1), 5)).await, unknown);
    let keyed = Commit { key: Some(key("k", 5)), ..commit(id(1), 5) };
    assert_eq!(store.commit(keyed).await, unknown);
    let pages = vec![page(PageKind::Records, 2, 2)];
    let seal = Some(Seal { below: 4, pages, rows: None });
    assert_eq!(store.commit(Commit { seal, ..commit(id(1), 5) }).await, unknown);
    assert_eq!(store.commits(id(1), None).await, Ok(vec![row(2), row(3), row(4)]));
    let found = store.pages(id(1), PageKind::Records, 0..9, true).await;
    assert_eq!(found, Ok(vec![page(PageKind::Records, 0, 2)]));
}

pub(super) async fn a_name_can_be_used_again(store: &dyn Store) {
    three_generations(store).await;
    store.remove(&tenant(), "a").await.unwrap();
    let unknown = Err(Error::ConversationNotFound { name: "a".into() });
    assert_eq!(store.remove(&tenant(), "a").await, unknown);
    store.create(new(id(5), "a")).await.unwrap();
    assert_eq!(store.find(&tenant(), "a").await.unwrap().unwrap().id, id(5));
    // The id of a conversation that is kept for its forks cannot be used again.
    let exists = Err(Error::ConversationExists { name: id(1).to_string() });
    assert_eq!(store.create(new(id(1), "x")).await, exists);
    store.remove(&tenant(), "a").await.unwrap();
    store.create(new(id(6), "a")).await.unwrap();
}

pub(super) async fn forks_are_listed_whether_direct_or_not(store: &dyn Store) {
    three_generations(store).await;
    let names = async |number| {
        let forks = store.forks(id(number)).await.unwrap();
        forks.into_iter().map(|row| (row.name, row.head.version)).collect::<Vec<_>>()
    };
    assert_eq!(names(1).await, [("b".to_owned(), 3), ("c".to_owned(), 4)]);
    assert_eq!(names(2).await, [("c".to_owned(), 4)]);
    assert_eq!(names(3).await, []);
    store.remove(&tenant(), "b").await.unwrap();
    assert_eq!(names(1).await, [("c".to_owned(), 4)]);
    let found = store.find(&tenant(), "c").await.unwrap().unwrap();
    let lineage: Vec<_> = found.lineage.iter().map(|from| (from.id, from.versions)).collect();
    assert_eq!(lineage, [(id(1), 3), (id(2), 4)]);
}

pub(super) async fn a_removed_conversation_or_one_of_another_tenant_cannot_be_forked(
    store: &dyn Store,
) {
    three_generations(store).await;
    store.remove(&tenant(), "c").await.unwrap();
    let unknown = |number| Err(Error::ConversationNotFound { name: id(number).to_string() });
    assert_eq!(store.create(fork(id(4), "d", &[id(1), id(3)], 4)).await, unknown(3));
    let other = Tenant("other".into());
    let stolen = NewConversation { tenant: other.clone(), ..fork(id(5), "e", &[id(1)], 3) };
    assert_eq!(store.create(stolen).await, unknown(1));
    assert_eq!(store.find(&tenant(), "d").await, Ok(None));
    assert_eq!(store.find(&other, "e").await, Ok(None));
    // A refused fork keeps no rows.
    store.remove(&tenant(), "b").await.unwrap();
    store.remove(&tenant(), "a").await.unwrap();
    assert_eq!(store.commits(id(1), None).await, unknown(1).map(|()| vec![]));
}
