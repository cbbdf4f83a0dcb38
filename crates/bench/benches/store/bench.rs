//! What all parts of the benchmark use: a folder, a runtime, messages, and samples of times.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use recto::{Message, Options, Recto};
use tempfile::TempDir;
use testkit::AgentRun;
use tokio::runtime::Runtime;

/// The context of a run.
pub(crate) struct Bench {
    folder: TempDir,
    pub(crate) runtime: Runtime,
    /// The number of messages of the agent run.
    pub(crate) messages: usize,
    /// Whether this is a test with small sizes.
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
        let folder =
            TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("the folder can be written");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        Bench { folder, runtime: runtime.expect("threads can be started"), messages, is_test }
    }

    /// The path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Opens the file, with nothing loaded.
    pub(crate) async fn open(path: &Path, search: Search) -> Recto {
        let address = format!("sqlite:{}", path.display());
        let options = Options { search: search == Search::On, ..Options::default() };
        Recto::open_with(&address, options).await.expect("the file can be opened")
    }

    /// The number of rounds; at most 2 in a test.
    pub(crate) fn rounds(&self, rounds: usize) -> usize {
        if self.is_test { rounds.min(2) } else { rounds }
    }
}

/// The messages of the agent run.
pub(crate) fn messages(count: usize) -> impl Iterator<Item = Message> {
    AgentRun::new(1).take(count).map(|json| Message::from_json(&json).expect("it is a message"))
}

/// The size of a SQLite file together with its write-ahead log and shared-memory file, in bytes.
pub(crate) fn bytes_on_disk(path: &Path) -> u64 {
    let beside = |ending: &str| PathBuf::from(format!("{}{ending}", path.display()));
    let size = |path: PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
    ["", "-wal", "-shm"].map(|ending| size(beside(ending))).iter().sum()
}

/// Samples of times.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, since: Instant) {
        self.0.push(since.elapsed());
    }

    /// The 25th percentile in seconds. It is less disturbed by other work of the machine than the
    /// median.
    pub(crate) fn usual(&mut self) -> f64 {
        self.percentile(25)
    }

    /// A percentile, in seconds.
    pub(crate) fn percentile(&mut self, percent: usize) -> f64 {
        self.0.sort_unstable();
        self.0[(self.0.len() - 1) * percent / 100].as_secs_f64()
    }
}

/// The median.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Prints what is being measured, because some parts take a minute.
pub(crate) fn note(what: &str) {
    eprintln!("{what}");
}
