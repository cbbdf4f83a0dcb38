//! Addresses of stores.

use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// The address of a store: `memory:`, `sqlite:PATH` or `postgres://…`.
///
/// ```
/// use recto_store::Address;
///
/// assert_eq!("sqlite:recto.db".parse(), Ok(Address::Sqlite("recto.db".into())));
/// assert!("recto.db".parse::<Address>().is_err());
/// assert!("sqlite://recto.db".parse::<Address>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// In the memory of this process.
    Memory,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server. The text may contain a password, so it is never printed.
    Postgres(String),
}

impl Address {
    /// The kind of store: `memory`, `sqlite` or `postgres`. It is also the name of the Cargo feature, except
    /// for `memory`, which has none.
    pub fn kind(&self) -> &'static str {
        match self {
            Address::Memory => "memory",
            Address::Sqlite(_) => "sqlite",
            Address::Postgres(_) => "postgres",
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address, Error> {
        match text.split_once(':') {
            Some(("memory", "")) => Ok(Address::Memory),
            // Some programs read `sqlite://x.db` as a relative path, others as an absolute one.
            Some(("sqlite", path)) if !path.is_empty() && !path.starts_with("//") => {
                Ok(Address::Sqlite(path.into()))
            }
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Ok(Address::Postgres(text.to_owned()))
            }
            _ => Err(Error::InvalidAddress { given: without_password(text) }),
        }
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Memory => f.write_str("memory:"),
            Address::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Address::Postgres(_) => f.write_str("postgres://…"),
        }
    }
}

/// The address without the part that may contain a password, for error texts.
fn without_password(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, behind)) => format!("…@{behind}"),
        None => text.to_owned(),
    }
}
