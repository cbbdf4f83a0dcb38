//! A process that changes conversations of its own, and the operations that it performs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::generate::{self, Choices, Step};
use testkit::{Keep, Model, StoreModel};

use super::Dice;
use super::child::Worker;

/// What a process is asked to do.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// `word` is a word that occurs only in the message that the request appends.
    Apply {
        name: String,
        request: Value,
        word: Option<String>,
    },
    Fork {
        of: String,
        at: usize,
        name: String,
    },
    Erase {
        name: String,
        index: usize,
    },
    Prune {
        name: String,
        keep: Keep,
    },
    Remove {
        name: String,
    },
    Backup,
    Restore,
}

impl Operation {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Operation::Apply { .. } => "apply",
            Operation::Fork { .. } => "fork",
            Operation::Erase { .. } => "erase",
            Operation::Prune { .. } => "prune",
            Operation::Remove { .. } => "remove",
            Operation::Backup => "backup",
            Operation::Restore => "restore",
        }
    }

    /// Performs it on the model. Returns the reply of a process.
    pub(super) fn perform(&self, model: &mut StoreModel, now: i64) -> String {
        match self {
            Operation::Apply { name, request, .. } => {
                let done = model.change(name, |model| model.apply(request, now));
                return done.map_or_else(|refusal| refusal.code.to_owned(), |_| "ok".to_owned());
            }
            Operation::Fork { of, at, name } => model.fork(of, *at as u64, name),
            Operation::Erase { name, index } => model.erase(name, *index),
            Operation::Prune { name, keep } => drop(model.prune(name, keep)),
            Operation::Remove { name } => model.remove(name),
            Operation::Backup | Operation::Restore => {}
        }
        "ok".to_owned()
    }
}

impl Operation {
    /// Whether it changes anything. A request without effect ends early, so it does not show when the
    /// process was killed.
    pub(super) fn has_effect(&self, model: &StoreModel, now: i64) -> bool {
        match self {
            Operation::Erase { name, index } => !model.is_lost(name, *index),
            Operation::Prune { name, keep } => !model.clone().prune(name, keep).is_empty(),
            Operation::Apply { .. } => self.perform(&mut model.clone(), now) == "ok",
            _ => true,
        }
    }
}

/// A process, and the conversations that only it uses.
pub(super) struct Family {
    /// Their names start with it.
    pub(super) prefix: String,
    pub(super) worker: Option<Worker>,
    pub(super) model: StoreModel,
    /// The number of names that were given.
    pub(super) names: usize,
    /// Words that occur, or have occurred, in one message only.
    pub(super) words: Vec<String>,
    pub(super) backup: PathBuf,
    /// The model at the time of the backup, if there is one.
    pub(super) backed_up: Option<StoreModel>,
    pub(super) restored: PathBuf,
}

/// The kinds of operations, in the order in which processes are killed in them.
pub(super) const KINDS: [&str; 7] =
    ["erase", "apply", "prune", "backup", "fork", "restore", "remove"];

impl Family {
    /// A process whose only conversation is `first`. Its backups are in `folder`.
    pub(super) fn new(prefix: &str, name: &str, first: Model, folder: &Path) -> Family {
        let mut model = StoreModel::default();
        model.create(name, first);
        let file = |what: &str| folder.join(format!("{what}-{prefix}.db"));
        Family {
            prefix: prefix.to_owned(),
            worker: None,
            model,
            names: 0,
            words: Vec::new(),
            backup: file("backup"),
            backed_up: None,
            restored: file("restored"),
        }
    }

    /// A random operation.
    pub(super) fn operation(&mut self, dice: &mut Dice) -> Operation {
        let kinds = ["fork", "erase", "prune", "remove", "backup", "restore", "apply", "apply"];
        loop {
            let kind = kinds[dice.below(kinds.len())];
            if let Some(operation) = self.operation_of(kind, dice) {
                return operation;
            }
        }
    }

    /// A random operation that changes something, if possible of this kind, else of one of the next kinds.
    pub(super) fn effective_operation(
        &mut self,
        kind: usize,
        dice: &mut Dice,
        now: i64,
    ) -> Operation {
        const ATTEMPTS: usize = 20;
        for kind in KINDS.iter().cycle().skip(kind).take(2 * KINDS.len()) {
            for _ in 0..ATTEMPTS {
                match self.operation_of(kind, dice) {
                    Some(operation) if operation.has_effect(&self.model, now) => return operation,
                    Some(_) => {}
                    None => break,
                }
            }
        }
        unreachable!("a message can be appended at any time")
    }

    /// A random operation of a kind, if one is possible.
    fn operation_of(&mut self, kind: &str, dice: &mut Dice) -> Option<Operation> {
        let names = self.model.names();
        let numbers = dice.numbers(120);
        let choices = &mut Choices::new(&numbers);
        let name = choices.pick(&names).clone();
        let model = self.model.get(&name);
        let (versions, entries) = (model.version() as usize + 1, model.log_len());
        match kind {
            "fork" if names.len() < 8 => {
                self.names += 1;
                let at = choices.below(versions);
                let new = format!("{} {}", self.prefix, self.names);
                Some(Operation::Fork { of: name, at, name: new })
            }
            "erase" if entries > 0 => {
                Some(Operation::Erase { name, index: choices.below(entries) })
            }
            "prune" if choices.chance(8) => {
                let keep = Keep { versions: vec![model.version()], ..Keep::default() };
                Some(Operation::Prune { name, keep })
            }
            "prune" => {
                let keep = Keep {
                    last_versions: choices.chance(8).then(|| choices.below(4) as u64 + 1),
                    last_batches: choices.chance(4).then(|| choices.below(3)),
                    since: None,
                    versions: vec![choices.below(versions) as u64],
                };
                Some(Operation::Prune { name, keep })
            }
            "remove" if names.len() > 2 => Some(Operation::Remove { name }),
            "backup" if self.backed_up.is_none() => Some(Operation::Backup),
            "restore" if self.backed_up.is_some() => Some(Operation::Restore),
            "apply" if choices.chance(8) => {
                let word = format!("secret{}x{:x}", self.prefix, dice.below(1 << 40));
                let message = json!({"role": "user", "content": format!("the word is {word}")});
                let request = json!({"op": {"operation": "APPEND", "messages": [message]}});
                Some(Operation::Apply { name, request, word: Some(word) })
            }
            "apply" => match generate::step(choices, model) {
                Step::Apply(request) => Some(Operation::Apply { name, request, word: None }),
                _ => self.operation_of("apply", dice),
            },
            _ => None,
        }
    }

    pub(super) fn command(&self, operation: &Operation, now: i64) -> Value {
        let mut command = match operation {
            Operation::Apply { name, request, .. } => json!({"name": name, "request": request}),
            Operation::Fork { of, at, name } => json!({"of": of, "at": at, "name": name}),
            Operation::Erase { name, index } => json!({"name": name, "index": index}),
            Operation::Prune { name, keep } => json!({
                "name": name,
                "lastVersions": keep.last_versions,
                "lastBatches": keep.last_batches,
                "version": keep.versions[0],
            }),
            Operation::Remove { name } => json!({"name": name}),
            Operation::Backup => json!({"path": self.backup}),
            Operation::Restore => json!({"path": self.backup, "to": self.restored}),
        };
        command["do"] = json!(operation.name());
        command["now"] = json!(now);
        command
    }

    /// Whether a message of a conversation contains a word.
    pub(super) fn has(&self, word: &str) -> bool {
        self.model.names().iter().any(|name| {
            let model = self.model.get(name);
            (0..model.log_len()).any(|index| model.text(index).contains(word))
        })
    }
}
