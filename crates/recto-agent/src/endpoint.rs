//! Endpoint of a model: URL, credentials, timeouts and retries.

use std::fmt;
use std::time::Duration;

use crate::secrets::{Secret, redacted_url};

/// Endpoint of a model: URL, credentials, timeouts and retries.
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
#[non_exhaustive]
pub struct Endpoint {
    /// The URL up to `/chat/completions`, `/responses` or `/messages`. It usually ends in `/v1`.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// The version of Anthropic's API, sent as the header `anthropic-version`. Requests follow the rules of
    /// this version: see [`RenderOptions::api_version`](recto_format::RenderOptions::api_version). Default:
    /// `2023-06-01`.
    pub api_version: Option<String>,
    /// The API key, if the endpoint requires one.
    pub key: Option<Secret>,
    /// Additional headers of every request, such as `anthropic-beta`.
    pub headers: Vec<(String, Secret)>,
    /// Additional fields of every request, as pairs of name and JSON value.
    pub fields: Vec<(String, String)>,
    /// Whether replies are streamed. Default: true.
    pub is_streaming: bool,
    /// Timeouts of a call.
    pub timeouts: Timeouts,
    /// Retries of a failed call.
    pub retry: Retry,
    /// Maximum size of a response in bytes. Default: 64 MiB.
    pub max_response_bytes: usize,
    /// Whether the key, headers and secrets in the URL may be sent over plain HTTP to a host that is not
    /// this machine. Default: false; such an endpoint is refused.
    pub allow_http: bool,
}

impl fmt::Debug for Endpoint {
    /// Omits the key and redacts the URL and the headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &redacted_url(&self.base_url))
            .field("model", &self.model)
            .field("api_version", &self.api_version)
            .field("headers", &self.headers)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint without a key, with streaming and default timeouts and retries.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Endpoint {
        Endpoint {
            base_url: base_url.into(),
            model: model.into(),
            api_version: None,
            key: None,
            headers: Vec::new(),
            fields: Vec::new(),
            is_streaming: true,
            timeouts: Timeouts::default(),
            retry: Retry::default(),
            max_response_bytes: 64 << 20,
            allow_http: false,
        }
    }

    /// Sets the version of Anthropic's API.
    pub fn api_version(self, version: impl Into<String>) -> Endpoint {
        Endpoint { api_version: Some(version.into()), ..self }
    }

    /// Sets the API key.
    pub fn key(self, key: impl Into<String>) -> Endpoint {
        Endpoint { key: Some(Secret::new(key)), ..self }
    }

    /// Adds a field to every request. `value` is JSON.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<String>) -> Endpoint {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Adds a header to every request. Its value appears in no error and no debug output.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Endpoint {
        self.headers.push((name.into(), Secret::new(value)));
        self
    }

    /// Allows secrets over plain HTTP to another machine; see [the field](Endpoint#structfield.allow_http).
    pub fn allow_http(self) -> Endpoint {
        Endpoint { allow_http: true, ..self }
    }

    /// Requests whole replies instead of streams.
    pub fn without_streaming(self) -> Endpoint {
        Endpoint { is_streaming: false, ..self }
    }

    /// Sets the timeouts.
    pub fn timeouts(self, timeouts: Timeouts) -> Endpoint {
        Endpoint { timeouts, ..self }
    }

    /// Sets the retries.
    pub fn retry(self, retry: Retry) -> Endpoint {
        Endpoint { retry, ..self }
    }
}

/// Timeouts of a model call.
///
/// More timeouts may be added: end a literal with `..Timeouts::default()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Maximum time to establish a connection. Default: 10 seconds.
    pub connect: Duration,
    /// Maximum time from sending the request to the head of the response, and again from there to the first
    /// event of a stream. Default: 5 minutes.
    pub first_byte: Duration,
    /// Maximum time between two pieces of data of the reply. Default: 1 minute.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(60),
        }
    }
}

/// Retries of a model call, with exponential backoff and jitter. A call is retried only if the same
/// request may succeed later and no part of the reply was received.
///
/// More settings may be added: end a literal with `..Retry::default()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of attempts, the first one included. Default: 4.
    pub max_attempts: u32,
    /// Delay after the first failed attempt. It doubles with each further failed attempt. Jitter shortens
    /// each delay by up to half. Default: 500 ms.
    pub initial_delay: Duration,
    /// Maximum delay. The call fails if the provider demands a longer one. Default: 1 minute.
    pub max_delay: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            max_attempts: 4,
            initial_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(60),
        }
    }
}

impl Retry {
    /// Delay after failed attempt `nth` (from 0); `None` if there is no further attempt. `retry_after` is
    /// the delay that the provider demands. `jitter` is between 0 and 1 and spreads the retries of clients
    /// that failed at the same time.
    pub(crate) fn delay(
        &self,
        nth: u32,
        retry_after: Option<Duration>,
        jitter: f64,
    ) -> Option<Duration> {
        if nth + 1 >= self.max_attempts {
            return None;
        }
        match retry_after {
            Some(retry_after) if retry_after > self.max_delay => None,
            // The jitter is added to the demanded delay, so that clients do not all retry at the same time.
            Some(retry_after) => {
                Some(retry_after + self.initial_delay.mul_f64(jitter).min(retry_after / 10))
            }
            None => {
                let doubled = self.initial_delay.saturating_mul(1 << nth.min(16));
                Some(doubled.min(self.max_delay).mul_f64(0.5 + jitter / 2.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Retry = Retry {
        max_attempts: 4,
        initial_delay: Duration::from_millis(100),
        max_delay: Duration::from_secs(1),
    };

    #[test]
    fn delays_double_up_to_the_last_attempt() {
        let delays = |jitter| (0..4).map(move |nth| RETRY.delay(nth, None, jitter));
        let millis = |ms| Some(Duration::from_millis(ms));
        assert_eq!(delays(1.0).collect::<Vec<_>>(), [millis(100), millis(200), millis(400), None]);
        assert_eq!(delays(0.0).collect::<Vec<_>>(), [millis(50), millis(100), millis(200), None]);
    }

    #[test]
    fn a_retry_is_never_earlier_than_the_provider_demands() {
        for jitter in [0.0, 0.5, 1.0] {
            let retry_after = Duration::from_millis(700);
            assert!(RETRY.delay(0, Some(retry_after), jitter).unwrap() >= retry_after);
            assert_eq!(RETRY.delay(0, Some(Duration::from_secs(2)), jitter), None);
            assert_eq!(RETRY.delay(0, Some(Duration::ZERO), jitter), Some(Duration::ZERO));
        }
    }
}
