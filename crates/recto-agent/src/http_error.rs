//! HTTP error responses: the failure they describe, and when a retry is allowed.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::Failure;
use crate::decode::{ProviderError, is_too_long};

/// The failure for an HTTP status and the provider's message.
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

/// The error message in a response body. It may repeat the request, secrets included, so the caller has
/// to redact it.
pub(crate) fn message(body: &str, status: StatusCode) -> String {
    #[derive(serde::Deserialize)]
    struct Body {
        error: Option<ProviderError>,
        message: Option<String>,
    }
    let parsed = serde_json::from_str::<Body>(body).ok();
    let message = parsed.and_then(|body| match body.error {
        Some(error) => {
            let kind = error.code.as_deref().map(|code| code.get().trim_matches('"').to_owned());
            let kind = kind.filter(|kind| kind != "null").or(error.kind);
            match (kind, error.message) {
                (Some(kind), Some(message)) => Some(format!("{kind}: {message}")),
                (kind, message) => message.or(kind),
            }
        }
        None => body.message,
    });
    match message {
        Some(message) => message,
        None if body.trim().is_empty() => status.canonical_reason().unwrap_or("no reason").into(),
        None => body.to_owned(),
    }
}

/// The delay that the provider demands, from `retry-after-ms` or `retry-after` (seconds or a date).
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
    fn retry_after_is_seconds_milliseconds_or_a_date() {
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
        for invalid in ["-1", "soon", "NaN", "1e300"] {
            assert_eq!(of("retry-after", invalid), None, "{invalid}");
        }
    }
}
