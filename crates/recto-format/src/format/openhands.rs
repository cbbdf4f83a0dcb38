//! Codec of OpenHands events: JSON lines, a list, or documents with `history`.
//!
//! | in the file | conversion |
//! |---|---|
//! | action `message`, `system`; `MessageEvent`, `SystemPromptEvent` | a message |
//! | an action with `tool_call_metadata`; `ActionEvent` | the call, with the text and reasoning of its response |
//! | another action, such as `run` | a call with the action as the name of its tool |
//! | an observation; `ObservationEvent`, `AgentErrorEvent`, `UserRejectObservation` | a message of role `tool` |
//! | `condensation`, `Condensation` with a summary | COMPRESS of the forgotten events |
//! | all other events | stored with the next message, for export |

mod write;

use std::collections::HashSet;

use recto_core::Role;

use super::message_list::{Draft, FieldError};
use super::new_parts::NewParts;
use super::session::{
    Effect, Place, Record, SessionCodec, SessionState, input_of, push_text, time_of,
};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::MessageParts;

pub(crate) struct OpenHands;

/// Maximum number of events that a condensation can name as a range.
const MAX_FORGOTTEN: i64 = 100_000;

impl SessionCodec for OpenHands {
    fn format(&self) -> Format {
        Format::OpenHands
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            let history = json::get(object, "history");
            let listed = history.map(json::items).into_iter().flatten();
            for event in std::iter::once(object).chain(listed) {
                let has = |key: &str| json::get(event, key).is_some();
                let text = |key: &str| json::get_str(event, key).is_some();
                let is_event = has("source") && has("timestamp");
                let found = match (text("kind"), text("action") || text("observation")) {
                    (true, _) if is_event => Likelihood::Certain,
                    (_, true) if is_event || has("args") || has("extras") => Likelihood::Certain,
                    // Old histories have neither a source nor a time.
                    (_, true) if history.is_some() && !has("response") && !has("role") => {
                        Likelihood::Likely
                    }
                    _ => Likelihood::No,
                };
                best = best.max(found);
            }
        }
        best
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["history"]
    }

    fn read<'a>(&self, event: &'a str, state: &mut SessionState) -> Result<Record<'a>, FieldError> {
        let fields = json::Object::of(event);
        let mut record = Record::without_message(event);
        record.id = fields.get("id").map(id_of);
        record.time = fields.get_str("timestamp").and_then(|it| time_of(&it.text()));
        if let Some(kind) = fields.get_str("kind") {
            read_sdk_event(&kind.text(), &fields, record, state)
        } else if let Some(action) = fields.get_str("action") {
            read_action(action, &fields, record, state)
        } else if let Some(observation) = fields.get_str("observation") {
            read_observation(observation, &fields, record, state)
        } else {
            Ok(record)
        }
    }

    fn write(
        &self,
        message: &MessageParts<'_>,
        place: &Place<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        write::write(message, place, out, warnings);
    }
}

/// An id, which may be a number.
fn id_of(value: &str) -> Str<'_> {
    Str::of(value).unwrap_or(Str::escaped_text(value))
}

/// A value of an event, from its arguments or from the event itself.
fn argument<'a>(fields: &json::Object<'a>, name: &str) -> Option<&'a str> {
    let args = fields.get("args").map(json::Object::of);
    args.and_then(|args| args.get(name)).or_else(|| fields.get(name))
}

fn read_action<'a>(
    action: Str<'a>,
    fields: &json::Object<'a>,
    mut record: Record<'a>,
    state: &mut SessionState,
) -> Result<Record<'a>, FieldError> {
    let content = argument(fields, "content").filter(|content| Str::of(content).is_some());
    let is_user = fields.get_str("source").is_none_or(|source| source.is("user"));
    match action.escaped() {
        "message" => {
            let role = if is_user { Role::User } else { Role::Assistant };
            let images = argument(fields, "image_urls").map(json::items).into_iter().flatten();
            let images: Vec<Str<'_>> = images.filter_map(Str::of).collect();
            Ok(match content {
                Some("\"\"") | None => record,
                Some(content) if images.is_empty() => record.unchanged(role, content),
                Some(content) => {
                    let mut parts = NewParts::default();
                    push_text(Str::of(content), &mut parts);
                    for url in images {
                        parts.media(MediaKind::Image, MediaBody::Url(url), None, "");
                    }
                    record.message(role, parts.finish())
                }
            })
        }
        "system" => Ok(match content {
            Some(content) if content != "\"\"" => record.unchanged(Role::System, content),
            _ => record,
        }),
        "condensation" => {
            if let Some(summary) = argument(fields, "summary")
                && Str::of(summary).is_some_and(|summary| !summary.is_empty())
            {
                record.effect = Effect::Replaces(forgotten(fields));
                return Ok(record.unchanged(Role::User, summary));
            }
            Ok(record)
        }
        "change_agent_state"
        | "recall"
        | "null"
        | "pause"
        | "resume"
        | "stop"
        | "condensation_request"
        | "loop_recovery"
        | "task_tracking"
            if !has_call(fields) =>
        {
            Ok(record)
        }
        _ => read_call(action, fields, record, state),
    }
}

/// Reads an action that is the call of a tool.
fn read_call<'a>(
    action: Str<'a>,
    fields: &json::Object<'a>,
    mut record: Record<'a>,
    state: &mut SessionState,
) -> Result<Record<'a>, FieldError> {
    let mut parts = NewParts::default();
    let mut model = None;
    match fields.get("tool_call_metadata").map(json::Object::of) {
        Some(call) => {
            let response = json::Object::of(call.get("model_response").unwrap_or("{}"));
            model = response.get_str("model").map(|model| model.escaped().to_owned());
            let choice = response.get("choices").and_then(|list| json::items(list).next());
            let message = choice.and_then(|choice| json::get(choice, "message"));
            let message = json::Object::of(message.unwrap_or("{}"));
            // Parallel calls of one response are separate events; only the first has its text.
            let id = response.get_str("id").map(|id| id.text().into_owned());
            if id.is_none() || id != state.response {
                if let Some(text) = message.get_str("reasoning_content") {
                    parts.thinking(text, "");
                }
                push_text(message.get_str("content"), &mut parts);
            }
            state.response = id;
            let Some(id) = call.get_str("tool_call_id") else {
                return Err(FieldError::new("tool_call_metadata", "the id of the call is missing"));
            };
            let name = call.get_str("function_name").unwrap_or(action);
            let calls = message.get("tool_calls").map(json::items).into_iter().flatten();
            let mut calls =
                calls.filter(|call| json::get_str(call, "id").is_some_and(|it| it == id));
            let function = calls.next().and_then(|call| json::get(call, "function"));
            let arguments = function.and_then(|function| json::get(function, "arguments"));
            let arguments = arguments.or_else(|| fields.get("args")).unwrap_or("{}");
            parts.call(id, name, &input_of(arguments), "");
        }
        None => {
            push_text(argument(fields, "thought").and_then(Str::of), &mut parts);
            let number = state.list.message_count;
            let id = record.id.map_or_else(|| format!("at{number}"), |id| id.text().into_owned());
            let id = format!("event_{id}");
            let input = fields.get("args").map_or_else(|| other_fields(fields), str::to_owned);
            parts.call(Str::plain(&id), action, &input, "");
            state.call = Some(id);
        }
    }
    record.drafts.push(Draft::Converted {
        role: Role::Assistant,
        content: parts.finish(),
        fields: String::new(),
        provider: None,
        model,
    });
    Ok(record)
}

fn has_call(fields: &json::Object<'_>) -> bool {
    fields.get("tool_call_metadata").is_some()
}

/// The arguments of an action without `args`: all its fields except the known fields of an event.
fn other_fields(fields: &json::Object<'_>) -> String {
    let mut out = String::new();
    let known = ["action", "id", "timestamp", "source", "message", "thought", "cause"];
    fields.push_others(&known, &mut out);
    format!("{{{}}}", out.trim_start_matches(','))
}

fn read_observation<'a>(
    observation: Str<'a>,
    fields: &json::Object<'a>,
    mut record: Record<'a>,
    state: &mut SessionState,
) -> Result<Record<'a>, FieldError> {
    if matches!(observation.escaped(), "agent_state_changed" | "null" | "recall" | "condense") {
        return Ok(record);
    }
    let call = fields.get("tool_call_metadata").map(json::Object::of);
    let id = call.and_then(|call| call.get_str("tool_call_id"));
    let generated;
    let id = match (id, fields.get("cause"), &state.call) {
        (Some(id), ..) => id,
        (None, Some(cause), _) => {
            generated = format!("event_{}", id_of(cause).escaped());
            Str::escaped_text(&generated)
        }
        (None, None, Some(call)) if fields.get_str("source").is_none() => {
            generated = call.clone();
            Str::plain(&generated)
        }
        _ => return Ok(record),
    };
    let content = fields.get("content").filter(|content| Str::of(content).is_some());
    let is_error = observation.is("error");
    let mut parts = NewParts::default();
    parts.result(id, Some(content.unwrap_or("\"\"")), is_error, "");
    record.drafts.push(Draft::converted(Role::Tool, parts.finish()));
    Ok(record)
}

/// The ids of the events that a condensation replaces.
fn forgotten(fields: &json::Object<'_>) -> HashSet<String> {
    let listed = argument(fields, "forgotten_event_ids").map(json::items).into_iter().flatten();
    let mut ids: HashSet<String> = listed.map(|id| id_of(id).text().into_owned()).collect();
    let end = |name: &str| argument(fields, name).and_then(|it| it.parse::<i64>().ok());
    if let (Some(first), Some(last)) =
        (end("forgotten_events_start_id"), end("forgotten_events_end_id"))
        && last.saturating_sub(first) < MAX_FORGOTTEN
    {
        ids.extend((first..=last).map(|id| id.to_string()));
    }
    ids
}

/// Reads an event of the SDK that is the call of a tool.
fn read_sdk_call(fields: &json::Object<'_>, state: &mut SessionState) -> Result<Draft, FieldError> {
    let mut parts = NewParts::default();
    let response = fields.get_str("llm_response_id").map(|id| id.text().into_owned());
    if response.is_none() || response != state.response {
        push_reasoning(fields, &mut parts);
        push_content(fields.get("thought"), &mut parts);
    }
    state.response = response;
    let call = json::Object::of(fields.get("tool_call").unwrap_or("{}"));
    let function = json::Object::of(call.get("function").unwrap_or("{}"));
    let id = fields.get_str("tool_call_id").or_else(|| call.get_str("id"));
    let name = fields.get_str("tool_name").or_else(|| call.get_str("name"));
    let (Some(id), Some(name)) = (id, name) else {
        return Err(FieldError::new("tool_call", "the id or name of the call is missing"));
    };
    let arguments = call.get("arguments").or_else(|| function.get("arguments"));
    let arguments = arguments.or_else(|| fields.get("action")).unwrap_or("{}");
    parts.call(id, name, &input_of(arguments), "");
    Ok(Draft::converted(Role::Assistant, parts.finish()))
}

fn read_sdk_event<'a>(
    kind: &str,
    fields: &json::Object<'a>,
    mut record: Record<'a>,
    state: &mut SessionState,
) -> Result<Record<'a>, FieldError> {
    match kind {
        "MessageEvent" => {
            let message = fields.get("llm_message").unwrap_or("{}");
            let message = json::Object::of(message);
            let role = message.get_str("role").and_then(|role| Role::named(&role.text()));
            let role = role.filter(|role| *role != Role::Tool).unwrap_or(Role::User);
            let mut parts = NewParts::default();
            push_reasoning(&message, &mut parts);
            push_content(message.get("content"), &mut parts);
            push_content(fields.get("extended_content"), &mut parts);
            if !parts.is_empty() {
                record.drafts.push(Draft::converted(role, parts.finish()));
            }
        }
        "SystemPromptEvent" => {
            let prompt = fields.get("system_prompt").unwrap_or("{}");
            let mut parts = NewParts::default();
            push_text(json::get_str(prompt, "text"), &mut parts);
            if !parts.is_empty() {
                record.drafts.push(Draft::converted(Role::System, parts.finish()));
            }
        }
        "ActionEvent" => record.drafts.push(read_sdk_call(fields, state)?),
        "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent" => {
            let Some(id) = fields.get_str("tool_call_id") else { return Ok(record) };
            let observation = json::Object::of(fields.get("observation").unwrap_or("{}"));
            let mut content = NewParts::default();
            push_content(observation.get("content").or(observation.get("output")), &mut content);
            push_text(fields.get_str("rejection_reason"), &mut content);
            push_text(fields.get_str("error"), &mut content);
            let is_error = kind != "ObservationEvent" || observation.is_true("is_error");
            let content = content.finish();
            let text = content.strip_prefix(r#"[{"type":"text","text":"#);
            let text = text.and_then(|text| text.strip_suffix("}]"));
            let text = text.filter(|text| json::end_of(text) == text.len());
            let mut parts = NewParts::default();
            parts.result(id, Some(text.unwrap_or(&content)), is_error, "");
            record.drafts.push(Draft::converted(Role::Tool, parts.finish()));
        }
        "Condensation" => {
            if let Some(summary) = fields.get("summary")
                && Str::of(summary).is_some_and(|summary| !summary.is_empty())
            {
                record.effect = Effect::Replaces(forgotten(fields));
                return Ok(record.unchanged(Role::User, summary));
            }
        }
        "ConversationStateUpdateEvent"
        | "PauseEvent"
        | "CondensationRequest"
        | "ConversationErrorEvent"
        | "LLMCompletionLogEvent"
        | "TokenEvent"
        | "CondensationSummaryEvent" => {}
        other => state.unknown_kind("kind", other),
    }
    Ok(record)
}

fn push_reasoning(fields: &json::Object<'_>, parts: &mut NewParts) {
    let mut has_blocks = false;
    for (_, block) in fields.get("thinking_blocks").map(json::objects).into_iter().flatten() {
        if let Some(text) = block.get_str("thinking") {
            parts.thinking(text, "");
            has_blocks = true;
        }
    }
    if let Some(text) = fields.get_str("reasoning_content").filter(|text| !text.is_empty())
        && !has_blocks
    {
        parts.thinking(text, "");
    }
}

/// Adds texts and images.
fn push_content(content: Option<&str>, parts: &mut NewParts) {
    let Some(content) = content else { return };
    push_text(Str::of(content), parts);
    for (_, part) in json::objects(content) {
        push_text(part.get_str("text"), parts);
        for url in part.get("image_urls").map(json::items).into_iter().flatten() {
            if let Some(url) = Str::of(url) {
                parts.media(MediaKind::Image, MediaBody::Url(url), None, "");
            }
        }
    }
}
