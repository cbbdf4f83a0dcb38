//! `recto demo`: what Recto is for, in one screen.
//!
//! `demo/story.rs` is what happens, all of it through the engine; `demo/page.rs` prints it for
//! people, `demo/document.rs` for programs. No number is written by hand, and no clock is read, so
//! the output is the same on every machine.

mod document;
mod page;
mod story;

use clap::Args;

use self::story::Story;
use crate::desk::Desk;
use crate::failure::Failure;

/// Show what Recto does: a short conversation, cut, compressed, rolled back and compared.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto demo
  recto demo --json")]
pub(crate) struct Demo {}

impl Demo {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let story = Story::tell()?;
        if desk.output.is_json() {
            return desk.output.json(&document::document(&story)?, desk.surroundings);
        }
        let mut text = Vec::new();
        page::print(&story, &mut text)?;
        desk.output.own_text(&String::from_utf8_lossy(&text), desk.surroundings)
    }
}
