//! Names, lists, tenants.

use recto_store::{
    ConversationRow, Error, MAX_NAME, NewConversation, Rewrite, RewriteOf, Store, Tenant,
};

use crate::sample::{commit, fork, grown, id, new, only_at, row, row_with_body, tenant};

pub(super) async fn a_created_conversation_is_found(store: &dyn Store) {
    assert_eq!(store.find(&tenant(), "a").await, Ok(None));
    store.create(new(id(1), "a")).await.unwrap();
    let expected = ConversationRow {
        id: id(1),
        name: "a".into(),
        created: -5,
        settings: r#"{"a":1}"#.into(),
        policy: None,
        lineage: Vec::new().into(),
        head: row(0).head,
    };
    assert_eq!(store.find(&tenant(), "a").await, Ok(Some(expected.clone())));
    store.commit(commit(id(1), 1)).await.unwrap();
    let expected = ConversationRow { head: row(1).head, ..expected };
    assert_eq!(store.find(&tenant(), "a").await, Ok(Some(expected.clone())));
    assert_eq!(store.list(&tenant(), None, 10).await, Ok(vec![expected]));
}

pub(super) async fn a_name_or_an_id_that_is_taken_is_refused(store: &dyn Store) {
    grown(store, 1, "a", 2).await;
    let exists = |name: &str| Err(Error::ConversationExists { name: name.into() });
    assert_eq!(store.create(new(id(2), "a")).await, exists("a"));
    assert_eq!(store.create(new(id(1), "b")).await, exists(&id(1).to_string()));
    assert_eq!(store.find(&tenant(), "b").await, Ok(None));
    assert_eq!(store.find(&tenant(), "a").await.unwrap().unwrap().head.version, 2);
}

pub(super) async fn names_are_listed_in_order_page_by_page(store: &dyn Store) {
    let longest = "n".repeat(MAX_NAME);
    let mut names = vec![
        " ",
        "  a",
        "\t",
        "\n",
        "'; DROP TABLE commits; --",
        "%",
        "A",
        "B",
        "a",
        "a/b",
        "a b",
        "aa",
        "ab",
        "b",
        "z",
        "\u{1}",
        "\u{7f}",
        "\u{80}",
        "é",
        "e\u{301}",
        "ß",
        "ss",
        "日本",
        "😀",
        "\u{10ffff}",
        "\u{202e}x",
        "\"",
        "\\",
        "_",
        &longest,
    ];
    for (number, name) in (1..).zip(&names) {
        store.create(new(id(number), name)).await.unwrap();
    }
    names.sort_unstable();
    for limit in [1, 3, 7, 1_000, usize::MAX] {
        let mut listed: Vec<String> = Vec::new();
        loop {
            let page = store.list(&tenant(), listed.last().map(|name| &**name), limit).await;
            let page = page.unwrap();
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            listed.extend(page.into_iter().map(|row| row.name));
        }
        assert_eq!(listed, names, "{limit} at a time");
    }
    assert_eq!(store.list(&tenant(), None, 0).await, Ok(vec![]));
    let behind_a_name_that_is_not_there = store.list(&tenant(), Some("aaa"), 1).await.unwrap();
    assert_eq!(behind_a_name_that_is_not_there[0].name, "ab");
    for name in names {
        assert_eq!(store.find(&tenant(), name).await.unwrap().unwrap().name, name);
    }
}

pub(super) async fn names_that_no_store_could_keep_are_refused(store: &dyn Store) {
    store.create(new(id(1), "a")).await.unwrap();
    let too_long = "é".repeat(MAX_NAME / 2 + 1);
    for name in ["", "a\0b", &too_long] {
        let refused = store.create(new(id(2), name)).await;
        assert!(matches!(refused, Err(Error::InvalidText { what: "name", .. })), "{refused:?}");
        let refused = store.rename(&tenant(), "a", name).await;
        assert!(matches!(refused, Err(Error::InvalidText { what: "name", .. })), "{refused:?}");
        assert_eq!(store.find(&tenant(), name).await, Ok(None));
    }
    let new = NewConversation { tenant: Tenant("t\0".into()), ..new(id(2), "b") };
    let refused = store.create(new).await;
    assert!(matches!(refused, Err(Error::InvalidText { what: "tenant", .. })), "{refused:?}");
    assert_eq!(store.list(&tenant(), None, 9).await.unwrap().len(), 1);
}

pub(super) async fn a_renamed_conversation_is_found_by_its_new_name_only(store: &dyn Store) {
    grown(store, 1, "a", 1).await;
    grown(store, 2, "b", 0).await;
    let exists = Err(Error::ConversationExists { name: "b".into() });
    assert_eq!(store.rename(&tenant(), "a", "b").await, exists);
    let unknown = Err(Error::ConversationNotFound { name: "x".into() });
    assert_eq!(store.rename(&tenant(), "x", "y").await, unknown);
    store.rename(&tenant(), "a", "a").await.unwrap();
    store.rename(&tenant(), "a", "c").await.unwrap();
    assert_eq!(store.find(&tenant(), "a").await, Ok(None));
    let found = store.find(&tenant(), "c").await.unwrap().unwrap();
    assert_eq!((found.id, found.head.version), (id(1), 1));
    store.create(new(id(3), "a")).await.unwrap();
}

pub(super) async fn tenants_do_not_see_each_other(store: &dyn Store) {
    let other = Tenant("other".into());
    store.create(new(id(1), "a")).await.unwrap();
    let new = NewConversation { tenant: other.clone(), ..new(id(2), "a") };
    store.create(new).await.unwrap();
    assert_eq!(store.find(&tenant(), "a").await.unwrap().unwrap().id, id(1));
    assert_eq!(store.find(&other, "a").await.unwrap().unwrap().id, id(2));
    assert_eq!(store.list(&other, None, 9).await.unwrap().len(), 1);
    store.rename(&other, "a", "b").await.unwrap();
    let unknown = Err(Error::ConversationNotFound { name: "b".into() });
    assert_eq!(store.remove(&tenant(), "b").await, unknown);
    store.remove(&other, "b").await.unwrap();
    assert_eq!(store.find(&tenant(), "a").await.unwrap().unwrap().id, id(1));
}

pub(super) async fn a_conversation_is_found_by_its_id_as_long_as_it_has_a_name(store: &dyn Store) {
    grown(store, 1, "a", 3).await;
    store.create(fork(id(2), "b", &[id(1)], 2)).await.unwrap();
    for (number, name) in [(1, "a"), (2, "b")] {
        let found = store.get(&tenant(), id(number)).await.unwrap();
        assert_eq!(found, store.find(&tenant(), name).await.unwrap());
        assert_eq!(found.unwrap().name, name);
    }
    assert_eq!(store.get(&tenant(), id(3)).await, Ok(None));
    assert_eq!(store.get(&Tenant("other".into()), id(1)).await, Ok(None));
    store.rename(&tenant(), "a", "c").await.unwrap();
    assert_eq!(store.get(&tenant(), id(1)).await.unwrap().unwrap().name, "c");
    // Its rows are kept for the fork, and another conversation may have the name.
    store.remove(&tenant(), "c").await.unwrap();
    store.create(new(id(4), "c")).await.unwrap();
    assert_eq!(store.get(&tenant(), id(1)).await, Ok(None));
}

pub(super) async fn a_conversation_can_be_removed_only_at_a_version(store: &dyn Store) {
    grown(store, 1, "a", 3).await;
    store.create(fork(id(2), "b", &[id(1)], 2)).await.unwrap();
    for expected in [0, 2, 4, u32::MAX] {
        let conflict = Err(Error::VersionConflict { expected, current: 3 });
        assert_eq!(store.remove_with(&tenant(), "a", only_at(id(1), expected)).await, conflict);
    }
    // Nothing has changed, and the next request is the next version.
    assert_eq!(store.find(&tenant(), "a").await.unwrap().unwrap().id, id(1));
    store.commit(commit(id(1), 4)).await.unwrap();
    assert!(store.remove_with(&tenant(), "a", only_at(id(1), 3)).await.is_err());
    store.remove_with(&tenant(), "a", only_at(id(1), 4)).await.unwrap();
    assert_eq!(store.find(&tenant(), "a").await, Ok(None));
    let unknown = Err(Error::ConversationNotFound { name: "a".into() });
    assert_eq!(store.remove_with(&tenant(), "a", only_at(id(1), 4)).await, unknown);
    // A fork begins with the versions that it shares.
    assert!(store.remove_with(&tenant(), "b", only_at(id(2), 4)).await.is_err());
    let fork = store.find(&tenant(), "b").await.unwrap().unwrap().head.version;
    store.remove_with(&tenant(), "b", only_at(id(2), fork)).await.unwrap();
}

pub(super) async fn a_removal_replaces_rows_and_is_all_or_nothing(store: &dyn Store) {
    grown(store, 1, "a", 3).await;
    store.create(fork(id(2), "b", &[id(1)], 2)).await.unwrap();
    store.create(fork(id(3), "c", &[id(1)], 2)).await.unwrap();
    let removal = |at, version, forks: &[_], name| {
        let forks = Some(forks.to_vec());
        let commits = vec![row_with_body(version, name)];
        let rewrite = Rewrite { commits, forks, ..Rewrite::default() };
        vec![RewriteOf { conversation: id(1), at, rewrite }]
    };
    let both = [id(2), id(3)];
    let before = store.commits(id(1), None).await.unwrap();
    let conflict = Error::VersionConflict { expected: 2, current: 3 };
    for (removal, error) in [
        (removal(2, 3, &both, "x"), conflict),
        (removal(3, 9, &both, "x"), Error::RowsChanged),
        (removal(3, 3, &both[..1], "x"), Error::Forked),
    ] {
        // The first rewrite would succeed alone.
        let possible = self::possible(removal);
        assert_eq!(store.remove_with(&tenant(), "a", possible).await, Err(error));
        assert_eq!(store.commits(id(1), None).await.unwrap(), before);
        assert_eq!(store.find(&tenant(), "a").await.unwrap().unwrap().id, id(1));
    }
    let rewrites = store.unpacked(id(1), None).await.unwrap().rewrites;
    store.remove_with(&tenant(), "a", removal(3, 3, &both, "placeholder")).await.unwrap();
    assert_eq!(store.find(&tenant(), "a").await, Ok(None));
    let after = store.unpacked(id(1), None).await.unwrap();
    assert!(after.rewrites > rewrites, "other processes drop what they hold");
    assert_eq!(after.commits[3], (3, Ok(row_with_body(3, "placeholder"))));
    assert_eq!(after.commits[2], (2, Ok(before[2].clone())));
}

/// The removal, preceded by another rewrite that succeeds alone.
fn possible(mut removal: Vec<RewriteOf>) -> Vec<RewriteOf> {
    let rewrite = Rewrite { commits: vec![row_with_body(1, "first")], ..Rewrite::default() };
    removal.insert(0, RewriteOf { conversation: id(1), at: 3, rewrite });
    removal
}

pub(super) async fn a_policy_is_stored_unchanged_and_can_be_removed(store: &dyn Store) {
    let first = Some("{\"é\": 1}".to_owned());
    store.create(NewConversation { policy: first.clone(), ..new(id(1), "a") }).await.unwrap();
    grown(store, 2, "b", 1).await;
    let policy = |name: &'static str| async move {
        store.find(&tenant(), name).await.unwrap().unwrap().policy
    };
    assert_eq!((policy("a").await, policy("b").await), (first.clone(), None));
    let other = Some("anything".to_owned());
    store.set_policy(&tenant(), "b", other.clone()).await.unwrap();
    store.set_policy(&tenant(), "a", None).await.unwrap();
    assert_eq!((policy("a").await, policy("b").await), (None, other.clone()));
    assert_eq!(store.list(&tenant(), None, 9).await.unwrap()[1].policy, other);
    store.rename(&tenant(), "b", "c").await.unwrap();
    assert_eq!(policy("c").await, other);
    let unknown = Err(Error::ConversationNotFound { name: "b".into() });
    assert_eq!(store.set_policy(&tenant(), "b", None).await, unknown);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}
