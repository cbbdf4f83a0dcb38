//! What stops an answer, or the chat: Ctrl-C, and signals that say that it is over.

use std::sync::{Arc, Mutex, PoisonError};

use recto_agent::CancelToken;

/// What is to be done when a signal comes.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The answer that is on its way; none at the prompt.
    running: Option<CancelToken>,
    /// With which exit code the chat ends once that is kept.
    leaves: Option<u8>,
}

impl Signals {
    /// Listens from now on. Within a runtime.
    pub(super) fn listen() -> Signals {
        let signals = Signals::default();
        tokio::spawn(on_ctrl_c(signals.clone()));
        tokio::spawn(on_end(signals.clone()));
        signals
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An answer is on its way; signals cancel it.
    pub(super) fn begin(&self) -> CancelToken {
        let cancel = CancelToken::new();
        self.with(|state| state.running = Some(cancel.clone()));
        cancel
    }

    /// It has come, or what there is of it is kept.
    pub(super) fn end(&self) {
        self.with(|state| state.running = None);
    }

    /// The exit code, if the chat is to end.
    pub(super) fn leaves(&self) -> Option<u8> {
        self.with(|state| state.leaves)
    }

    /// Stops the answer that is on its way; if there is none, ends the program: everything is stored.
    fn stop(&self, exit_code: u8, leaves: bool) {
        let is_running = self.with(|state| {
            if leaves {
                state.leaves = Some(exit_code);
            }
            state.running.as_ref().map(CancelToken::cancel).is_some()
        });
        if !is_running {
            recto_agent::kill_programs();
            std::process::exit(exit_code.into());
        }
    }
}

async fn on_ctrl_c(signals: Signals) {
    while tokio::signal::ctrl_c().await.is_ok() {
        signals.stop(130, false);
    }
}

/// The terminal is gone, or somebody ends the program.
#[cfg(unix)]
async fn on_end(signals: Signals) {
    use tokio::signal::unix::{SignalKind, signal};
    let listened = (signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    let (Ok(mut terminate), Ok(mut hang_up)) = listened else { return };
    loop {
        let exit_code = tokio::select! {
            Some(()) = terminate.recv() => 143,
            Some(()) = hang_up.recv() => 129,
            else => return,
        };
        signals.stop(exit_code, true);
    }
}

#[cfg(not(unix))]
async fn on_end(_: Signals) {}
