//! Cache of the tenants of conversations.
//!
//! The methods of a store take ids of conversations, and every key of a table starts with the tenant.
//! The tenant of an id never changes, so a cached value stays valid, also after the conversation was
//! removed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use deadpool_postgres::GenericClient;

use super::PostgresStore;
use super::conversations::wrong_index_entry;
use super::fault::Fault;
use crate::{ConversationId, Error, Tenant};

/// Capacity of the cache. It is emptied when it is full.
const MOST: usize = 100_000;

/// The cache.
#[derive(Debug, Default)]
pub(super) struct Tenants(Mutex<HashMap<ConversationId, Arc<[u8]>>>);

impl Tenants {
    pub(super) fn cache(&self, id: ConversationId, tenant: &[u8]) {
        let mut known = self.0.lock().expect("no holder panics");
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(id, tenant.into());
    }

    fn known(&self, id: ConversationId) -> Option<Arc<[u8]>> {
        self.0.lock().expect("no holder panics").get(&id).cloned()
    }
}

impl PostgresStore {
    /// The tenant of a conversation, as stored in the tables.
    pub(super) async fn tenant_of(
        &self,
        client: &impl GenericClient,
        id: ConversationId,
    ) -> Result<Arc<[u8]>, Fault> {
        if let Some(tenant) = self.tenants.known(id) {
            return Ok(tenant);
        }
        let find = "SELECT tenant, id FROM recto_conversations WHERE id = $1";
        let find = client.prepare_cached(find).await?;
        let row = client.query_opt(&find, &[&id.0]).await?.ok_or_else(|| unknown(id))?;
        if row.try_get::<_, uuid::Uuid>("id")? != id.0 {
            return Err(wrong_index_entry(id).into());
        }
        let tenant: &[u8] = row.try_get("tenant")?;
        self.tenants.cache(id, tenant);
        Ok(tenant.into())
    }
}

/// The stored form of a tenant.
pub(super) fn bytes(tenant: &Tenant) -> &[u8] {
    tenant.0.as_bytes()
}

pub(super) fn unknown(id: ConversationId) -> Fault {
    Fault::Refused(Error::ConversationNotFound { name: id.to_string() })
}
