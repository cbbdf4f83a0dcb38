//! Conversation rows: names, lineage and forks.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::commits::WordColumns;
use super::fault::{Fault, is_taken_in};
use super::numbers::{self, head, text};
use super::tenants::{self, unknown};
use crate::lineage::Lineages;
use crate::new_id::new_id_now;
use crate::{
    Ancestor, ConversationId, ConversationRow, Error, Lineage, NewConversation,
    SurveyedConversation, Tenant, checks,
};

/// Creates a conversation if its direct ancestor exists. The lock prevents a concurrent removal of the
/// ancestor, whose own ancestors are not removed as long as it exists.
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

/// All conversations, also those without a name. One without a commit is damaged.
const SURVEY: &str = "SELECT c.tenant, c.id, c.name, c.created, c.settings, c.policy, c.lineage, \
        h.version, h.entries, h.link, h.committed \
    FROM recto_conversations c LEFT JOIN LATERAL ( \
        SELECT version, entries, link, committed FROM recto_commits m \
        WHERE m.tenant = c.tenant AND m.conversation = c.id \
        ORDER BY version DESC LIMIT 1) h ON true";

const FIND: &str = conversations!("c.tenant = $1 AND c.name = $2");

/// Forks come before their ancestors, so that they share one lineage.
const GET: &str = conversations!(
    "c.tenant = $1 AND c.id = ANY ($2::uuid[]) AND c.name IS NOT NULL ORDER BY c.id DESC"
);

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

/// Whether a row of `recto_parents` is missing, has no conversation, or differs from the lineage.
const PARENTS_DIFFER: &str = r"
SELECT EXISTS (
    SELECT 1 FROM (
        SELECT id, (lineage::jsonb -> -1 ->> 'id')::uuid AS parent
        FROM recto_conversations WHERE tenant = $1) c
    FULL JOIN (SELECT fork, parent FROM recto_parents WHERE tenant = $1) p ON p.fork = c.id
    WHERE c.id IS NULL OR c.parent IS DISTINCT FROM p.parent)";

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

const EXISTS_BY_ID: &str = "SELECT 1 FROM recto_conversations WHERE tenant = $1 AND id = $2";

impl PostgresStore {
    /// Creates a conversation.
    pub(super) async fn create_conversation(&self, new: NewConversation) -> Result<(), Error> {
        checks::check_new(&new)?;
        let attempt = |in_doubt| self.try_to_create(&new, in_doubt);
        self.connections.write("creating a conversation", attempt).await?;
        self.tenants.cache(new.id, tenants::bytes(&new.tenant));
        Ok(())
    }

    async fn try_to_create(&self, new: &NewConversation, in_doubt: bool) -> Result<(), Fault> {
        let client = self.connections.get().await?;
        self.create_with(&client, new, Some(&new.name), in_doubt).await
    }

    /// Creates a conversation, on a connection or in a transaction. `name` is `None` for a removed
    /// conversation that is kept for its forks.
    pub(super) async fn create_with(
        &self,
        client: &impl GenericClient,
        new: &NewConversation,
        name: Option<&str>,
        in_doubt: bool,
    ) -> Result<(), Fault> {
        let tenant = tenants::bytes(&new.tenant);
        let taken = client.prepare_cached(TAKEN).await?;
        let name_bytes = name.map(str::as_bytes);
        let taken = client.query_one(&taken, &[&tenant, &name_bytes, &new.id.0]).await?;
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
                    &name_bytes,
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
            // Another request has taken the name or the id since the check: the next attempt reports which.
            Err(error) if is_taken_in(&error, "recto_conversations") => {
                Err(Fault::Collided("another conversation of that name was created".into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn missing_parent(
        &self,
        client: &impl GenericClient,
        new: &NewConversation,
    ) -> Result<Fault, Fault> {
        let exists_by_id = client.prepare_cached(EXISTS_BY_ID).await?;
        if let Some(parent) = new.lineage.last() {
            let tenant = tenants::bytes(&new.tenant);
            let found = client.query_opt(&exists_by_id, &[&tenant, &parent.id.0]).await?;
            if found.is_none() {
                return Ok(unknown(parent.id));
            }
        }
        Ok(Fault::Collided(
            "the conversation that it is forked from was changed at the same time".into(),
        ))
    }

    /// Finds a conversation by its name.
    pub(super) async fn find_conversation(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<ConversationRow>, Error> {
        let bytes = name.as_bytes();
        let found = self.read_conversations(FIND, tenants::bytes(tenant), &[&bytes]).await?;
        let found = found.into_iter().next();
        match found.as_ref().filter(|row| row.name != name) {
            Some(other) => Err(wrong_index_entry(other.id)),
            None => Ok(found),
        }
    }

    /// Finds conversations by their ids.
    pub(super) async fn get_conversations(
        &self,
        tenant: &Tenant,
        ids: Vec<ConversationId>,
    ) -> Result<Vec<ConversationRow>, Error> {
        let keys: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let found = self.read_conversations(GET, tenants::bytes(tenant), &[&keys]).await?;
        match found.iter().find(|row| !ids.contains(&row.id)) {
            Some(other) => Err(wrong_index_entry(other.id)),
            None => Ok(found),
        }
    }

    /// All conversations of all tenants, ancestors before their forks.
    pub(super) async fn survey_conversations(&self) -> Result<Vec<SurveyedConversation>, Error> {
        let attempt = || async {
            let client = self.connections.get().await?;
            let rows = client.query(SURVEY, &[]).await?;
            let mut found = rows.iter().map(surveyed).collect::<Result<Vec<_>, Fault>>()?;
            fill_surveyed_lineages(&mut found);
            found.sort_by_key(|found| found.row.as_ref().map_or(0, |row| row.lineage.len()));
            Ok(found)
        };
        self.connections.read("listing conversations", attempt).await
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
        let attempt = || async {
            let client = self.connections.get().await?;
            let tenant = self.tenant_of(&client, id).await?;
            let exists_by_id = client.prepare_cached(EXISTS_BY_ID).await?;
            let found = client.query_opt(&exists_by_id, &[&&*tenant, &id.0]).await?;
            check_parents(&client, &tenant, id).await?;
            found.map(|_| tenant).ok_or_else(|| unknown(id))
        };
        let tenant = self.connections.read("looking for forks", attempt).await?;
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
        let attempt = || async {
            let client = self.connections.get().await?;
            let read = client.prepare_cached(sql).await?;
            let rows = client.query(&read, &parameters).await?;
            let mut found = rows.iter().map(conversation).collect::<Result<Vec<_>, Fault>>()?;
            fill_lineages(&client, tenant, &mut found).await?;
            Ok(found)
        };
        let found = self.connections.read("looking for conversations", attempt).await?;
        found.iter().for_each(|row| self.tenants.cache(row.id, tenant));
        Ok(found)
    }

    /// Renames a conversation.
    pub(super) async fn rename_conversation(
        &self,
        tenant: &Tenant,
        from: &str,
        to: &str,
    ) -> Result<(), Error> {
        checks::check_name(to)?;
        let attempt = |in_doubt| self.try_to_rename(tenant, from, to, in_doubt);
        self.connections.write("renaming a conversation", attempt).await
    }

    /// Sets the policy of a conversation.
    pub(super) async fn set_policy_of(
        &self,
        tenant: &Tenant,
        name: &str,
        policy: Option<String>,
    ) -> Result<(), Error> {
        let attempt = || async {
            let client = self.connections.get().await?;
            let set = client.prepare_cached(SET_POLICY).await?;
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                [&tenants::bytes(tenant), &name.as_bytes(), &policy];
            match client.execute(&set, &parameters).await? {
                0 => Err(Error::ConversationNotFound { name: name.to_owned() }.into()),
                _ => Ok(()),
            }
        };
        // The statement is idempotent, so repeating it is as safe as repeating a read.
        self.connections.read("setting a policy", attempt).await
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

/// The server does not compare a row with the index entry that leads to it, so a damaged index can lead to
/// the row of another conversation.
pub(super) fn wrong_index_entry(conversation: ConversationId) -> Error {
    let reason = "an index of the database leads to another conversation".to_owned();
    Error::Damaged { conversation, reason }
}

/// Checks that a row belongs to a conversation.
pub(super) fn check_owner(row: &Row, id: ConversationId) -> Result<(), Fault> {
    match row.try_get::<_, Uuid>("owner")? == id.0 {
        true => Ok(()),
        false => Err(wrong_index_entry(id).into()),
    }
}

fn surveyed(row: &Row) -> Result<SurveyedConversation, Fault> {
    let id = ConversationId(row.try_get("id")?);
    let name: Option<&[u8]> = row.try_get("name")?;
    let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
    let damaged = |reason: &str| Error::Damaged { conversation: id, reason: reason.to_owned() };
    let read = match row.try_get::<_, Option<i64>>("version")? {
        None => Err(damaged("its newest version is missing")),
        Some(_) => named(row, name.clone().unwrap_or_default()).map_err(|fault| match fault {
            Fault::Refused(error) => error,
            _ => damaged("its row cannot be read"),
        }),
    };
    Ok(SurveyedConversation { id, tenant: Tenant(text(row, "tenant")?), name, row: read })
}

fn conversation(row: &Row) -> Result<ConversationRow, Fault> {
    named(row, text(row, "name")?)
}

fn named(row: &Row, name: String) -> Result<ConversationRow, Fault> {
    let id = ConversationId(row.try_get("id")?);
    Ok(ConversationRow {
        id,
        name,
        created: row.try_get("created")?,
        settings: row.try_get("settings")?,
        policy: row.try_get("policy")?,
        lineage: Lineage::from(Vec::from_iter(parent(row.try_get("lineage")?, id)?)),
        head: head(row)?,
    })
}

/// Completes the lineages of conversations that were read. Their rows have only the direct ancestor.
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

/// Completes the lineages of a survey, which has read all conversations.
fn fill_surveyed_lineages(found: &mut [SurveyedConversation]) {
    let parent = |row: &ConversationRow| (row.id, row.lineage.last().copied());
    let parents: HashMap<_, _> =
        found.iter().filter_map(|found| found.row.as_ref().ok().map(parent)).collect();
    let mut lineages = Lineages::default();
    for surveyed in found {
        let Ok(row) = &mut surveyed.row else { continue };
        let missing = |id: ConversationId| Error::Damaged {
            conversation: surveyed.id,
            reason: format!("its ancestor {id} is missing or damaged"),
        };
        let parent_of = |id| parents.get(&id).copied().ok_or_else(|| missing(id));
        match lineages.of(row.id, row.lineage.last().copied(), parent_of) {
            Ok(lineage) => row.lineage = lineage,
            Err(error) => surveyed.row = Err(error),
        }
    }
}

/// Fails if the table of forks and the lineages of a tenant differ. Rows that no fork shares are deleted, so
/// the table must be complete.
pub(super) async fn check_parents(
    client: &impl GenericClient,
    tenant: &[u8],
    id: ConversationId,
) -> Result<(), Fault> {
    let differ = client.prepare_cached(PARENTS_DIFFER).await?;
    match client.query_one(&differ, &[&tenant]).await?.try_get(0)? {
        false => Ok(()),
        true => {
            let reason = "the table of forks does not agree with the lineages".to_owned();
            Err(Error::Damaged { conversation: id, reason }.into())
        }
    }
}

/// The direct ancestor in a stored lineage. In rows of format 2 and earlier, the older ancestors precede it.
pub(super) fn parent(text: &str, id: ConversationId) -> Result<Option<Ancestor>, Fault> {
    let read: Result<Vec<Ancestor>, _> = serde_json::from_str(text);
    let mut read = read.map_err(|_| {
        let reason = "its lineage cannot be read".to_owned();
        Fault::Refused(Error::Damaged { conversation: id, reason })
    })?;
    Ok(read.pop())
}
