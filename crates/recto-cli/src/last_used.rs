//! The conversation that was used last in each store: what `@` means.
//!
//! It is kept in a small file in the user's data folder. It is a convenience: if the file cannot be
//! read or written, nothing else fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Surroundings;
use crate::place::{Place, data_folder};

/// What was used last, of one store.
#[derive(Debug)]
pub(crate) struct LastUsed {
    file: Option<PathBuf>,
    store: String,
}

/// A conversation that was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Used {
    pub(crate) id: String,
    /// What it was called then: it is looked for under this name first.
    pub(crate) name: String,
}

/// Of so many stores is it remembered.
const MOST: usize = 64;

impl LastUsed {
    pub(crate) fn of(place: &Place, surroundings: &Surroundings) -> LastUsed {
        let is_kept = !matches!(place.address, recto::Address::Memory);
        let file = data_folder(surroundings).ok().filter(|_| is_kept);
        LastUsed { file: file.map(|folder| folder.join("last-used.json")), store: key(place) }
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
        if all.len() >= MOST {
            all.pop_first();
        }
        all.insert(self.store.clone(), used.clone());
        let text = serde_json::to_string_pretty(&all).expect("texts can be written");
        // Under another name first, so that nobody reads half of it.
        let partial = file.with_extension(format!("{}.partial", std::process::id()));
        let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
        let _ = folder
            .and_then(|()| fs::write(&partial, text))
            .and_then(|()| fs::rename(&partial, file));
    }

    fn all(&self) -> BTreeMap<String, Used> {
        let text = self.file.as_ref().and_then(|file| fs::read_to_string(file).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

/// What a store is known by here: its file, or a hash of its address, which may hold a password.
fn key(place: &Place) -> String {
    match place.file() {
        Some(file) => {
            std::path::absolute(file).unwrap_or_else(|_| file.clone()).display().to_string()
        }
        None => {
            let hash = recto::hash_of(place.text.as_bytes());
            hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
        }
    }
}
