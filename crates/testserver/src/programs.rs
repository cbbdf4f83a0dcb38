//! Location of PostgreSQL's programs, and the user that runs them.
//!
//! PostgreSQL refuses to run as root, so root runs it as the user `postgres`, which its packages create.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs of one installation of PostgreSQL.
#[derive(Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    user: Option<User>,
}

/// The user that runs the programs instead of root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Programs {
    /// Finds the newest installation under `/usr/lib/postgresql`, otherwise the programs on the `PATH`.
    pub(crate) fn find() -> Programs {
        let folder = installed().into_iter().chain(on_the_path()).find(|folder| has_server(folder));
        let folder =
            folder.expect("PostgreSQL is not installed; `cargo xtask test` installs it (or: apt-get install postgresql)");
        let user = (user_id("-u", None) == Some(0)).then(|| User {
            uid: user_id("-u", Some("postgres")).expect("root needs a user `postgres`"),
            gid: user_id("-g", Some("postgres")).expect("the user `postgres` has a group"),
        });
        Programs { folder, user }
    }

    pub(crate) fn user(&self) -> Option<User> {
        self.user
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// A command that runs as [`User`], if this process is root.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        // The user may have no access to the current directory of the tests.
        command.current_dir("/");
        command
    }
}

/// Debian installs the programs outside the `PATH`, in one folder per version.
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

/// The uid (`-u`) or gid (`-g`) of a user; by default of the user of this process.
fn user_id(flag: &str, user: Option<&str>) -> Option<u32> {
    let output = Command::new("id").arg(flag).args(user).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
