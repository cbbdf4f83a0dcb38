//! Programs that a command needs on the machine, and how they are installed.
//!
//! To add one, write a function here that returns a [`Requirement`] (a command that succeeds if the program is
//! installed, and how to install it) and add it to the list of the command that needs it.

use std::process::{Command, Stdio};

use crate::step::{Console, Step, StepsFailed};
use crate::workspace::Workspace;

/// A program that a command needs.
pub(crate) struct Requirement {
    name: &'static str,
    /// A command that succeeds if the program is installed.
    check: Vec<&'static str>,
    /// What the command must print, such as a version.
    prints: Option<String>,
    install: Install,
}

enum Install {
    /// A component of the Rust toolchain.
    Component(&'static str),
    /// A program from the package registry, built into [`Workspace::tools`].
    Crate { package: &'static str, version: Option<String>, options: &'static [&'static str] },
    /// Packages from npm, installed into [`Workspace::tools`].
    Npm(&'static [&'static str]),
    /// A package of the operating system.
    System(SystemPackage),
}

struct SystemPackage {
    /// Its name in most package managers.
    usual: &'static str,
    /// Other names, by the program of the package manager.
    otherwise: &'static [(&'static str, &'static str)],
}

/// `cargo fmt`.
pub(crate) fn rustfmt() -> Requirement {
    Requirement {
        name: "rustfmt",
        check: vec!["cargo", "fmt", "--version"],
        prints: None,
        install: Install::Component("rustfmt"),
    }
}

/// `cargo clippy`.
pub(crate) fn clippy() -> Requirement {
    Requirement {
        name: "clippy",
        check: vec!["cargo", "clippy", "--version"],
        prints: None,
        install: Install::Component("clippy"),
    }
}

/// `cargo fuzz`.
pub(crate) fn cargo_fuzz() -> Requirement {
    Requirement {
        name: "cargo-fuzz",
        check: vec!["cargo-fuzz", "--version"],
        prints: None,
        install: Install::Crate { package: "cargo-fuzz", version: None, options: &[] },
    }
}

/// Valgrind, which counts instructions.
pub(crate) fn valgrind() -> Requirement {
    Requirement {
        name: "valgrind",
        check: vec!["valgrind", "--version"],
        prints: None,
        install: Install::System(SystemPackage { usual: "valgrind", otherwise: &[] }),
    }
}

/// The program that runs gungraun's benchmarks; its version must be the library's.
pub(crate) fn gungraun_runner(version: String) -> Requirement {
    Requirement {
        name: "gungraun-runner",
        check: vec!["gungraun-runner", "--version"],
        prints: Some(format!("gungraun-runner {version}")),
        install: Install::Crate {
            package: "gungraun-runner",
            version: Some(version),
            options: &[],
        },
    }
}

/// `cargo deny`, which checks the licences and the sources of dependencies. It is built without optimisation:
/// building takes longer than running.
pub(crate) fn cargo_deny() -> Requirement {
    Requirement {
        name: "cargo-deny",
        check: vec!["cargo-deny", "--version"],
        prints: None,
        install: Install::Crate {
            package: "cargo-deny",
            version: None,
            // Without debug information it is compiled in two thirds of the time.
            options: &["--debug", "--no-default-features", "--config", "profile.dev.debug=false"],
        },
    }
}

/// `cargo semver-checks`, which compares public APIs.
pub(crate) fn cargo_semver_checks() -> Requirement {
    Requirement {
        name: "cargo-semver-checks",
        check: vec!["cargo-semver-checks", "--version"],
        prints: None,
        install: Install::Crate { package: "cargo-semver-checks", version: None, options: &[] },
    }
}

/// PgBouncer, through which the contract of the PostgreSQL store is tested too. Packages install it in
/// `/usr/sbin`, which is not on every user's `PATH`.
pub(crate) fn pgbouncer() -> Requirement {
    Requirement {
        name: "pgbouncer",
        check: vec!["sh", "-c", "PATH=$PATH:/usr/sbin pgbouncer --version"],
        prints: None,
        install: Install::System(SystemPackage { usual: "pgbouncer", otherwise: &[] }),
    }
}

/// Python with virtual environments.
pub(crate) fn python() -> Requirement {
    Requirement {
        name: "python3",
        check: vec!["python3", "-c", "import venv, ensurepip"],
        prints: None,
        install: Install::System(SystemPackage {
            usual: "python3",
            otherwise: &[("apt-get", "python3-venv"), ("pacman", "python"), ("brew", "python")],
        }),
    }
}

/// Node with npm.
pub(crate) fn node() -> Requirement {
    Requirement {
        name: "node",
        check: vec!["sh", "-c", "node --version && npm --version"],
        prints: None,
        install: Install::System(SystemPackage { usual: "npm", otherwise: &[("brew", "node")] }),
    }
}

/// The compiler of TypeScript, and the types of Node's modules.
pub(crate) fn typescript() -> Requirement {
    const PACKAGES: &[&str] = &["typescript@5.9.3", "@types/node@20.19.0"];
    Requirement {
        name: "typescript",
        check: vec!["tsc", "--version"],
        prints: Some("Version 5.9.3".to_owned()),
        install: Install::Npm(PACKAGES),
    }
}

/// The programs of PostgreSQL, with which tests start servers. Debian does not put them on the `PATH`.
pub(crate) fn postgresql() -> Requirement {
    Requirement {
        name: "PostgreSQL",
        check: vec![
            "sh",
            "-c",
            "{ command -v initdb && command -v postgres; } || ls /usr/lib/postgresql/*/bin/postgres",
        ],
        prints: None,
        install: Install::System(SystemPackage {
            usual: "postgresql",
            otherwise: &[("dnf", "postgresql-server"), ("zypper", "postgresql-server")],
        }),
    }
}

/// Installs what is missing. Prints nothing about what is installed.
pub(crate) fn ensure(
    requirements: &[Requirement],
    workspace: &Workspace,
    console: &Console,
) -> Result<(), StepsFailed> {
    for requirement in requirements {
        if !requirement.is_met(workspace) {
            requirement.install(workspace, console)?;
        }
    }
    Ok(())
}

impl Requirement {
    pub(crate) fn is_met(&self, workspace: &Workspace) -> bool {
        let mut check = workspace.command(self.check[0]);
        check.args(&self.check[1..]).stdin(Stdio::null());
        let Ok(output) = check.output() else { return false };
        let printed = String::from_utf8_lossy(&output.stdout);
        let fits = self.prints.as_ref().is_none_or(|expected| printed.trim() == expected);
        output.status.success() && fits
    }

    fn install(&self, workspace: &Workspace, console: &Console) -> Result<(), StepsFailed> {
        let name = self.name;
        match &self.install {
            Install::Component(component) => {
                let mut command = workspace.command("rustup");
                command.args(["component", "add", component]);
                let advice =
                    format!("add `{component}` to the Rust toolchain, then run this again");
                console.run(Step::new("install", command, advice)).required()?;
            }
            Install::Crate { package, version, options } => {
                let mut command = workspace.cargo(["install", "--locked", package]);
                command.args(*options);
                if let Some(version) = version {
                    command.arg("--version").arg(format!("={version}"));
                }
                command.arg("--root").arg(workspace.tools());
                let advice = format!("install {package} by hand, then run this again");
                console.run(Step::new("install", command, advice)).required()?;
            }
            Install::Npm(packages) => {
                let mut command = workspace.command("npm");
                command.args(["install", "--global", "--no-fund", "--no-audit", "--prefix"]);
                command.arg(workspace.tools()).args(*packages);
                let advice = format!("install {} by hand, then run this again", packages.join(" "));
                console.run(Step::new("install", command, advice)).required()?;
            }
            Install::System(package) => package.install(console)?,
        }
        if !self.is_met(workspace) {
            let check = self.check.join(" ");
            console.line(format_args!(
                "{name} is still missing; next: run `{check}` to see the reason"
            ));
            return Err(StepsFailed);
        }
        Ok(())
    }
}

struct PackageManager {
    program: &'static str,
    /// The preparation before the first installation on a new machine.
    refresh: &'static [&'static str],
    install: &'static [&'static str],
    needs_root: bool,
}

const PACKAGE_MANAGERS: &[PackageManager] = &[
    PackageManager {
        program: "apt-get",
        refresh: &["update"],
        install: &["install", "--yes", "--no-install-recommends"],
        needs_root: true,
    },
    PackageManager {
        program: "dnf",
        refresh: &[],
        install: &["install", "--assumeyes"],
        needs_root: true,
    },
    PackageManager {
        program: "zypper",
        refresh: &[],
        install: &["--non-interactive", "install"],
        needs_root: true,
    },
    PackageManager {
        program: "pacman",
        refresh: &[],
        install: &["-S", "--needed", "--noconfirm"],
        needs_root: true,
    },
    PackageManager { program: "apk", refresh: &[], install: &["add"], needs_root: true },
    PackageManager { program: "brew", refresh: &[], install: &["install"], needs_root: false },
];

impl SystemPackage {
    fn install(&self, console: &Console) -> Result<(), StepsFailed> {
        let Some(manager) = PACKAGE_MANAGERS.iter().find(|m| succeeds(m.program, "--version"))
        else {
            let usual = self.usual;
            console.line(format_args!(
                "no known package manager; next: install {usual}, then run this again"
            ));
            return Err(StepsFailed);
        };
        let package = self.name_for(manager.program);
        if !manager.refresh.is_empty() {
            let advice = "nothing, if the installation works all the same";
            console.run(Step::new("install", manager.command(manager.refresh), advice));
        }
        let mut command = manager.command(manager.install);
        command.arg(package);
        let advice = format!("install {package} by hand, then run this again");
        console.run(Step::new("install", command, advice)).required()?;
        Ok(())
    }

    fn name_for(&self, program: &str) -> &'static str {
        let other = self.otherwise.iter().find(|(manager, _)| *manager == program);
        other.map_or(self.usual, |(_, name)| name)
    }
}

impl PackageManager {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = if self.needs_root && !is_root() {
            // Without -n, sudo would wait for a password.
            let mut sudo = Command::new("sudo");
            sudo.args(["-n", self.program]);
            sudo
        } else {
            Command::new(self.program)
        };
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn succeeds(program: &str, arg: &str) -> bool {
    let output = Command::new(program).arg(arg).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_the_name_of_its_package_manager() {
        let Install::System(package) = python().install else {
            panic!("python comes from the operating system");
        };
        assert_eq!(package.name_for("apt-get"), "python3-venv");
        assert_eq!(package.name_for("dnf"), "python3");
    }

    #[test]
    fn the_postgres_server_has_its_own_package_on_some_systems() {
        let Install::System(package) = postgresql().install else {
            panic!("PostgreSQL comes from the operating system");
        };
        assert_eq!(package.name_for("apt-get"), "postgresql");
        assert_eq!(package.name_for("dnf"), "postgresql-server");
    }
}
