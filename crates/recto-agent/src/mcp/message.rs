//! Encoding and decoding of MCP messages. Values that need no decoding stay JSON text.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::reply::quoted;
use crate::secrets::Secrets;

/// The protocol version that needs no handshake.
pub(super) const STATELESS_VERSION: &str = "2026-07-28";
/// The protocol version that the handshake requests. The server may choose an older one.
pub(super) const HANDSHAKE_VERSION: &str = "2025-11-25";
/// The JSON-RPC error code of an unknown method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// The protocol of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Without a handshake: every request identifies the client.
    Stateless,
    /// With a handshake, which negotiated this version.
    Handshake(String),
}

impl Protocol {
    pub(super) fn version(&self) -> &str {
        match self {
            Protocol::Stateless => STATELESS_VERSION,
            Protocol::Handshake(version) => version,
        }
    }
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum McpError {
    /// The server returned an error.
    #[error("it returned an error: {message} ({code})")]
    Response {
        code: i64,
        message: String,
        /// Additional data of the error, as JSON.
        data: Option<String>,
    },
    #[error("it took longer than {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection is closed.
    #[error("{0}")]
    Closed(String),
    /// The server violated the protocol.
    #[error("{0}")]
    Invalid(String),
}

impl McpError {
    /// Removes secrets from text that the server sent, and drops the additional data of an error.
    pub(super) fn redacted(self, secrets: &Secrets) -> McpError {
        match self {
            McpError::Response { code, message, .. } => {
                McpError::Response { code, message: secrets.redact(&message), data: None }
            }
            McpError::Timeout(limit) => McpError::Timeout(limit),
            McpError::Closed(reason) => McpError::Closed(secrets.redact(&reason)),
            McpError::Invalid(reason) => McpError::Invalid(secrets.redact(&reason)),
        }
    }
}

fn unreadable(what: &str, error: impl std::fmt::Display) -> McpError {
    McpError::Invalid(format!("{what} cannot be read: {error}"))
}

/// The client's name and version.
fn client() -> String {
    format!(r#"{{"name":"recto","version":{}}}"#, quoted(env!("CARGO_PKG_VERSION")))
}

/// A request in one line.
pub(super) fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, quoted(method))
}

/// A notification in one line.
pub(super) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, quoted(method))
}

/// The notification that a request is cancelled.
pub(super) fn cancelled(id: u64) -> String {
    notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#))
}

/// The response to a request of the server: only `ping` is supported.
pub(super) fn response(id: &str, method: &str) -> String {
    match method {
        "ping" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
        _ => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{METHOD_NOT_FOUND},"message":"method not found"}}}}"#
        ),
    }
}

/// Parameters of a request: the fields, and the client's identity if the protocol requires it.
pub(super) fn params(protocol: &Protocol, fields: &str) -> String {
    match protocol {
        Protocol::Handshake(_) => format!("{{{fields}}}"),
        Protocol::Stateless => {
            let comma = if fields.is_empty() { "" } else { "," };
            let prefix = "io.modelcontextprotocol";
            format!(
                r#"{{{fields}{comma}"_meta":{{"{prefix}/protocolVersion":"{STATELESS_VERSION}","{prefix}/clientInfo":{},"{prefix}/clientCapabilities":{{}}}}}}"#,
                client()
            )
        }
    }
}

/// Parameters of the handshake.
pub(super) fn initialize() -> String {
    let client = client();
    format!(
        r#"{{"protocolVersion":"{HANDSHAKE_VERSION}","capabilities":{{}},"clientInfo":{client}}}"#
    )
}

/// Parameters of a tool call. Line breaks in `input` become spaces, because a message is one line. JSON
/// strings contain no line breaks, so the value is unchanged.
pub(super) fn call(protocol: &Protocol, tool: &str, input: &str) -> String {
    let input = input.replace(['\n', '\r'], " ");
    params(protocol, &format!(r#""name":{},"arguments":{input}"#, quoted(tool)))
}

/// The name of the tool that a request calls, for the header `mcp-name`. `None` for other requests and
/// for names that a header cannot contain.
pub(super) fn called_name(request: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Request {
        method: String,
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        name: String,
    }
    let request = serde_json::from_str::<Request>(request).ok()?;
    let is_header_value = request.params.name.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    (request.method == "tools/call" && is_header_value).then_some(request.params.name)
}

/// Whether a result or the data of an error lists the protocol version without a handshake.
pub(super) fn lists_stateless_version(json: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Versions {
        #[serde(alias = "supported")]
        supported_versions: Vec<String>,
    }
    serde_json::from_str::<Versions>(json).is_ok_and(|versions| {
        versions.supported_versions.iter().any(|version| version == STATELESS_VERSION)
    })
}

/// The protocol version that the server chose in the handshake.
pub(super) fn negotiated_version(json: &str) -> Result<String, McpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Negotiated {
        protocol_version: String,
    }
    let negotiated = serde_json::from_str::<Negotiated>(json)
        .map_err(|error| unreadable("the result of the handshake", error))?;
    Ok(negotiated.protocol_version)
}

/// A message of a server.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The response to the request of this id.
    Response(u64, Result<String, McpError>),
    /// A request of the server. The id is JSON.
    Request { id: String, method: String },
    /// A notification, which needs no response.
    Notification,
}

impl Incoming {
    pub(super) fn parse(line: &str) -> Result<Incoming, String> {
        #[derive(Deserialize)]
        struct AnyMessage<'a> {
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            method: Option<String>,
            #[serde(borrow)]
            result: Option<&'a RawValue>,
            #[serde(borrow)]
            error: Option<ErrorObject<'a>>,
        }
        #[derive(Deserialize)]
        struct ErrorObject<'a> {
            #[serde(default)]
            code: i64,
            #[serde(default)]
            message: String,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
        }
        let any: AnyMessage<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let id = any.id.map(RawValue::get).filter(|id| *id != "null");
        let result = match (any.result, any.error) {
            (Some(result), _) => Ok(result.get().to_owned()),
            (None, Some(ErrorObject { code, message, data })) => Err(McpError::Response {
                code,
                message,
                data: data.map(|data| data.get().to_owned()),
            }),
            (None, None) => {
                return match (any.method, id) {
                    (Some(method), Some(id)) => Ok(Incoming::Request { id: id.to_owned(), method }),
                    (Some(_), None) => Ok(Incoming::Notification),
                    (None, _) => Err("it is neither a request nor a response".into()),
                };
            }
        };
        // This client's ids are numbers; some servers return them as strings.
        let number = id.and_then(|id| id.trim_matches('"').parse().ok());
        match number {
            Some(number) => Ok(Incoming::Response(number, result)),
            None => Err("the id is not one of this client's requests".into()),
        }
    }
}

/// A tool as the server describes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedTool {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) input_schema: Option<Box<RawValue>>,
}

/// A page of the list of tools.
pub(super) struct ToolPage {
    pub(super) tools: Vec<ListedTool>,
    pub(super) next_cursor: Option<String>,
}

impl ToolPage {
    pub(super) fn parse(json: &str) -> Result<ToolPage, McpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Whole {
            tools: Vec<Box<RawValue>>,
            next_cursor: Option<String>,
        }
        let whole: Whole =
            serde_json::from_str(json).map_err(|error| unreadable("its list of tools", error))?;
        // A tool that cannot be parsed is skipped, so that the others stay usable.
        let tools = whole.tools.iter().filter_map(|tool| {
            let parsed = serde_json::from_str(tool.get());
            parsed
                .inspect_err(|error: &serde_json::Error| {
                    // The text of the error may contain values of the server.
                    let (kind, column) = (error.classify(), error.column());
                    tracing::warn!(?kind, column, "a tool of an MCP server cannot be read");
                })
                .ok()
        });
        let next_cursor = whole.next_cursor.filter(|cursor| !cursor.is_empty());
        Ok(ToolPage { tools: tools.collect(), next_cursor })
    }
}

/// The result of a tool call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolResult {
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl ToolResult {
    pub(super) fn parse(json: &str) -> Result<ToolResult, McpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Whole {
            #[serde(default)]
            content: Vec<Box<RawValue>>,
            structured_content: Option<Box<RawValue>>,
            #[serde(default)]
            is_error: bool,
            #[serde(default)]
            result_type: Option<String>,
        }
        let whole: Whole = serde_json::from_str(json)
            .map_err(|error| unreadable("the result of the call", error))?;
        if whole.result_type.as_deref() == Some("input_required") {
            return Err(McpError::Invalid(
                "it requests additional input, which is not supported".into(),
            ));
        }
        let mut texts: Vec<String> =
            whole.content.iter().map(|part| part_text(part.get())).collect();
        if let (true, Some(structured)) = (texts.is_empty(), &whole.structured_content) {
            texts.push(structured.get().to_owned());
        }
        Ok(ToolResult { text: texts.join("\n"), is_error: whole.is_error })
    }
}

/// A part of a result as text. Parts without text become a description.
fn part_text(json: &str) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Part {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
        data: Option<String>,
        mime_type: Option<String>,
        uri: Option<String>,
        name: Option<String>,
        resource: Option<Resource>,
    }
    #[derive(Deserialize)]
    struct Resource {
        uri: String,
        text: Option<String>,
    }
    let Ok(part) = serde_json::from_str::<Part>(json) else { return json.to_owned() };
    match part {
        Part { kind, text: Some(text), .. } if kind == "text" => text,
        Part { kind, data: Some(data), mime_type, .. } if kind == "image" || kind == "audio" => {
            let (mime, len) = (mime_type.unwrap_or_default(), data.len());
            format!("[{kind} {mime}: {len} bytes of Base64 omitted]")
        }
        Part { resource: Some(Resource { uri, text }), .. } => match text {
            Some(text) => format!("[{uri}]\n{text}"),
            None => format!("[{uri}: binary content omitted]"),
        },
        Part { kind, uri: Some(uri), name, .. } if kind == "resource_link" => {
            format!("[{} {uri}]", name.unwrap_or_default())
        }
        // A part of an unknown kind is passed to the model as JSON.
        _ => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_of_a_call_is_unchanged_except_for_line_breaks() {
        let input = "{\"n\": 1.50,\n \"big\": 123456789012345678901234567890, \"n\": 1e400}";
        let protocol = Protocol::Handshake("2025-06-18".into());
        let line = request(7, "tools/call", &call(&protocol, "a\"b", input));
        assert_eq!(
            line,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a\"b","arguments":{"n": 1.50,  "big": 123456789012345678901234567890, "n": 1e400}}}"#
        );
        let stateless: serde_json::Value =
            serde_json::from_str(&call(&Protocol::Stateless, "t", "{}")).unwrap();
        assert_eq!(
            stateless["_meta"]["io.modelcontextprotocol/protocolVersion"],
            STATELESS_VERSION
        );
        assert_eq!(stateless["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "recto");
    }

    #[test]
    fn messages_of_servers_are_distinguished() {
        let read = |line: &str| Incoming::parse(line);
        let response = read(r#"{"jsonrpc":"2.0","id":3,"result":{"a":1.0}}"#).unwrap();
        assert!(matches!(response, Incoming::Response(3, Ok(json)) if json == r#"{"a":1.0}"#));
        let error = read(r#"{"id":"3","error":{"code":-32601,"message":"no"}}"#).unwrap();
        assert!(matches!(
            error,
            Incoming::Response(3, Err(McpError::Response { code: -32601, .. }))
        ));
        let request = read(r#"{"id":"x","method":"ping"}"#).unwrap();
        assert!(
            matches!(request, Incoming::Request { id, method } if id == "\"x\"" && method == "ping")
        );
        assert!(matches!(
            read(r#"{"method":"notifications/message"}"#),
            Ok(Incoming::Notification)
        ));
        for invalid in ["", "hello", "[]", "{}", "null", r#"{"id":null,"error":{"code":1}}"#] {
            assert!(read(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn every_kind_of_result_part_becomes_text() {
        let json = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"file:///x","text":"b"}},{"type":"hologram","x":1}],"isError":true}"#;
        let called = ToolResult::parse(json).unwrap();
        assert!(called.is_error);
        assert_eq!(
            called.text,
            "a\n[image image/png: 4 bytes of Base64 omitted]\n[file:///x]\nb\n{\"type\":\"hologram\",\"x\":1}"
        );
        let structured =
            ToolResult::parse(r#"{"content":[],"structuredContent":{"n":1.50}}"#).unwrap();
        assert_eq!(structured, ToolResult { text: r#"{"n":1.50}"#.into(), is_error: false });
        assert!(
            ToolResult::parse(r#"{"resultType":"input_required","inputRequests":{}}"#).is_err()
        );
        assert!(ToolResult::parse("7").is_err());
    }

    #[test]
    fn tools_that_cannot_be_parsed_are_skipped() {
        let page =
            ToolPage::parse(r#"{"tools":[{"name":1},7,{"name":"ok"}],"nextCursor":""}"#).unwrap();
        assert_eq!((page.tools.len(), page.next_cursor), (1, None));
        assert!(ToolPage::parse(r#"{"tools":{}}"#).is_err());
    }
}
