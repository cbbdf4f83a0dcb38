//! The ids of conversations, and of their owners.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::Error;

/// The permanent id of a conversation. Its name can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(pub Uuid);

impl FromStr for ConversationId {
    type Err = Error;

    /// Reads the form that `Display` writes: `8-4-4-4-12` hexadecimal digits, in either case.
    fn from_str(text: &str) -> Result<ConversationId, Error> {
        let id = Uuid::try_parse(text).ok().filter(|_| text.len() == 36);
        let reason = || "have another form than 8-4-4-4-12 hexadecimal digits".into();
        id.map(ConversationId)
            .ok_or_else(|| Error::InvalidText { what: "conversation id", reason: reason() })
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The owner of conversations. Names are unique per tenant, and no tenant can read conversations of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(pub String);
