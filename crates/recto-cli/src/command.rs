//! The commands of `recto`, one file each.

mod backup;
mod blame;
mod cache_plan;
mod change;
mod chat;
mod completions;
mod demo;
mod diff;
mod doctor;
mod erase;
mod exec;
mod export;
mod fork;
mod grep;
mod import;
mod info;
mod lint;
mod list;
mod log;
mod markmap;
mod new;
mod prune;
mod remove;
mod rename;
mod render;
mod settings;
mod show;
mod snapshot;
mod timeline;
mod tokens;
mod verify;

use clap::Subcommand;

use crate::desk::Desk;
use crate::failure::Failure;

macro_rules! commands {
    ($($(#[$meta:meta])* $variant:ident($path:path),)*) => {
        /// The commands, in the order in which help lists them.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$meta])* $variant($path),)*
            Completions(completions::Completions),
        }

        impl Command {
            /// Does what was asked for. `usage` is the command line itself, for those that describe
            /// it.
            pub(crate) fn run(self, desk: &mut Desk<'_>, usage: clap::Command) -> Result<(), Failure> {
                match self {
                    $(Command::$variant(command) => command.run(desk),)*
                    Command::Completions(completions) => completions.run(usage, desk),
                }
            }
        }
    };
}

commands! {
    New(new::New),
    List(list::List),
    Info(info::Info),
    Rename(rename::Rename),
    Remove(remove::Remove),
    Fork(fork::Fork),
    Import(import::Import),
    Export(export::Export),
    Settings(settings::Settings),

    Show(show::Show),
    Log(log::Log),
    Diff(diff::Diff),
    Blame(blame::Blame),
    Tokens(tokens::Tokens),
    Grep(grep::Grep),
    Timeline(timeline::Timeline),
    Markmap(markmap::Markmap),
    Snapshot(snapshot::Snapshot),

    Append(change::append::Append),
    Insert(change::insert::Insert),
    Replace(change::replace::Replace),
    Delete(change::delete::Delete),
    Compress(change::compress::Compress),
    Truncate(change::truncate::Truncate),
    Filter(change::filter::Filter),
    Clear(change::clear::Clear),
    Arrange(change::arrange::Arrange),
    Restore(change::restore::Restore),
    Fit(change::fit::Fit),
    Batch(change::batch::Batch),
    Rollback(change::rollback::Rollback),
    Undo(change::undo::Undo),
    Redo(change::undo::Redo),
    Mark(change::mark::Mark),
    Unmark(change::mark::Unmark),
    Apply(change::apply::Apply),

    Chat(chat::Chat),

    Render(render::Render),
    Lint(lint::Lint),
    CachePlan(cache_plan::CachePlan),

    Verify(verify::Verify),
    Prune(prune::Prune),
    Erase(erase::Erase),
    Backup(backup::Backup),
    RestoreBackup(backup::RestoreBackup),
    Doctor(doctor::Doctor),

    Exec(exec::Exec),
    Demo(demo::Demo),
}
