//! The clock that times of requests and leases come from.
//!
//! Times are stored and shown. The store orders versions, so a clock that jumps back or differs between
//! machines changes no order. Times are compared by leases of temporary scopes (`temporary.rs`), and by
//! queries and prunes that select by time.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use recto_core::Timestamp;

/// The source of times. Default: the clock of the system.
///
/// ```
/// use recto::{Clock, Options};
///
/// let options = Options { clock: Clock::new(|| 1_731_715_200_000), ..Options::default() };
/// assert_eq!(options.clock.now(), 1_731_715_200_000);
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that calls a function for the present time, in milliseconds since 1970.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// The present time, in milliseconds since 1970.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new(now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

/// The present time of the system's clock.
pub(crate) fn now() -> Timestamp {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Timestamp)
}
