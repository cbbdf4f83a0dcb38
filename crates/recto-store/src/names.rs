//! Which names, keys and tenants stores take: the same in every store.
//!
//! Anything goes that each of the databases can keep, order and look up: other scripts, control
//! characters, spaces at the ends. What is refused is refused before anything is written.

use crate::{Commit, Error, IdempotencyKey, NewConversation, Seal};

/// The longest name, key or tenant, in bytes. Databases cannot look up much longer ones.
pub const MAX_NAME: usize = 512;

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
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

/// What can be refused of a request without looking at what is stored.
pub(crate) fn check_commit(commit: &Commit) -> Result<(), Error> {
    commit.key.as_ref().map_or(Ok(()), check_key)?;
    commit.seal.as_ref().map_or(Ok(()), |seal| check_seal(seal, commit.row.head.version))
}

/// Tests that the newest row is not among those to be packed: it tells what the newest version is.
pub(crate) fn check_seal(seal: &Seal, newest: u32) -> Result<(), Error> {
    match seal.below > newest {
        true => Err(Error::failed("packing older versions", "the newest version is never packed")),
        false => Ok(()),
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
