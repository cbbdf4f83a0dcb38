//! A server at a URL: every request is a POST, its answer one JSON object or a stream of events that
//! ends with it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use sse_stream::SseByteStream;

use super::wire::{self, Era, Fault, Incoming};
use crate::web_client::{chain, client};
use crate::{Secret, refusal};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The header of a session, which servers with a handshake may give.
const SESSION: &str = "mcp-session-id";

#[derive(Debug)]
pub(super) struct WebLink {
    client: Client,
    url: Secret,
    longest: usize,
    next: AtomicU64,
    /// What is spoken, as far as that is known.
    version: Mutex<String>,
    session: Mutex<Option<String>>,
    /// Whether the server has forgotten the session.
    is_over: AtomicBool,
}

impl WebLink {
    pub(super) fn new(
        url: &str,
        headers: &[(String, Secret)],
        longest: usize,
    ) -> Result<WebLink, Fault> {
        let given = headers.iter().map(|(name, value)| (name.as_str(), value));
        let client = client(url, given, CONNECT).map_err(Fault::Odd)?;
        Ok(WebLink {
            client,
            url: Secret::new(url),
            longest,
            next: AtomicU64::new(1),
            version: Mutex::default(),
            session: Mutex::default(),
            is_over: AtomicBool::new(false),
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn agree(&self, era: &Era) {
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        version.clear();
        version.push_str(era.version());
    }

    pub(super) async fn ask(
        &self,
        method: &str,
        params: &str,
        patience: Duration,
    ) -> Result<String, Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let asking = async {
            let response = self.send(method, wire::request(id, method, params)).await?;
            let session = response.headers().get(SESSION).and_then(|it| it.to_str().ok());
            if let Some(session) = session {
                let session = session.to_owned();
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
            }
            self.answer(id, response).await
        };
        tokio::time::timeout(patience, asking).await.unwrap_or(Err(Fault::Late(patience)))
    }

    pub(super) async fn notify(&self, method: &str) -> Result<(), Fault> {
        let sending = self.send(method, wire::notification(method, "{}"));
        let sent = tokio::time::timeout(CONNECT, sending).await;
        sent.unwrap_or(Err(Fault::Late(CONNECT))).map(drop)
    }

    fn request(&self, method: &str) -> RequestBuilder {
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let request = self
            .client
            .post(self.url.reveal())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", version)
            .header("mcp-method", method);
        match &*self.session.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(session) => request.header(SESSION, session),
            None => request,
        }
    }

    async fn send(&self, method: &str, body: String) -> Result<Response, Fault> {
        let mut request = self.request(method);
        if let Some(name) = wire::called_name(&body) {
            request = request.header("mcp-name", name);
        }
        let sent = request.body(body).send().await;
        let response = sent.map_err(|error| Fault::Ended(chain(&error.without_url())))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let has_session = self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if status == StatusCode::NOT_FOUND && has_session {
            self.is_over.store(true, Ordering::Relaxed);
        }
        let body = self.body(response).await.unwrap_or_default();
        // An error of the protocol comes with a status of its own.
        if let Ok(Incoming::Answer(_, Err(fault))) = Incoming::read(&body) {
            return Err(fault);
        }
        let message = refusal::reason(&body, status);
        Err(Fault::Refused { code: i64::from(status.as_u16()), message, data: None })
    }

    async fn answer(&self, id: u64, response: Response) -> Result<String, Fault> {
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let body = self.body(response).await?;
            return match Incoming::read(&body) {
                Ok(Incoming::Answer(number, answer)) if number == id => answer,
                Ok(_) => Err(Fault::Odd("it answers something else".into())),
                Err(reason) => Err(Fault::Odd(format!("its answer cannot be read: {reason}"))),
            };
        }
        let mut events = SseByteStream::new(Box::pin(self.bounded(response)));
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| Fault::Ended(chain(&error)))?;
            let Some(data) = event.data else { continue };
            if let Ok(Incoming::Answer(number, answer)) = Incoming::read(&data)
                && number == id
            {
                return answer;
            }
        }
        Err(Fault::Ended("the stream ended before the answer came".into()))
    }

    async fn body(&self, response: Response) -> Result<String, Fault> {
        let mut pieces = Box::pin(self.bounded(response));
        let mut body = Vec::new();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(|error| Fault::Ended(error.to_string()))?);
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn bounded(
        &self,
        response: Response,
    ) -> impl futures_util::Stream<Item = Result<bytes::Bytes, std::io::Error>> + use<> {
        let (most, mut len) = (self.longest, 0_usize);
        let pieces = response
            .bytes_stream()
            .map_err(|error| std::io::Error::other(chain(&error.without_url())));
        pieces.and_then(move |piece| {
            len = len.saturating_add(piece.len());
            std::future::ready(match len > most {
                true => Err(std::io::Error::other(format!("it is longer than {most} bytes"))),
                false => Ok(piece),
            })
        })
    }
}
