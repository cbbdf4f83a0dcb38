//! Signals during a chat. Each signal cancels the running model call, or ends the process if no call is
//! running. SIGTERM and SIGHUP also end the chat after the cancelled call.

use std::sync::{Arc, Mutex, PoisonError};

use recto_agent::CancelToken;

/// State that signal handlers share with the chat.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Cancels the running model call; `None` at the prompt.
    running: Option<CancelToken>,
    /// Exit code of the chat, if SIGTERM or SIGHUP was received: the chat ends after the running call.
    exit_code: Option<u8>,
}

impl Signals {
    /// Installs the handlers. Must be called within a runtime.
    pub(super) fn listen() -> Signals {
        let signals = Signals::default();
        tokio::spawn(on_ctrl_c(signals.clone()));
        tokio::spawn(on_end(signals.clone()));
        signals
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that a model call starts. Signals cancel the returned token.
    pub(super) fn begin(&self) -> CancelToken {
        let cancel = CancelToken::new();
        self.with(|state| state.running = Some(cancel.clone()));
        cancel
    }

    /// Records that the model call has ended. The answer, or its received part, is already stored.
    pub(super) fn end(&self) {
        self.with(|state| state.running = None);
    }

    /// The exit code, if a signal ends the chat.
    pub(super) fn exit_code(&self) -> Option<u8> {
        self.with(|state| state.exit_code)
    }

    /// Cancels the running model call. If there is none, ends the process, because everything is stored. If
    /// `ends_chat`, the chat ends after the call with this exit code.
    fn stop(&self, exit_code: u8, ends_chat: bool) {
        let is_running = self.with(|state| {
            if ends_chat {
                state.exit_code = Some(exit_code);
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

/// Handles SIGTERM, and SIGHUP, which is sent when the terminal closes.
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
