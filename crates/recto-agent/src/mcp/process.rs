//! The stdio transport: a server that is a program, with one message per line on its standard input and
//! output.
//!
//! ```text
//! request ──► pending: 7 ──► line ──► stdin      one task writes lines, one reads them
//!               ▲                       │
//!               └── response to 7 ◄── stdout     if the program exits, the error has the end of stderr
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

use super::message::{self, Incoming, McpError};
use crate::program::{self, ProcessGroup};
use crate::{CancelToken, Secret};

/// Maximum time for a program to exit after its output has ended or the connection was dropped, and then
/// for its standard error to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum length of the end of standard error in an error, in bytes.
const STDERR_TAIL: usize = 1_000;

/// A connection to a running program.
#[derive(Debug)]
pub(super) struct ProcessConnection {
    lines: mpsc::UnboundedSender<String>,
    pending: Arc<PendingRequests>,
    next_id: AtomicU64,
    /// Cancelled when the connection is dropped.
    dropped: CancelToken,
}

/// The requests without a response.
#[derive(Debug, Default)]
struct PendingRequests(Mutex<PendingState>);

#[derive(Debug, Default)]
struct PendingState {
    responses: HashMap<u64, oneshot::Sender<Result<String, McpError>>>,
    /// Why no more responses will come.
    closed: Option<String>,
    /// The first printed line that is not a message, with the reason.
    invalid_line: Option<String>,
}

impl PendingRequests {
    fn with<T>(&self, work: impl FnOnce(&mut PendingState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Fails all pending and later requests.
    fn close(&self, reason: String) {
        self.with(|state| state.closed.get_or_insert(reason.clone()).len());
        self.fail_all(&McpError::Closed(reason));
    }

    /// Fails all pending requests.
    fn fail_all(&self, error: &McpError) {
        let responses = self.with(|state| std::mem::take(&mut state.responses));
        for (_, response) in responses {
            // The request may have timed out in the meantime.
            let _ = response.send(Err(error.clone()));
        }
    }

    fn record_invalid_line(&self, line: &str, reason: &str) {
        let start: String = line.chars().take(100).collect();
        self.with(|state| state.invalid_line.get_or_insert(format!("{start:?}: {reason}")).len());
    }
}

/// A pending request. If it is dropped before the response and `may_be_cancelled` is set, the server is
/// notified that the request is cancelled.
struct PendingRequest<'a> {
    connection: &'a ProcessConnection,
    id: u64,
    may_be_cancelled: bool,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let pending = &self.connection.pending;
        let is_open = pending.with(|state| state.responses.remove(&self.id)).is_some();
        if is_open && self.may_be_cancelled {
            // If the program has exited, there is nothing to cancel.
            let _ = self.connection.lines.send(message::cancelled(self.id));
        }
    }
}

impl ProcessConnection {
    pub(super) fn start(
        program: &str,
        arguments: &[String],
        variables: &[(String, Secret)],
        max_bytes: usize,
    ) -> Result<ProcessConnection, McpError> {
        let mut child = program::command(program, arguments, variables)
            .spawn()
            .map_err(|error| McpError::Closed(format!("{program} could not be run: {error}")))?;
        let group = ProcessGroup::of(&child);
        let stdin = child.stdin.take().expect("`program::command` pipes it");
        let stdout = child.stdout.take().expect("`program::command` pipes it");
        let stderr = child.stderr.take().expect("`program::command` pipes it");
        let (lines, to_write) = mpsc::unbounded_channel();
        let (pending, dropped) = (Arc::new(PendingRequests::default()), CancelToken::new());
        tokio::spawn(write(stdin, to_write));
        let stderr = tokio::spawn(read_tail(stderr));
        let reader = Reader { pending: Arc::clone(&pending), lines: lines.downgrade(), max_bytes };
        let is_dropped = dropped.clone();
        let name = program.to_owned();
        tokio::spawn(async move {
            tokio::select! {
                () = reader.read(stdout) => {}
                () = is_dropped.cancelled() => {}
            }
            let exited = exit(child).await;
            // Kills the descendants, which may keep standard error open.
            drop(group);
            let stderr = tokio::time::timeout(EXIT_TIMEOUT, stderr).await;
            let stderr = stderr.ok().and_then(Result::ok).unwrap_or_default();
            let stderr = if stderr.is_empty() { stderr } else { format!(": {stderr}") };
            reader.pending.close(format!("{name} {exited}{stderr}"));
        });
        Ok(ProcessConnection { lines, pending, next_id: AtomicU64::new(1), dropped })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lines.is_closed() || self.pending.with(|state| state.closed.is_some())
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &str,
        timeout: Duration,
    ) -> Result<String, McpError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = oneshot::channel();
        self.pending.with(|state| match &state.closed {
            Some(reason) => Err(McpError::Closed(reason.clone())),
            None => {
                state.responses.insert(id, sender);
                Ok(())
            }
        })?;
        let may_be_cancelled = method.starts_with("tools/");
        let pending = PendingRequest { connection: self, id, may_be_cancelled };
        // If the writing task has ended, the reading task fails the request with the reason.
        let _ = self.lines.send(message::request(id, method, params));
        let response = tokio::time::timeout(timeout, response).await;
        drop(pending);
        match response {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(McpError::Closed("the connection is closed".into())),
            Err(_) => Err(match self.pending.with(|state| state.invalid_line.clone()) {
                Some(line) => McpError::Invalid(format!(
                    "no response within {} s; it printed a line that is not a message: {line}",
                    timeout.as_secs_f64()
                )),
                None => McpError::Timeout(timeout),
            }),
        }
    }

    pub(super) fn notify(&self, method: &str) -> Result<(), McpError> {
        let sent = self.lines.send(message::notification(method, "{}"));
        sent.map_err(|_| McpError::Closed("the connection is closed".into()))
    }
}

impl Drop for ProcessConnection {
    fn drop(&mut self) {
        self.dropped.cancel();
    }
}

/// Writes lines to the program. A separate task writes them, so that a cancelled request leaves no
/// partial line.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = match stdin.write_all(line.as_bytes()).await {
            Ok(()) => stdin.flush().await,
            error => error,
        };
        if let Err(error) = written {
            tracing::warn!(%error, "a message to an MCP server was not written");
            break;
        }
    }
}

/// Waits for a program to exit, or kills it after a timeout. Returns a description.
async fn exit(mut child: Child) -> String {
    match tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await {
        Ok(Ok(status)) => format!("has exited ({status})"),
        Ok(Err(error)) => format!("has exited ({error})"),
        Err(_) => {
            if let Err(error) = child.kill().await {
                tracing::warn!(%error, "an MCP server was not killed");
            }
            "closed its output and was killed".into()
        }
    }
}

/// Reads a stream to its end and returns the last [`STDERR_TAIL`] bytes.
async fn read_tail(mut stderr: impl AsyncRead + Unpin) -> String {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 4096]);
    loop {
        let len = match stderr.read(&mut buffer).await {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) => {
                tracing::warn!(%error, "the standard error of an MCP server was not read to its end");
                break;
            }
        };
        kept.extend_from_slice(&buffer[..len]);
        let surplus = kept.len().saturating_sub(STDERR_TAIL);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// Reads the messages of the program and dispatches them.
struct Reader {
    pending: Arc<PendingRequests>,
    lines: mpsc::WeakUnboundedSender<String>,
    max_bytes: usize,
}

impl Reader {
    async fn read(&self, stdout: ChildStdout) {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while let Some(is_complete) = next_line(&mut stdout, &mut line, self.max_bytes).await {
            if !is_complete {
                let reason = format!("a message is longer than {} bytes", self.max_bytes);
                // The message was not parsed, so its request is not known.
                self.pending.fail_all(&McpError::Invalid(reason));
                continue;
            }
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                self.take(text.trim());
            }
        }
    }

    fn take(&self, line: &str) {
        match Incoming::parse(line) {
            Ok(Incoming::Response(id, result)) => {
                let response = self.pending.with(|state| state.responses.remove(&id));
                if let Some(response) = response {
                    // The request may have timed out in the meantime.
                    let _ = response.send(result);
                }
            }
            Ok(Incoming::Request { id, method }) => {
                if let Some(lines) = self.lines.upgrade() {
                    // If the program has exited, it needs no response.
                    let _ = lines.send(message::response(&id, &method));
                }
            }
            Ok(Incoming::Notification) => {}
            Err(reason) => {
                tracing::warn!("an MCP server printed a line that is not a message");
                self.pending.record_invalid_line(line, &reason);
            }
        }
    }
}

/// Reads a line. Returns false, and an empty line, if it is longer than `max_bytes`; `None` at the end of
/// the stream.
async fn next_line(
    from: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    max_bytes: usize,
) -> Option<bool> {
    line.clear();
    let mut is_complete = true;
    loop {
        let buffer = match from.fill_buf().await {
            Ok(buffer) => buffer,
            Err(error) => {
                tracing::warn!(%error, "the output of an MCP server was not read to its end");
                return None;
            }
        };
        if buffer.is_empty() {
            return None;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        is_complete &= line.len() + part.len() <= max_bytes;
        match is_complete {
            true => line.extend_from_slice(part),
            false => line.clear(),
        }
        let used = end.map_or(buffer.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            return Some(is_complete);
        }
    }
}
