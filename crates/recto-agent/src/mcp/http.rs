//! The streamable HTTP transport: every request is a POST. Its response is one JSON object, or a stream of
//! events of which the last one contains that object.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use sse_stream::SseByteStream;

use super::message::{self, Incoming, McpError, Protocol};
use crate::web_client::{check_plain_http, client, error_chain};
use crate::{Secret, http_error};

/// Maximum time to establish a connection, and to send a notification.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The header with the session id, which servers with a handshake may send.
const SESSION_HEADER: &str = "mcp-session-id";

/// A connection to a server at a URL.
#[derive(Debug)]
pub(super) struct HttpConnection {
    client: Client,
    url: Secret,
    max_message_bytes: usize,
    next_id: AtomicU64,
    /// The protocol version that is sent with each request.
    version: Mutex<String>,
    session: Mutex<Option<String>>,
    /// Whether the session has ended on the server.
    is_closed: AtomicBool,
}

impl HttpConnection {
    pub(super) fn new(
        url: &str,
        headers: &[(String, Secret)],
        max_message_bytes: usize,
        allow_http: bool,
    ) -> Result<HttpConnection, McpError> {
        check_plain_http(url, !headers.is_empty(), allow_http).map_err(McpError::Invalid)?;
        let given = headers.iter().map(|(name, value)| (name.as_str(), value));
        let client = client(url, given, CONNECT_TIMEOUT).map_err(McpError::Invalid)?;
        Ok(HttpConnection {
            client,
            url: Secret::new(url),
            max_message_bytes,
            next_id: AtomicU64::new(1),
            version: Mutex::default(),
            session: Mutex::default(),
            is_closed: AtomicBool::new(false),
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    pub(super) fn set_protocol(&self, protocol: &Protocol) {
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        version.clear();
        version.push_str(protocol.version());
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &str,
        timeout: Duration,
    ) -> Result<String, McpError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let exchange = async {
            let response = self.send(method, message::request(id, method, params)).await?;
            let session = response.headers().get(SESSION_HEADER).and_then(|it| it.to_str().ok());
            if let Some(session) = session {
                let session = session.to_owned();
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
            }
            self.read_response(id, response).await
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(McpError::Timeout(timeout)))
    }

    pub(super) async fn notify(&self, method: &str) -> Result<(), McpError> {
        let sending = self.send(method, message::notification(method, "{}"));
        let sent = tokio::time::timeout(CONNECT_TIMEOUT, sending).await;
        sent.unwrap_or(Err(McpError::Timeout(CONNECT_TIMEOUT))).map(drop)
    }

    fn post(&self, method: &str) -> RequestBuilder {
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let request = self
            .client
            .post(self.url.reveal())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", version)
            .header("mcp-method", method);
        match &*self.session.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(session) => request.header(SESSION_HEADER, session),
            None => request,
        }
    }

    async fn send(&self, method: &str, body: String) -> Result<Response, McpError> {
        let mut request = self.post(method);
        if let Some(name) = message::called_name(&body) {
            request = request.header("mcp-name", name);
        }
        let sent = request.body(body).send().await;
        let response = sent.map_err(|error| McpError::Closed(error_chain(&error.without_url())))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let has_session = self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if status == StatusCode::NOT_FOUND && has_session {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        let body = self.body(response).await.unwrap_or_else(|_| {
            tracing::warn!("the body of an error response of an MCP server was not read");
            String::new()
        });
        // A protocol error may come with an HTTP error status.
        if let Ok(Incoming::Response(_, Err(error))) = Incoming::parse(&body) {
            return Err(error);
        }
        let message = http_error::message(&body, status);
        Err(McpError::Response { code: i64::from(status.as_u16()), message, data: None })
    }

    async fn read_response(&self, id: u64, response: Response) -> Result<String, McpError> {
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let body = self.body(response).await?;
            return match Incoming::parse(&body) {
                Ok(Incoming::Response(number, result)) if number == id => result,
                Ok(_) => Err(McpError::Invalid("its response belongs to another request".into())),
                Err(reason) => {
                    Err(McpError::Invalid(format!("its response cannot be read: {reason}")))
                }
            };
        }
        let mut events = SseByteStream::new(Box::pin(self.bounded(response)));
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| McpError::Closed(error_chain(&error)))?;
            let Some(data) = event.data else { continue };
            if let Ok(Incoming::Response(number, result)) = Incoming::parse(&data)
                && number == id
            {
                return result;
            }
        }
        Err(McpError::Closed("the stream ended before the response".into()))
    }

    async fn body(&self, response: Response) -> Result<String, McpError> {
        let mut pieces = Box::pin(self.bounded(response));
        let mut body = Vec::new();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(|error| McpError::Closed(error.to_string()))?);
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn bounded(
        &self,
        response: Response,
    ) -> impl futures_util::Stream<Item = Result<bytes::Bytes, std::io::Error>> + use<> {
        let (max, mut len) = (self.max_message_bytes, 0_usize);
        let pieces = response
            .bytes_stream()
            .map_err(|error| std::io::Error::other(error_chain(&error.without_url())));
        pieces.and_then(move |piece| {
            len = len.saturating_add(piece.len());
            std::future::ready(match len > max {
                true => Err(std::io::Error::other(format!("a message is longer than {max} bytes"))),
                false => Ok(piece),
            })
        })
    }
}
