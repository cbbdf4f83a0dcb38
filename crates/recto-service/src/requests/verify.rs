//! `{"verify": true}` and `{"conversation": NAME, "verify": true}`

use recto::VerifyReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Perform, Service, True};

/// Verifies all conversations, the rows of the store and its search index. All versions are checked, and the
/// chain of hashes of each conversation is computed again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifyStore {
    /// `true`.
    pub verify: True,
}

/// Verifies one conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Verify {
    /// The conversation: its whole name, or its id.
    pub conversation: String,
    /// `true`.
    pub verify: True,
}

/// The result of verifying a store.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoreVerification {
    /// Whether everything is as it was written.
    pub sound: bool,
    /// The conversations.
    pub conversations: Vec<Verification>,
    /// Damage of the store as a whole: of its structures, its rows or its search index.
    pub store: Vec<String>,
}

/// The result of verifying a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Verification {
    /// The conversation's name.
    pub name: String,
    /// Whether everything is as it was written.
    pub sound: bool,
    /// The number of versions.
    pub versions: u32,
    /// The number of log entries.
    pub entries: u32,
    /// The number of log entries that were erased or pruned.
    pub erased: u32,
    /// The newest hash of the chain of versions.
    pub link: String,
    /// The damage that was found.
    pub faults: Vec<String>,
}

impl StoreVerification {
    /// The result for a store: the verifications of its conversations, and the damage of the store as a
    /// whole.
    pub fn of(conversations: Vec<Verification>, store: Vec<String>) -> StoreVerification {
        let sound = store.is_empty() && conversations.iter().all(|verified| verified.sound);
        StoreVerification { sound, conversations, store }
    }
}

impl Verification {
    /// A report about the conversation of this name.
    pub fn of(name: String, report: VerifyReport) -> Verification {
        Verification {
            name,
            sound: report.is_sound(),
            versions: report.versions,
            entries: report.entries,
            erased: report.erased,
            link: hexadecimal(&report.link.0),
            faults: report.faults,
        }
    }
}

impl Perform for VerifyStore {
    type Response = StoreVerification;

    async fn perform(self, service: &Service) -> Result<StoreVerification, Error> {
        let recto = service.recto();
        let reports = recto.verify_all(&mut |_, _| {}).await?;
        let conversations =
            reports.into_iter().map(|(name, report)| Verification::of(name, report)).collect();
        Ok(StoreVerification::of(conversations, recto.check().await?))
    }
}

impl Perform for Verify {
    type Response = Verification;

    async fn perform(self, service: &Service) -> Result<Verification, Error> {
        let conversation = service.conversation(&self.conversation).await?;
        let report = conversation.handle.verify().await?;
        Ok(Verification::of(conversation.name, report))
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
