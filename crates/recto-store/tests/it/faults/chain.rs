//! Conversations with a chain of hashes over all rows, so that every version can be checked.

use recto_store::{
    Commit, CommitBody, CommitRow, Entry, EntryMeta, Error, Head, Link, NewConversation, PageKind,
    Seal, Store, Tenant, pack_entries, pack_records,
};

use crate::sample::{id, key, words};

/// Number of rows that are packed together.
const PACKED: usize = 12;

fn entry(text: &str) -> Entry {
    Entry { meta: EntryMeta { tokens: text.len() as u32, ..Default::default() }, body: text.into() }
}

fn next(link: Link, version: u32, record: &str, entry: &Entry) -> Link {
    link.next(version, record.as_bytes(), [(version, &entry.meta, entry.body_hash())])
}

fn row(link: Link, version: u32, text: &str) -> CommitRow {
    let (record, entry) = (format!("record {version}"), entry(text));
    let link = next(link, version, &record, &entry);
    let head = Head { version, entries: version + 1, link, committed: 0 };
    CommitRow { head, body: CommitBody { record, entries: vec![entry] }.pack() }
}

/// The state of the writer of one conversation.
pub(super) struct Chain<'a> {
    store: &'a dyn Store,
    number: u128,
    /// Rows that are not packed.
    rows: Vec<CommitRow>,
}

impl<'a> Chain<'a> {
    /// Creates the conversation, or continues it.
    pub(super) async fn open(store: &'a dyn Store, number: u128) -> Result<Chain<'a>, Error> {
        let rows = match store.commits(id(number), None).await {
            Err(Error::ConversationNotFound { .. }) => {
                let first = row(Link::start("{}"), 0, "start");
                let new = NewConversation {
                    first: first.clone(),
                    ..crate::sample::new(id(number), &number.to_string())
                };
                store.create(new).await?;
                vec![first]
            }
            rows => rows?,
        };
        Ok(Chain { store, number, rows })
    }

    pub(super) fn version(&self) -> u32 {
        self.head().version
    }

    fn head(&self) -> Head {
        self.rows.last().expect("the newest row is never packed").head
    }

    /// Appends a version, and sometimes packs older ones. Returns the version.
    pub(super) async fn append(&mut self, text: &str) -> Result<u32, Error> {
        let version = self.version() + 1;
        let row = row(self.head().link, version, text);
        let seal = (self.rows.len() >= PACKED).then(|| self.seal());
        let commit = Commit {
            conversation: id(self.number),
            row: row.clone(),
            key: Some(key(&version.to_string(), version)),
            words: vec![words(version, &format!("word{version} {}", text.get(..20).unwrap_or("")))],
            seal: seal.clone(),
            rewrites: None,
        };
        self.store.commit(commit).await?;
        if seal.is_some() {
            self.rows.clear();
        }
        self.rows.push(row);
        Ok(version)
    }

    fn seal(&self) -> Seal {
        let first = self.rows[0].head.version;
        let bodies: Vec<CommitBody> =
            self.rows.iter().map(|row| CommitBody::unpack(&row.body).unwrap()).collect();
        let links = self.rows.iter().map(|row| row.head.link);
        let records = bodies.iter().map(|body| &*body.record).zip(links);
        let records = pack_records(first, records);
        let entries: Vec<Entry> = bodies.into_iter().flat_map(|body| body.entries).collect();
        let pages = vec![records, pack_entries(first, &entries)];
        Seal { below: self.version() + 1, pages, rows: None }
    }
}

/// Reads a whole conversation and checks its pages, its commits, its links, and a key and a word for every
/// version. Returns the texts.
pub(super) async fn check(store: &dyn Store, number: u128) -> Result<Vec<String>, String> {
    let text = |error: Error| error.to_string();
    let rows = match store.commits(id(number), None).await {
        Err(Error::ConversationNotFound { .. }) => return Ok(Vec::new()),
        rows => rows.map_err(text)?,
    };
    let all = 0..u32::MAX;
    let records =
        store.pages(id(number), PageKind::Records, all.clone(), true).await.map_err(text)?;
    let entries = store.pages(id(number), PageKind::Entries, all, true).await.map_err(text)?;
    let mut versions: Vec<(String, Entry)> = Vec::new();
    for (records, entries) in records.iter().zip(&entries) {
        if (records.first, entries.first) != (versions.len() as u32, versions.len() as u32) {
            return Err(format!("pages begin at {} behind {}", records.first, versions.len()));
        }
        let records = records.records().map_err(|error| error.to_string())?;
        let records = records.into_iter().map(|(record, _)| record);
        versions.extend(records.zip(entries.entries().map_err(|error| error.to_string())?));
    }
    if records.len() != entries.len() {
        return Err("there are half pages".into());
    }
    let packed = versions.len();
    for row in &rows {
        if row.head.version as usize != versions.len() {
            return Err(format!("row {} behind {}", row.head.version, versions.len()));
        }
        let body = CommitBody::unpack(&row.body).map_err(|error| error.to_string())?;
        versions.push((body.record, body.entries.into_iter().next().ok_or("an entry is missing")?));
    }
    let mut link = Link::start("{}");
    for (version, (record, entry)) in (0..).zip(&versions) {
        link = next(link, version, record, entry);
        let row = (version as usize).checked_sub(packed).map(|at| &rows[at]);
        if row.is_some_and(|row| row.head.link != link) {
            return Err(format!("the link of version {version} does not fit"));
        }
    }
    for version in (1..versions.len() as u32).rev().take(20) {
        let kept = store.key(id(number), &version.to_string()).await.map_err(text)?;
        if kept.is_none_or(|kept| kept.version != version) {
            return Err(format!("the key of version {version} is missing"));
        }
        let word = [format!("word{version}")];
        let hits = store.search(&Tenant::default(), &word, 999).await.map_err(text)?;
        let mut hits = hits.into_iter().filter(|hit| hit.conversation == id(number));
        if hits.next().is_none_or(|hit| hit.entry != version) || hits.next().is_some() {
            return Err(format!("the words of version {version} are missing"));
        }
    }
    Ok(versions.into_iter().map(|(_, entry)| entry.body).collect())
}
