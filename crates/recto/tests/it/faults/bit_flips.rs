//! Single changed bits in every table and index of a SQLite file.
//!
//! A read returns an error or the right data. There is one exception, because SQLite has no checksums of its
//! own structures: a changed bit there can make rows unreachable, and then a read returns the data without the
//! newest rows, a name, a key or a word. `verify` reports each such change. A write to a changed file is
//! refused, or stored as it would be in the unchanged one. `salvage` copies everything that can be read into
//! another store. A changed index hides nothing from `salvage` and `restore`, and `clean` builds it again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use recto::{
    Append, Approx, BatchStart, Keep, LogIndex, Mark, Message, Query, Recto, Scope, Settings,
    Truncate, Undo, Version, WriteOptions,
};
use rusqlite::Connection;
use rusqlite::types::Value;
use tokio::runtime::Runtime;

use super::{Dice, note};

#[test]
fn a_changed_bit_in_any_table_or_index_gives_no_wrong_answer_and_is_found() {
    run(super::setting("RECTO_SIM_SEED", 1), 14);
}

/// Changes one bit in each of `flips` copies of a file: in its tables and indexes by turns.
pub(super) fn run(seed: u64, flips: usize) {
    note(&format!("changed bits in tables and indexes: seed {seed}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let file = folder.path().join("whole.db");
    runtime.block_on(write(&folder.path().join("first.db"), &file, seed));
    let bytes = std::fs::read(&file).unwrap();
    let trees = trees(&file);
    let rows = rows(&file);
    let written = runtime.block_on(Answers::of(&open(&runtime, &file).unwrap(), 1));
    let after_write = Change::ALL.map(|change| {
        let copy = Copy::of(&folder, &bytes);
        let recto = open(&runtime, &copy.0).unwrap();
        runtime.block_on(change.make(&recto)).unwrap();
        runtime.block_on(Answers::of(&recto, 9))
    });
    let mut dice = Dice::new(seed);
    let mut outcomes: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for flip in 0..flips {
        let (tree, pages) = trees.iter().nth(flip % trees.len()).unwrap();
        let (page, size) = pages[dice.below(pages.len())];
        // Most pages are not full, and a bit in their unused bytes has no effect.
        let used: Vec<usize> = (page..page + size).filter(|at| bytes[*at] != 0).collect();
        let at = match used.is_empty() || dice.below(8) == 0 {
            true => page + dice.below(size),
            false => used[dice.below(used.len())],
        };
        let mut changed = bytes.clone();
        let bit = dice.below(8);
        changed[at] ^= 1 << bit;
        let copy = Copy::of(&folder, &changed).0;
        let place = format!("seed {seed}, flip {flip}, {tree}, byte {at}, bit {bit}");
        let found = self::rows(&copy);
        let differs = found != rows;
        let outcome = match open(&runtime, &copy) {
            // Nothing is answered.
            None => Outcome::Noticed,
            Some(recto) => {
                let answers = runtime.block_on(Answers::of(&recto, 9));
                let lacks =
                    written.lacks(&answers).unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
                let is_found = runtime.block_on(is_found(&recto, &place));
                let copy = Copy::of(&folder, &changed);
                runtime.block_on(check_salvage(&copy.0, &written, &place));
                // A write after unreachable rows replaces them.
                if !lacks {
                    let turn = flip / trees.len() % Change::ALL.len();
                    let (change, after) = (Change::ALL[turn], &after_write[turn]);
                    let copy = Copy::of(&folder, &changed);
                    runtime.block_on(change.check(&copy.0, [&written, after], &place));
                }
                if tree.starts_with("sqlite_autoindex_conversations") {
                    drop(recto);
                    let copy = Copy::of(&folder, &changed);
                    runtime.block_on(check_rescue(&copy.0, &written, &place));
                }
                if is_derived(tree) {
                    let copy = Copy::of(&folder, &changed);
                    runtime.block_on(check_clean(&copy.0, &written, &place));
                }
                assert!(is_found || !lacks, "{place}: rows are missing, and verify is silent");
                if differs && !is_found {
                    let other = found.iter().find(|row| !rows.contains(row));
                    panic!("{place}: verify is silent about {other:?} among {} rows", found.len());
                }
                match (lacks, is_found) {
                    (true, _) => Outcome::Missing,
                    (false, true) => Outcome::Noticed,
                    (false, false) => Outcome::NoEffect,
                }
            }
        };
        outcomes.entry(tree).or_default()[outcome as usize] += 1;
    }
    note(&format!("noticed, rows missing and noticed, without effect: {outcomes:?}"));
}

#[derive(Clone, Copy)]
enum Outcome {
    Noticed,
    Missing,
    NoEffect,
}

fn open(runtime: &Runtime, file: &Path) -> Option<Recto> {
    runtime.block_on(Recto::open(&format!("sqlite:{}", file.display()))).ok()
}

/// A file with packed and unpacked rows, a fork, a fork of a removed conversation, keys, a policy, marks and
/// words, without a write-ahead log.
async fn write(first: &Path, file: &Path, seed: u64) {
    let recto = Recto::open(&format!("sqlite:{}", first.display())).await.unwrap();
    let say = |number: u64| Message::user(&format!("word{number} of {seed} and more text"));
    // Enough for the words to be moved from the waiting table into the index.
    let many = recto.create("many", Settings::counting_with(Approx)).await.unwrap();
    many.append((1_000..1_256).map(say)).await.unwrap();
    let long = recto.create("long", Settings::counting_with(Approx)).await.unwrap();
    for number in 0..75 {
        let write =
            WriteOptions { idempotency_key: Some(number.to_string()), ..Default::default() };
        long.apply_with(Append { messages: vec![say(number)] }, write).await.unwrap();
    }
    long.apply(Mark { indices: vec![LogIndex(3)], mark: "seen".into() }).await.unwrap();
    long.apply(BatchStart::default()).await.unwrap();
    long.apply(Truncate { keep_last: Some(9), ..Default::default() }).await.unwrap();
    long.apply(Undo).await.unwrap();
    let fork = long.fork("fork", Version(30)).await.unwrap();
    fork.append([say(100), say(101)]).await.unwrap();
    let origin = recto.create("origin", Settings::counting_with(Approx)).await.unwrap();
    origin.append([say(200)]).await.unwrap();
    origin.fork("orphan", Version(1)).await.unwrap().append([say(201)]).await.unwrap();
    recto.remove("origin").await.unwrap();
    long.erase(LogIndex(5)).await.unwrap();
    recto.backup(file).await.unwrap();
}

/// The tables and indexes, with the places of their pages in the file: the first byte and the length.
fn trees(file: &Path) -> BTreeMap<String, Vec<(usize, usize)>> {
    let db = Connection::open(file).unwrap();
    let size: u32 = db.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let size = size as usize;
    let mut found = db.prepare("SELECT name, pageno FROM dbstat").unwrap();
    let found = found.query_map([], |row| Ok((row.get(0)?, row.get::<_, u32>(1)?))).unwrap();
    let mut trees: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for tree in found {
        let (name, page) = tree.unwrap();
        trees.entry(name).or_default().push(((page as usize - 1) * size, size));
    }
    trees
}

/// Every row of every table, as far as SQLite reads it, and whether SQLite finds its structures sound. Not
/// the tables inside the search index: some of their bits have no effect on a search (averages, a flag that
/// a longer list follows), and `verify` compares what the index finds instead.
fn rows(file: &Path) -> Vec<String> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let db = Connection::open(file)?;
        let sound: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        let mut rows = vec![sound];
        let mut tables = db.prepare(
            // SQLite reads this statement, without case, and not the column `type`.
            "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE%'
                 AND name NOT LIKE 'words!_%' ESCAPE '!'",
        )?;
        let tables = tables.query_map([], |row| row.get(0))?;
        for table in tables.collect::<rusqlite::Result<Vec<String>>>()? {
            let mut all = db.prepare(&format!("SELECT * FROM \"{table}\""))?;
            // SQLite compares names without case.
            let table = table.to_ascii_lowercase();
            let columns = all.column_count();
            let mut found = all.query([])?;
            while let Some(row) = found.next()? {
                let values = (0..columns).map(|column| row.get::<_, Value>(column));
                let values = values.collect::<rusqlite::Result<Vec<Value>>>()?;
                rows.push(format!("{table} {values:?}"));
            }
        }
        Ok(rows)
    };
    read().unwrap_or_else(|error| vec![error.to_string()])
}

async fn is_found(recto: &Recto, place: &str) -> bool {
    let verified = recto.verify_all(&mut |_, _| {}).await;
    let verified = verified.unwrap_or_else(|error| panic!("{place}: no report: {error}"));
    let checked = recto.check().await;
    let checked = checked.unwrap_or_else(|error| panic!("{place}: no report: {error}"));
    !checked.is_empty() || verified.iter().any(|(_, report)| !report.is_sound())
}

/// A changed copy of the file.
struct Copy(PathBuf);

impl Copy {
    fn of(folder: &tempfile::TempDir, bytes: &[u8]) -> Copy {
        let copy = folder.path().join("changed.db");
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", copy.display()));
        }
        std::fs::write(&copy, bytes).unwrap();
        Copy(copy)
    }
}

/// A write to a changed file.
#[derive(Clone, Copy, Debug)]
enum Change {
    Append,
    Erase,
    EraseIndexed,
    Prune,
    Remove,
    RemoveIndexed,
}

impl Change {
    const ALL: [Change; 6] = [
        Change::Append,
        Change::EraseIndexed,
        Change::RemoveIndexed,
        Change::Erase,
        Change::Prune,
        Change::Remove,
    ];

    async fn make(self, recto: &Recto) -> Result<(), recto::Error> {
        let conversation = recto.conversation(self.conversation()).await?;
        match self {
            Change::Append => {
                conversation.append([Message::user("word300 and more text")]).await.map(drop)
            }
            Change::Erase => conversation.erase(LogIndex(40)).await.map(drop),
            Change::EraseIndexed => conversation.erase(LogIndex(200)).await.map(drop),
            Change::Prune => {
                let keep = Keep { last_versions: Some(1), ..Keep::default() };
                conversation.prune(&keep).await.map(drop)
            }
            Change::Remove | Change::RemoveIndexed => recto.remove(self.conversation()).await,
        }
    }

    /// The words of the first one are in the index, those of the second one in the waiting table.
    fn conversation(self) -> &'static str {
        match self {
            Change::EraseIndexed | Change::RemoveIndexed => "many",
            _ => "long",
        }
    }

    /// The entries of the index that the change removes.
    fn removed_places(self) -> Option<std::ops::RangeInclusive<i64>> {
        let first = 1_i64 << 32; // "many" has number 1
        match self {
            Change::EraseIndexed => Some(first + 200..=first + 200),
            Change::RemoveIndexed => Some(first..=first + i64::from(u32::MAX)),
            _ => None,
        }
    }

    /// Makes the change. Later reads must return the data from after the change or, if the change failed,
    /// the data from before it.
    async fn check(self, file: &Path, [before, after]: [&Answers; 2], place: &str) {
        let address = format!("sqlite:{}", file.display());
        let Ok(recto) = Recto::open(&address).await else { return };
        let made = self.make(&recto).await;
        drop(recto);
        if let (Ok(()), Some(places)) = (&made, self.removed_places()) {
            let kept = indexed_words(file, places);
            assert_eq!(kept, 0, "{place}: words of the search index after {self:?}");
        }
        let Ok(recto) = Recto::open(&address).await else { return };
        let answers = Answers::of(&recto, 9).await;
        let Err(wrong) = after.lacks(&answers) else { return };
        if made.is_err() && before.lacks(&answers).is_ok() {
            return;
        }
        panic!("{place}: after {self:?} ({made:?}): {wrong}");
    }
}

/// The number of words that the search index has for entries at these places.
fn indexed_words(file: &Path, places: std::ops::RangeInclusive<i64>) -> i64 {
    let db = Connection::open(file).unwrap();
    db.execute_batch("CREATE VIRTUAL TABLE temp.kept USING fts5vocab(main, words, instance)")
        .unwrap();
    let select = "SELECT count(*) FROM temp.kept WHERE doc BETWEEN ?1 AND ?2";
    db.query_row(select, [places.start(), places.end()], |row| row.get(0)).unwrap()
}

/// Copies the conversations out of a file with a changed index.
async fn check_rescue(file: &Path, written: &Answers, place: &str) {
    let fresh = Recto::open("memory:").await.unwrap();
    let restored = fresh.restore(file).await;
    let restored = restored.unwrap_or_else(|error| panic!("{place}: restore: {error}"));
    assert_eq!(restored.conversations, 4, "{place}: {restored:?}");
    let recto = Recto::open(&format!("sqlite:{}", file.display())).await.unwrap();
    for name in NAMES {
        let view = written.conversations[name].view.as_ref().unwrap();
        let salvaged = recto.salvage(name, &format!("copy of {name}")).await;
        let salvaged = salvaged.unwrap_or_else(|error| panic!("{place}: salvage: {error}"));
        assert_eq!(salvaged.missing_messages, [], "{place}: {salvaged:?}");
        let copy = recto.conversation(&format!("copy of {name}")).await.unwrap();
        assert_eq!(copy.messages().await.unwrap().len(), view.len(), "{place}: {name}");
    }
}

/// Salvages the conversations of the changed file into another store. A copy has messages that were written, in
/// order, and the report names what is missing: entries, or damage of the row that says which entries there are.
async fn check_salvage(file: &Path, written: &Answers, place: &str) {
    let Ok(recto) = Recto::open(&format!("sqlite:{}", file.display())).await else { return };
    let fresh = Recto::open("memory:").await.unwrap();
    for name in NAMES {
        let place = format!("{place}: salvage of {name}");
        let salvaged = match recto.salvage_into(name, &fresh, name).await {
            Ok(salvaged) => salvaged,
            Err(error) if error.code() == "conversation_not_found" => continue,
            Err(error) => panic!("{place}: {error}"),
        };
        let copy = fresh.conversation(name).await.unwrap();
        let copied =
            texts(copy.query(&Query { scope: Scope::All, ..Query::default() }).await.unwrap());
        let mut known = written.conversations[name].log.iter().flatten();
        let unknown = copied.iter().find(|text| !known.any(|known| known == *text));
        assert_eq!(unknown, None, "{place}: {salvaged:?}");
        let all = written.conversations[name].log.iter().flatten().count();
        let is_complete = copied.len() + salvaged.missing_messages.len() >= all;
        assert!(is_complete || !salvaged.faults.is_empty(), "{place}: {salvaged:?}");
    }
}

/// Whether `clean` can build a tree again: the indexes of the conversations and the search index.
fn is_derived(tree: &str) -> bool {
    tree.starts_with("sqlite_autoindex_conversations")
        || tree.starts_with("words")
        || tree == "waiting"
}

/// Cleans a file with damage in derived data: afterwards nothing is damaged and nothing is missing.
async fn check_clean(file: &Path, written: &Answers, place: &str) {
    let address = format!("sqlite:{}", file.display());
    let recto = Recto::open(&address).await.unwrap();
    recto.clean().await.unwrap_or_else(|error| panic!("{place}: clean: {error}"));
    drop(recto);
    let recto = Recto::open(&address).await.unwrap();
    assert!(!is_found(&recto, place).await, "{place}: {:?}", recto.check().await);
    let answers = Answers::of(&recto, 9).await;
    assert_eq!(written.lacks(&answers), Ok(false), "{place}: after clean");
    assert!(answers.hits.iter().all(Option::is_some), "{place}: a search fails after clean");
    recto.conversation("long").await.unwrap().append([Message::user("late")]).await.unwrap();
    assert_eq!(recto.search("late", 9).await.unwrap().len(), 1, "{place}: after clean");
}

const NAMES: [&str; 3] = ["fork", "long", "orphan"];

/// The results of all reads. `None` if the read returned an error.
struct Answers {
    names: Option<Vec<String>>,
    conversations: BTreeMap<&'static str, ConversationAnswers>,
    /// Which of these words are found, and where.
    hits: Vec<Option<Vec<String>>>,
}

fn texts(entries: Vec<recto::Entry>) -> Vec<String> {
    entries.iter().map(|entry| entry.message.text().into_owned()).collect()
}

#[derive(Default)]
struct ConversationAnswers {
    is_missing: bool,
    /// The newest version.
    newest: Option<Version>,
    /// What is visible now.
    view: Option<Vec<String>>,
    /// What was visible at each version.
    views: Vec<Option<Vec<String>>>,
    log: Vec<Option<String>>,
    /// The versions of keys; the inner `None` is a key that is not found.
    keys: Vec<Option<Option<u32>>>,
}

impl Answers {
    /// Reads every `step`-th version and the newest one.
    async fn of(recto: &Recto, step: u32) -> Answers {
        let names = recto.list(None, 100).await.ok();
        let names = names.map(|all| all.into_iter().map(|info| info.name).collect());
        let mut conversations = BTreeMap::new();
        for name in NAMES {
            conversations.insert(name, ConversationAnswers::of(recto, name, step).await);
        }
        let mut hits = Vec::new();
        for word in ["word3", "word70", "word101", "word201", "word1200", "text"] {
            let found = recto.search(word, 1_000).await.ok();
            let found = found.map(|all| all.iter().map(|hit| format!("{hit:?}")).collect());
            hits.push(found);
        }
        Answers { names, conversations, hits }
    }

    /// Whether rows are missing in the answers of a changed file. Fails if an answer is wrong in any other
    /// way.
    fn lacks(&self, changed: &Answers) -> Result<bool, String> {
        let mut lacks = false;
        if let Some(names) = &changed.names {
            let known = self.names.as_ref().unwrap();
            lacks |= names.len() < known.len();
            if let Some(name) = names.iter().find(|name| !known.contains(name)) {
                return Err(format!("a conversation is called {name:?}"));
            }
        }
        for (name, changed) in &changed.conversations {
            lacks |= self.conversations[name]
                .lacks(changed)
                .map_err(|wrong| format!("{name}: {wrong}"))?;
        }
        for (known, found) in self.hits.iter().zip(&changed.hits) {
            let (known, Some(found)) = (known.as_ref().unwrap(), found) else { continue };
            if let Some(hit) = found.iter().find(|hit| !known.contains(hit)) {
                return Err(format!("a search finds {hit}"));
            }
            lacks |= found.len() < known.len();
        }
        Ok(lacks)
    }
}

impl ConversationAnswers {
    async fn of(recto: &Recto, name: &str, step: u32) -> ConversationAnswers {
        let conversation = match recto.conversation(name).await {
            Ok(conversation) => conversation,
            Err(error) => {
                let is_missing = error.code() == "conversation_not_found";
                return ConversationAnswers { is_missing, ..Default::default() };
            }
        };
        let newest = conversation.version().await.ok();
        let view = conversation.messages().await.ok().map(texts);
        let (mut views, mut log, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for version in 0..=newest.map_or(0, |newest| newest.0) {
            let is_asked = version.is_multiple_of(step) || newest == Some(Version(version));
            views.push(match is_asked {
                true => conversation.messages_at(Version(version)).await.ok().map(texts),
                false => None,
            });
        }
        for index in 0..76 {
            let message = conversation.message(LogIndex(index)).await.ok().flatten();
            log.push(message.map(|message| message.text().into_owned()));
        }
        for key in [0, 40, 70, 74] {
            let key = recto.store().key(conversation.id(), &key.to_string()).await.ok();
            keys.push(key.map(|key| key.map(|key| key.version)));
        }
        ConversationAnswers { is_missing: false, newest, view, views, log, keys }
    }

    fn lacks(&self, changed: &ConversationAnswers) -> Result<bool, String> {
        if self.is_missing {
            return match changed.newest {
                Some(newest) => Err(format!("it is at version {newest}, but it was removed")),
                None => Ok(false),
            };
        }
        let mut lacks = changed.is_missing;
        if let Some(newest) = changed.newest {
            let known = self.newest.unwrap();
            if newest > known {
                return Err(format!("version {newest} is the newest"));
            }
            lacks |= newest < known;
            let view = self.views.get(newest.0 as usize).and_then(Option::as_ref);
            if changed.view.is_some() && changed.view.as_ref() != view {
                return Err(format!("the view at {newest} is {:?}", changed.view));
            }
        }
        for (version, (known, found)) in self.views.iter().zip(&changed.views).enumerate() {
            if found.is_some() && found != known {
                return Err(format!("the view at {version} is {found:?}"));
            }
        }
        for (index, (known, found)) in self.log.iter().zip(&changed.log).enumerate() {
            if found.is_some() && found != known {
                return Err(format!("#{index} is {found:?}"));
            }
        }
        for (known, found) in self.keys.iter().zip(&changed.keys) {
            match found {
                Some(Some(_)) if found != known => return Err(format!("a key is at {found:?}")),
                Some(None) => lacks |= *known != Some(None),
                _ => {}
            }
        }
        Ok(lacks)
    }
}
