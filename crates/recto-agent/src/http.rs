//! Model clients over HTTP: OpenAI's chat completions and compatible servers, OpenAI's Responses,
//! Anthropic's Messages.
//!
//! ```text
//! body ──► POST, unchanged ──► status ──► events ──► Decoder ──► Reply
//!            ▲                    │           │
//!            └────── delay ◄──────┴───────────┘   transient failures, as long as no part of the
//!                                                 reply was received
//! ```

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use recto_format::Target;
use reqwest::{Client, Response};
use sse_stream::SseByteStream;

use crate::decode::{self, Decoder};
use crate::reply::quoted;
use crate::secrets::{Secrets, redacted_url};
use crate::web_client::{check_plain_http, client, error_chain};
use crate::{
    Attempt, BoxFuture, CallContext, CallError, Delta, Endpoint, Error, Failure, Model, Reply,
    Secret, http_error, trace,
};

/// Maximum time to read the end of a stream after the reply is complete.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);

/// A model behind an HTTP endpoint of one of three providers.
#[derive(Clone, Debug)]
pub struct HttpModel {
    target: Target,
    endpoint: Endpoint,
    /// The URL may contain a key.
    url: Secret,
    /// The URL for errors, without secrets.
    redacted_url: String,
    secrets: Secrets,
    client: Client,
}

impl HttpModel {
    /// A model behind OpenAI's chat completions API or a compatible server.
    pub fn openai_chat(endpoint: Endpoint) -> Result<HttpModel, Error> {
        HttpModel::new(Target::OpenAiChat, endpoint)
    }

    /// A model behind OpenAI's Responses API. The provider stores nothing (`store` is false), because the
    /// conversation holds all messages.
    pub fn openai_responses(endpoint: Endpoint) -> Result<HttpModel, Error> {
        HttpModel::new(Target::OpenAiResponses, endpoint)
    }

    /// A model behind Anthropic's Messages API.
    pub fn anthropic(endpoint: Endpoint) -> Result<HttpModel, Error> {
        HttpModel::new(Target::Anthropic, endpoint)
    }

    /// The targets that have a client.
    pub const TARGETS: [Target; 3] =
        [Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic];

    /// A model behind the API of a provider. Fails for targets that are not in
    /// [`TARGETS`](HttpModel::TARGETS).
    pub fn new(target: Target, endpoint: Endpoint) -> Result<HttpModel, Error> {
        let path = match target {
            Target::OpenAiChat => "chat/completions",
            Target::OpenAiResponses => "responses",
            Target::Anthropic => "messages",
            Target::Gemini => {
                let reason = "there is no client for gemini; use openai-chat with Gemini's \
                              OpenAI-compatible endpoint";
                return Err(Error::Endpoint(reason.into()));
            }
            other => return Err(Error::Endpoint(format!("there is no client for {other}"))),
        };
        check_api_version(endpoint.api_version.as_deref(), target)?;
        let redacted_url = redacted_url(&endpoint.base_url);
        let invalid = |reason: &str| {
            Error::Endpoint(format!(
                "the base URL {redacted_url:?} is not valid: {reason}; use the form https://host/v1"
            ))
        };
        let mut url =
            reqwest::Url::parse(&endpoint.base_url).map_err(|error| invalid(&error.to_string()))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(invalid("the scheme must be http or https"));
        }
        // The query, such as an API version, stays after the path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path.split('/'));
        }
        let url = url.to_string();
        let has_secrets = endpoint.key.is_some() || !endpoint.headers.is_empty();
        check_plain_http(&url, has_secrets, endpoint.allow_http).map_err(Error::Endpoint)?;
        let headers = headers(&endpoint, target);
        let given = headers.iter().map(|(name, value)| (*name, value));
        let client = client(&url, given, endpoint.timeouts.connect).map_err(Error::Endpoint)?;
        let secrets = endpoint.key.iter().chain(endpoint.headers.iter().map(|(_, value)| value));
        let secrets = Secrets::new(secrets, &url);
        let url = Secret::new(url);
        Ok(HttpModel { target, endpoint, url, redacted_url, secrets, client })
    }
}

/// Version of Anthropic's API if the endpoint names none.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Checks that only an endpoint of Anthropic names a version, and that the version is a date, because
/// rendering compares versions as text.
fn check_api_version(version: Option<&str>, target: Target) -> Result<(), Error> {
    let Some(version) = version else { return Ok(()) };
    if target != Target::Anthropic {
        let reason = format!("the API of {target} has no version; only that of anthropic has");
        return Err(Error::Endpoint(reason));
    }
    let is_date = version.len() == ANTHROPIC_VERSION.len()
        && version.bytes().zip(ANTHROPIC_VERSION.bytes()).all(|(byte, known)| match known {
            b'-' => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    match is_date {
        true => Ok(()),
        false => Err(Error::Endpoint(format!(
            "the API version {version:?} is not valid: use a date such as {ANTHROPIC_VERSION}"
        ))),
    }
}

fn headers(endpoint: &Endpoint, target: Target) -> Vec<(&str, Secret)> {
    let mut headers = vec![("content-type", Secret::new("application/json"))];
    if target == Target::Anthropic {
        let version = endpoint.api_version.as_deref().unwrap_or(ANTHROPIC_VERSION);
        headers.push(("anthropic-version", Secret::new(version)));
    }
    if let Some(key) = &endpoint.key {
        headers.push(match target {
            Target::Anthropic => ("x-api-key", key.clone()),
            _ => ("authorization", Secret::new(format!("Bearer {}", key.reveal()))),
        });
    }
    headers.extend(endpoint.headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
    headers
}

impl Model for HttpModel {
    fn target(&self) -> Target {
        self.target
    }

    fn name(&self) -> &str {
        &self.endpoint.model
    }

    fn api_version(&self) -> Option<&str> {
        self.endpoint.api_version.as_deref()
    }

    /// The model, defaults for fields that the endpoint does not set, and the fields of the endpoint, except
    /// its field `model`.
    fn fields(&self) -> Vec<(String, String)> {
        let Endpoint { model, is_streaming, fields, .. } = &self.endpoint;
        let stream = is_streaming.to_string();
        let defaults: &[(&str, &str)] = match self.target {
            Target::OpenAiChat if *is_streaming => {
                &[("stream", &stream), ("stream_options", r#"{"include_usage":true}"#)]
            }
            Target::OpenAiResponses => &[
                ("stream", &stream),
                ("store", "false"),
                ("include", r#"["reasoning.encrypted_content"]"#),
            ],
            Target::Anthropic => &[("stream", &stream), ("max_tokens", "8192")],
            _ => &[("stream", &stream)],
        };
        let mut all = vec![("model".to_owned(), quoted(model))];
        let is_given = |name: &str| fields.iter().any(|(key, _)| key == name);
        let defaults = defaults.iter().filter(|(name, _)| !is_given(name));
        all.extend(defaults.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        all.extend(fields.iter().filter(|(name, _)| name != "model").cloned());
        all
    }

    fn call<'a>(
        &'a self,
        body: Bytes,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(self.call_with_retries(body, context))
    }
}

/// A failed attempt.
struct FailedAttempt {
    failure: Failure,
    status: Option<u16>,
    partial: Option<Reply>,
    retry_after: Option<Duration>,
}

impl From<Failure> for FailedAttempt {
    fn from(failure: Failure) -> Self {
        FailedAttempt { failure, status: None, partial: None, retry_after: None }
    }
}

impl HttpModel {
    async fn call_with_retries(
        &self,
        body: Bytes,
        context: &CallContext<'_>,
    ) -> Result<Reply, CallError> {
        let mut attempts = Vec::new();
        loop {
            let start = Instant::now();
            let failed = match self.call_once(body.clone(), context).await {
                Ok(reply) => return Ok(Reply { attempts, ..reply }),
                Err(failed) => failed,
            };
            let FailedAttempt { failure, status, partial, retry_after } = failed;
            let failure = failure.redacted(&self.secrets);
            let nth = attempts.len() as u32;
            // After the first delta a retry would repeat text that the caller has already received.
            let may_retry = failure.is_transient() && partial.is_none();
            let delay = match may_retry {
                true => self.endpoint.retry.delay(nth, retry_after, jitter()),
                false => None,
            };
            attempts.push(Attempt {
                status,
                failure: failure.to_string(),
                millis: start.elapsed().as_millis() as u64,
                waited_millis: delay.map_or(0, |delay| delay.as_millis() as u64),
            });
            let Some(delay) = delay else {
                return Err(CallError { failure, attempts, partial: partial.map(Box::new) });
            };
            tracing::warn!(
                status,
                failure = failure.kind(),
                delay_ms = trace::millis(delay),
                "an attempt of a model call failed"
            );
            let reason = attempts.last().map_or("", |attempt| attempt.failure.as_str());
            context.emit(Delta::Retrying { delay, reason });
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = context.cancel.cancelled() => {
                    return Err(CallError { failure: Failure::Cancelled, attempts, partial: None });
                }
            }
        }
    }

    async fn call_once(
        &self,
        body: Bytes,
        context: &CallContext<'_>,
    ) -> Result<Reply, FailedAttempt> {
        let limit = self.endpoint.timeouts.first_byte;
        let sending = self.client.post(self.url.reveal()).body(body).send();
        let response = tokio::select! {
            sent = tokio::time::timeout(limit, sending) => match sent {
                Ok(sent) => sent.map_err(|error| self.connection_failure(error))?,
                Err(_) => return Err(Failure::Timeout { what: "the provider", limit }.into()),
            },
            () = context.cancel.cancelled() => return Err(Failure::Cancelled.into()),
        };
        let status = response.status();
        tracing::Span::current().record("status", status.as_u16());
        if !status.is_success() {
            return Err(self.http_failure(response, context).await);
        }
        let decoder = decode::decoder(self.target).expect("`new` checks the target");
        let header = |name: &str| response.headers().get(name).and_then(|it| it.to_str().ok());
        if let Some(coding) = header("content-encoding").filter(|coding| *coding != "identity") {
            let failure = Failure::Malformed(format!("unrequested content encoding {coding}"));
            return Err(FailedAttempt {
                status: Some(status.as_u16()),
                ..FailedAttempt::from(failure)
            });
        }
        let is_stream = match header("content-type") {
            Some(kind) if kind.starts_with("text/event-stream") => true,
            Some(kind) if kind.contains("json") || kind.contains("html") => false,
            _ => self.endpoint.is_streaming,
        };
        match is_stream {
            true => self.read_stream(response, decoder, context).await,
            false => self.read_whole(response, decoder, context).await,
        }
        .map_err(|failed| FailedAttempt {
            status: failed.status.or(Some(status.as_u16())),
            ..failed
        })
    }

    async fn read_stream(
        &self,
        response: Response,
        mut decoder: Box<dyn Decoder>,
        context: &CallContext<'_>,
    ) -> Result<Reply, FailedAttempt> {
        let mut events = SseByteStream::new(self.bounded(response));
        // Some servers send the response head at once and the first event much later.
        let mut limit = self.endpoint.timeouts.first_byte;
        let mut has_deltas = false;
        let mut on_delta = |delta: Delta<'_>| {
            has_deltas = true;
            context.emit(delta);
        };
        let failure = loop {
            let next = tokio::select! {
                biased;
                () = context.cancel.cancelled() => break Failure::Cancelled,
                next = tokio::time::timeout(limit, events.next()) => next,
            };
            match next {
                Err(_) => break Failure::Timeout { what: "the next event of the reply", limit },
                Ok(Some(Ok(event))) => {
                    // Comments and ids have no data.
                    let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
                    limit = self.endpoint.timeouts.idle;
                    let data = decode::without_lone_surrogates(&data);
                    if let Err(failure) = decoder.read_event(&data, &mut on_delta) {
                        break failure;
                    }
                    if decoder.is_stream_over() {
                        // A connection is reused only if its response was read to the end.
                        let _ = tokio::time::timeout(DRAIN_TIMEOUT, events.next()).await;
                        return Ok(decoder.finish());
                    }
                }
                Ok(Some(Err(sse_stream::Error::Body(error)))) => {
                    break Failure::Cut(error_chain(&*error));
                }
                Ok(Some(Err(error))) => break Failure::Malformed(error.to_string()),
                Ok(None) => {
                    break Failure::Cut("the stream ended before the reply was complete".into());
                }
            }
        };
        // Failures after the end of the reply do not matter.
        if decoder.is_reply_complete() {
            return Ok(decoder.finish());
        }
        let reply = Reply { finish: crate::Finish::Cut, ..decoder.finish() };
        let has_content = has_deltas || !reply.is_empty();
        let partial = has_content.then_some(reply);
        Err(FailedAttempt { partial, ..FailedAttempt::from(failure) })
    }

    async fn read_whole(
        &self,
        response: Response,
        mut decoder: Box<dyn Decoder>,
        context: &CallContext<'_>,
    ) -> Result<Reply, FailedAttempt> {
        let body = self.read_body(response, context).await?;
        let text = std::str::from_utf8(&body)
            .map_err(|error| Failure::Malformed(format!("not UTF-8: {error}")))?;
        decoder.read_body(&decode::without_lone_surrogates(text))?;
        let reply = decoder.finish();
        context.emit(Delta::Text(&reply.text()));
        Ok(reply)
    }

    async fn read_body(
        &self,
        response: Response,
        context: &CallContext<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let limit = self.endpoint.timeouts.idle;
        let mut pieces = std::pin::pin!(self.bounded(response));
        let mut body = Vec::new();
        loop {
            let next = tokio::select! {
                next = tokio::time::timeout(limit, pieces.next()) => next,
                () = context.cancel.cancelled() => return Err(Failure::Cancelled),
            };
            match next {
                Err(_) => return Err(Failure::Timeout { what: "the rest of the reply", limit }),
                Ok(None) => return Ok(body),
                Ok(Some(Ok(piece))) => body.extend_from_slice(&piece),
                Ok(Some(Err(error))) => return Err(Failure::Cut(error_chain(&error))),
            }
        }
    }

    /// The body of a response. Reading fails after `max_response_bytes`.
    fn bounded(
        &self,
        response: Response,
    ) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Unpin + use<> {
        let max = self.endpoint.max_response_bytes;
        let mut len = 0_usize;
        let pieces = response
            .bytes_stream()
            .map_err(|error| std::io::Error::other(error_chain(&error.without_url())));
        Box::pin(pieces.and_then(move |piece| {
            len = len.saturating_add(piece.len());
            std::future::ready(match len > max {
                true => {
                    Err(std::io::Error::other(format!("the response is longer than {max} bytes")))
                }
                false => Ok(piece),
            })
        }))
    }

    fn connection_failure(&self, error: reqwest::Error) -> Failure {
        match error.is_timeout() {
            true => Failure::Timeout { what: "connecting", limit: self.endpoint.timeouts.connect },
            false => Failure::Connection(format!(
                "{}: {}",
                self.redacted_url,
                error_chain(&error.without_url())
            )),
        }
    }

    /// The failure that an HTTP error response describes.
    async fn http_failure(&self, response: Response, context: &CallContext<'_>) -> FailedAttempt {
        let status = response.status();
        let retry_after = http_error::retry_after(response.headers(), SystemTime::now());
        let body = self.read_body(response, context).await.unwrap_or_else(|failure| {
            tracing::warn!(failure = failure.kind(), "the body of an error response was not read");
            Vec::new()
        });
        let message = http_error::message(&String::from_utf8_lossy(&body), status);
        let failure = http_error::failure(status, message, retry_after);
        FailedAttempt { failure, status: Some(status.as_u16()), partial: None, retry_after }
    }
}

/// A number from 0 to 1 that differs between clients that failed at the same time.
fn jitter() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    f64::from(now.subsec_nanos() % 1_000) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_no_debug_output_and_invalid_endpoints_are_rejected() {
        let model =
            HttpModel::anthropic(Endpoint::new("https://a.example/v1", "m").key("sk-1")).unwrap();
        assert!(!format!("{model:?}").contains("sk-1"));
        let model =
            HttpModel::anthropic(Endpoint::new("https://u:pw1@h/v1/?key=abc", "m")).unwrap();
        assert_eq!(model.url.reveal(), "https://u:pw1@h/v1/messages?key=abc");
        let debug = format!("{model:?}");
        assert!(!debug.contains("abc") && !debug.contains("pw1"), "{debug}");
        for endpoint in [
            Endpoint::new("nowhere?key=abc", "m"),
            Endpoint::new("https://h/v1", "m").key("a\nb"),
            Endpoint::new("ftp://u:abc@h/v1", "m"),
        ] {
            let error = HttpModel::openai_chat(endpoint).unwrap_err();
            assert!(!error.to_string().contains("a\nb"), "{error}");
            assert!(!error.to_string().contains("abc"), "{error}");
        }
        for target in Target::ALL {
            let model = HttpModel::new(target, Endpoint::new("http://h", "m"));
            assert_eq!(model.is_ok(), HttpModel::TARGETS.contains(&target), "{target}");
        }
    }

    #[test]
    fn an_api_version_is_a_date_and_only_for_anthropic() {
        let endpoint = |version: &str| Endpoint::new("https://h/v1", "m").api_version(version);
        HttpModel::anthropic(endpoint("2026-10-21")).unwrap();
        for version in ["", "latest", "2026-10-2", "2026/10/21", "2026-10-21\n"] {
            let error = HttpModel::anthropic(endpoint(version)).unwrap_err();
            assert!(error.to_string().contains("use a date"), "{error}");
        }
        let error = HttpModel::openai_chat(endpoint("2026-10-21")).unwrap_err();
        assert!(error.to_string().contains("only that of anthropic"), "{error}");
    }

    #[test]
    fn secrets_are_not_sent_over_plain_http_to_another_machine() {
        for url in ["http://0.0.0.0/v1", "http://h.example/v1", "http://192.168.0.7:80/v1"] {
            let endpoint = Endpoint::new(url, "m");
            for with_secret in [
                endpoint.clone().key("sk-1"),
                endpoint.clone().header("api-key", "sk-1"),
                Endpoint::new(url.replace("//", "//u:sk-1@"), "m"),
                Endpoint::new(url.replace("//", "//:sk-1@"), "m"),
                Endpoint::new(url.replace("//", "//sk-1@"), "m"),
            ] {
                let error = HttpModel::openai_chat(with_secret.clone()).unwrap_err().to_string();
                assert!(error.contains("plain HTTP") && !error.contains("sk-1"), "{error}");
                assert!(HttpModel::openai_chat(with_secret.allow_http()).is_ok());
            }
            assert!(HttpModel::openai_chat(endpoint).is_ok());
        }
        for url in
            ["http://localhost:1/v1", "http://127.9.0.1/v1", "http://[::1]:7/v1", "https://h/"]
        {
            assert!(HttpModel::openai_chat(Endpoint::new(url, "m").key("sk-1")).is_ok(), "{url}");
        }
    }

    #[test]
    fn fields_of_the_endpoint_override_the_defaults() {
        let endpoint = Endpoint::new("http://h/v1", "m").field("max_tokens", "7");
        let fields = HttpModel::anthropic(endpoint).unwrap().fields();
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["model", "stream", "max_tokens"]);
        assert_eq!(fields[2].1, "7");
    }
}
