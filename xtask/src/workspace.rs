//! The folders of the workspace, and commands that run in them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Compiler flags that give trees nodes of a few entries, so that short sequences make deep trees.
pub(crate) const TINY_NODES: &str = "--cfg recto_tiny_nodes";

/// The workspace as `cargo metadata` describes it.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Reads `cargo metadata` of the workspace that this program was started in.
    pub(crate) fn load() -> anyhow::Result<Self> {
        // `cargo run` sets the variable. The constant is for a binary that is started directly.
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
        let output = Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version=1"])
            .current_dir(&manifest_dir)
            .output()
            .context("cannot start cargo; is it on the PATH?")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata: Value =
            serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
        let path = |key: &str| -> anyhow::Result<PathBuf> {
            let text = metadata[key].as_str();
            Ok(text.with_context(|| format!("the output of cargo metadata has no {key}"))?.into())
        };
        Ok(Self { root: path("workspace_root")?, target: path("target_directory")? })
    }

    /// The top directory of the repository.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The target directory of cargo, which also has the files that xtask creates.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The directory for programs that xtask installs: `recto-tools` in cargo's home directory. All clones on a
    /// machine share it, because compiling cargo-deny takes minutes. Programs of other projects are never replaced.
    pub(crate) fn tools(&self) -> PathBuf {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
        home.expect("cargo has a home directory").join("recto-tools")
    }

    /// The version of a package in `Cargo.lock`, if the workspace uses it.
    pub(crate) fn locked_version(&self, package: &str) -> anyhow::Result<Option<String>> {
        let path = self.root.join("Cargo.lock");
        let lock = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(version_in_lock(&lock, package))
    }

    /// The newest release tag, such as `v0.2.0`.
    pub(crate) fn newest_tag(&self) -> anyhow::Result<Option<String>> {
        let tags = self
            .command("git")
            .args(["tag", "--list", "v*", "--sort=-version:refname"])
            .output()
            .context("cannot start git; is it on the PATH?")?;
        Ok(String::from_utf8_lossy(&tags.stdout).lines().next().map(str::to_owned))
    }

    /// A command that runs at the root. Programs that xtask installed come first on its `PATH`.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.tools().join("bin")).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(dirs) {
            command.env("PATH", path);
        }
        command
    }

    /// `cargo` with these arguments.
    pub(crate) fn cargo<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command("cargo");
        command.args(args);
        command
    }
}

fn version_in_lock(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines();
    lines.find(|line| *line == name)?;
    let version = lines.next()?.strip_prefix("version = \"")?;
    Some(version.strip_suffix('"')?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_the_lock_file_by_its_whole_name() {
        let lock = "[[package]]\nname = \"gungraun-macros\"\nversion = \"0.10.0\"\n\n\
                    [[package]]\nname = \"gungraun\"\nversion = \"0.20.0\"\n";
        assert_eq!(version_in_lock(lock, "gungraun").as_deref(), Some("0.20.0"));
        assert_eq!(version_in_lock(lock, "valgrind"), None);
    }
    /// The packages for which the profiles of a manifest have settings.
    fn packages_in_profiles(manifest: &str) -> Vec<&str> {
        let mut is_list = false;
        let mut packages = Vec::new();
        for line in manifest.lines() {
            if line.starts_with('[') {
                is_list = line.starts_with("[profile.") && line.ends_with(".package]");
            } else if is_list
                && !line.starts_with('#')
                && let Some((package, _)) = line.split_once('.')
            {
                packages.push(package);
            }
        }
        packages
    }

    /// Cargo would print a warning for each of the others.
    #[test]
    fn profiles_name_only_packages_that_the_command_is_built_from() {
        let workspace = Workspace::load().unwrap();
        let manifest = std::fs::read_to_string(workspace.root().join("Cargo.toml")).unwrap();
        let packages = packages_in_profiles(&manifest);
        assert!(packages.contains(&"recto-core"));
        let tree =
            ["tree", "--package", "recto-cli", "--edges", "normal,build", "--prefix", "none"];
        let output = workspace.cargo(tree).arg("--offline").output().unwrap();
        let tree = String::from_utf8(output.stdout).unwrap();
        for package in packages {
            let is_package = |line: &str| line.split(' ').next() == Some(package);
            assert!(tree.lines().any(is_package), "{package}: cargo install warns about it");
        }
    }
}
