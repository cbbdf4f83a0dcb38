//! Removing conversations.
//!
//! Removing deletes the name of a conversation. If forks share its rows, the newest row is closed, so that no
//! row can be inserted after it. Otherwise the rows are deleted, and so are those of removed ancestors that
//! were kept only for this conversation. One transaction does all of this.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use uuid::Uuid;

use super::PostgresStore;
use super::conversations::{ANCESTORS, check_parents};
use super::fault::Fault;
use super::rewrite::replace;
use super::tenants;
use crate::{ConversationId, Error, RewriteOf, Tenant};

const UNNAME: &str = r"
UPDATE recto_conversations SET name = NULL WHERE tenant = $1 AND name = $2
RETURNING id";

/// This lock is taken before the forks are read, so that concurrent forks and removals are serialized.
/// If two removals did not see each other, the rows would never be deleted.
const LOCK: &str = r"
SELECT id FROM recto_conversations
WHERE tenant = $1 AND id = ANY ($2::uuid[])
ORDER BY id
FOR UPDATE";

/// Whether conversations were removed, which direct ancestors they have, and how many direct forks.
const USES: &str = r"
SELECT c.id, c.name IS NULL AS is_removed, p.parent,
    (SELECT count(*) FROM recto_parents f WHERE f.tenant = $1 AND f.parent = c.id) AS forks
FROM recto_conversations c
LEFT JOIN recto_parents p ON p.tenant = $1 AND p.fork = c.id
WHERE c.tenant = $1 AND c.id = ANY ($2::uuid[])";

/// The lock on the newest row prevents that other requests insert the next one.
const LOCK_NEWEST: &str = r"
SELECT version FROM recto_commits WHERE tenant = $1 AND conversation = $2
ORDER BY version DESC LIMIT 1
FOR UPDATE";

pub(super) const NEWEST: &str =
    "SELECT max(version) FROM recto_commits WHERE tenant = $1 AND conversation = $2";

/// No row can be inserted after a row with the nil attempt.
const CLOSE: &str = r"
UPDATE recto_commits SET attempt = '00000000-0000-0000-0000-000000000000'
WHERE tenant = $1 AND conversation = $2 AND version = $3";

const DELETE: [&str; 6] = [
    "DELETE FROM recto_commits WHERE tenant = $1 AND conversation = $2",
    "DELETE FROM recto_pages WHERE tenant = $1 AND conversation = $2",
    "DELETE FROM recto_keys WHERE tenant = $1 AND conversation = $2",
    "DELETE FROM recto_words WHERE tenant = $1 AND conversation = $2",
    "DELETE FROM recto_parents WHERE tenant = $1 AND fork = $2",
    "DELETE FROM recto_conversations WHERE tenant = $1 AND id = $2",
];

impl PostgresStore {
    /// Removes a conversation.
    pub(super) async fn remove_conversation(
        &self,
        tenant: &Tenant,
        name: &str,
        rewrites: Vec<RewriteOf>,
    ) -> Result<(), Error> {
        let rewrites = &*rewrites;
        let attempt = |in_doubt| async move {
            match self.try_to_remove(tenant, name, rewrites).await {
                // An earlier attempt has removed the name.
                Err(Fault::Refused(Error::ConversationNotFound { .. })) if in_doubt => Ok(()),
                attempt => attempt,
            }
        };
        self.connections.write("removing a conversation", attempt).await
    }

    async fn try_to_remove(
        &self,
        tenant: &Tenant,
        name: &str,
        rewrites: &[RewriteOf],
    ) -> Result<(), Fault> {
        let mut client = self.connections.get().await?;
        let tenant = tenants::bytes(tenant);
        let transaction = client.transaction().await?;
        let unname = transaction.prepare_cached(UNNAME).await?;
        let row = transaction.query_opt(&unname, &[&tenant, &name.as_bytes()]).await?;
        let row = row.ok_or_else(|| Error::ConversationNotFound { name: name.to_owned() })?;
        let id: Uuid = row.try_get("id")?;
        check_parents(&transaction, tenant, ConversationId(id)).await?;
        let ancestors = transaction.prepare_cached(ANCESTORS).await?;
        let candidates = transaction.query(&ancestors, &[&tenant, &vec![id]]).await?;
        let candidates: Vec<Uuid> =
            candidates.iter().map(|row| row.try_get("id")).collect::<Result<_, _>>()?;
        let lock = transaction.prepare_cached(LOCK).await?;
        transaction.query(&lock, &[&tenant, &candidates]).await?;
        for rewrite in rewrites {
            replace(&transaction, tenant, rewrite).await?;
        }
        let unused = unused(&transaction, tenant, id, &candidates).await?;
        if !unused.contains(&id) {
            close(&transaction, tenant, id).await?;
        }
        for id in unused {
            delete(&transaction, tenant, id).await?;
        }
        Ok(transaction.commit().await?)
    }
}

/// The conversations whose rows are no longer used: the removed one if it has no fork, then each direct
/// ancestor that has no name and no other fork.
async fn unused(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    id: Uuid,
    candidates: &[Uuid],
) -> Result<Vec<Uuid>, Fault> {
    let uses = transaction.prepare_cached(USES).await?;
    let mut known: HashMap<Uuid, (bool, i64, Option<Uuid>)> = HashMap::new();
    for row in transaction.query(&uses, &[&tenant, &candidates]).await? {
        let uses = (row.try_get("is_removed")?, row.try_get("forks")?, row.try_get("parent")?);
        known.insert(row.try_get("id")?, uses);
    }
    let mut unused = Vec::new();
    let mut next = Some(id);
    // The forks of an ancestor include the one that was added to `unused` before it.
    while let Some((id, (is_removed, forks, parent))) = next.and_then(|id| known.remove_entry(&id))
        && is_removed
        && forks == i64::from(!unused.is_empty())
    {
        unused.push(id);
        next = parent;
    }
    Ok(unused)
}

/// Closes the newest row of a conversation whose rows stay for its forks.
pub(super) async fn close(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    id: Uuid,
) -> Result<(), Fault> {
    let newest = lock_newest(transaction, tenant, id).await?;
    let close = transaction.prepare_cached(CLOSE).await?;
    transaction.execute(&close, &[&tenant, &id, &newest]).await?;
    Ok(())
}

async fn delete(transaction: &Transaction<'_>, tenant: &[u8], id: Uuid) -> Result<(), Fault> {
    lock_newest(transaction, tenant, id).await?;
    for delete in DELETE {
        let delete = transaction.prepare_cached(delete).await?;
        transaction.execute(&delete, &[&tenant, &id]).await?;
    }
    Ok(())
}

/// Locks the newest row of a conversation, and returns its version.
pub(super) async fn lock_newest(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    id: Uuid,
) -> Result<Option<i64>, Fault> {
    let lock = transaction.prepare_cached(LOCK_NEWEST).await?;
    let newest = transaction.prepare_cached(NEWEST).await?;
    // Another transaction may have added or packed rows before this one got the lock; the next round
    // sees them.
    for _ in 0..100 {
        let row = transaction.query_opt(&lock, &[&tenant, &id]).await?;
        let locked: Option<i64> = row.map(|row| row.try_get("version")).transpose()?;
        let found = transaction.query_one(&newest, &[&tenant, &id]).await?.try_get(0)?;
        if locked == found {
            return Ok(found);
        }
    }
    Err(Fault::Collided("the conversation changes all the time".into()))
}
