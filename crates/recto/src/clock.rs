//! What time it is. Times are written down and shown; nothing is ordered by them, so a clock that
//! jumps back, or differs between machines, does no harm.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use recto_core::Timestamp;

/// Tells the time at which requests are made: the system's clock unless told.
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
    /// A clock of your own, in milliseconds since 1970.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// The time.
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

/// The time by the system's clock.
pub(crate) fn now() -> Timestamp {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Timestamp)
}
