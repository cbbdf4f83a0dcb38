//! Checks of requests that are the same in every store.
//!
//! Names, keys and tenants may be any text that each of the databases can store, order and look up, also
//! with letters of any script, control characters, and spaces at the ends. A store checks a request before
//! it writes anything.

use crate::{Commit, Error, IdempotencyKey, NewConversation, RestoredConversation, Seal};

/// Maximum length of a name, key or tenant, in bytes. Databases cannot index much longer ones.
pub const MAX_NAME: usize = 512;

/// Checks whether every store can hold this name of a conversation.
pub fn check_name(name: &str) -> Result<(), Error> {
    match name.is_empty() {
        true => Err(invalid("name", "be empty")),
        false => check("name", name),
    }
}

pub(crate) fn check_key(key: &IdempotencyKey) -> Result<(), Error> {
    match key.key.is_empty() {
        true => Err(invalid("key", "be empty")),
        false => check("key", &key.key),
    }
}

pub(crate) fn check_new(new: &NewConversation) -> Result<(), Error> {
    check("tenant", &new.tenant.0)?;
    check_name(&new.name)
}

/// Checks conversations to restore. A removed one has no name, so its name is not checked.
pub(crate) fn check_restored(restored: &[RestoredConversation]) -> Result<(), Error> {
    restored.iter().try_for_each(|restored| match restored.is_removed {
        true => check("tenant", &restored.new.tenant.0),
        false => check_new(&restored.new),
    })
}

/// Checks a commit without reading what is stored.
pub(crate) fn check_commit(commit: &Commit) -> Result<(), Error> {
    commit.key.as_ref().map_or(Ok(()), check_key)?;
    commit.seal.as_ref().map_or(Ok(()), |seal| check_seal(seal, commit.row.head.version))
}

/// Checks that the newest row is not packed: it holds the newest version.
fn check_seal(seal: &Seal, newest: u32) -> Result<(), Error> {
    match seal.below > newest {
        true => Err(Error::failed("packing older versions", "the newest version is never packed")),
        false => Ok(()),
    }
}

/// Checks that a commit has the version after the newest one.
pub(crate) fn check_next(current: u32, version: u32) -> Result<(), Error> {
    match version.checked_sub(1) {
        Some(expected) if expected == current => Ok(()),
        expected => Err(Error::VersionConflict { expected: expected.unwrap_or(0), current }),
    }
}

fn check(what: &'static str, text: &str) -> Result<(), Error> {
    if text.len() > MAX_NAME {
        return Err(invalid(what, &format!("be longer than {MAX_NAME} bytes")));
    }
    if text.contains('\0') {
        return Err(invalid(what, "hold the character U+0000"));
    }
    Ok(())
}

fn invalid(what: &'static str, reason: &str) -> Error {
    Error::InvalidText { what, reason: reason.to_owned() }
}
