//! How messages of the protocol look. Nothing is decoded that need not be.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::quoted;
use crate::secrets::Secrets;

/// What is spoken without a handshake.
pub(super) const MODERN_VERSION: &str = "2026-07-28";
/// What is asked for in a handshake; the server may answer with an older one.
pub(super) const HANDSHAKE_VERSION: &str = "2025-11-25";
/// The code of a question that nobody knows.
pub(super) const NO_SUCH_METHOD: i64 = -32601;

/// What a server speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// Every request says who asks.
    Modern,
    /// There was a handshake, in which this version was agreed on.
    Handshake(String),
}

impl Era {
    pub(super) fn version(&self) -> &str {
        match self {
            Era::Modern => MODERN_VERSION,
            Era::Handshake(version) => version,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// The server says so.
    #[error("it says: {message} ({code})")]
    Refused {
        code: i64,
        message: String,
        /// What it says beside, as JSON.
        data: Option<String>,
    },
    #[error("it took longer than {} s", .0.as_secs_f64())]
    Late(Duration),
    #[error("{0}")]
    Ended(String),
    #[error("{0}")]
    Odd(String),
}

impl Fault {
    /// As it leaves the client: without anything secret in what the server says.
    pub(super) fn without(self, secrets: &Secrets) -> Fault {
        match self {
            Fault::Refused { code, message, .. } => {
                Fault::Refused { code, message: secrets.told(&message), data: None }
            }
            Fault::Late(limit) => Fault::Late(limit),
            Fault::Ended(why) => Fault::Ended(secrets.told(&why)),
            Fault::Odd(why) => Fault::Odd(secrets.told(&why)),
        }
    }
}

fn odd(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::Odd(format!("{what} cannot be read: {error}"))
}

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

/// That an answer is waited for no longer.
pub(super) fn cancelled(id: u64) -> String {
    notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#))
}

/// The answer to what a server asks us: that we are here, or that we do not know the question.
pub(super) fn answer(id: &str, method: &str) -> String {
    match method {
        "ping" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#),
        _ => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{NO_SUCH_METHOD},"message":"not known here"}}}}"#
        ),
    }
}

/// Parameters: these fields, and who asks if it has to be said every time.
pub(super) fn params(era: &Era, fields: &str) -> String {
    match era {
        Era::Handshake(_) => format!("{{{fields}}}"),
        Era::Modern => {
            let comma = if fields.is_empty() { "" } else { "," };
            let about = "io.modelcontextprotocol";
            format!(
                r#"{{{fields}{comma}"_meta":{{"{about}/protocolVersion":"{MODERN_VERSION}","{about}/clientInfo":{},"{about}/clientCapabilities":{{}}}}}}"#,
                client()
            )
        }
    }
}

/// The parameters of a handshake.
pub(super) fn initialize() -> String {
    let client = client();
    format!(
        r#"{{"protocolVersion":"{HANDSHAKE_VERSION}","capabilities":{{}},"clientInfo":{client}}}"#
    )
}

/// The parameters of a call. `input` is JSON: outside its strings a line break is but a space.
pub(super) fn call(era: &Era, tool: &str, input: &str) -> String {
    let input = input.replace(['\n', '\r'], " ");
    params(era, &format!(r#""name":{},"arguments":{input}"#, quoted(tool)))
}

/// The tool that a request calls, for those who look at nothing but headers.
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
    let is_plain = request.params.name.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    (request.method == "tools/call" && is_plain).then_some(request.params.name)
}

/// Whether an answer or an error lists the version without a handshake.
pub(super) fn speaks_modern(json: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Versions {
        #[serde(alias = "supported")]
        supported_versions: Vec<String>,
    }
    serde_json::from_str::<Versions>(json)
        .is_ok_and(|known| known.supported_versions.iter().any(|version| version == MODERN_VERSION))
}

/// The version that a server answers a handshake with.
pub(super) fn version_of(json: &str) -> Result<String, Fault> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Agreed {
        protocol_version: String,
    }
    let agreed = serde_json::from_str::<Agreed>(json);
    Ok(agreed.map_err(|error| odd("the answer to the handshake", error))?.protocol_version)
}

/// A message of a server.
#[derive(Debug)]
pub(super) enum Incoming {
    /// An answer to the request of this number.
    Answer(u64, Result<String, Fault>),
    /// A question of the server's; the id is JSON.
    Asks { id: String, method: String },
    /// Something that is told, and needs no answer.
    Told,
}

impl Incoming {
    pub(super) fn read(line: &str) -> Result<Incoming, String> {
        #[derive(Deserialize)]
        struct Any<'a> {
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            method: Option<String>,
            #[serde(borrow)]
            result: Option<&'a RawValue>,
            #[serde(borrow)]
            error: Option<Refusal<'a>>,
        }
        #[derive(Deserialize)]
        struct Refusal<'a> {
            #[serde(default)]
            code: i64,
            #[serde(default)]
            message: String,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
        }
        let any: Any<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let id = any.id.map(RawValue::get).filter(|id| *id != "null");
        let answered = match (any.result, any.error) {
            (Some(result), _) => Ok(result.get().to_owned()),
            (None, Some(Refusal { code, message, data })) => {
                Err(Fault::Refused { code, message, data: data.map(|data| data.get().to_owned()) })
            }
            (None, None) => {
                return match (any.method, id) {
                    (Some(method), Some(id)) => Ok(Incoming::Asks { id: id.to_owned(), method }),
                    (Some(_), None) => Ok(Incoming::Told),
                    (None, _) => Err("it is neither a request nor an answer".into()),
                };
            }
        };
        // Our ids are numbers; some give them back as strings.
        let number = id.and_then(|id| id.trim_matches('"').parse().ok());
        match number {
            Some(number) => Ok(Incoming::Answer(number, answered)),
            None => Err("it answers nothing that was asked".into()),
        }
    }
}

/// A tool as a server describes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) input_schema: Option<Box<RawValue>>,
}

/// A page of the list of tools.
pub(super) struct Page {
    pub(super) tools: Vec<Listed>,
    pub(super) next: Option<String>,
}

impl Page {
    pub(super) fn read(json: &str) -> Result<Page, Fault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Whole {
            tools: Vec<Box<RawValue>>,
            next_cursor: Option<String>,
        }
        let whole: Whole =
            serde_json::from_str(json).map_err(|error| odd("its list of tools", error))?;
        // One that cannot be read does not take the others with it.
        let tools = whole.tools.iter().filter_map(|tool| serde_json::from_str(tool.get()).ok());
        let next = whole.next_cursor.filter(|cursor| !cursor.is_empty());
        Ok(Page { tools: tools.collect(), next })
    }
}

/// What a call brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl Called {
    pub(super) fn read(json: &str) -> Result<Called, Fault> {
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
        let whole: Whole =
            serde_json::from_str(json).map_err(|error| odd("the result of the call", error))?;
        if whole.result_type.as_deref() == Some("input_required") {
            return Err(Fault::Odd("it asks for more input, which cannot be given here".into()));
        }
        let mut texts: Vec<String> = whole.content.iter().map(|part| told(part.get())).collect();
        if let (true, Some(structured)) = (texts.is_empty(), &whole.structured_content) {
            texts.push(structured.get().to_owned());
        }
        Ok(Called { text: texts.join("\n"), is_error: whole.is_error })
    }
}

/// A part of a result as a text. What has none is named.
fn told(json: &str) -> String {
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
            format!("[{kind} {mime}: {len} bytes of Base64 left out]")
        }
        Part { resource: Some(Resource { uri, text }), .. } => match text {
            Some(text) => format!("[{uri}]\n{text}"),
            None => format!("[{uri}: its bytes are left out]"),
        },
        Part { kind, uri: Some(uri), name, .. } if kind == "resource_link" => {
            format!("[{} {uri}]", name.unwrap_or_default())
        }
        // Newer than this program: the model may make something of it.
        _ => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_of_a_call_stays_as_it_was_written_but_for_line_breaks() {
        let input = "{\"n\": 1.50,\n \"big\": 123456789012345678901234567890, \"n\": 1e400}";
        let era = Era::Handshake("2025-06-18".into());
        let line = request(7, "tools/call", &call(&era, "a\"b", input));
        assert_eq!(
            line,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a\"b","arguments":{"n": 1.50,  "big": 123456789012345678901234567890, "n": 1e400}}}"#
        );
        let modern: serde_json::Value =
            serde_json::from_str(&call(&Era::Modern, "t", "{}")).unwrap();
        assert_eq!(modern["_meta"]["io.modelcontextprotocol/protocolVersion"], MODERN_VERSION);
        assert_eq!(modern["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "recto");
    }

    #[test]
    fn messages_of_servers_are_told_apart() {
        let read = |line: &str| Incoming::read(line);
        let answer = read(r#"{"jsonrpc":"2.0","id":3,"result":{"a":1.0}}"#).unwrap();
        assert!(matches!(answer, Incoming::Answer(3, Ok(json)) if json == r#"{"a":1.0}"#));
        let text = read(r#"{"id":"3","error":{"code":-32601,"message":"no"}}"#).unwrap();
        assert!(matches!(text, Incoming::Answer(3, Err(Fault::Refused { code: -32601, .. }))));
        let asks = read(r#"{"id":"x","method":"ping"}"#).unwrap();
        assert!(matches!(asks, Incoming::Asks { id, method } if id == "\"x\"" && method == "ping"));
        assert!(matches!(read(r#"{"method":"notifications/message"}"#), Ok(Incoming::Told)));
        for odd in ["", "hello", "[]", "{}", "null", r#"{"id":null,"error":{"code":1}}"#] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_result_is_a_text_whatever_its_parts_are() {
        let json = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"file:///x","text":"b"}},{"type":"hologram","x":1}],"isError":true}"#;
        let called = Called::read(json).unwrap();
        assert!(called.is_error);
        assert_eq!(
            called.text,
            "a\n[image image/png: 4 bytes of Base64 left out]\n[file:///x]\nb\n{\"type\":\"hologram\",\"x\":1}"
        );
        let structured = Called::read(r#"{"content":[],"structuredContent":{"n":1.50}}"#).unwrap();
        assert_eq!(structured, Called { text: r#"{"n":1.50}"#.into(), is_error: false });
        assert!(Called::read(r#"{"resultType":"input_required","inputRequests":{}}"#).is_err());
        assert!(Called::read("7").is_err());
    }

    #[test]
    fn tools_that_cannot_be_read_do_not_take_others_with_them() {
        let page = Page::read(r#"{"tools":[{"name":1},7,{"name":"ok"}],"nextCursor":""}"#).unwrap();
        assert_eq!((page.tools.len(), page.next), (1, None));
        assert!(Page::read(r#"{"tools":{}}"#).is_err());
    }
}
