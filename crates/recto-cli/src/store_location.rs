//! Which store is meant: `--store`, else `RECTO_STORE`, else a file in the user's data folder.

use std::path::PathBuf;

use recto::Address;

use crate::Surroundings;
use crate::arguments::General;
use crate::failure::Failure;

/// A store, and how we came to it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) address: Address,
    /// The address as it is given to [`recto::Recto::open`]. It may hold a password.
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// Who said which store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Argument,
    Variable,
    DataFolder,
}

impl Source {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Argument => "--store",
            Source::Variable => "RECTO_STORE",
            Source::DataFolder => "your data folder",
        }
    }
}

impl Place {
    pub(crate) fn find(general: &General, surroundings: &Surroundings) -> Result<Place, Failure> {
        let given = general.store.clone().map(|text| (text, Source::Argument));
        let variable = || surroundings.text("RECTO_STORE").map(|text| (text, Source::Variable));
        let (text, source) = match given.or_else(variable) {
            Some(found) => found,
            None => {
                let file = data_folder(surroundings)?.join("store.db");
                (format!("sqlite:{}", file.display()), Source::DataFolder)
            }
        };
        Ok(Place { address: text.parse()?, text, source })
    }

    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match &self.address {
            Address::Sqlite(path) => Some(path),
            _ => None,
        }
    }

    /// As it may be shown: without a password.
    pub(crate) fn shown(&self) -> String {
        format!("{:?}", self.address)
    }
}

/// Recto's folder among the user's data.
pub(crate) fn data_folder(surroundings: &Surroundings) -> Result<PathBuf, Failure> {
    let folder = |name: &str| {
        let path = (surroundings.variable)(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let found = folder("XDG_DATA_HOME").or_else(|| {
        if cfg!(windows) {
            return folder("APPDATA");
        }
        let home = folder("HOME")?;
        Some(match cfg!(target_os = "macos") {
            true => home.join("Library/Application Support"),
            false => home.join(".local/share"),
        })
    });
    let missing = || {
        Failure::Usage("there is no home folder to keep a store in; say --store ADDRESS".to_owned())
    };
    Ok(found.ok_or_else(missing)?.join("recto"))
}
