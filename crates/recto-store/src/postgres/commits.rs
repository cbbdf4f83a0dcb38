//! Inserts the rows of accepted requests, and reads the newest rows.

use std::collections::BTreeMap;

use deadpool_postgres::{Client, GenericClient};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::PostgresStore;
use super::conversations::check_owner;
use super::fault::{Fault, is_taken_in};
use super::numbers::{head, number};
use super::packing;
use super::pages::PageColumns;
use super::tenants::unknown;
use crate::new_id::new_id_now;
use crate::{Commit, CommitRow, ConversationId, Error, Unpacked, WordsOf, checks};

const ACTION: &str = "accepting a request";

/// Inserts the row of a request if the row of the previous version exists and the row of its version does
/// not. The lock on the previous row prevents a concurrent statement from packing or removing it:
/// otherwise a row that was inserted and packed since this statement began could be inserted a second
/// time. No row is inserted after a row with the nil attempt, which marks a removed conversation, nor if
/// rows were rewritten since the writer has read them.
macro_rules! insert {
    () => {
        r"INSERT INTO recto_commits
            (tenant, conversation, version, entries, link, committed, attempt, body)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8 FROM recto_commits
        WHERE tenant = $1 AND conversation = $2 AND version = $3::bigint - 1
          AND attempt <> '00000000-0000-0000-0000-000000000000'
          AND ($9::bigint IS NULL
            OR $9 = coalesce((SELECT count FROM recto_rewrites WHERE tenant = $1), 0))
        FOR UPDATE
        ON CONFLICT (tenant, conversation, version) DO NOTHING"
    };
}

/// The insertion with a key or words in the same statement. Each part costs the server about a tenth
/// of a plain insertion, so a statement has only the parts that it needs.
macro_rules! insert_with {
    ($($part:expr),+) => {
        concat!("WITH accepted AS (", insert!(), " RETURNING version)", $(", ", $part),+, " SELECT version FROM accepted")
    };
}

macro_rules! key {
    () => {
        r"kept AS (
            INSERT INTO recto_keys (tenant, conversation, key, request, version, changed)
            SELECT $1, $2, $10, $11, $12, $13 FROM accepted)"
    };
}

macro_rules! words {
    ($entries:literal, $words:literal) => {
        concat!(
            "indexed AS (INSERT INTO recto_words (tenant, conversation, entry, words) \
             SELECT $1, $2, entry, string_to_array(words, ' ') FROM accepted, \
             unnest($",
            $entries,
            "::bigint[], $",
            $words,
            "::text[]) AS of (entry, words) \
             ON CONFLICT (tenant, conversation, entry) DO UPDATE SET words = excluded.words)"
        )
    };
}

const ACCEPT: &str = insert!();
const ACCEPT_KEY: &str = insert_with!(key!());
const ACCEPT_WORDS: &str = insert_with!(words!("10", "11"));
const ACCEPT_BOTH: &str = insert_with!(key!(), words!("14", "15"));

/// Reads the state of a row that was not inserted: the newest version, the attempt that wrote the row,
/// whether its key is stored, the number of rewrites, and whether the conversation has a name.
const ROW_STATE: &str = r"
SELECT
    (SELECT max(version) FROM recto_commits WHERE tenant = $1 AND conversation = $2) AS current,
    (SELECT attempt FROM recto_commits
     WHERE tenant = $1 AND conversation = $2 AND version = $3) AS attempt,
    EXISTS (SELECT 1 FROM recto_keys
     WHERE tenant = $1 AND conversation = $2 AND key = $4::bytea
       AND request = $5 AND version = $3 AND changed) AS kept,
    coalesce((SELECT count FROM recto_rewrites WHERE tenant = $1), 0) AS rewrites,
    EXISTS (SELECT 1 FROM recto_conversations
     WHERE tenant = $1 AND id = $2 AND name IS NOT NULL) AS named";

const COMMITS: &str = r"
SELECT m.conversation AS owner, m.version, m.entries, m.link, m.committed, m.body,
    coalesce((SELECT count FROM recto_rewrites WHERE tenant = $1), 0) AS rewrites
FROM recto_conversations c
LEFT JOIN recto_commits m
    ON m.tenant = c.tenant AND m.conversation = c.id AND m.version > $3
WHERE c.tenant = $1 AND c.id = $2
ORDER BY m.version";

/// The commits of several conversations of a tenant. `LATERAL` reads each conversation by its key.
const COMMITS_OF: &str = r"
SELECT part.n, m.conversation AS owner, m.version, m.entries, m.link, m.committed, m.body,
    coalesce((SELECT count FROM recto_rewrites WHERE tenant = $1), 0) AS rewrites
FROM unnest($2::uuid[]) WITH ORDINALITY AS part (id, n)
JOIN recto_conversations c ON c.tenant = $1 AND c.id = part.id
LEFT JOIN LATERAL (
    SELECT * FROM recto_commits WHERE tenant = $1 AND conversation = part.id OFFSET 0) m ON true
ORDER BY part.n, m.version";

impl PostgresStore {
    /// Reads all unpacked commits of conversations of one tenant.
    pub(super) async fn read_commits_of(
        &self,
        ids: &[ConversationId],
    ) -> Result<Vec<Unpacked>, Fault> {
        let Some(&first) = ids.first() else { return Ok(Vec::new()) };
        let client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, first).await?;
        let read = client.prepare_cached(COMMITS_OF).await?;
        let uuids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = client.query(&read, &[&&*tenant, &uuids]).await?;
        let mut rows = &*rows;
        let mut found = Vec::with_capacity(ids.len());
        for (id, n) in ids.iter().zip(1_i64..) {
            found.push(unpacked(take_part(&mut rows, n)?, *id)?);
        }
        Ok(found)
    }

    /// Reads the commits above a version, and the number of rewrites.
    pub(super) async fn read_commits(
        &self,
        id: ConversationId,
        above: Option<u32>,
    ) -> Result<Unpacked, Fault> {
        let client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, id).await?;
        let read = client.prepare_cached(COMMITS).await?;
        let above = above.map_or(-1, i64::from);
        let rows = client.query(&read, &[&&*tenant, &id.0, &above]).await?;
        unpacked(&rows, id)
    }

    /// Accepts a request.
    pub(super) async fn accept(&self, commit: Commit) -> Result<(), Error> {
        checks::check_commit(&commit)?;
        let draft = CommitDraft::new(&commit, self.search);
        self.connections.write(ACTION, |in_doubt| self.try_to_accept(&draft, in_doubt)).await
    }

    /// Accepts several requests. If all are of one conversation, one transaction accepts all of them or none.
    /// Otherwise they are accepted one after the other.
    pub(super) async fn accept_all(&self, commits: Vec<Commit>) -> Result<(), Error> {
        for commit in &commits {
            checks::check_commit(commit)?;
        }
        let same = commits.windows(2).all(|pair| pair[0].conversation == pair[1].conversation);
        if commits.len() < 2 || !same {
            for commit in commits {
                self.accept(commit).await?;
            }
            return Ok(());
        }
        let drafts: Vec<CommitDraft<'_>> =
            commits.iter().map(|commit| CommitDraft::new(commit, self.search)).collect();
        self.connections.write(ACTION, |in_doubt| self.try_to_accept_all(&drafts, in_doubt)).await
    }

    async fn try_to_accept_all(
        &self,
        drafts: &[CommitDraft<'_>],
        in_doubt: bool,
    ) -> Result<(), Fault> {
        let mut client = self.connections.get().await?;
        let Some(first) = drafts.first() else { return Ok(()) };
        let tenant = self.tenant_of(&client, first.commit.conversation).await?;
        let transaction = client.transaction().await?;
        for (number, draft) in drafts.iter().enumerate() {
            if !draft.insert(&transaction, &tenant).await? {
                transaction.rollback().await?;
                // An earlier attempt has written all rows or none. If it has written all, the first row
                // cannot be inserted again.
                return draft.find_reason(&client, &tenant, in_doubt && number == 0).await;
            }
            if let (Some(seal), Some(pages)) = (&draft.commit.seal, &draft.pages) {
                let id = draft.commit.conversation;
                packing::pack_away(&transaction, &tenant, id, seal, pages).await?;
            }
        }
        Ok(transaction.commit().await?)
    }

    async fn try_to_accept(&self, draft: &CommitDraft<'_>, in_doubt: bool) -> Result<(), Fault> {
        let mut client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, draft.commit.conversation).await?;
        let is_accepted = match draft.pages {
            None => draft.insert(&client, &tenant).await?,
            Some(_) => draft.insert_and_seal(&mut client, &tenant).await?,
        };
        match is_accepted {
            true => Ok(()),
            false => draft.find_reason(&client, &tenant, in_doubt).await,
        }
    }
}

/// A request as the parameters of its statement.
struct CommitDraft<'a> {
    commit: &'a Commit,
    /// Stored in the row. After a lost connection it shows whether this request has written the row.
    attempt: Uuid,
    words: WordColumns,
    pages: Option<PageColumns<'a>>,
}

impl<'a> CommitDraft<'a> {
    fn new(commit: &'a Commit, search: bool) -> CommitDraft<'a> {
        CommitDraft {
            commit,
            attempt: new_id_now(),
            words: WordColumns::new(if search { &commit.words } else { &[] }),
            pages: commit.seal.as_ref().map(|seal| PageColumns::new(&seal.pages)),
        }
    }

    /// Inserts the row with its key and words. Returns whether the row was inserted.
    async fn insert(&self, client: &impl GenericClient, tenant: &[u8]) -> Result<bool, Fault> {
        let CommitRow { head, body } = &self.commit.row;
        let (version, entries) = (i64::from(head.version), i64::from(head.entries));
        let link = head.link.0.as_slice();
        let rewrites = self.commit.rewrites.map(|known| known as i64);
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![
            &tenant,
            &self.commit.conversation.0,
            &version,
            &entries,
            &link,
            &head.committed,
            &self.attempt,
            body,
            &rewrites,
        ];
        let key = self.commit.key.as_ref();
        let columns = key.map(|key| (key.key.as_bytes(), &key.request[..], i64::from(key.version)));
        if let (Some(key), Some((name, request, version))) = (key, &columns) {
            parameters.extend::<[&(dyn ToSql + Sync); 4]>([name, request, version, &key.changed]);
        }
        let has_words = !self.words.entries.is_empty();
        if has_words {
            parameters.extend::<[&(dyn ToSql + Sync); 2]>([&self.words.entries, &self.words.words]);
        }
        let accept = match (key.is_some(), has_words) {
            (false, false) => ACCEPT,
            (true, false) => ACCEPT_KEY,
            (false, true) => ACCEPT_WORDS,
            (true, true) => ACCEPT_BOTH,
        };
        let accept = client.prepare_cached(accept).await?;
        match (client.execute(&accept, &parameters).await, key) {
            (Err(error), Some(key)) if is_taken_in(&error, "recto_keys") => {
                Err(Error::KeyReused { key: key.key.clone() }.into())
            }
            (accepted, _) => Ok(accepted? > 0),
        }
    }

    /// Inserts the row, and packs older rows if the commit has a seal.
    async fn insert_and_seal(&self, client: &mut Client, tenant: &[u8]) -> Result<bool, Fault> {
        let (Some(seal), Some(pages)) = (&self.commit.seal, &self.pages) else {
            return self.insert(client, tenant).await;
        };
        let transaction = client.transaction().await?;
        if !self.insert(&transaction, tenant).await? {
            transaction.rollback().await?;
            return Ok(false);
        }
        packing::pack_away(&transaction, tenant, self.commit.conversation, seal, pages).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Determines why the row was not inserted. Succeeds if an earlier attempt has inserted it.
    async fn find_reason(
        &self,
        client: &Client,
        tenant: &[u8],
        in_doubt: bool,
    ) -> Result<(), Fault> {
        let version = self.commit.row.head.version;
        let key = self.commit.key.as_ref();
        let read = client.prepare_cached(ROW_STATE).await?;
        let row = client
            .query_one(
                &read,
                &[
                    &tenant,
                    &self.commit.conversation.0,
                    &i64::from(version),
                    &key.map(|key| key.key.as_bytes()),
                    &key.map(|key| key.request.as_slice()),
                ],
            )
            .await?;
        if row.try_get::<_, Option<i64>>("current")?.is_none() {
            return Err(unknown(self.commit.conversation));
        }
        let current = number(&row, "current")?;
        let found: Option<Uuid> = row.try_get("attempt")?;
        let kept: bool = row.try_get("kept")?;
        if in_doubt {
            if found == Some(self.attempt) || kept {
                return Ok(());
            }
            // The row was packed or closed by a removal, and no key shows which attempt wrote it.
            let is_packed = found.is_none() && current > version;
            if (is_packed || found == Some(Uuid::nil())) && key.is_none() {
                return Err(Error::UnknownOutcome.into());
            }
        }
        if !row.try_get::<_, bool>("named")? {
            return Err(unknown(self.commit.conversation));
        }
        if version.checked_sub(1) == Some(current) {
            let rewrites: i64 = row.try_get("rewrites")?;
            if self.commit.rewrites.is_some_and(|known| known != rewrites as u64) {
                return Err(Error::RowsChanged.into());
            }
            return Err(Fault::Collided("the newest version was changed at the same time".into()));
        }
        Err(Error::VersionConflict { expected: version.saturating_sub(1), current }.into())
    }
}

/// The words of entries as columns. A word consists of letters and digits, so a space separates them.
pub(super) struct WordColumns {
    pub(super) entries: Vec<i64>,
    pub(super) words: Vec<String>,
}

impl WordColumns {
    pub(super) fn new(words: &[WordsOf]) -> WordColumns {
        // Each entry once: ON CONFLICT cannot update a row twice.
        let words: BTreeMap<_, _> =
            words.iter().map(|of| (i64::from(of.entry), of.words.as_str().to_owned())).collect();
        let (entries, words) = words.into_iter().unzip();
        WordColumns { entries, words }
    }
}

/// Takes the rows of one part from the front of rows that are ordered by the number of their part.
pub(super) fn take_part<'a>(rows: &mut &'a [Row], n: i64) -> Result<&'a [Row], Fault> {
    let mut count = 0;
    while let Some(row) = rows.get(count) {
        if row.try_get::<_, i64>("n")? != n {
            break;
        }
        count += 1;
    }
    let (part, rest) = rows.split_at(count);
    *rows = rest;
    Ok(part)
}

/// Decodes rows as the commits of a conversation. No row means that there is no conversation.
fn unpacked(rows: &[Row], id: ConversationId) -> Result<Unpacked, Fault> {
    let Some(first) = rows.first() else { return Err(unknown(id)) };
    let rewrites: i64 = first.try_get("rewrites")?;
    // A row without a version means that the conversation exists and has nothing newer.
    let rows = rows.iter().filter(|row| row.get::<_, Option<i64>>("version").is_some());
    let commit = |row: &Row| {
        check_owner(row, id)?;
        let head = head(row)?;
        Ok((head.version, Ok(CommitRow { head, body: row.try_get("body")? })))
    };
    let commits = rows.map(commit).collect::<Result<_, Fault>>()?;
    Ok(Unpacked { commits, rewrites: rewrites as u64 })
}
