//! Random sequences of calls to a store in memory and to another one: all results must be equal.

use std::collections::BTreeSet;

use proptest::prelude::*;
use recto_store::{
    Ancestor, Commit, ConversationId, Error, Hit, NewConversation, Page, PageKind, Rewrite, Seal,
    Store, Tenant, Words, WordsOf,
};

use crate::places::{self, Place};
use crate::sample::{commit, id, key, new, page, row, row_with_body};

const NAMES: [&str; 6] = ["a", "b", "B", "é", "z z", "a\u{1}"];
const WORDS: [&str; 5] = ["red", "blue", "日", "x1", "ß"];

/// A step: its kind, and numbers from which its values are made.
type Step = (u8, [u8; 6]);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..16u8, any::<[u8; 6]>()), 1..80)
}

fn tenant_of(number: u8) -> Tenant {
    Tenant(["", "other"][usize::from(number % 8 == 7)].to_owned())
}

fn name_of(number: u8) -> &'static str {
    NAMES[usize::from(number) % NAMES.len()]
}

fn id_of(number: u8) -> ConversationId {
    id(u128::from(number % 6))
}

fn words_of(number: u8) -> Vec<String> {
    let chosen = (0..WORDS.len()).filter(|at| number >> at & 1 == 1);
    chosen.map(|at| WORDS[at].to_owned()).collect()
}

/// Two stores that receive the same calls.
struct Pair<'a> {
    memory: &'a dyn Store,
    other: &'a dyn Store,
}

impl Pair<'_> {
    async fn step(&self, (kind, n): &Step) {
        let (memory, other) = (self.memory, self.other);
        macro_rules! both {
            ($method:ident($($argument:expr),*)) => {{
                let expected = memory.$method($($argument),*).await;
                assert_eq!(other.$method($($argument),*).await, expected);
                expected
            }};
        }
        match kind {
            0 | 1 => {
                let new = self.new_conversation(n).await;
                let _ = both!(create(new.clone()));
            }
            2..=6 => {
                let commit = self.commit(n).await;
                let _ = both!(commit(commit.clone()));
            }
            7 => drop(both!(rename(&tenant_of(n[0]), name_of(n[1]), name_of(n[2])))),
            8 => drop(both!(remove(&tenant_of(n[0]), name_of(n[1])))),
            9 => drop(both!(remember(id_of(n[0]), key(name_of(n[1]), u32::from(n[2]))))),
            10 => {
                let rewrite = self.rewrite(n).await;
                let at = self.newest(id_of(n[0])).await.unwrap_or(0) + u32::from(n[4] % 8 == 7);
                let _ = both!(rewrite(id_of(n[0]), at, rewrite.clone()));
            }
            11 => drop(both!(list(&tenant_of(n[0]), Some(name_of(n[1])), usize::from(n[2] % 4)))),
            12 => self.search(n).await,
            13 => {
                let _ = both!(key(id_of(n[0]), name_of(n[1])));
                let _ = both!(get(&tenant_of(n[2]), id_of(n[0])));
            }
            14 => {
                let numbers = u32::from(n[1] % 20)..u32::from(n[2] % 20);
                let kind = [PageKind::Records, PageKind::Entries][usize::from(n[3] % 2)];
                let _ = both!(pages(id_of(n[0]), kind, numbers.clone(), n[4] % 2 == 0));
            }
            _ => drop(both!(commits(id_of(n[0]), Some(u32::from(n[1] % 20))))),
        }
    }

    async fn newest(&self, id: ConversationId) -> Option<u32> {
        self.memory.commits(id, None).await.ok()?.last().map(|row| row.head.version)
    }

    async fn new_conversation(&self, n: &[u8; 6]) -> NewConversation {
        let tenant = tenant_of(n[2]);
        let mut lineage = Vec::new();
        // A fork has the ancestors of its origin, and sometimes one that does not exist.
        if let Ok(Some(from)) = self.memory.find(&tenant, name_of(n[3])).await
            && n[4].is_multiple_of(2)
        {
            lineage = from.lineage.to_vec();
            let entries = from.head.entries;
            lineage.push(Ancestor { id: from.id, versions: from.head.version, entries });
        } else if n[4] % 16 == 1 {
            lineage.push(Ancestor { id: id_of(n[3]), versions: 1, entries: 1 });
        }
        let first = row(u32::from(n[4] % 3));
        let words = vec![WordsOf {
            entry: first.head.version,
            words: Words::of(&words_of(n[5]).join(" ")),
        }];
        let new = new(id_of(n[0]), name_of(n[1]));
        NewConversation { tenant, lineage, first, words, ..new }
    }

    async fn commit(&self, n: &[u8; 6]) -> Commit {
        let conversation = id_of(n[0]);
        let rows = self.memory.commits(conversation, None).await.unwrap_or_default();
        let newest = rows.last().map_or(0, |row| row.head.version);
        let version = newest + u32::from(n[1] % 16 != 15);
        let words = vec![WordsOf { entry: version, words: Words::of(&words_of(n[2]).join(" ")) }];
        let key = n[3].is_multiple_of(4).then(|| key(name_of(n[4]), version));
        let lowest = rows.first().map_or(0, |row| row.head.version);
        let below =
            (lowest + 1 + u32::from(n[5] / 4 % 4)).min(version + u32::from(n[1].is_multiple_of(9)));
        let seal = (n[5].is_multiple_of(4) && below > lowest).then(|| Seal {
            below,
            rows: None,
            pages: vec![
                page(PageKind::Records, lowest, below - lowest),
                page(PageKind::Entries, lowest, below - lowest),
            ],
        });
        Commit { row: row(version), key, words, seal, ..commit(conversation, version) }
    }

    async fn rewrite(&self, n: &[u8; 6]) -> Rewrite {
        let conversation = id_of(n[0]);
        let mut rewrite = Rewrite::default();
        let rows = self.memory.commits(conversation, None).await.unwrap_or_default();
        if let Some(old) = rows.get(usize::from(n[1] % 4)) {
            rewrite.commits.push(row_with_body(old.head.version, "rewritten"));
        }
        let pages = self.memory.pages(conversation, PageKind::Entries, 0..99, true).await;
        for page in pages.unwrap_or_default().into_iter().take(usize::from(n[2] % 3)) {
            rewrite.pages.push(Page { body: vec![n[2]; 9], ..page });
        }
        if n[3].is_multiple_of(16) {
            rewrite.commits.push(row(u32::from(n[3])));
        }
        rewrite.forget.push(u32::from(n[3] % 12));
        if n[5].is_multiple_of(2) {
            let forks = self.memory.forks(conversation).await.unwrap_or_default();
            let asked = forks.iter().map(|fork| fork.id).take(usize::from(n[5] % 8));
            rewrite.forks = Some(asked.collect());
        }
        rewrite
    }

    /// A store may return conversations in any order, so only the length of a cut result is compared.
    async fn search(&self, n: &[u8; 6]) {
        let (tenant, words) = (tenant_of(n[0]), words_of(n[1]));
        let limit = if n[5].is_multiple_of(4) { usize::from(n[5] / 4 % 8) } else { 1_000 };
        let expected = self.memory.search(&tenant, &words, limit).await.unwrap();
        let found = self.other.search(&tenant, &words, limit).await.unwrap();
        assert_eq!(found.len(), expected.len());
        let is_newest_first = |pair: &[Hit]| {
            pair[0].conversation != pair[1].conversation || pair[0].entry > pair[1].entry
        };
        assert!(found.windows(2).all(is_newest_first), "{found:?}");
        if expected.len() < limit {
            assert_eq!(BTreeSet::from_iter(found), BTreeSet::from_iter(expected));
        }
    }

    async fn compare_all(&self) {
        for tenant in ["", "other"].map(|name| Tenant(name.to_owned())) {
            let expected = self.memory.list(&tenant, None, 100).await;
            assert_eq!(self.other.list(&tenant, None, 100).await, expected);
        }
        for id in (0..6).map(id) {
            assert_eq!(self.other.commits(id, None).await, self.memory.commits(id, None).await);
            assert_eq!(self.other.forks(id).await, self.memory.forks(id).await);
            for kind in [PageKind::Records, PageKind::Entries] {
                let expected = self.memory.pages(id, kind, 0..u32::MAX, true).await;
                assert_eq!(self.other.pages(id, kind, 0..u32::MAX, true).await, expected);
            }
            for name in NAMES {
                assert_eq!(self.other.key(id, name).await, self.memory.key(id, name).await);
            }
        }
        // The rows are random: many are not consecutive.
        let mut found = self.other.check().await.unwrap();
        found.retain(|found| !found.ends_with("is missing") && !found.contains(", by their "));
        assert_eq!(found, Vec::<String>::new());
    }
}

/// Applies the steps to both, and compares everything at the end.
pub(crate) async fn compare(steps: &[Step], other: Place) -> Result<(), Error> {
    let memory = places::memory().await;
    let pair = Pair { memory: &*memory.store, other: &*other.store };
    for step in steps {
        pair.step(step).await;
    }
    pair.compare_all().await;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_file_behaves_like_memory(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { compare(&steps, places::sqlite().await).await }).unwrap();
    }
}

#[cfg(all(unix, feature = "postgres"))]
proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn a_server_behaves_like_memory(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { compare(&steps, places::postgres().await).await }).unwrap();
    }
}
