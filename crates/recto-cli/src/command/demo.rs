//! `recto demo`: what Recto is for, in one screen.
//!
//! `demo/story.rs` is what happens, all of it through the engine; `demo/page.rs` prints it for
//! people, `demo/document.rs` for programs. No number is written by hand, and no clock is read, so
//! the output is the same on every machine.

mod document;
mod page;
mod story;

use std::io::Write;

use clap::Args;

use self::story::Story;
use crate::failure::Failure;

/// Show what Recto does: a short conversation, cut, compressed, rolled back and compared.
#[derive(Args)]
pub(crate) struct Demo {
    /// Print the same steps as one JSON document.
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub(crate) fn run(self, out: &mut impl Write) -> Result<(), Failure> {
        let story = Story::tell()?;
        if self.json {
            writeln!(out, "{:#}", document::document(&story)?)?;
        } else {
            page::print(&story, out)?;
        }
        Ok(())
    }
}
