//! `recto chat` in a build without the feature `chat`: an error that names the feature.

use std::ffi::OsString;

use clap::Args;

use crate::context::Context;
use crate::failure::Failure;

/// Send messages to a model (missing in this build).
///
/// This build of recto has no model clients. `cargo install --locked --path crates/recto-cli` builds it with all
/// features.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo install --locked --path crates/recto-cli --features chat && recto chat --help")]
pub(crate) struct Chat {
    /// Arguments, which are ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

impl Chat {
    pub(crate) fn run(self, _: &mut Context<'_>) -> Result<(), Failure> {
        Err(missing())
    }
}

fn missing() -> Failure {
    Failure::Usage(
        "this build of recto has no model clients; build it with the feature `chat`: \
         `cargo install --locked --path crates/recto-cli --features chat`"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_model_clients_accepts_all_arguments_and_names_the_feature() {
        let chat = Chat::augment_args(clap::Command::new("chat"));
        let arguments = ["chat", "--for", "anthropic", "--model", "m", "Hello"];
        chat.try_get_matches_from(arguments).expect("the error is about the feature");
        let failure = missing();
        assert_eq!(failure.exit_code(), 2);
        let text = failure.to_string();
        assert!(text.contains("no model clients") && text.contains("--features chat"), "{text}");
    }
}
