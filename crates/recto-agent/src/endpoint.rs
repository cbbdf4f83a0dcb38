//! Where a model is, how to get in, and how patient to be.

use std::fmt;
use std::time::Duration;

use crate::secrets::shown;

/// Where a model is and how it is asked.
///
/// ```
/// use recto_agent::Endpoint;
///
/// let endpoint = Endpoint::new("http://localhost:11434/v1", "qwen3")
///     .key("sk-secret")
///     .field("temperature", "0.2");
/// assert!(!format!("{endpoint:?}").contains("sk-secret"));
/// ```
#[derive(Clone)]
pub struct Endpoint {
    /// What stands before `/chat/completions`, `/responses` or `/messages`; usually it ends in `/v1`.
    pub base_url: String,
    /// What the provider calls the model.
    pub model: String,
    /// The key, if one is needed.
    pub key: Option<Secret>,
    /// More headers, such as `anthropic-beta`.
    pub headers: Vec<(String, Secret)>,
    /// More fields of every request, each with its JSON.
    pub fields: Vec<(String, String)>,
    /// Whether the answer comes piece by piece.
    pub is_streaming: bool,
    /// How long to wait.
    pub patience: Patience,
    /// How often to try.
    pub retry: Retry,
    /// The most bytes that an answer may have.
    pub longest_answer: usize,
}

impl fmt::Debug for Endpoint {
    /// Without anything secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &shown(&self.base_url))
            .field("model", &self.model)
            .field("headers", &self.headers)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint without a key, streaming, with the usual patience.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Endpoint {
        Endpoint {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            headers: Vec::new(),
            fields: Vec::new(),
            is_streaming: true,
            patience: Patience::default(),
            retry: Retry::default(),
            longest_answer: 64 << 20,
        }
    }

    /// With a key.
    pub fn key(self, key: impl Into<String>) -> Endpoint {
        Endpoint { key: Some(Secret::new(key)), ..self }
    }

    /// With one more field in every request; `value` is JSON.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<String>) -> Endpoint {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// With one more header. Its value is not shown anywhere.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Endpoint {
        self.headers.push((name.into(), Secret::new(value)));
        self
    }

    /// The answer comes whole.
    pub fn not_streaming(self) -> Endpoint {
        Endpoint { is_streaming: false, ..self }
    }
}

/// A text that must not be seen: it is in no debug output and in no error.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text from being seen.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text, for the one who needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For an answer to begin.
    pub first_byte: Duration,
    /// From one piece of an answer to the next.
    pub between: Duration,
}

impl Default for Patience {
    /// 10 seconds to connect, 5 minutes until the answer begins, 1 minute from piece to piece.
    fn default() -> Self {
        Patience {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            between: Duration::from_secs(60),
        }
    }
}

/// How often to try, and how long to wait in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often a request is sent at most. 1: never again.
    pub attempts: u32,
    /// How long to wait after the first failure; after each further one twice as long.
    pub first_wait: Duration,
    /// The longest wait. A provider that asks for a longer one is not asked again.
    pub longest_wait: Duration,
}

impl Default for Retry {
    /// Four attempts, with half a second, then one, then two in between; at most a minute if the
    /// provider asks for it.
    fn default() -> Self {
        Retry {
            attempts: 4,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

impl Retry {
    /// How long to wait after the `nth` failure (from 0); `None` if it is not tried again.
    /// `fraction` is between 0 and 1 and spreads clients that failed together.
    pub(crate) fn wait(
        &self,
        nth: u32,
        asked_for: Option<Duration>,
        fraction: f64,
    ) -> Option<Duration> {
        if nth + 1 >= self.attempts {
            return None;
        }
        match asked_for {
            Some(asked_for) if asked_for > self.longest_wait => None,
            // Never earlier than the provider says; a little later, so that not all come at once.
            Some(asked_for) => {
                Some(asked_for + self.first_wait.mul_f64(fraction).min(asked_for / 10))
            }
            None => {
                let doubled = self.first_wait.saturating_mul(1 << nth.min(16));
                Some(doubled.min(self.longest_wait).mul_f64(0.5 + fraction / 2.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Retry = Retry {
        attempts: 4,
        first_wait: Duration::from_millis(100),
        longest_wait: Duration::from_secs(1),
    };

    #[test]
    fn waits_double_and_end() {
        let waits = |fraction| (0..4).map(move |nth| RETRY.wait(nth, None, fraction));
        let millis = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits(1.0).collect::<Vec<_>>(), [millis(100), millis(200), millis(400), None]);
        assert_eq!(waits(0.0).collect::<Vec<_>>(), [millis(50), millis(100), millis(200), None]);
    }

    #[test]
    fn a_provider_is_never_asked_before_its_time() {
        for fraction in [0.0, 0.5, 1.0] {
            let asked_for = Duration::from_millis(700);
            assert!(RETRY.wait(0, Some(asked_for), fraction).unwrap() >= asked_for);
            assert_eq!(RETRY.wait(0, Some(Duration::from_secs(2)), fraction), None);
            assert_eq!(RETRY.wait(0, Some(Duration::ZERO), fraction), Some(Duration::ZERO));
        }
    }
}
