//! What a provider says when it does not answer: why, and when it may be asked again.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::Failure;
use crate::decode::Complaint;

/// The failure that a status and what is said with it mean.
pub(crate) fn failure(
    status: StatusCode,
    message: String,
    retry_after: Option<Duration>,
) -> Failure {
    let status = status.as_u16();
    match status {
        401 | 403 => Failure::Unauthorized { status, message },
        429 => Failure::RateLimited { message, retry_after },
        408 | 409 | 425 | 500..=599 => Failure::Provider { status, message },
        413 => Failure::TooLong { status, message },
        _ if is_too_long(&message) => Failure::TooLong { status, message },
        _ => Failure::Refused { status, message },
    }
}

/// What a provider says about a failure. It may repeat what it was sent, secrets included.
pub(crate) fn reason(body: &str, status: StatusCode) -> String {
    #[derive(serde::Deserialize)]
    struct Told {
        error: Option<Complaint>,
        message: Option<String>,
    }
    let told = serde_json::from_str::<Told>(body).ok();
    let told = told.and_then(|told| match told.error {
        Some(complaint) => {
            let kind =
                complaint.code.as_deref().map(|code| code.get().trim_matches('"').to_owned());
            let kind = kind.filter(|kind| kind != "null").or(complaint.kind);
            match (kind, complaint.message) {
                (Some(kind), Some(message)) => Some(format!("{kind}: {message}")),
                (kind, message) => message.or(kind),
            }
        }
        None => told.message,
    });
    match told {
        Some(told) => told,
        None if body.trim().is_empty() => status.canonical_reason().unwrap_or("no reason").into(),
        None => body.to_owned(),
    }
}

/// Whether the provider says that the request is longer than the model can read.
pub(crate) fn is_too_long(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "context_length_exceeded",
        "maximum context length",
        "prompt is too long",
        "context window",
        "exceed context limit",
        "request_too_large",
        "too many tokens",
    ]
    .iter()
    .any(|sign| message.contains(sign))
}

/// When the provider takes the next request: in seconds, in milliseconds, or at a time.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1e3).ok();
    }
    let text = text(RETRY_AFTER.as_str())?.trim();
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => {
            let then = httpdate::parse_http_date(text).ok()?;
            Some(then.duration_since(now).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn retry_after_is_seconds_milliseconds_or_a_time() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let of = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(of("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(of("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(of("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(
            of("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"),
            Some(Duration::from_secs(10))
        );
        assert_eq!(of("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        for odd in ["-1", "soon", "NaN", "1e300"] {
            assert_eq!(of("retry-after", odd), None, "{odd}");
        }
    }
}
