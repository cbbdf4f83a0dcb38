//! `recto demo`: an example conversation on one screen.
//!
//! `demo/scenario.rs` runs the requests with the engine, `demo/page.rs` prints them as text and
//! `demo/document.rs` as JSON. All figures are computed and no clock is read, so the output is the same
//! on every machine.

mod document;
mod page;
mod scenario;

use clap::Args;

use self::scenario::Scenario;
use crate::context::Context;
use crate::failure::Failure;

/// Show what Recto does, with an example conversation.
///
/// The conversation is cut, compressed, rolled back and compared. Nothing is stored.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto demo
  recto demo --json")]
pub(crate) struct Demo {}

impl Demo {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let scenario = Scenario::run()?;
        if context.output.is_json() {
            return context.output.json(&document::document(&scenario)?, context.environment);
        }
        let mut text = Vec::new();
        page::print(&scenario, &mut text)?;
        context.output.trusted_text(&String::from_utf8_lossy(&text), context.environment)
    }
}
