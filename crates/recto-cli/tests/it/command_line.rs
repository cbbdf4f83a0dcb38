use std::process::Stdio;

use crate::{printed, recto, run};

#[test]
fn unknown_commands_and_arguments_exit_with_2_and_print_usage() {
    for arguments in [&["demonstrate"][..], &["demo", "--yaml"], &["completions", "cmd.com"], &[]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("--help") || errors.contains("Usage"), "{errors}");
    }
    let errors = run(&["demos"]).stderr;
    assert!(String::from_utf8_lossy(&errors).contains("'demo'"));
}

#[test]
fn help_lists_every_command_and_version_prints_the_package_version() {
    insta::assert_snapshot!(printed(&mut recto(&["--help"])));
    let version = concat!("recto ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed(&mut recto(&["--version"])), version);
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&mut recto(&["completions", shell]));
        assert!(script.contains("recto") && script.contains("demo"), "{shell}");
    }
    assert!(printed(&mut recto(&["completions", "bash"])).contains("complete -F _recto"));
}

#[test]
fn a_closed_output_pipe_is_not_a_failure() {
    for arguments in [&["demo"][..], &["demo", "--json"], &["completions", "bash"]] {
        let mut command = recto(arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("recto starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("recto ends");
        assert!(output.status.success(), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

/// A command that fails to store which conversation it used last, because a file is in the place of the
/// folder. This is logged as a warning, and the command succeeds.
fn with_a_warning(folder: &std::path::Path, log: Option<&str>) -> std::process::Output {
    std::fs::write(folder.join("recto"), "no folder").expect("a file can be written");
    let store = format!("sqlite:{}", folder.join("store.db").display());
    let mut command = recto(&["new", &format!("{log:?}"), "--store", &store]);
    command.env("XDG_DATA_HOME", folder).env_remove("RECTO_LOG");
    command.envs(log.map(|log| ("RECTO_LOG", log)));
    command.output().expect("recto ends")
}

#[test]
fn a_warning_is_printed_only_if_recto_log_is_set() {
    let folder = tempfile::tempdir().expect("a folder can be created");
    for (log, is_printed) in [
        (None, false),
        (Some(""), false),
        (Some("off"), false),
        (Some("error"), false),
        (Some("recto_store=debug"), false),
        (Some("warn"), true),
        (Some("recto=warn"), true),
        (Some("recto_cli=debug"), true),
    ] {
        let output = with_a_warning(folder.path(), log);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{log:?}: {errors}");
        let warning = "cannot store which conversation was used last";
        assert_eq!(
            errors.contains("WARN") && errors.contains(warning),
            is_printed,
            "{log:?}: {errors}"
        );
        assert_eq!(errors.is_empty(), !is_printed, "{log:?}: {errors}");
    }
    // The span has the name of the command, not its arguments.
    let output = with_a_warning(folder.path(), Some("info"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("command{name=\"new\"}") && !errors.contains("Some"), "{errors}");
    // A span is printed with its duration when it ends.
    let output = with_a_warning(folder.path(), Some("debug"));
    let errors = String::from_utf8_lossy(&output.stderr);
    let created = errors.lines().find(|line| line.contains("create{conversation="));
    assert!(created.is_some_and(|line| line.contains("time.busy=")), "{errors}");
}

#[test]
fn an_invalid_recto_log_is_a_usage_error() {
    let output = recto(&["demo"]).env("RECTO_LOG", "debgu").output().expect("recto ends");
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("RECTO_LOG") && errors.contains("TARGET=LEVEL"), "{errors}");
}
