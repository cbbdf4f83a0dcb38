//! Which store a command uses: `--store`, else `RECTO_STORE`, else a file in the user's data folder.

use std::path::PathBuf;

use recto::Address;

use crate::Environment;
use crate::arguments::General;
use crate::failure::Failure;

/// The address of a store, and where that address comes from.
#[derive(Clone, Debug)]
pub(crate) struct StoreLocation {
    pub(crate) address: Address,
    /// The address as text, for [`recto::Recto::open`]. It may contain a password.
    pub(crate) text: String,
    pub(crate) source: LocationSource,
}

/// Where the address of a store comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocationSource {
    Argument,
    Variable,
    DataFolder,
}

impl LocationSource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            LocationSource::Argument => "--store",
            LocationSource::Variable => "RECTO_STORE",
            LocationSource::DataFolder => "your data folder",
        }
    }
}

impl StoreLocation {
    pub(crate) fn find(
        general: &General,
        environment: &Environment,
    ) -> Result<StoreLocation, Failure> {
        let given = general.store.clone().map(|text| (text, LocationSource::Argument));
        let variable =
            || environment.text("RECTO_STORE").map(|text| (text, LocationSource::Variable));
        let (text, source) = match given.or_else(variable) {
            Some(found) => found,
            None => {
                let file = data_folder(environment)?.join("store.db");
                (format!("sqlite:{}", file.display()), LocationSource::DataFolder)
            }
        };
        Ok(StoreLocation { address: text.parse()?, text, source })
    }

    /// The file of a SQLite store.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match &self.address {
            Address::Sqlite(path) => Some(path),
            _ => None,
        }
    }

    /// The address without a password.
    pub(crate) fn shown(&self) -> String {
        format!("{:?}", self.address)
    }
}

/// Recto's folder in the user's data folder.
pub(crate) fn data_folder(environment: &Environment) -> Result<PathBuf, Failure> {
    let folder = |name: &str| {
        let path = (environment.variable)(name).map(PathBuf::from);
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
        Failure::Usage(
            "there is no home folder for the default store; use --store ADDRESS".to_owned(),
        )
    };
    Ok(found.ok_or_else(missing)?.join("recto"))
}
