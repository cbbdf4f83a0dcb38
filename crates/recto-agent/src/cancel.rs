//! Cancellation of a run, a model call or a tool call.

use tokio_util::sync::CancellationToken;

/// A cancellation token. Clones share one state: cancelling a token cancels all of its clones and
/// children.
///
/// ```
/// use recto_agent::CancelToken;
///
/// let run = CancelToken::new();
/// let tool = run.child();
/// run.cancel();
/// assert!(tool.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(CancellationToken);

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels the token, its clones and its children. Later calls have no effect.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Completes when the token is cancelled.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }

    /// A token that is cancelled with this one. Cancelling the child does not cancel this token.
    pub fn child(&self) -> CancelToken {
        CancelToken(self.0.child_token())
    }
}
