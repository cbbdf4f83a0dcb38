//! The last conversation used in each store: the meaning of `@`.
//!
//! A small JSON file in the user's data folder stores it. If that file cannot be read or written,
//! commands still work; only `@` is unknown.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Environment;
use crate::store_location::{StoreLocation, data_folder};

/// The last conversation used in one store.
#[derive(Debug)]
pub(crate) struct LastUsed {
    file: Option<PathBuf>,
    store: String,
}

/// A conversation that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Used {
    pub(crate) id: String,
    /// Its name at that time. A lookup tries this name first, because that needs no list of all
    /// conversations.
    pub(crate) name: String,
}

/// Maximum number of stores in the file.
const MAX_STORES: usize = 64;

impl LastUsed {
    pub(crate) fn of(location: &StoreLocation, environment: &Environment) -> LastUsed {
        let is_durable = !matches!(location.address, recto::Address::Memory);
        let file = data_folder(environment).ok().filter(|_| is_durable);
        LastUsed { file: file.map(|folder| folder.join("last-used.json")), store: key(location) }
    }

    pub(crate) fn get(&self) -> Option<Used> {
        self.all().remove(&self.store)
    }

    pub(crate) fn set(&self, used: &Used) {
        let Some(file) = &self.file else { return };
        let mut all = self.all();
        if all.get(&self.store) == Some(used) {
            return;
        }
        if all.len() >= MAX_STORES {
            all.pop_first();
        }
        all.insert(self.store.clone(), used.clone());
        let text = serde_json::to_string_pretty(&all).expect("a map of strings is valid JSON");
        // Written to a temporary file and renamed, so that another process never reads half a file.
        let partial = file.with_extension(format!("{}.partial", std::process::id()));
        let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
        let written = folder
            .and_then(|()| fs::write(&partial, text))
            .and_then(|()| fs::rename(&partial, file));
        if let Err(error) = written {
            tracing::warn!(%error, "cannot store which conversation was used last");
        }
    }

    fn all(&self) -> BTreeMap<String, Used> {
        let Some(file) = &self.file else { return BTreeMap::new() };
        let read = fs::read_to_string(file).and_then(|text| Ok(serde_json::from_str(&text)?));
        read.unwrap_or_else(|error| {
            if error.kind() != ErrorKind::NotFound {
                let error = error.kind().to_string();
                tracing::warn!(error, "cannot read which conversation was used last");
            }
            BTreeMap::new()
        })
    }
}

/// The key of a store: its absolute path, or a hash of its address, which may contain a password.
fn key(location: &StoreLocation) -> String {
    match location.file() {
        Some(file) => {
            std::path::absolute(file).unwrap_or_else(|_| file.clone()).display().to_string()
        }
        None => {
            let hash = recto::hash_of(location.text.as_bytes());
            hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
        }
    }
}
