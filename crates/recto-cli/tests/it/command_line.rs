use std::process::Stdio;

use crate::{printed, recto, run};

#[test]
fn unknown_commands_and_arguments_exit_with_2_and_say_what_is_known() {
    for arguments in [&["demonstrate"][..], &["demo", "--yaml"], &["completions", "cmd.com"], &[]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains("--help") || complaint.contains("Usage"), "{complaint}");
    }
    let complaint = run(&["demos"]).stderr;
    assert!(String::from_utf8_lossy(&complaint).contains("'demo'"));
}

#[test]
fn help_names_every_command_and_version_is_the_package_s() {
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
fn a_reader_that_goes_away_is_no_failure() {
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
