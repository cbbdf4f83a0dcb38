//! The tables and their migrations.
//!
//! `recto_format` holds the format number. Each migration changes it to the next one in a transaction
//! that locks its row. So programs that start at the same time migrate one after the other, and a
//! killed program leaves the old number. To add a migration, append it to [`MIGRATIONS`]; programs of
//! the previous format that still run must be able to use the migrated tables, or fail with an error.

use deadpool_postgres::ClientWrapper;
use tokio_postgres::error::SqlState;

use super::connections::Connections;
use super::fault::Fault;
use crate::Error;

const DOING: &str = "opening the store";

/// Migration `n` changes format `n` to `n + 1`.
const MIGRATIONS: &[Migration] = &[
    Migration { tables: FORMAT_1, tuning: TUNING_1 },
    Migration { tables: FORMAT_2, tuning: TUNING_2 },
    Migration { tables: FORMAT_3, tuning: &[] },
];

struct Migration {
    tables: &'static str,
    /// Optional statements: a server that does not support them works without.
    tuning: &'static [&'static str],
}

const FORMAT_1: &str = r"
CREATE TABLE recto_format (
    format bigint NOT NULL PRIMARY KEY,
    search boolean NOT NULL
);
CREATE TABLE recto_conversations (
    tenant bytea NOT NULL,
    id uuid NOT NULL,
    name bytea,
    created bigint NOT NULL,
    settings text NOT NULL,
    lineage text NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT recto_conversations_name UNIQUE (tenant, name)
);
CREATE INDEX recto_conversations_id ON recto_conversations (id);
CREATE TABLE recto_forks (
    tenant bytea NOT NULL,
    ancestor uuid NOT NULL,
    fork uuid NOT NULL,
    PRIMARY KEY (tenant, ancestor, fork)
);
CREATE TABLE recto_commits (
    tenant bytea NOT NULL,
    conversation uuid NOT NULL,
    version bigint NOT NULL,
    entries bigint NOT NULL,
    link bytea NOT NULL,
    committed bigint NOT NULL,
    attempt uuid NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, conversation, version)
);
CREATE TABLE recto_pages (
    tenant bytea NOT NULL,
    conversation uuid NOT NULL,
    kind smallint NOT NULL,
    first bigint NOT NULL,
    count bigint NOT NULL,
    meta bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, conversation, kind, first)
);
CREATE TABLE recto_keys (
    tenant bytea NOT NULL,
    conversation uuid NOT NULL,
    key bytea NOT NULL,
    request bytea NOT NULL,
    version bigint NOT NULL,
    changed boolean NOT NULL,
    PRIMARY KEY (tenant, conversation, key)
);
CREATE TABLE recto_words (
    tenant bytea NOT NULL,
    conversation uuid NOT NULL,
    entry bigint NOT NULL,
    words text[] NOT NULL,
    PRIMARY KEY (tenant, conversation, entry)
);
CREATE INDEX recto_words_words ON recto_words USING gin (words);
INSERT INTO recto_format (format, search) VALUES (0, true);
";

/// Adds the policy column; older programs do not change it.
const FORMAT_2: &str = "ALTER TABLE recto_conversations ADD COLUMN policy text";

/// Records and role bytes of this format can contain more than those of format 2: see `docs/format.md`. A
/// fork has only its direct ancestor, in `lineage` and in `recto_parents`. Programs of format 2 would not
/// find the forks of forks that a prune must respect. So `recto_forks` is dropped: without it, their attempts
/// to fork, prune and remove fail.
const FORMAT_3: &str = r"
CREATE TABLE recto_parents (
    tenant bytea NOT NULL,
    fork uuid NOT NULL,
    parent uuid NOT NULL,
    PRIMARY KEY (tenant, fork)
);
CREATE INDEX recto_parents_parent ON recto_parents (tenant, parent);
INSERT INTO recto_parents (tenant, fork, parent)
SELECT tenant, id, (lineage::jsonb -> -1 ->> 'id')::uuid FROM recto_conversations
WHERE jsonb_array_length(lineage::jsonb) > 0;
DROP TABLE recto_forks;
CREATE TABLE recto_rewrites (
    tenant bytea NOT NULL PRIMARY KEY,
    count bigint NOT NULL
);
";

/// Columns that are compressed already are not compressed again. The planner keeps no statistics of bodies,
/// metadata, words, keys, names and settings, because statistics contain samples of values, also of erased
/// ones.
const TUNING_1: &[&str] = &[
    "ALTER TABLE recto_commits ALTER COLUMN body SET STORAGE EXTERNAL",
    "ALTER TABLE recto_pages ALTER COLUMN body SET STORAGE EXTERNAL",
    "ALTER TABLE recto_pages ALTER COLUMN meta SET STORAGE EXTERNAL",
    "ALTER TABLE recto_commits ALTER COLUMN body SET STATISTICS 0",
    "ALTER TABLE recto_pages ALTER COLUMN body SET STATISTICS 0",
    "ALTER TABLE recto_pages ALTER COLUMN meta SET STATISTICS 0",
    "ALTER TABLE recto_words ALTER COLUMN words SET STATISTICS 0",
    "ALTER TABLE recto_keys ALTER COLUMN key SET STATISTICS 0",
    "ALTER TABLE recto_conversations ALTER COLUMN name SET STATISTICS 0",
    "ALTER TABLE recto_conversations ALTER COLUMN settings SET STATISTICS 0",
];

/// Commits of up to 8160 bytes stay inline instead of in a TOAST table, because they are soon packed.
const TUNING_2: &[&str] = &["ALTER TABLE recto_commits SET (toast_tuple_target = 8160)"];

/// Creates or migrates the tables. Returns whether the store has a search index.
pub(super) async fn prepare(connections: &Connections, search: bool) -> Result<bool, Error> {
    loop {
        let read = || async { stored_format(&*connections.get().await?).await };
        let (format, kept) = connections.read(DOING, read).await?.unwrap_or((0, search));
        check_known(format)?;
        let Some(migration) = MIGRATIONS.get(format as usize) else { return Ok(kept) };
        let migrate = |client| migrate(client, migration, format, search);
        connections.long(DOING, migrate).await?;
    }
}

fn check_known(format: u32) -> Result<(), Error> {
    let known = MIGRATIONS.len() as u32;
    match format > known {
        true => Err(Error::NewerFormat { found: format, known }),
        false => Ok(()),
    }
}

/// Reads the format and whether there is a search index. `None` if there are no tables.
async fn stored_format(client: &ClientWrapper) -> Result<Option<(u32, bool)>, Fault> {
    let encoding: String = client.query_one("SHOW server_encoding", &[]).await?.try_get(0)?;
    if !encoding.eq_ignore_ascii_case("UTF8") && !encoding.eq_ignore_ascii_case("UTF-8") {
        let reason = format!("the database's encoding is {encoding}; create it with UTF8");
        return Err(Error::failed(DOING, reason).into());
    }
    let found = client.query_one("SELECT format, search FROM recto_format", &[]).await;
    match found {
        Ok(row) => Ok(Some((super::numbers::number(&row, "format")?, row.try_get("search")?))),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn migrate(
    mut client: ClientWrapper,
    migration: &Migration,
    format: u32,
    search: bool,
) -> Result<(), Fault> {
    // Repeating is safe: every attempt reads the format first.
    if stored_format(&client).await?.map_or(0, |(found, _)| found) != format {
        return Ok(()); // another program has migrated it
    }
    let transaction = client.transaction().await?;
    if format > 0 {
        let lock = "SELECT format FROM recto_format WHERE format = $1 FOR UPDATE";
        if transaction.query_opt(lock, &[&i64::from(format)]).await?.is_none() {
            return Ok(()); // another program has migrated it
        }
    }
    transaction.batch_execute(migration.tables).await.map_err(at_the_same_time)?;
    for tuning in migration.tuning {
        transaction.batch_execute("SAVEPOINT tuning").await?;
        match transaction.batch_execute(tuning).await {
            Ok(()) => transaction.batch_execute("RELEASE tuning").await?,
            Err(error) if is_not_known(&error) => {
                transaction.batch_execute("ROLLBACK TO tuning").await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let next = i64::from(format) + 1;
    match format {
        0 => {
            let set = "UPDATE recto_format SET format = $1, search = $2";
            transaction.execute(set, &[&next, &search]).await?;
        }
        _ => {
            transaction.execute("UPDATE recto_format SET format = $1", &[&next]).await?;
        }
    }
    Ok(transaction.commit().await?)
}

/// Two programs created the tables at the same time: one of them has to retry.
fn at_the_same_time(error: tokio_postgres::Error) -> Fault {
    match error.code() {
        Some(state)
            if [
                SqlState::UNIQUE_VIOLATION,
                SqlState::DUPLICATE_TABLE,
                SqlState::DUPLICATE_OBJECT,
            ]
            .contains(state) =>
        {
            Fault::Collided("another program is making the tables".into())
        }
        _ => error.into(),
    }
}

fn is_not_known(error: &tokio_postgres::Error) -> bool {
    let state = error.code().map_or("", SqlState::code);
    matches!(state, "0A000" | "22023" | "42601" | "42704")
}
