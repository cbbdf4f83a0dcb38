//! A server that is a program: one message a line on its standard input and output.
//!
//! ```text
//! ask ──► waiting: 7 ──► line ──► stdin          two tasks: one writes lines whole, one reads them
//!            ▲                      │
//!            └──── answer to 7 ◄─ stdout         what stderr said last is told if it dies
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::wire::{self, Fault, Incoming};
use crate::Secret;
use crate::program::{self, Group};

/// How long a program may take to end once its input is closed.
const GRACE: Duration = Duration::from_secs(1);
/// So much of what it said last on standard error is told if it dies.
const LAST_WORDS: usize = 1_000;
/// A running program.
#[derive(Debug)]
pub(super) struct ProcessLink {
    lines: mpsc::UnboundedSender<String>,
    waiting: Arc<Waiting>,
    next: AtomicU64,
    /// Is cancelled when nobody needs the program any more.
    closed: CancellationToken,
}

/// Who waits for an answer.
#[derive(Debug, Default)]
struct Waiting(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    answers: HashMap<u64, oneshot::Sender<Result<String, Fault>>>,
    /// Why there will be no more answers.
    ended: Option<String>,
    /// Something that it printed and that is no message.
    rubbish: Option<String>,
}

impl Waiting {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nobody gets an answer any more.
    fn end(&self, reason: String) {
        let left = self.with(|state| {
            state.ended.get_or_insert(reason.clone());
            std::mem::take(&mut state.answers)
        });
        for (_, answer) in left {
            // Who has given up does not hear it.
            let _ = answer.send(Err(Fault::Ended(reason.clone())));
        }
    }

    fn rubbish(&self, line: &str, reason: &str) {
        let start: String = line.chars().take(100).collect();
        self.with(|state| state.rubbish.get_or_insert(format!("{start:?}: {reason}")).len());
    }
}

/// An answer that is waited for. Dropped before it came, it is asked for no longer.
struct Question<'a> {
    link: &'a ProcessLink,
    id: u64,
    may_be_cancelled: bool,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let is_open = self.link.waiting.with(|state| state.answers.remove(&self.id)).is_some();
        if is_open && self.may_be_cancelled {
            let _ = self.link.lines.send(wire::cancelled(self.id));
        }
    }
}

impl ProcessLink {
    pub(super) fn start(
        program: &str,
        arguments: &[String],
        variables: &[(String, Secret)],
        longest: usize,
    ) -> Result<ProcessLink, Fault> {
        let mut child = program::command(program, arguments, variables)
            .spawn()
            .map_err(|error| Fault::Ended(format!("{program} could not be run: {error}")))?;
        let group = Group::of(&child);
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = child.stdout.take().expect("it is piped");
        let stderr = child.stderr.take().expect("it is piped");
        let (lines, to_write) = mpsc::unbounded_channel();
        let (waiting, closed) = (Arc::new(Waiting::default()), CancellationToken::new());
        tokio::spawn(write(stdin, to_write));
        let said = tokio::spawn(last_words(stderr));
        let reader = Reader { waiting: Arc::clone(&waiting), lines: lines.downgrade(), longest };
        let is_closed = closed.clone();
        let name = program.to_owned();
        tokio::spawn(async move {
            tokio::select! {
                () = reader.read(stdout) => {}
                () = is_closed.cancelled() => {}
            }
            let ended = end(child).await;
            // What it has started ends with it.
            drop(group);
            let said = tokio::time::timeout(GRACE, said).await;
            let said = said.ok().and_then(Result::ok).unwrap_or_default();
            let said = if said.is_empty() { said } else { format!(": {said}") };
            reader.waiting.end(format!("{name} {ended}{said}"));
        });
        Ok(ProcessLink { lines, waiting, next: AtomicU64::new(1), closed })
    }

    pub(super) fn is_over(&self) -> bool {
        self.lines.is_closed() || self.waiting.with(|state| state.ended.is_some())
    }

    pub(super) async fn ask(
        &self,
        method: &str,
        params: &str,
        patience: Duration,
    ) -> Result<String, Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.waiting.with(|state| match &state.ended {
            Some(reason) => Err(Fault::Ended(reason.clone())),
            None => {
                state.answers.insert(id, answer);
                Ok(())
            }
        })?;
        let may_be_cancelled = method.starts_with("tools/");
        let question = Question { link: self, id, may_be_cancelled };
        // If nobody writes any more, the reader finds out why.
        let _ = self.lines.send(wire::request(id, method, params));
        let answered = tokio::time::timeout(patience, answered).await;
        drop(question);
        match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Fault::Ended("it has ended".into())),
            Err(_) => Err(match self.waiting.with(|state| state.rubbish.clone()) {
                Some(rubbish) => Fault::Odd(format!(
                    "no answer came in {} s, but this, which is no message: {rubbish}",
                    patience.as_secs_f64()
                )),
                None => Fault::Late(patience),
            }),
        }
    }

    pub(super) fn notify(&self, method: &str) -> Result<(), Fault> {
        let sent = self.lines.send(wire::notification(method, "{}"));
        sent.map_err(|_| Fault::Ended("it has ended".into()))
    }
}

impl Drop for ProcessLink {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

/// Lines are written whole, whoever gives up in between.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = stdin.write_all(line.as_bytes()).await;
        if written.is_err() || stdin.flush().await.is_err() {
            break;
        }
    }
}

/// Lets a program end, or ends it; says how that was.
async fn end(mut child: Child) -> String {
    match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(Ok(status)) => format!("has ended ({status})"),
        Ok(Err(error)) => format!("has ended ({error})"),
        Err(_) => {
            // Whether it could be killed or was quicker: it is over.
            let _ = child.kill().await;
            "closed its output and was killed".into()
        }
    }
}

async fn last_words(mut stderr: impl AsyncRead + Unpin) -> String {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 4096]);
    while let Ok(len @ 1..) = stderr.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..len]);
        let surplus = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

struct Reader {
    waiting: Arc<Waiting>,
    lines: mpsc::WeakUnboundedSender<String>,
    longest: usize,
}

impl Reader {
    async fn read(&self, stdout: ChildStdout) {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while let Some(is_whole) = next_line(&mut stdout, &mut line, self.longest).await {
            if !is_whole {
                let reason = format!("a message is longer than {} bytes", self.longest);
                // Whose answer it was is not known.
                let all = self.waiting.with(|state| std::mem::take(&mut state.answers));
                for (_, answer) in all {
                    let _ = answer.send(Err(Fault::Odd(reason.clone())));
                }
                continue;
            }
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                self.take(text.trim());
            }
        }
    }

    fn take(&self, line: &str) {
        match Incoming::read(line) {
            Ok(Incoming::Answer(id, answer)) => {
                let waits = self.waiting.with(|state| state.answers.remove(&id));
                if let Some(waits) = waits {
                    let _ = waits.send(answer);
                }
            }
            Ok(Incoming::Asks { id, method }) => {
                if let Some(lines) = self.lines.upgrade() {
                    let _ = lines.send(wire::answer(&id, &method));
                }
            }
            Ok(Incoming::Told) => {}
            Err(reason) => self.waiting.rubbish(line, &reason),
        }
    }
}

/// Reads a line; false if it is longer than that, and then nothing of it is kept. `None` at the end.
async fn next_line(
    from: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    longest: usize,
) -> Option<bool> {
    line.clear();
    let mut is_whole = true;
    loop {
        let buffer = from.fill_buf().await.ok()?;
        if buffer.is_empty() {
            return None;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        is_whole &= line.len() + part.len() <= longest;
        match is_whole {
            true => line.extend_from_slice(part),
            false => line.clear(),
        }
        let used = end.map_or(buffer.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            return Some(is_whole);
        }
    }
}
