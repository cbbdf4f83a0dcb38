//! What every part needs: a folder, a runtime, messages, and times.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use recto::{Message, Options, Recto};
use tempfile::TempDir;
use testkit::AgentRun;
use tokio::runtime::Runtime;

/// What a run is made of.
pub(crate) struct Bench {
    folder: TempDir,
    pub(crate) runtime: Runtime,
    /// How long the agent run is.
    pub(crate) messages: usize,
    /// Whether it only has to work.
    pub(crate) is_test: bool,
}

/// Whether a store has a search index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Search {
    Off,
    On,
}

impl Bench {
    pub(crate) fn new(messages: usize, is_test: bool) -> Bench {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("the folder is ours");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        Bench { folder, runtime: runtime.expect("threads can be started"), messages, is_test }
    }

    /// Where a file of this name is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Opens the file: nothing of it is in this process.
    pub(crate) async fn open(path: &Path, search: Search) -> Recto {
        let address = format!("sqlite:{}", path.display());
        let options = Options { search: search == Search::On, ..Options::default() };
        Recto::open_with(&address, options).await.expect("the file can be opened")
    }

    /// So many rounds, or a few if it only has to work.
    pub(crate) fn rounds(&self, rounds: usize) -> usize {
        if self.is_test { rounds.min(2) } else { rounds }
    }
}

/// The messages of the agent run.
pub(crate) fn messages(count: usize) -> impl Iterator<Item = Message> {
    AgentRun::new(1).take(count).map(|json| Message::from_json(&json).expect("it is a message"))
}

/// How many bytes a file takes, with what lies beside it.
pub(crate) fn bytes_on_disk(path: &Path) -> u64 {
    let beside = |ending: &str| PathBuf::from(format!("{}{ending}", path.display()));
    let size = |path: PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
    ["", "-wal", "-shm"].map(|ending| size(beside(ending))).iter().sum()
}

/// Times that were taken.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, since: Instant) {
        self.0.push(since.elapsed());
    }

    /// The time that a quarter of the samples were quicker than, in seconds: others use the machine
    /// and its disk too.
    pub(crate) fn usual(&mut self) -> f64 {
        self.quantile(25)
    }

    /// The time that so many of a hundred were not longer than, in seconds.
    pub(crate) fn quantile(&mut self, in_a_hundred: usize) -> f64 {
        self.0.sort_unstable();
        self.0[(self.0.len() - 1) * in_a_hundred / 100].as_secs_f64()
    }
}

/// The number in the middle.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Says what is being done: the longer parts take a minute.
pub(crate) fn note(what: &str) {
    eprintln!("{what}");
}
