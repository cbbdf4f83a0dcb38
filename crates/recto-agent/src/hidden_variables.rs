//! Environment variables that are kept out of the environment block of this process.
//!
//! The operating system exposes the environment with which a process was started (`/proc/PID/environ`). The
//! process cannot change it, and the superuser can always read it. So a process that starts programs executes
//! itself again without its secrets, with the same process id and the same arguments, and receives the
//! secrets through a pipe:
//!
//! ```text
//!   recto chat  (OPENAI_API_KEY=…)           hide_variables(): a pipe with the variables, then exec
//!   recto chat  (RECTO_VARIABLES_PIPE=3)     hidden_variables(): reads the pipe to its end
//! ```
//!
//! Programs that are started later inherit the pipe, but it is empty by then.

use std::ffi::OsString;

/// Executes this process again without the variables that may be secret: all except a list of well-known ones
/// (`PATH`, `HOME`, `LANG`, `SSL_CERT_FILE`, `HTTPS_PROXY` and others). [`hidden_variables`] returns them
/// afterwards. The process keeps its id, its terminal and its arguments. At most 60 KiB are hidden.
///
/// Does not return if it succeeds. Call it before threads are started and before standard input is read. It
/// does nothing if there is no variable to hide, if the process was already executed again, and on systems
/// other than Unix.
///
/// # Errors
///
/// The process cannot be executed again. It continues with its variables.
pub fn hide_variables() -> std::io::Result<()> {
    #[cfg(unix)]
    unix::hide()?;
    Ok(())
}

/// The variables that [`hide_variables`] has hidden, with their values. Empty if no variable was hidden.
/// The variables can be read only once.
pub fn hidden_variables() -> Vec<(OsString, OsString)> {
    #[cfg(unix)]
    return unix::hidden();
    #[cfg(not(unix))]
    Vec::new()
}

#[cfg(unix)]
mod unix {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::os::unix::fs::FileTypeExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use rustix::io::{FdFlags, fcntl_setfd};

    use crate::program::INHERITED;

    /// Environment variable that contains the file descriptor of the pipe.
    const PIPE: &str = "RECTO_VARIABLES_PIPE";

    /// Maximum size of the hidden variables in bytes: a pipe holds 64 KiB. Variables with the name of a secret
    /// come first, then short ones before long ones, because keys are short. A variable that does not fit any
    /// more stays in the environment.
    const MAX_BYTES: usize = 60 << 10;

    /// Variables that libraries read from the environment, besides those that programs inherit.
    const KEPT: [&str; 20] = [
        "ALL_PROXY",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLORTERM",
        "COLUMNS",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "LANGUAGE",
        "LINES",
        "LLVM_PROFILE_FILE",
        "NO_COLOR",
        "NO_PROXY",
        "PWD",
        "RUST_BACKTRACE",
        "RUST_LIB_BACKTRACE",
        "SHLVL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMP",
        "TZ",
    ];

    /// Prefixes of further such variables: those of the locale and of the dynamic linker.
    const KEPT_PREFIXES: [&str; 3] = ["LC_", "LD_", "DYLD_"];

    fn is_kept(name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        // The names of proxy variables may be in lower case.
        let upper = name.to_ascii_uppercase();
        INHERITED.contains(&name)
            || KEPT.contains(&&*upper)
            || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    }

    fn is_named_as_secret(name: &OsStr) -> bool {
        let upper = name.to_string_lossy().to_ascii_uppercase();
        ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"].iter().any(|word| upper.contains(word))
    }

    pub(super) fn hide() -> io::Result<()> {
        if std::env::var_os(PIPE).is_some() {
            return Ok(());
        }
        let mut all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        all.sort_by_key(|(name, value)| (!is_named_as_secret(name), name.len() + value.len()));
        let (mut hidden, mut kept) = (Vec::new(), Vec::new());
        for (name, value) in all {
            let len = name.len() + value.len() + 2;
            if is_kept(&name) || hidden.len() + len > MAX_BYTES {
                kept.push((name, value));
            } else {
                hidden.extend_from_slice(name.as_bytes());
                hidden.push(b'=');
                hidden.extend_from_slice(value.as_bytes());
                hidden.push(0);
            }
        }
        if hidden.is_empty() {
            return Ok(());
        }
        let program = std::env::current_exe()?;
        let (reader, mut writer) = io::pipe()?;
        writer.write_all(&hidden)?;
        drop(writer);
        let number = reader.as_raw_fd().to_string();
        // Fails here if `/dev/fd` is missing, because the new process could not read the pipe.
        File::open(path_of(&number))?;
        fcntl_setfd(&reader, FdFlags::empty())?;
        let mut arguments = std::env::args_os();
        let mut command = Command::new(program);
        command.arg0(arguments.next().unwrap_or_default()).args(arguments);
        command.env_clear().envs(kept).env(PIPE, number);
        Err(command.exec())
    }

    fn path_of(number: &str) -> String {
        format!("/dev/fd/{number}")
    }

    pub(super) fn hidden() -> Vec<(OsString, OsString)> {
        // The standard streams are never the pipe.
        let is_number = |it: &String| it.parse::<u32>().is_ok_and(|number| number > 2);
        let Some(number) = std::env::var(PIPE).ok().filter(is_number) else { return Vec::new() };
        let mut bytes = Vec::new();
        let is_pipe = |file: &File| file.metadata().is_ok_and(|it| it.file_type().is_fifo());
        let pipe = File::open(path_of(&number)).ok().filter(is_pipe);
        if pipe.is_none_or(|mut pipe| pipe.read_to_end(&mut bytes).is_err()) {
            return Vec::new();
        }
        let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
            let middle = variable.iter().skip(1).position(|byte| *byte == b'=')? + 1;
            let (name, value) = (&variable[..middle], &variable[middle + 1..]);
            Some((OsString::from_vec(name.into()), OsString::from_vec(value.into())))
        });
        variables.collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn keys_are_hidden_and_what_libraries_read_is_kept() {
            for name in ["OPENAI_API_KEY", "RECTO_STORE", "GITHUB_TOKEN", "PGPASSWORD"] {
                assert!(!is_kept(OsStr::new(name)), "{name}");
            }
            assert!(is_named_as_secret(OsStr::new("OPENAI_API_KEY")));
            assert!(!is_named_as_secret(OsStr::new("V1")));
            for name in ["PATH", "HOME", "LC_ALL", "https_proxy", "SSL_CERT_FILE"] {
                assert!(is_kept(OsStr::new(name)), "{name}");
            }
        }
    }
}
