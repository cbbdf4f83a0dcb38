//! Models behind HTTP: OpenAI's chat completions and what speaks like it, OpenAI's Responses,
//! Anthropic's Messages.
//!
//! ```text
//! body ──► POST, as it is ──► status ──► events ──► Decoder ──► Answer
//!            ▲                  │           │
//!            └── wait ◄─────────┴───────────┘   what may succeed the next time, as long as
//!                                               nothing was said yet
//! ```

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use recto_format::Target;
use reqwest::{Client, Response};
use sse_stream::SseByteStream;

use crate::answer::quoted;
use crate::call::Attempt;
use crate::decode::{self, Decoder};
use crate::secrets::{Secrets, shown};
use crate::web_client::{chain, client};
use crate::{
    Answer, BoxFuture, CallError, Delta, Endpoint, Error, Failure, Model, Secret, Watch, refusal,
};

/// How long the end of a stream may take once the answer is whole.
const LAST_BYTES: Duration = Duration::from_millis(50);

/// A model of one of the three providers.
#[derive(Clone, Debug)]
pub struct HttpModel {
    target: Target,
    endpoint: Endpoint,
    /// It may hold a key.
    url: Secret,
    /// The URL without it.
    shown: String,
    secrets: Secrets,
    client: Client,
}

impl HttpModel {
    /// OpenAI's chat completions, and the many servers that speak like it.
    pub fn openai_chat(endpoint: Endpoint) -> Result<HttpModel, Error> {
        HttpModel::new(Target::OpenAiChat, endpoint)
    }

    /// OpenAI's Responses. Nothing is kept at the provider: the conversation is here.
    pub fn openai_responses(endpoint: Endpoint) -> Result<HttpModel, Error> {
        HttpModel::new(Target::OpenAiResponses, endpoint)
    }

    /// Anthropic's Messages.
    pub fn anthropic(endpoint: Endpoint) -> Result<HttpModel, Error> {
        HttpModel::new(Target::Anthropic, endpoint)
    }

    /// The model behind an endpoint that speaks like a provider.
    pub fn new(target: Target, endpoint: Endpoint) -> Result<HttpModel, Error> {
        let path = match target {
            Target::OpenAiChat => "chat/completions",
            Target::OpenAiResponses => "responses",
            Target::Anthropic => "messages",
            Target::Gemini => {
                let reason = "there is no client for gemini; it has an endpoint like OpenAI's, \
                              which openai-chat can use";
                return Err(Error::Endpoint(reason.into()));
            }
        };
        let shown = shown(&endpoint.base_url);
        let wrong = |why: &str| {
            Error::Endpoint(format!("the base URL {shown:?} is none: {why}; write https://host/v1"))
        };
        let mut url =
            reqwest::Url::parse(&endpoint.base_url).map_err(|error| wrong(&error.to_string()))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(wrong("models are reached by http or https"));
        }
        // What stands behind the path, such as a version, stays there.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path.split('/'));
        }
        let url = url.to_string();
        let headers = headers(&endpoint, target);
        let given = headers.iter().map(|(name, value)| (*name, value));
        let client = client(&url, given, endpoint.patience.connect).map_err(Error::Endpoint)?;
        let secrets = endpoint.key.iter().chain(endpoint.headers.iter().map(|(_, value)| value));
        let secrets = Secrets::new(secrets, &url);
        let url = Secret::new(url);
        Ok(HttpModel { target, endpoint, url, shown, secrets, client })
    }
}

fn headers(endpoint: &Endpoint, target: Target) -> Vec<(&str, Secret)> {
    let mut headers = vec![("content-type", Secret::new("application/json"))];
    if target == Target::Anthropic {
        headers.push(("anthropic-version", Secret::new("2023-06-01")));
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

    /// What the endpoint says, and what the provider demands where that says nothing.
    fn fields(&self) -> Vec<(String, String)> {
        let Endpoint { model, is_streaming, fields, .. } = &self.endpoint;
        let stream = is_streaming.to_string();
        let usual: &[(&str, &str)] = match self.target {
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
        let usual = usual.iter().filter(|(name, _)| !is_given(name));
        all.extend(usual.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        all.extend(fields.iter().filter(|(name, _)| name != "model").cloned());
        all
    }

    fn call<'a>(
        &'a self,
        body: Bytes,
        watch: &'a Watch<'a>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        Box::pin(self.call_again(body, watch))
    }
}

/// What one attempt came to.
struct Failed {
    failure: Failure,
    status: Option<u16>,
    partial: Option<Answer>,
    retry_after: Option<Duration>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Failed { failure, status: None, partial: None, retry_after: None }
    }
}

impl HttpModel {
    async fn call_again(&self, body: Bytes, watch: &Watch<'_>) -> Result<Answer, CallError> {
        let mut attempts = Vec::new();
        loop {
            let start = Instant::now();
            let failed = match self.call_once(body.clone(), watch).await {
                Ok(answer) => return Ok(Answer { attempts, ..answer }),
                Err(failed) => failed,
            };
            let Failed { failure, status, partial, retry_after } = failed;
            let failure = failure.without(&self.secrets);
            let nth = attempts.len() as u32;
            // Once something was said, whoever looks on has seen it: asking again is for them.
            let may_retry = failure.is_transient() && partial.is_none();
            let wait = match may_retry {
                true => self.endpoint.retry.wait(nth, retry_after, fraction()),
                false => None,
            };
            attempts.push(Attempt {
                status,
                failure: failure.to_string(),
                millis: start.elapsed().as_millis() as u64,
                waited_millis: wait.map_or(0, |wait| wait.as_millis() as u64),
            });
            let Some(wait) = wait else {
                return Err(CallError { failure, attempts, partial: partial.map(Box::new) });
            };
            let why = attempts.last().map_or("", |attempt| attempt.failure.as_str());
            watch.delta(Delta::Waiting { wait, why });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = watch.cancel.cancelled() => {
                    return Err(CallError { failure: Failure::Cancelled, attempts, partial: None });
                }
            }
        }
    }

    async fn call_once(&self, body: Bytes, watch: &Watch<'_>) -> Result<Answer, Failed> {
        let limit = self.endpoint.patience.first_byte;
        let sending = self.client.post(self.url.reveal()).body(body).send();
        let response = tokio::select! {
            sent = tokio::time::timeout(limit, sending) => match sent {
                Ok(sent) => sent.map_err(|error| self.no_connection(error))?,
                Err(_) => return Err(Failure::Timeout { what: "the provider", limit }.into()),
            },
            () = watch.cancel.cancelled() => return Err(Failure::Cancelled.into()),
        };
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(response, watch).await);
        }
        let decoder = decode::decoder(self.target).expect("new tests the target");
        let header = |name: &str| response.headers().get(name).and_then(|it| it.to_str().ok());
        if let Some(packed) = header("content-encoding").filter(|packed| *packed != "identity") {
            let failure = Failure::Malformed(format!("it is packed ({packed}), unasked"));
            return Err(Failed { status: Some(status.as_u16()), ..Failed::from(failure) });
        }
        let is_stream = match header("content-type") {
            Some(kind) if kind.starts_with("text/event-stream") => true,
            Some(kind) if kind.contains("json") || kind.contains("html") => false,
            _ => self.endpoint.is_streaming,
        };
        match is_stream {
            true => self.read_stream(response, decoder, watch).await,
            false => self.read_whole(response, decoder, watch).await,
        }
        .map_err(|failed| Failed { status: failed.status.or(Some(status.as_u16())), ..failed })
    }

    async fn read_stream(
        &self,
        response: Response,
        mut decoder: Box<dyn Decoder>,
        watch: &Watch<'_>,
    ) -> Result<Answer, Failed> {
        let mut events = SseByteStream::new(self.bounded(response));
        // Some begin to answer at once, and then think.
        let mut limit = self.endpoint.patience.first_byte;
        let mut has_said = false;
        let mut say = |delta: Delta<'_>| {
            has_said = true;
            watch.delta(delta);
        };
        let failure = loop {
            let next = tokio::select! {
                biased;
                () = watch.cancel.cancelled() => break Failure::Cancelled,
                next = tokio::time::timeout(limit, events.next()) => next,
            };
            match next {
                Err(_) => break Failure::Timeout { what: "the next piece of the answer", limit },
                Ok(Some(Ok(event))) => {
                    // Comments and ids are no data.
                    let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
                    limit = self.endpoint.patience.between;
                    if let Err(failure) = decoder.event(&data, &mut say) {
                        break failure;
                    }
                    if decoder.is_over() {
                        // A connection is used again only if it was read to its end.
                        let _ = tokio::time::timeout(LAST_BYTES, events.next()).await;
                        return Ok(decoder.finish());
                    }
                }
                Ok(Some(Err(sse_stream::Error::Body(error)))) => {
                    break Failure::Cut(chain(&*error));
                }
                Ok(Some(Err(error))) => break Failure::Malformed(error.to_string()),
                Ok(None) => break Failure::Cut("the stream ended before the answer did".into()),
            }
        };
        // What comes after the end of an answer, or does not come, is no concern.
        if decoder.is_done() {
            return Ok(decoder.finish());
        }
        let answer = Answer { finish: crate::Finish::Cut, ..decoder.finish() };
        let is_worth_keeping = has_said || !answer.is_empty();
        let partial = is_worth_keeping.then_some(answer);
        Err(Failed { partial, ..Failed::from(failure) })
    }

    async fn read_whole(
        &self,
        response: Response,
        mut decoder: Box<dyn Decoder>,
        watch: &Watch<'_>,
    ) -> Result<Answer, Failed> {
        let body = self.read_body(response, watch).await?;
        let text = std::str::from_utf8(&body)
            .map_err(|error| Failure::Malformed(format!("it is no UTF-8: {error}")))?;
        decoder.whole(text)?;
        let answer = decoder.finish();
        watch.delta(Delta::Text(&answer.said()));
        Ok(answer)
    }

    async fn read_body(&self, response: Response, watch: &Watch<'_>) -> Result<Vec<u8>, Failure> {
        let limit = self.endpoint.patience.between;
        let mut pieces = std::pin::pin!(self.bounded(response));
        let mut body = Vec::new();
        loop {
            let next = tokio::select! {
                next = tokio::time::timeout(limit, pieces.next()) => next,
                () = watch.cancel.cancelled() => return Err(Failure::Cancelled),
            };
            match next {
                Err(_) => return Err(Failure::Timeout { what: "the rest of the answer", limit }),
                Ok(None) => return Ok(body),
                Ok(Some(Ok(piece))) => body.extend_from_slice(&piece),
                Ok(Some(Err(error))) => return Err(Failure::Cut(chain(&error))),
            }
        }
    }

    /// The bytes of an answer, up to the most that it may have.
    fn bounded(
        &self,
        response: Response,
    ) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Unpin + use<> {
        let most = self.endpoint.longest_answer;
        let mut len = 0_usize;
        let pieces = response
            .bytes_stream()
            .map_err(|error| std::io::Error::other(chain(&error.without_url())));
        Box::pin(pieces.and_then(move |piece| {
            len = len.saturating_add(piece.len());
            std::future::ready(match len > most {
                true => Err(std::io::Error::other(format!("it is longer than {most} bytes"))),
                false => Ok(piece),
            })
        }))
    }

    fn no_connection(&self, error: reqwest::Error) -> Failure {
        match error.is_timeout() {
            true => Failure::Timeout { what: "connecting", limit: self.endpoint.patience.connect },
            false => {
                Failure::Connection(format!("{}: {}", self.shown, chain(&error.without_url())))
            }
        }
    }

    /// Why the provider did not answer.
    async fn refused(&self, response: Response, watch: &Watch<'_>) -> Failed {
        let status = response.status();
        let retry_after = refusal::retry_after(response.headers(), SystemTime::now());
        let body = self.read_body(response, watch).await.unwrap_or_default();
        let message = refusal::reason(&String::from_utf8_lossy(&body), status);
        let failure = refusal::failure(status, message, retry_after);
        Failed { failure, status: Some(status.as_u16()), partial: None, retry_after }
    }
}

/// A number from 0 to 1 that differs between clients that failed together.
fn fraction() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    f64::from(now.subsec_nanos() % 1_000) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_in_no_debug_output_and_odd_endpoints_are_refused() {
        let model =
            HttpModel::anthropic(Endpoint::new("https://a.example/v1", "m").key("sk-1")).unwrap();
        assert!(!format!("{model:?}").contains("sk-1"));
        let model =
            HttpModel::anthropic(Endpoint::new("https://u:pw1@h/v1/?key=abc", "m")).unwrap();
        assert_eq!(model.url.reveal(), "https://u:pw1@h/v1/messages?key=abc");
        let told = format!("{model:?}");
        assert!(!told.contains("abc") && !told.contains("pw1"), "{told}");
        for endpoint in [
            Endpoint::new("nowhere?key=abc", "m"),
            Endpoint::new("http://h/v1", "m").key("a\nb"),
            Endpoint::new("ftp://u:abc@h/v1", "m"),
        ] {
            let error = HttpModel::openai_chat(endpoint).unwrap_err();
            assert!(!error.to_string().contains("a\nb"), "{error}");
            assert!(!error.to_string().contains("abc"), "{error}");
        }
        assert!(HttpModel::new(Target::Gemini, Endpoint::new("http://h", "m")).is_err());
    }

    #[test]
    fn fields_of_the_endpoint_count_before_the_usual_ones() {
        let endpoint = Endpoint::new("http://h/v1", "m").field("max_tokens", "7");
        let fields = HttpModel::anthropic(endpoint).unwrap().fields();
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["model", "stream", "max_tokens"]);
        assert_eq!(fields[2].1, "7");
    }
}
