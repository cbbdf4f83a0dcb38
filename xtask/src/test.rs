//! `cargo xtask test`: the checks that a change must pass. `cargo xtask test frameworks`: the slow suites of the
//! packages for Python and Node.
//!
//! Every step runs even if an earlier one failed, so that one run reports every failure. The last line is
//! `N passed, N failed`; a step that failed without naming a failed test counts as one failure.

use std::process::Command;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::requirement;
use crate::step::{Console, Finished, Step, StepsFailed, seconds};
use crate::test_results::TestResults;
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Options {
    /// A slow suite to run instead. It uses the packages that `cargo xtask test` has built.
    #[arg(value_enum)]
    suite: Option<Suite>,

    /// Stop at the first step that fails.
    #[arg(long)]
    fail_fast: bool,

    /// Seed of the random tests. A commit has the same result every time; `cargo xtask sim properties`
    /// tries other seeds.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Suite {
    /// The frameworks' own tests with the adapters, and other versions of Node and of the frameworks.
    Frameworks,
}

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    let needed = [
        requirement::rustfmt(),
        requirement::clippy(),
        requirement::cargo_deny(),
        requirement::postgresql(),
        requirement::pgbouncer(),
        // For the packages, and the clients of `recto exec` in `examples/`.
        requirement::python(),
        requirement::node(),
        requirement::typescript(),
    ];
    let start = Instant::now();
    let ready = requirement::ensure(&needed, workspace, console);

    let mut finished = Vec::new();
    if ready.is_ok() {
        let (steps, together) = match options.suite {
            None => (steps(workspace, options.seed), together(workspace, options.seed)),
            Some(Suite::Frameworks) => (frameworks(workspace, options.seed), Vec::new()),
        };
        let is_stopped = |finished: &[Finished]| {
            options.fail_fast && finished.iter().any(|step| !step.succeeded)
        };
        for step in steps {
            finished.push(console.run(step));
            if is_stopped(&finished) {
                break;
            }
        }
        if !together.is_empty() && !is_stopped(&finished) {
            finished.extend(console.run_together(together));
        }
    }

    let mut results: TestResults = finished.iter().map(results_of).sum();
    results.failed += u64::from(ready.is_err());
    report(&finished, start.elapsed(), results, console);
    if results.failed > 0 { Err(StepsFailed.into()) } else { Ok(()) }
}

/// The steps that run one after the other, the quickest to fail first.
fn steps(workspace: &Workspace, seed: u64) -> Vec<Step> {
    let mut steps = vec![formatting(workspace), dependencies(workspace)];
    steps.extend(lints(workspace));
    steps.extend(oldest_compiler(workspace));
    steps.push(docs(workspace));
    steps.push(test("test", workspace, seed, &["--workspace", "--all-features"]));
    steps
}

/// The last steps. They run at the same time, because none of them uses all cores.
fn together(workspace: &Workspace, seed: u64) -> Vec<Step> {
    vec![tiny_nodes(workspace, seed), python(workspace, seed), node(workspace, seed)]
}

fn formatting(workspace: &Workspace) -> Step {
    Step::new("format", workspace.cargo(["fmt", "--all", "--check"]), "cargo fmt --all")
}

/// Licences, sources and banned packages of all dependencies. Known vulnerabilities are left out: their list is
/// on the network and changes, so an unchanged commit could fail.
fn dependencies(workspace: &Workspace) -> Step {
    let mut command = workspace.cargo(["deny", "--all-features", "check"]);
    command.args(["--hide-inclusion-graph", "licenses", "bans", "sources"]);
    Step::new(
        "dependencies",
        command,
        "replace the dependency, or allow it in deny.toml with a reason",
    )
}

/// The libraries with features that can be switched off.
const BARE_PACKAGES: [&str; 6] =
    ["recto", "recto-agent", "recto-core", "recto-format", "recto-lists", "recto-store"];

/// Clippy on the workspace with all features, and on the libraries without any.
fn lints(workspace: &Workspace) -> Vec<Step> {
    const ADVICE: &str = "fix what clippy names, or allow it there with a reason";
    let clippy = |name, args: &[&str]| {
        let mut command = workspace.cargo(["clippy"]);
        command.args(args).args(["--", "-D", "warnings"]);
        Step::new(name, command, ADVICE)
    };
    let all = clippy("lint", &["--workspace", "--all-targets", "--all-features"]);
    let mut bare = vec!["--no-default-features"];
    bare.extend(BARE_PACKAGES.iter().flat_map(|package| ["-p", package]));
    let bare = clippy("lint bare", &bare);
    vec![all, bare]
}

/// `rust-version` in `Cargo.toml`.
const RUST_VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// A check with the oldest supported compiler, if rustup has it and the default one is newer.
fn oldest_compiler(workspace: &Workspace) -> Option<Step> {
    let output = |program: &str, args: &[&str]| {
        let output = workspace.command(program).args(args).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let active = output("rustc", &["--version"])?;
    if active.contains(&format!(" {RUST_VERSION}.")) {
        return None;
    }
    let installed = output("rustup", &["toolchain", "list"])?;
    let toolchain = installed_toolchain(&installed, RUST_VERSION)?;
    let mut command = workspace.command("rustup");
    command.args(["run", toolchain, "cargo", "check", "--workspace", "--all-features"]);
    let target = workspace.target().join("oldest-compiler");
    command.arg("--target-dir").arg(target);
    Some(Step::new("oldest compiler", command, "avoid newer features, or raise `rust-version`"))
}

/// The toolchain of a version in the list that rustup prints.
fn installed_toolchain<'a>(list: &'a str, version: &str) -> Option<&'a str> {
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let is_version = |name: &&str| {
        let rest = name.strip_prefix(version);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    };
    names.into_iter().find(is_version)
}

fn docs(workspace: &Workspace) -> Step {
    let mut command = workspace.cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Step::new("docs", command, "repair the links and examples that rustdoc names")
}

/// Sets the seed of the random tests: property tests, and cases of the plain model for Python and Node.
pub(crate) fn set_seed(command: &mut Command, seed: u64) {
    command.env("PROPTEST_RNG_SEED", seed.to_string()).env("RECTO_SEED", seed.to_string());
}

fn test(name: &'static str, workspace: &Workspace, seed: u64, args: &[&str]) -> Step {
    let mut command = workspace.cargo(["test", "--no-fail-fast"]);
    command.args(args);
    set_seed(&mut command, seed);
    Step::new(name, command, "run the failing test alone: cargo test -p CRATE NAME")
}

/// The tests of the engine with trees of tiny nodes. `--tests` leaves out the doctests, which tiny nodes do
/// not change. The wrapper changes only the crates of this workspace, so that the dependencies are not
/// compiled again.
fn tiny_nodes(workspace: &Workspace, seed: u64) -> Step {
    let args = ["-p", "sum-tree", "-p", "recto-core", "--tests"];
    let mut step = test("test tiny", workspace, seed, &args);
    let wrapper = workspace.root().join("xtask/tiny_nodes.sh");
    step.command.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
    step
}

/// The Python package: its build, types and tests, in a virtual environment in the target directory.
fn python(workspace: &Workspace, seed: u64) -> Step {
    let mut command = workspace.command("python3");
    command.arg("python/check.py").arg(workspace.target());
    set_seed(&mut command, seed);
    Step::new(
        "python",
        command,
        "run one test alone: target/python/venv/bin/pytest python/tests -k NAME",
    )
}

/// The Node package: its native library, its TypeScript files and its tests. It follows the tests of the
/// workspace, which have compiled the dependencies of the library.
fn node(workspace: &Workspace, seed: u64) -> Step {
    let mut command = workspace.command("node");
    command.arg("node/check.mjs");
    set_seed(&mut command, seed);
    Step::new("node", command, "run the failing test alone: cd node && node --test test/FILE")
}

/// The slow suites of the packages. They download the frameworks.
fn frameworks(workspace: &Workspace, seed: u64) -> Vec<Step> {
    let step = |name, program, script| {
        let mut command = workspace.command(program);
        command.arg(script).arg(workspace.target());
        set_seed(&mut command, seed);
        Step::new(name, command, "run `cargo xtask test` first; it installs what this step uses")
    };
    vec![
        step("python frameworks", "python3", "python/frameworks.py"),
        step("node frameworks", "node", "node/frameworks.mjs"),
    ]
}

/// What a step adds to the summary.
fn results_of(step: &Finished) -> TestResults {
    let mut results = TestResults::from_output(&step.stdout);
    if !step.succeeded {
        results.failed += TestResults::crashes_in(&step.stdout);
        // A lint or a compile error names no failed test.
        results.failed = results.failed.max(1);
    }
    results
}

fn report(finished: &[Finished], took: Duration, results: TestResults, console: &Console) {
    if console.is_json() {
        console.results_json(&json!({
            "steps": finished.iter().map(Finished::to_json).collect::<Vec<_>>(),
            "seconds": seconds(took),
            "passed": results.passed,
            "failed": results.failed,
            "ignored": results.ignored,
        }));
        return;
    }
    let failed: Vec<&str> = finished.iter().filter(|s| !s.succeeded).map(|s| s.name).collect();
    if !failed.is_empty() {
        console.line(format_args!("failed: {}", failed.join(", ")));
    }
    let ignored = results.ignored;
    console.line(format_args!("took {:.0} s, {ignored} tests ignored", took.as_secs_f64()));
    console.line(results);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(succeeded: bool, stdout: &str) -> Finished {
        Finished {
            name: "test",
            command: "cargo test".to_owned(),
            succeeded,
            took: Duration::ZERO,
            stdout: stdout.to_owned(),
        }
    }

    #[test]
    fn rust_version_is_not_newer_than_the_compiler() {
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let output = Command::new(rustc).arg("--version").output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let numbers = |version: &str| -> Vec<u32> {
            let version = version.split('-').next().unwrap();
            version.split('.').map(|number| number.parse().unwrap()).collect()
        };
        let active = numbers(output.split_whitespace().nth(1).unwrap());
        assert!(numbers(RUST_VERSION) <= active, "{RUST_VERSION} is newer than {output}");
    }

    #[test]
    fn the_toolchain_of_a_version_is_found_in_the_list_of_rustup() {
        let list = "stable-x86_64 (active, default)\n1.950.0-x86_64\n1.95.0-x86_64\n";
        assert_eq!(installed_toolchain(list, "1.95"), Some("1.95.0-x86_64"));
        assert_eq!(installed_toolchain(list, "1.94"), None);
    }

    #[test]
    fn a_step_that_fails_without_naming_a_test_counts_as_one_failure() {
        let named = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n";
        let results = results_of(&finished(false, named));
        assert_eq!(results.to_string(), "2 passed, 1 failed");
    }

    #[test]
    fn a_crash_is_counted_in_addition_to_failed_tests() {
        let crashed = "running 1 test\nrunning 5 tests\n\
                       test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured\n";
        let results = results_of(&finished(false, crashed));
        assert_eq!(results.to_string(), "2 passed, 4 failed");
    }

    #[test]
    fn failed_tests_are_not_counted_twice() {
        let named = "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured\n";
        let results = results_of(&finished(false, named));
        assert_eq!(results.to_string(), "2 passed, 3 failed");
    }
}
