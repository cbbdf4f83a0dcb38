//! Codec of OpenAI's chat completions: `{role, content, tool_calls, tool_call_id, …}`.
//!
//! | foreign | conversion |
//! |---|---|
//! | a message whose content is a string or texts | none: it is a Recto message |
//! | `developer` | `system` |
//! | `tool_calls`, `function_call` | `tool_use` parts; arguments that are not JSON become a string input |
//! | a `tool` or `function` message | a `tool` message with one `tool_result` |
//! | `refusal` | a `refusal` part |
//! | `reasoning_content` | a `thinking` part before the content |
//! | a `thinking` part (Cohere, Mistral) | a `thinking` part |
//! | `image_url`, `input_audio`, `file` | `image`, `audio`, `file` parts |
//! | `audio` of the assistant | an `openai_audio` part |
//! | a response of the API (`choices`) | the message of its first choice; the others cause a warning |

mod write;

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{CallNames, Draft, FieldError, MessageCodec, ReadState, UNREADABLE_PART};
use super::new_parts::NewParts;
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::MessageParts;

pub(crate) use write::write_url;

/// Prefix of the ids that import generates for calls without one.
pub(crate) const GENERATED_ID: &str = "function_";

pub(super) struct OpenAiChat;

/// The known fields of a foreign message.
#[derive(Default)]
struct Foreign<'a> {
    role: Option<Str<'a>>,
    content: Option<&'a str>,
    name: Option<&'a str>,
    tool_calls: Option<&'a str>,
    tool_call_id: Option<Str<'a>>,
    /// A list of ids, as SWE-agent writes it.
    tool_call_ids: Option<&'a str>,
    function_call: Option<&'a str>,
    refusal: Option<Str<'a>>,
    reasoning: Option<Str<'a>>,
    audio: Option<&'a str>,
    /// The choices of a response of the API.
    choices: Option<&'a str>,
    model: Option<Str<'a>>,
    /// True if the message has fields that have another meaning in Recto.
    has_recto_fields: bool,
}

impl<'a> Foreign<'a> {
    fn of(message: &'a str) -> Foreign<'a> {
        let mut read = Foreign::default();
        for (key, value) in json::fields(message).filter(|&(_, value)| value != "null") {
            match &*key.text() {
                "role" => read.role = Str::of(value),
                "content" => read.content = Some(value),
                "name" => read.name = Some(value),
                "tool_calls" => read.tool_calls = Some(value).filter(|&list| list != "[]"),
                "tool_call_id" => read.tool_call_id = Str::of(value),
                "tool_call_ids" => read.tool_call_ids = Some(value),
                "function_call" => read.function_call = Some(value),
                "refusal" => read.refusal = Str::of(value),
                "reasoning_content" => read.reasoning = Str::of(value),
                "audio" => read.audio = Some(value),
                "choices" => read.choices = Some(value).filter(|list| json::is_list(list)),
                "model" => read.model = Str::of(value),
                "id" | "timestamp" | "metadata" => read.has_recto_fields = true,
                _ => {}
            }
        }
        read
    }

    /// True if the message has only content, in a form that is also Recto's.
    fn is_plain(&self) -> bool {
        let is_text = |part: &str| {
            json::get_str(part, "type").is_some_and(|it| it.escaped() == "text")
                && json::get(part, "text").is_none_or(|text| !json::is_object(text))
                && json::get(part, "citations").is_none()
        };
        let content = self.content.unwrap_or_default();
        let is_plain_content = match Str::of(content) {
            Some(text) => !text.is_empty(),
            None => json::is_list(content) && content != "[]" && json::items(content).all(is_text),
        };
        is_plain_content
            && !self.has_recto_fields
            && self.tool_calls.is_none()
            && self.function_call.is_none()
            && self.refusal.is_none()
            && self.reasoning.is_none()
            && self.audio.is_none()
            && self.name.is_none_or(|name| Str::of(name).is_some())
    }
}

impl MessageCodec for OpenAiChat {
    fn recognise(&self, head: &Head) -> Likelihood {
        let objects = head.objects();
        let first = objects.first().copied().unwrap_or_default();
        if objects.iter().any(|object| is_response(object)) {
            return Likelihood::Certain;
        }
        let listed: Vec<&str> = match json::get(first, "messages") {
            Some(list) => json::items(list).collect(),
            None => objects,
        };
        let has = |key: &str| listed.iter().any(|message| json::get(message, key).is_some());
        let has_roles =
            listed.first().is_some_and(|message| json::get_str(message, "role").is_some());
        match has_roles && (has("content") || has("tool_calls")) {
            true if has("tool_calls") || has("tool_call_id") => Likelihood::Likely,
            true => Likelihood::Maybe,
            false => Likelihood::No,
        }
    }

    fn format(&self) -> Format {
        Format::OpenAiChat
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        if !json::is_object(foreign) {
            return Err(FieldError::new("", "a message must be an object with a role and content"));
        }
        let read = Foreign::of(foreign);
        match (read.role, read.choices) {
            (None, Some(choices)) => read_response(choices, read.model, state),
            _ => Ok(vec![read_message(foreign, &read, state)?]),
        }
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        for (number, message) in pieces.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            write::message(message, out, warnings);
        }
    }
}

fn read_message(
    foreign: &str,
    read: &Foreign<'_>,
    state: &mut ReadState,
) -> Result<Draft, FieldError> {
    let role = read.role.ok_or_else(|| FieldError::new("role", "role is missing"))?.text();
    let own_role = match &*role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => return read_result(read, state),
        other => {
            let roles = "system, developer, user, assistant, tool or function";
            return Err(FieldError::new("role", format!("role must be {roles}, not {other:?}")));
        }
    };
    if role == own_role.as_str() && read.is_plain() {
        return Ok(Draft::Unchanged);
    }
    let mut parts = NewParts::with_capacity(foreign.len());
    if let Some(reasoning) = read.reasoning {
        parts.thinking(reasoning, "");
    }
    read_content(read.content, &mut parts, state)?;
    if let Some(refusal) = read.refusal {
        parts.raw(&format!(r#"{{"type":"refusal","refusal":"{}"}}"#, refusal.escaped()));
    }
    if let Some(audio) = read.audio {
        parts.raw(&format!(r#"{{"type":"openai_audio","audio":{audio}}}"#));
    }
    if let Some(call) = read.function_call {
        let name = json::get_str(call, "name");
        let name =
            name.ok_or_else(|| FieldError::new("function_call.name", "a call must have a name"))?;
        let id = format!("{GENERATED_ID}{}", state.message_count);
        state.add_call_id(&name.text(), id.clone());
        let arguments = json::get_str(call, "arguments").unwrap_or(Str::plain(""));
        parts.call(Str::plain(&id), name, &input_of(arguments), "");
    }
    for (number, call) in json::items(read.tool_calls.unwrap_or("[]")).enumerate() {
        if let Err(error) = read_call(call, number, &mut parts, state) {
            state.unreadable_part(&format!("tool_calls[{number}]"), error);
            parts.raw(UNREADABLE_PART);
        }
    }
    // A message without content or calls is kept, because a file may contain it.
    let content = parts.finish();
    let fields = match read.name.and_then(Str::of) {
        Some(name) => format!(r#","name":"{}""#, name.escaped()),
        None => String::new(),
    };
    // An `openai_audio` part may be sent to OpenAI only.
    let provider = read.audio.map(|_| "openai".to_owned());
    Ok(Draft::Converted { role: own_role, content, fields, provider, model: None })
}

/// Reads a response of the API.
fn read_response(
    choices: &str,
    response_model: Option<Str<'_>>,
    state: &mut ReadState,
) -> Result<Vec<Draft>, FieldError> {
    let mut choices = json::items(choices);
    let message = choices.next().and_then(|choice| json::get(choice, "message"));
    let message = message.filter(|message| json::is_object(message)).ok_or_else(|| {
        FieldError::new("choices[0].message", "a response must have a message in its first choice")
    })?;
    let others = choices.count();
    if others > 0 {
        let reason = format!("{others} more choices: preserved for export, not messages");
        state.warn("choices[1]", reason);
    }
    let read = Foreign::of(message);
    let mut draft = read_message(message, &read, state).map_err(|error| {
        FieldError::new(format!("choices[0].message.{}", error.field), error.reason)
    })?;
    if let Draft::Unchanged = draft {
        let content = read.content.unwrap_or("\"\"").to_owned();
        draft = Draft::converted(Role::Assistant, content);
    }
    if let Draft::Converted { model, .. } = &mut draft {
        *model = response_model.map(|model| model.escaped().to_owned());
    }
    Ok(vec![draft])
}

/// True if an object is a response of the API.
fn is_response(object: &str) -> bool {
    let choice = json::get(object, "choices").and_then(|choices| json::items(choices).next());
    let message = choice.and_then(|choice| json::get(choice, "message"));
    message.is_some_and(|message| json::get_str(message, "role").is_some())
}

fn read_content(
    content: Option<&str>,
    parts: &mut NewParts,
    state: &mut ReadState,
) -> Result<(), FieldError> {
    let Some(content) = content else { return Ok(()) };
    if let Some(text) = Str::of(content) {
        if !text.is_empty() {
            parts.text(text, "");
        }
        return Ok(());
    }
    if !json::is_list(content) {
        return Err(FieldError::new(
            "content",
            "content must be a string, a list of parts or null",
        ));
    }
    for (number, part) in json::items(content).enumerate() {
        if let Err(error) = read_part(part, parts) {
            state.unreadable_part(&format!("content[{number}]"), error);
            parts.raw(UNREADABLE_PART);
        }
    }
    Ok(())
}

fn read_part(part: &str, parts: &mut NewParts) -> Result<(), FieldError> {
    let missing = |field: &str| FieldError::new(field, format!("{field} is missing"));
    let kind = json::get_str(part, "type").ok_or_else(|| missing("type"))?;
    match &*kind.text() {
        "image_url" => {
            let image = json::get(part, "image_url").ok_or_else(|| missing("image_url"))?;
            let url = Str::of(image).or_else(|| json::get_str(image, "url"));
            let url = url.ok_or_else(|| missing("image_url.url"))?;
            let detail = json::get(image, "detail");
            let extra = detail.map(|detail| format!(r#","detail":{detail}"#)).unwrap_or_default();
            parts.media(MediaKind::Image, MediaBody::of_url(url), None, &extra);
        }
        "input_audio" => {
            let audio = json::get(part, "input_audio").ok_or_else(|| missing("input_audio"))?;
            let data = json::get_str(audio, "data").ok_or_else(|| missing("input_audio.data"))?;
            let form = json::get_str(audio, "format").unwrap_or(Str::plain("wav"));
            let media_type = format!("audio/{}", form.escaped());
            let media_type = Str::escaped_text(&media_type);
            let body = MediaBody::Base64 { media_type, data };
            parts.media(MediaKind::Audio, body, None, "");
        }
        "file" => {
            let file = json::get(part, "file").ok_or_else(|| missing("file"))?;
            let name = json::get_str(file, "filename");
            let data = json::get_str(file, "file_data").map(MediaBody::of_url);
            let id = json::get_str(file, "file_id")
                .map(|id| MediaBody::FileId { id, provider: Some(Str::plain("openai")) });
            let body = data.or(id).ok_or_else(|| missing("file.file_data"))?;
            parts.media(MediaKind::File, body, name, "");
        }
        // Cohere writes a string, Mistral a list of texts.
        "thinking" if json::get(part, "thinking").is_some() => {
            let thinking = json::get(part, "thinking").unwrap_or_default();
            let listed = json::items(thinking).filter_map(|text| json::get_str(text, "text"));
            let texts: Vec<&str> =
                Str::of(thinking).into_iter().chain(listed).map(Str::escaped).collect();
            let mut extra = String::new();
            json::push_other_fields(part, &["type", "thinking"], &mut extra);
            parts.thinking(Str::escaped_text(&texts.concat()), &extra);
        }
        "text" if json::get_str(part, "text").is_none() => {
            // Messages of OpenAI's threads have an object: `{"value": …, "annotations": […]}`.
            let text = json::get(part, "text").and_then(|text| json::get_str(text, "value"));
            parts.text(text.ok_or_else(|| missing("text"))?, "");
        }
        // Texts, refusals and unknown parts stay unchanged.
        _ => parts.raw(part),
    }
    Ok(())
}

fn read_call(
    call: &str,
    number: usize,
    parts: &mut NewParts,
    state: &mut ReadState,
) -> Result<(), FieldError> {
    let missing = |field: &str| FieldError::new(field, format!("{field} is missing"));
    let call = json::Object::of(call);
    let generated;
    let id = match call.get_str("id") {
        Some(id) => id,
        // Some servers have no ids; the result names the function.
        None => {
            let function = call.get("function").ok_or_else(|| missing("function"))?;
            let name = Str::of(function).or_else(|| json::get_str(function, "name"));
            let name = name.ok_or_else(|| missing("function.name"))?;
            generated = format!("{GENERATED_ID}{}_{number}", state.message_count);
            state.add_call_id(&name.text(), generated.clone());
            Str::plain(&generated)
        }
    };
    if let Some(custom) = call.get("custom") {
        let name = json::get_str(custom, "name").ok_or_else(|| missing("custom.name"))?;
        let input = json::get(custom, "input").unwrap_or("\"\"");
        parts.call(id, name, input, r#","kind":"custom""#);
        return Ok(());
    }
    let function = call.get("function").ok_or_else(|| missing("function"))?;
    // Inspect writes the name and the arguments into the call itself.
    let (name, arguments) = match Str::of(function) {
        Some(name) => (Some(name), call.get("arguments")),
        None => (json::get_str(function, "name"), json::get(function, "arguments")),
    };
    let name = name.ok_or_else(|| missing("function.name"))?;
    let input = match arguments {
        // Some servers send the arguments as an object, not as a string that contains its JSON.
        Some(value) => Str::of(value).map_or_else(|| value.to_owned(), input_of),
        None => "{}".to_owned(),
    };
    parts.call(id, name, &input, "");
    Ok(())
}

/// Converts the arguments of a call to its input: the JSON in the text. If the text is not JSON or is a
/// JSON string, the input is the text as a string, so that [`arguments_of`] restores the text.
pub(crate) fn input_of(arguments: Str<'_>) -> String {
    let text = arguments.text();
    match json::checked(&text) {
        Some(value) if value.len() == text.len() && Str::of(value).is_none() => text.into_owned(),
        _ => format!("\"{}\"", arguments.escaped()),
    }
}

/// Appends the arguments of a call with this input, escaped.
pub(crate) fn arguments_of(input: &str, out: &mut String) {
    match Str::of(input) {
        Some(text) => out.push_str(text.escaped()),
        None => json::escape_into(input, out),
    }
}

fn read_result(read: &Foreign<'_>, state: &mut ReadState) -> Result<Draft, FieldError> {
    let listed = json::items(read.tool_call_ids.unwrap_or("[]")).filter_map(Str::of);
    let mut ids: Vec<Str<'_>> = read.tool_call_id.into_iter().collect();
    if ids.is_empty() {
        ids.extend(listed);
    }
    let generated;
    if ids.is_empty() {
        generated = match read.name.and_then(Str::of) {
            // The deprecated form has no ids. The result contains the name of the function.
            Some(name) => state
                .take_call_id(&name.text())
                .unwrap_or_else(|| format!("{GENERATED_ID}{}", state.message_count)),
            None => {
                let missing = || FieldError::new("tool_call_id", "tool_call_id is missing");
                state.take_first_call_id().ok_or_else(missing)?
            }
        };
        ids.push(Str::plain(&generated));
    }
    let content = match read.content {
        None => None,
        Some(content) if Str::of(content).is_some() => Some(Cow::Borrowed(content)),
        // Some clients send the value that the tool returned.
        Some(value) if !json::is_list(value) => Some(Cow::Owned(json::string(value))),
        Some(content) => {
            let mut parts = NewParts::default();
            read_content(Some(content), &mut parts, state)?;
            Some(Cow::Owned(parts.finish_list()))
        }
    };
    let mut parts = NewParts::with_capacity(content.as_deref().map_or(0, str::len));
    for id in ids {
        parts.result(id, content.as_deref(), false, "");
    }
    Ok(Draft::converted(Role::Tool, parts.finish()))
}
