//! The commands of `recto`, one file each. The table at the end lists them by group.

mod backup;
mod blame;
mod cache_plan;
mod change;
#[cfg(feature = "chat")]
mod chat;
#[cfg(not(feature = "chat"))]
#[path = "command/chat_missing.rs"]
mod chat;
// Compiled so that the test of this module also runs in a build with all features.
#[cfg(all(test, feature = "chat"))]
#[allow(dead_code, reason = "only a build without the feature `chat` runs it")]
mod chat_missing;
mod clean;
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
mod salvage;
mod search;
mod settings;
mod show;
mod snapshot;
mod timeline;
mod tokens;
mod verify;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

macro_rules! commands {
    ($($group:literal { $($name:literal => $variant:ident($path:path),)* })*) => {
        /// The commands.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[command(name = $name)] $variant($path),)*)*
        }

        /// The names of the commands by group, in the order in which help lists them.
        pub(crate) const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$($name),*]),)*];

        impl Command {
            /// Runs the command.
            pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
                match self {
                    $($(Command::$variant(command) => command.run(context),)*)*
                }
            }

            /// The name of the command.
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    $($(Command::$variant(_) => $name,)*)*
                }
            }
        }
    };
}

commands! {
    "Start here" {
        "demo" => Demo(demo::Demo),
        "new" => New(new::New),
        "import" => Import(import::Import),
        "list" => List(list::List),
    }
    "Look" {
        "show" => Show(show::Show),
        "log" => Log(log::Log),
        "diff" => Diff(diff::Diff),
        "blame" => Blame(blame::Blame),
        "grep" => Grep(grep::Grep),
        "search" => Search(search::Search),
        "info" => Info(info::Info),
        "tokens" => Tokens(tokens::Tokens),
        "timeline" => Timeline(timeline::Timeline),
        "snapshot" => Snapshot(snapshot::Snapshot),
        "markmap" => Markmap(markmap::Markmap),
        "export" => Export(export::Export),
    }
    "Change" {
        "append" => Append(change::append::Append),
        "insert" => Insert(change::insert::Insert),
        "replace" => Replace(change::replace::Replace),
        "delete" => Delete(change::delete::Delete),
        "compress" => Compress(change::compress::Compress),
        "truncate" => Truncate(change::truncate::Truncate),
        "filter" => Filter(change::filter::Filter),
        "fit" => Fit(change::fit::Fit),
        "clear" => Clear(change::clear::Clear),
        "arrange" => Arrange(change::arrange::Arrange),
        "pin" => Pin(change::mark::Pin),
        "unpin" => Unpin(change::mark::Unpin),
        "mark" => Mark(change::mark::Mark),
        "unmark" => Unmark(change::mark::Unmark),
        "batch" => Batch(change::batch::Batch),
        "apply" => Apply(change::apply::Apply),
        "fork" => Fork(fork::Fork),
        "settings" => Settings(settings::Settings),
    }
    "Undo" {
        "undo" => Undo(change::undo::Undo),
        "redo" => Redo(change::undo::Redo),
        "rollback" => Rollback(change::rollback::Rollback),
        "restore" => Restore(change::restore::Restore),
    }
    "Providers" {
        "chat" => Chat(chat::Chat),
        "render" => Render(render::Render),
        "lint" => Lint(lint::Lint),
        "cache-plan" => CachePlan(cache_plan::CachePlan),
    }
    "Maintenance" {
        "rename" => Rename(rename::Rename),
        "remove" => Remove(remove::Remove),
        "erase" => Erase(erase::Erase),
        "prune" => Prune(prune::Prune),
        "verify" => Verify(verify::Verify),
        "backup" => Backup(backup::Backup),
        "restore-backup" => RestoreBackup(backup::RestoreBackup),
        "salvage" => Salvage(salvage::Salvage),
        "clean" => Clean(clean::Clean),
        "doctor" => Doctor(doctor::Doctor),
    }
    "Programs" {
        "exec" => Exec(exec::Exec),
        "completions" => Completions(completions::Completions),
    }
}
