//! Conversation rows: names, lineage and forks.

use std::collections::HashMap;
use std::ops::ControlFlow;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::attempts::Attempts;
use super::commits::WordColumns;
use super::fault::{Fault, is_taken_in};
use super::numbers::{self, head, text};
use super::tenants::{self, unknown};
use crate::lineage::Lineages;
use crate::new_id::new_id_now;
use crate::{
    Ancestor, ConversationId, ConversationRow, Error, Lineage, NewConversation, Tenant, checks,
};

/// Creates a conversation if its direct ancestor exists. The lock prevents that it is removed at the same
/// time; its own ancestors are not removed as long as it exists.
const CREATE: &str = r"
WITH parents AS (
    SELECT id FROM recto_conversations WHERE tenant = $1 AND id = $7::uuid FOR SHARE
), created AS (
    INSERT INTO recto_conversations (tenant, id, name, created, settings, lineage, policy)
    SELECT $1, $2, $3, $4, $5, $6, $16
    WHERE $7::uuid IS NULL OR EXISTS (SELECT 1 FROM parents)
    RETURNING id
), forked AS (
    INSERT INTO recto_parents (tenant, fork, parent)
    SELECT $1, created.id, parents.id FROM created, parents
), indexed AS (
    INSERT INTO recto_words (tenant, conversation, entry, words)
    SELECT $1, $2, entry, string_to_array(words, ' ')
    FROM created, unnest($14::bigint[], $15::text[]) AS of (entry, words)
)
INSERT INTO recto_commits
    (tenant, conversation, version, entries, link, committed, attempt, body)
SELECT $1, $2, $8, $9, $10, $11, $12, $13 FROM created";

/// Selects conversations with their newest versions; a `WHERE` clause follows.
macro_rules! conversations {
    ($where:literal) => {
        concat!(
            "SELECT c.id, c.name, c.created, c.settings, c.policy, c.lineage, \
                 h.version, h.entries, h.link, h.committed \
             FROM recto_conversations c CROSS JOIN LATERAL ( \
                 SELECT version, entries, link, committed FROM recto_commits m \
                 WHERE m.tenant = c.tenant AND m.conversation = c.id \
                 ORDER BY version DESC LIMIT 1) h \
             WHERE ",
            $where
        )
    };
}

const FIND: &str = conversations!("c.tenant = $1 AND c.name = $2");

const GET: &str = conversations!("c.tenant = $1 AND c.id = $2 AND c.name IS NOT NULL");

const LIST: &str = conversations!(
    "c.tenant = $1 AND c.name IS NOT NULL AND ($2::bytea IS NULL OR c.name > $2) \
     ORDER BY c.name LIMIT $3"
);

const FORKS: &str = conversations!(
    "c.tenant = $1 AND c.name IS NOT NULL AND c.id IN ( \
         WITH RECURSIVE below (fork) AS ( \
             SELECT fork FROM recto_parents WHERE tenant = $1 AND parent = $2 \
             UNION SELECT p.fork FROM recto_parents p \
                 JOIN below ON p.tenant = $1 AND p.parent = below.fork) \
         SELECT fork FROM below) \
     ORDER BY c.name"
);

/// These conversations and their ancestors, removed or not.
pub(super) const ANCESTORS: &str = r"
WITH RECURSIVE above (id) AS (
    SELECT unnest($2::uuid[])
    UNION SELECT p.parent FROM recto_parents p JOIN above ON p.tenant = $1 AND p.fork = above.id)
SELECT c.id, c.lineage FROM above JOIN recto_conversations c ON c.tenant = $1 AND c.id = above.id";

const SET_POLICY: &str =
    "UPDATE recto_conversations SET policy = $3 WHERE tenant = $1 AND name = $2";

const RENAME: &str = "UPDATE recto_conversations SET name = $3 WHERE tenant = $1 AND name = $2";

/// Whether the tenant has a conversation of that name, and any tenant one of that id.
const TAKEN: &str = r"
SELECT EXISTS (SELECT 1 FROM recto_conversations WHERE tenant = $1 AND name = $2) AS name,
    EXISTS (SELECT 1 FROM recto_conversations WHERE id = $3) AS id";

const IS_THERE: &str = "SELECT 1 FROM recto_conversations WHERE tenant = $1 AND id = $2";

impl PostgresStore {
    /// Creates a conversation.
    pub(super) async fn create_conversation(&self, new: NewConversation) -> Result<(), Error> {
        checks::check_new(&new)?;
        let mut attempts = Attempts::at("creating a conversation");
        loop {
            let attempt =
                self.connections.limited(self.try_to_create(&new, attempts.in_doubt())).await;
            if let ControlFlow::Break(answer) = attempts.settle(attempt).await {
                answer?;
                self.tenants.learn(new.id, tenants::bytes(&new.tenant));
                return Ok(());
            }
        }
    }

    async fn try_to_create(&self, new: &NewConversation, in_doubt: bool) -> Result<(), Fault> {
        let client = self.connections.get().await?;
        self.create_with(&client, new, in_doubt).await
    }

    /// Creates a conversation, on a connection or in a transaction.
    pub(super) async fn create_with(
        &self,
        client: &impl GenericClient,
        new: &NewConversation,
        in_doubt: bool,
    ) -> Result<(), Fault> {
        let tenant = tenants::bytes(&new.tenant);
        let taken = client.prepare_cached(TAKEN).await?;
        let taken = client.query_one(&taken, &[&tenant, &new.name.as_bytes(), &new.id.0]).await?;
        let (is_name_taken, is_id_taken) = (taken.try_get("name")?, taken.try_get("id")?);
        match (is_name_taken, is_id_taken) {
            // Ids are unique, so an earlier attempt has created it.
            (_, true) if in_doubt => return Ok(()),
            (true, _) => return Err(exists(&new.name)),
            (false, true) => return Err(exists(&new.id.to_string())),
            (false, false) => {}
        }
        let words = WordColumns::new(if self.search { &new.words } else { &[] });
        let parent = new.lineage.last();
        let lineage = serde_json::to_string(parent.as_slice()).expect("a lineage is plain data");
        let parent = parent.map(|parent| parent.id.0);
        let create = client.prepare_cached(CREATE).await?;
        let created = client
            .execute(
                &create,
                &[
                    &tenant,
                    &new.id.0,
                    &new.name.as_bytes(),
                    &new.created,
                    &new.settings,
                    &lineage,
                    &parent,
                    &i64::from(new.first.head.version),
                    &i64::from(new.first.head.entries),
                    &new.first.head.link.0.as_slice(),
                    &new.first.head.committed,
                    &new_id_now(),
                    &new.first.body,
                    &words.entries,
                    &words.words,
                    &new.policy,
                ],
            )
            .await;
        match created {
            Ok(1) => Ok(()),
            Ok(_) => Err(self.missing_parent(client, new).await?),
            // Another request has taken it since the check: the next attempt finds out which.
            Err(error) if is_taken_in(&error, "recto_conversations") => {
                Err(Fault::Collided("another one of that name was created".into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn missing_parent(
        &self,
        client: &impl GenericClient,
        new: &NewConversation,
    ) -> Result<Fault, Fault> {
        let is_there = client.prepare_cached(IS_THERE).await?;
        if let Some(parent) = new.lineage.last() {
            let tenant = tenants::bytes(&new.tenant);
            let found = client.query_opt(&is_there, &[&tenant, &parent.id.0]).await?;
            if found.is_none() {
                return Ok(unknown(parent.id));
            }
        }
        Ok(Fault::Collided("the conversation it is forked from is not settled".into()))
    }

    /// Finds a conversation by its name.
    pub(super) async fn find_conversation(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<ConversationRow>, Error> {
        let name = name.as_bytes();
        let found = self.read_conversations(FIND, tenants::bytes(tenant), &[&name]).await?;
        Ok(found.into_iter().next())
    }

    /// Finds a conversation by its id.
    pub(super) async fn get_conversation(
        &self,
        tenant: &Tenant,
        id: ConversationId,
    ) -> Result<Option<ConversationRow>, Error> {
        let found = self.read_conversations(GET, tenants::bytes(tenant), &[&id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Lists conversations ordered by name.
    pub(super) async fn list_conversations(
        &self,
        tenant: &Tenant,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ConversationRow>, Error> {
        let (after, limit) = (after.map(str::as_bytes), numbers::limit(limit));
        self.read_conversations(LIST, tenants::bytes(tenant), &[&after, &limit]).await
    }

    /// The forks that share rows of a conversation.
    pub(super) async fn find_forks(
        &self,
        id: ConversationId,
    ) -> Result<Vec<ConversationRow>, Error> {
        let mut attempts = Attempts::at_reading("looking for forks");
        let tenant = loop {
            let attempt = async {
                let client = self.connections.get().await?;
                let tenant = self.tenant_of(&client, id).await?;
                let is_there = client.prepare_cached(IS_THERE).await?;
                let found = client.query_opt(&is_there, &[&&*tenant, &id.0]).await?;
                found.map(|_| tenant).ok_or_else(|| unknown(id))
            };
            if let ControlFlow::Break(answer) =
                attempts.settle(self.connections.limited(attempt).await).await
            {
                break answer?;
            }
        };
        self.read_conversations(FORKS, &tenant, &[&id.0]).await
    }

    async fn read_conversations(
        &self,
        sql: &'static str,
        tenant: &[u8],
        others: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Vec<ConversationRow>, Error> {
        let mut parameters: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![&tenant];
        parameters.extend(others);
        let mut attempts = Attempts::at_reading("looking for conversations");
        loop {
            let attempt = async {
                let client = self.connections.get().await?;
                let read = client.prepare_cached(sql).await?;
                let rows = client.query(&read, &parameters).await?;
                let mut found = rows.iter().map(conversation).collect::<Result<Vec<_>, Fault>>()?;
                fill_lineages(&client, tenant, &mut found).await?;
                Ok(found)
            };
            if let ControlFlow::Break(answer) =
                attempts.settle(self.connections.limited(attempt).await).await
            {
                let found = answer?;
                found.iter().for_each(|row| self.tenants.learn(row.id, tenant));
                return Ok(found);
            }
        }
    }

    /// Renames a conversation.
    pub(super) async fn rename_conversation(
        &self,
        tenant: &Tenant,
        from: &str,
        to: &str,
    ) -> Result<(), Error> {
        checks::check_name(to)?;
        let mut attempts = Attempts::at("renaming a conversation");
        loop {
            let attempt = self
                .connections
                .limited(self.try_to_rename(tenant, from, to, attempts.in_doubt()))
                .await;
            if let ControlFlow::Break(answer) = attempts.settle(attempt).await {
                return answer;
            }
        }
    }

    /// Sets the policy of a conversation.
    pub(super) async fn set_policy_of(
        &self,
        tenant: &Tenant,
        name: &str,
        policy: Option<String>,
    ) -> Result<(), Error> {
        // Repeating is safe: the statement is idempotent.
        let mut attempts = Attempts::at_reading("setting a policy");
        loop {
            let attempt = async {
                let client = self.connections.get().await?;
                let set = client.prepare_cached(SET_POLICY).await?;
                let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                    [&tenants::bytes(tenant), &name.as_bytes(), &policy];
                match client.execute(&set, &parameters).await? {
                    0 => Err(Error::ConversationNotFound { name: name.to_owned() }.into()),
                    _ => Ok(()),
                }
            };
            if let ControlFlow::Break(answer) =
                attempts.settle(self.connections.limited(attempt).await).await
            {
                return answer;
            }
        }
    }

    async fn try_to_rename(
        &self,
        tenant: &Tenant,
        from: &str,
        to: &str,
        in_doubt: bool,
    ) -> Result<(), Fault> {
        let client = self.connections.get().await?;
        let rename = client.prepare_cached(RENAME).await?;
        let (old, new) = (from.as_bytes(), to.as_bytes());
        match client.execute(&rename, &[&tenants::bytes(tenant), &old, &new]).await {
            Ok(1..) => Ok(()),
            // An earlier attempt may have renamed it, or another process has removed it.
            Ok(0) if in_doubt => Err(Error::UnknownOutcome.into()),
            Ok(0) => Err(Error::ConversationNotFound { name: from.to_owned() }.into()),
            Err(error) if is_taken_in(&error, "recto_conversations") => Err(exists(to)),
            Err(error) => Err(error.into()),
        }
    }
}

fn exists(name: &str) -> Fault {
    Fault::Refused(Error::ConversationExists { name: name.to_owned() })
}

fn conversation(row: &Row) -> Result<ConversationRow, Fault> {
    let id = ConversationId(row.try_get("id")?);
    Ok(ConversationRow {
        id,
        name: text(row, "name")?,
        created: row.try_get("created")?,
        settings: row.try_get("settings")?,
        policy: row.try_get("policy")?,
        lineage: Lineage::from(Vec::from_iter(parent(row.try_get("lineage")?, id)?)),
        head: head(row)?,
    })
}

/// Replaces the lineages of conversations that were read, which have only the direct ancestor, by the whole
/// ones.
async fn fill_lineages(
    client: &impl GenericClient,
    tenant: &[u8],
    found: &mut [ConversationRow],
) -> Result<(), Fault> {
    let parents = found.iter().filter_map(|row| Some(row.lineage.last()?.id.0));
    let parents: Vec<Uuid> = parents.collect();
    if parents.is_empty() {
        return Ok(());
    }
    let read = client.prepare_cached(ANCESTORS).await?;
    let mut above = HashMap::new();
    for row in client.query(&read, &[&tenant, &parents]).await? {
        let id = ConversationId(row.try_get("id")?);
        above.insert(id, parent(row.try_get("lineage")?, id)?);
    }
    let mut lineages = Lineages::default();
    for row in found {
        let parent_of = |id: ConversationId| above.get(&id).copied().ok_or_else(|| unknown(id));
        row.lineage = lineages.of(row.id, row.lineage.last().copied(), parent_of)?;
    }
    Ok(())
}

/// The direct ancestor in a stored lineage. Rows of format 2 and earlier have the others before it.
pub(super) fn parent(text: &str, id: ConversationId) -> Result<Option<Ancestor>, Fault> {
    let read: Result<Vec<Ancestor>, _> = serde_json::from_str(text);
    let mut read = read.map_err(|_| {
        let reason = "its lineage cannot be read".to_owned();
        Fault::Refused(Error::Damaged { conversation: id, reason })
    })?;
    Ok(read.pop())
}
