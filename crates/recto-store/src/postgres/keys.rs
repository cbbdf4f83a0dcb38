//! Idempotency keys.

use tokio_postgres::Row;

use super::PostgresStore;
use super::conversations::{check_owner, wrong_index_entry};
use super::fault::Fault;
use super::numbers::{hash, number};
use super::tenants::unknown;
use crate::{ConversationId, Error, IdempotencyKey, checks};

const FIND: &str = r"
SELECT k.conversation AS owner, k.key, k.request, k.version, k.changed, c.name IS NOT NULL AS named
FROM recto_conversations c
LEFT JOIN recto_keys k
    ON k.tenant = c.tenant AND k.conversation = c.id AND k.key = $3
WHERE c.tenant = $1 AND c.id = $2";

/// The lock prevents that the conversation is removed at the same time.
const KEEP: &str = r"
INSERT INTO recto_keys (tenant, conversation, key, request, version, changed)
SELECT $1, $2, $3, $4, $5, $6 FROM recto_conversations
WHERE tenant = $1 AND id = $2 AND name IS NOT NULL
FOR SHARE
ON CONFLICT (tenant, conversation, key) DO NOTHING";

impl PostgresStore {
    /// Finds an idempotency key.
    pub(super) async fn find_key(
        &self,
        id: ConversationId,
        key: &str,
    ) -> Result<Option<IdempotencyKey>, Fault> {
        let client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, id).await?;
        let find = client.prepare_cached(FIND).await?;
        let row = client.query_opt(&find, &[&&*tenant, &id.0, &key.as_bytes()]).await?;
        read(&row.ok_or_else(|| unknown(id))?, id, key)
    }

    /// Stores the key of a request that changed nothing.
    pub(super) async fn keep_key(
        &self,
        id: ConversationId,
        key: IdempotencyKey,
    ) -> Result<(), Error> {
        checks::check_key(&key)?;
        let attempt = |in_doubt| self.try_to_keep_key(id, &key, in_doubt);
        self.connections.write("keeping an idempotency key", attempt).await
    }

    async fn try_to_keep_key(
        &self,
        id: ConversationId,
        key: &IdempotencyKey,
        in_doubt: bool,
    ) -> Result<(), Fault> {
        let client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, id).await?;
        let keep = client.prepare_cached(KEEP).await?;
        let name = key.key.as_bytes();
        let (request, version) = (key.request.as_slice(), i64::from(key.version));
        let kept = client
            .execute(&keep, &[&&*tenant, &id.0, &name, &request, &version, &key.changed])
            .await?;
        if kept == 1 {
            return Ok(());
        }
        let find = client.prepare_cached(FIND).await?;
        let row = client.query_opt(&find, &[&&*tenant, &id.0, &name]).await?;
        let row = row.ok_or_else(|| unknown(id))?;
        if !row.try_get::<_, bool>("named")? {
            return Err(unknown(id));
        }
        match read(&row, id, &key.key)? {
            Some(found) if in_doubt && found == *key => Ok(()),
            Some(_) => Err(Error::KeyReused { key: key.key.clone() }.into()),
            None => Err(Fault::Collided("the key was written at the same time".into())),
        }
    }
}

/// Decodes a key. NULL columns mean that the key does not exist.
fn read(row: &Row, id: ConversationId, key: &str) -> Result<Option<IdempotencyKey>, Fault> {
    let Some(changed) = row.try_get("changed")? else { return Ok(None) };
    check_owner(row, id)?;
    if row.try_get::<_, &[u8]>("key")? != key.as_bytes() {
        return Err(wrong_index_entry(id).into());
    }
    Ok(Some(IdempotencyKey {
        key: key.to_owned(),
        request: hash(row, "request")?,
        version: number(row, "version")?,
        changed,
    }))
}
