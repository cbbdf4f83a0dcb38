//! Where PostgreSQL's programs are, and as which user they run.
//!
//! PostgreSQL refuses to run as root, so root runs it as the user `postgres`, whom its packages
//! create.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs of one installation of PostgreSQL.
#[derive(Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    user: Option<User>,
}

/// The user who runs them instead of root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Programs {
    /// The newest under `/usr/lib/postgresql`, or those on the `PATH`.
    pub(crate) fn find() -> Programs {
        let folder = installed().into_iter().chain(on_the_path()).find(|it| has_server(it));
        let folder =
            folder.expect("PostgreSQL is not installed; `cargo xtask test` installs it (or: apt-get install postgresql)");
        let user = (number_of("-u", None) == Some(0)).then(|| User {
            uid: number_of("-u", Some("postgres")).expect("root needs a user `postgres`"),
            gid: number_of("-g", Some("postgres")).expect("the user `postgres` has a group"),
        });
        Programs { folder, user }
    }

    pub(crate) fn user(&self) -> Option<User> {
        self.user
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// A command that runs as the right user.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        // The user may not be allowed into the folder where the tests run.
        command.current_dir("/");
        command
    }
}

/// Debian keeps the server's programs off the `PATH`, a folder for each version.
fn installed() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            Some((version.file_name().to_str()?.parse().ok()?, version.path().join("bin")))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, folder)| folder).collect()
}

fn on_the_path() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

fn has_server(folder: &Path) -> bool {
    ["initdb", "postgres", "psql"].iter().all(|program| folder.join(program).is_file())
}

/// What `id` says of a user, or of the one who runs this.
fn number_of(which: &str, user: Option<&str>) -> Option<u32> {
    let output = Command::new("id").arg(which).args(user).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
