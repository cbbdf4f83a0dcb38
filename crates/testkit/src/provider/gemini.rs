//! Google's Gemini: the rules of `generateContent` for `contents` and `systemInstruction`.
//!
//! Field names may be in camelCase or in snake_case, as the provider allows.

use serde_json::{Map, Value};

use super::{Check, filled_list, is_base64, is_word, object, refuse, string};

/// The names of the rules.
pub const RULES: &[&str] = &[
    "contents",
    "role",
    "field",
    "first_content",
    "parts",
    "part",
    "media_type",
    "system",
    "function_name",
    "args",
    "response",
    "unanswered_call",
    "unknown_result",
    "response_count",
    "response_match",
    "signature",
    "missing_signature",
];

/// Maximum length of function names, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The fields with the data of a part. A part has exactly one of them.
const DATA: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
/// The other fields that a part may have.
const OTHER_FIELDS: &[&str] =
    &["thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"];

/// Checks a request.
pub fn check(request: &Value) -> Check {
    let request = object(request, "contents", "request")?;
    if let Some(system) = field(request, "systemInstruction") {
        check_system(system)?;
    }
    let contents = filled_list(request.get("contents"), "contents", "contents")?;
    let mut before: Option<Turn<'_>> = None;
    for (index, content) in contents.iter().enumerate() {
        let at = format!("contents[{index}]");
        let turn = check_content(content, &at)?;
        match &before {
            None if turn.role != "user" => {
                return refuse("first_content", at, "the first content must be from the user");
            }
            _ => {}
        }
        let calls = before.as_ref().map_or(&[][..], |before| &before.calls);
        check_responses(calls, &turn.responses, &at)?;
        before = Some(turn);
    }
    match before.filter(|turn| !turn.calls.is_empty()) {
        Some(_) => refuse(
            "unanswered_call",
            format!("contents[{}]", contents.len()),
            "the responses to the last calls are missing",
        ),
        None => Ok(()),
    }
}

/// [`check`], and a rule of models from Gemini 3 on: in the current turn (from the
/// last user content without function responses), the first call of every content
/// has a signature.
pub fn check_signatures(request: &Value) -> Check {
    check(request)?;
    let contents = request["contents"].as_array().map_or(&[][..], Vec::as_slice);
    let parts = |content: &'_ Value| content["parts"].as_array().cloned().unwrap_or_default();
    let is_start = |content: &Value| {
        content["role"] == "user"
            && !parts(content).iter().any(|part| has(part, "functionResponse"))
    };
    let start = contents.iter().rposition(is_start).unwrap_or(0);
    for (index, content) in contents.iter().enumerate().skip(start) {
        let parts = parts(content);
        let Some(position) = parts.iter().position(|part| has(part, "functionCall")) else {
            continue;
        };
        if !has(&parts[position], "thoughtSignature") {
            let at = format!("contents[{index}].parts[{position}]");
            return refuse("missing_signature", at, "the first call has no thoughtSignature");
        }
    }
    Ok(())
}

/// One content: its role, and its calls and responses by name and id.
struct Turn<'a> {
    role: &'a str,
    calls: Vec<NameAndId<'a>>,
    responses: Vec<NameAndId<'a>>,
}

type NameAndId<'a> = (&'a str, Option<&'a str>);

fn has(part: &Value, name: &str) -> bool {
    part.as_object().is_some_and(|part| field(part, name).is_some())
}

/// A field by its camelCase name, also if it is written in snake_case.
fn field<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    map.get(name).or_else(|| map.iter().find(|(key, _)| camel(key) == name).map(|(_, value)| value))
}

/// `inline_data` as `inlineData`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut whole = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        whole.push_str(&first.to_ascii_uppercase());
        whole.push_str(rest);
    }
    whole
}

fn only_fields(map: &Map<String, Value>, known: &[&str], at: &str) -> Check {
    match map.keys().find(|key| !known.contains(&camel(key).as_str())) {
        Some(key) => refuse("field", format!("{at}.{key}"), "unknown field"),
        None => Ok(()),
    }
}

fn check_system(system: &Value) -> Check {
    let at = "systemInstruction";
    let system = object(system, "system", at)?;
    only_fields(system, &["role", "parts"], at)?;
    for (index, part) in filled_list(system.get("parts"), "system", at)?.iter().enumerate() {
        let at = format!("{at}.parts[{index}]");
        let part = object(part, "system", &at)?;
        match part.get("text") {
            Some(Value::String(_)) => {}
            _ => return refuse("system", at, "a part of the system instruction must be a text"),
        }
    }
    Ok(())
}

fn check_content<'a>(content: &'a Value, at: &str) -> Check<Turn<'a>> {
    let content = object(content, "contents", at)?;
    only_fields(content, &["role", "parts"], at)?;
    let role = content.get("role").map_or(Ok("user"), |_| string(content, "role", "role", at))?;
    if !["user", "model"].contains(&role) {
        return refuse("role", at, format!("no role {role:?}: user or model"));
    }
    let mut turn = Turn { role, calls: Vec::new(), responses: Vec::new() };
    for (index, part) in filled_list(content.get("parts"), "parts", at)?.iter().enumerate() {
        let at = format!("{at}.parts[{index}]");
        let part = object(part, "part", &at)?;
        check_part(part, &mut turn, &at)?;
    }
    Ok(turn)
}

fn check_part<'a>(part: &'a Map<String, Value>, turn: &mut Turn<'a>, at: &str) -> Check {
    only_fields(part, &[DATA, OTHER_FIELDS].concat(), at)?;
    let data: Vec<&str> = DATA.iter().copied().filter(|name| field(part, name).is_some()).collect();
    let [kind] = data[..] else {
        return refuse("part", at, format!("one of {DATA:?}, found {data:?}"));
    };
    let value = field(part, kind).unwrap_or(&Value::Null);
    let signature = field(part, "thoughtSignature");
    if signature.is_some_and(|signature| !signature.as_str().is_some_and(is_base64)) {
        return refuse("signature", at, "thoughtSignature must be base64");
    }
    match kind {
        "text" => match value.as_str() {
            Some(_) => Ok(()),
            None => refuse("part", at, "text must be a string"),
        },
        "inlineData" => {
            let data = object(value, "part", at)?;
            only_fields(data, &["mimeType", "data", "displayName"], at)?;
            let text = |name: &str| field(data, name).and_then(Value::as_str);
            match (text("mimeType"), text("data")) {
                (Some(kind), Some(data)) if is_base64(data) => match is_inline_type(kind) {
                    true => Ok(()),
                    false => refuse("media_type", at, "unsupported mimeType"),
                },
                _ => refuse("part", at, "inlineData must have mimeType, and data in base64"),
            }
        }
        "fileData" => {
            let data = object(value, "part", at)?;
            only_fields(data, &["mimeType", "fileUri", "displayName"], at)?;
            match field(data, "fileUri").and_then(Value::as_str) {
                Some(uri) if !uri.is_empty() => Ok(()),
                _ => refuse("part", at, "fileData must have a fileUri"),
            }
        }
        "functionCall" if turn.role == "model" => {
            let call = object(value, "part", at)?;
            only_fields(call, &["id", "name", "args"], at)?;
            if call.get("args").is_some_and(|args| !args.is_object()) {
                return refuse("args", at, "args must be an object");
            }
            turn.calls.push(name_and_id(call, at)?);
            Ok(())
        }
        "functionResponse" if turn.role == "user" => {
            let response = object(value, "part", at)?;
            only_fields(
                response,
                &["id", "name", "response", "parts", "willContinue", "scheduling"],
                at,
            )?;
            if !response.get("response").is_some_and(Value::is_object) {
                return refuse("response", at, "response must be an object");
            }
            turn.responses.push(name_and_id(response, at)?);
            Ok(())
        }
        "functionCall" | "functionResponse" => {
            refuse("part", at, format!("{kind} in a content from {}", turn.role))
        }
        _ => object(value, "part", at).map(drop),
    }
}

fn name_and_id<'a>(map: &'a Map<String, Value>, at: &str) -> Check<NameAndId<'a>> {
    let name = string(map, "name", "function_name", at)?;
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !is_word(name, "_.:-", MAX_NAME_CHARS) {
        return refuse("function_name", at, format!("{name:?} is not a function name"));
    }
    Ok((name, map.get("id").and_then(Value::as_str)))
}

/// A content has responses to exactly the calls of the content before it.
fn check_responses(calls: &[NameAndId<'_>], responses: &[NameAndId<'_>], at: &str) -> Check {
    if calls.is_empty() && !responses.is_empty() {
        return refuse("unknown_result", at, "a response that does not follow a call");
    }
    if responses.is_empty() && !calls.is_empty() {
        return refuse("unanswered_call", at, format!("{} calls are not answered", calls.len()));
    }
    if calls.len() != responses.len() {
        let reason = format!("{} responses to {} calls", responses.len(), calls.len());
        return refuse("response_count", at, reason);
    }
    let mut open = calls.to_vec();
    for (name, id) in responses {
        let is_match = |call: &NameAndId<'_>| {
            call.0 == *name && (id.is_none() || call.1.is_none() || call.1 == *id)
        };
        match open.iter().position(is_match) {
            Some(position) => drop(open.remove(position)),
            None => {
                let reason = format!("no open call of {name} with the id {id:?}");
                return refuse("response_match", at, reason);
            }
        }
    }
    Ok(())
}

/// The types that the documentation lists, and texts of any kind.
fn is_inline_type(kind: &str) -> bool {
    const LISTED: &[&str] = &[
        "application/pdf",
        "audio/aac",
        "audio/aiff",
        "audio/flac",
        "audio/mp3",
        "audio/mpeg",
        "audio/ogg",
        "audio/wav",
        "audio/x-wav",
        "image/heic",
        "image/heif",
        "image/jpeg",
        "image/png",
        "image/webp",
        "video/3gpp",
        "video/avi",
        "video/mov",
        "video/mp4",
        "video/mpeg",
        "video/mpg",
        "video/quicktime",
        "video/webm",
        "video/wmv",
        "video/x-flv",
    ];
    LISTED.contains(&kind) || kind.strip_prefix("text/").is_some_and(|kind| !kind.is_empty())
}
