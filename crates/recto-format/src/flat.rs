//! Conversion of nested tool parts to the flat form.
//!
//! A message may contain tool parts in the nested form, such as
//! `{"type":"tool_use","tool_use":{id,name,input}}`. Only Recto's own format has that form, so export
//! to every other format converts tool parts to the flat form, at every depth.

use std::borrow::Cow;

use memchr::memmem;
use recto_core::{Limits, Message};

use crate::json::{self, Str};

/// The types of tool parts, each with the fields of the nested object.
const TOOL_PARTS: [(&str, [&str; 3]); 2] = [
    ("tool_use", ["id", "name", "input"]),
    ("tool_result", ["tool_use_id", "content", "is_error"]),
];

/// The message with all tool parts in the flat form; `None` if no part is nested.
pub(crate) fn flat_message(message: &Message) -> Option<Message> {
    if !may_be_nested(message) {
        return None;
    }
    let text = message.json();
    let content = flat_list(json::get(text, "content")?)?;
    let mut out = String::with_capacity(text.len());
    push_fields(text, &[("content", &content)], &mut out);
    Message::from_json_within(&out, &Limits::NONE).ok()
}

/// A fast check that can be wrong in one direction only: false means that no part is nested.
fn may_be_nested(message: &Message) -> bool {
    if message.tool_calls().next().is_none() && message.tool_result_ids().next().is_none() {
        return false;
    }
    let text = message.json().as_bytes();
    // With optional escapes, a name can be written in another way.
    !message.uses_minimal_escapes()
        || ["\"tool_use\"", "\"tool_result\""].iter().any(|name| {
            memmem::find_iter(text, name)
                .any(|at| text[at + name.len()..].trim_ascii_start().first() == Some(&b':'))
        })
}

/// A list of parts with all tool parts flat; `None` if no part is nested or the value is not a list.
fn flat_list(list: &str) -> Option<String> {
    let parts: Vec<Cow<'_, str>> = json::items(list)
        .map(|part| flat_part(part).map_or(Cow::Borrowed(part), Cow::Owned))
        .collect();
    let is_changed = parts.iter().any(|part| matches!(part, Cow::Owned(_)));
    is_changed.then(|| format!("[{}]", parts.join(",")))
}

/// A part in the flat form; `None` if it is not nested. The engine limits the depth of results inside
/// results, which bounds the recursion.
fn flat_part(part: &str) -> Option<String> {
    let kind = json::get_str(part, "type")?;
    let (kind, names) = TOOL_PARTS.iter().find(|(name, _)| kind.is(name))?;
    let nested = json::get(part, kind).filter(|value| json::is_object(value));
    let holder = nested.unwrap_or(part);
    let content = match *kind {
        "tool_result" => json::get(holder, "content").and_then(flat_list),
        _ => None,
    };
    let content: Vec<(&str, &str)> = content.iter().map(|it| ("content", it.as_str())).collect();
    let Some(nested) = nested else {
        let mut out = String::with_capacity(part.len());
        return (!content.is_empty()).then(|| {
            push_fields(part, &content, &mut out);
            out
        });
    };
    // The part's own fields of these names can only be `null`; the nested object replaces them.
    let is_outer = |key: &Str<'_>| !key.is(kind) && !names.iter().any(|name| key.is(name));
    let mut out = String::from("{");
    let outer: Vec<_> = json::fields(part).filter(|(key, _)| is_outer(key)).collect();
    for (key, value) in &outer {
        push_field(*key, value, &[], &mut out);
    }
    for (key, value) in json::fields(nested) {
        let is_written = outer.iter().any(|(written, _)| written.text() == key.text());
        if !is_written && !key.is(kind) {
            push_field(key, value, &content, &mut out);
        }
    }
    out.push('}');
    Some(out)
}

/// Writes an object with the values of some fields replaced.
fn push_fields(object: &str, replaced: &[(&str, &str)], out: &mut String) {
    out.push('{');
    for (key, value) in json::fields(object) {
        push_field(key, value, replaced, out);
    }
    out.push('}');
}

fn push_field(key: Str<'_>, value: &str, replaced: &[(&str, &str)], out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    json::push_str(key, out);
    out.push(':');
    let replacement = replaced.iter().find(|(name, _)| key.is(name));
    out.push_str(replacement.map_or(value, |(_, replacement)| replacement));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(json: &str) -> Option<String> {
        flat_message(&Message::from_json(json).unwrap()).map(|message| message.json().to_owned())
    }

    #[test]
    fn nested_parts_become_flat_at_every_depth() {
        let nested = r#"{"role":"user","content":[{"type":"tool_result","tool_result" : {"tool_use_id":"c","content":[{"type":"tool_use","id":null,"tool_use":{"id":"q","name":"n","input":{"a":1.0}},"signature":"s"}]}}],"x":1}"#;
        let expected = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_use","signature":"s","id":"q","name":"n","input":{"a":1.0}}]}],"x":1}"#;
        assert_eq!(flat(nested).unwrap(), expected);
        assert_eq!(flat(expected), None);
        let inside = r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_result","tool\u005fresult":{"tool_use_id":"d"}}]}]}"#;
        let expected = r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_result","tool_use_id":"d"}]}]}"#;
        assert_eq!(flat(inside).unwrap(), expected);
    }

    #[test]
    fn messages_without_nested_parts_stay_unchanged() {
        for json in [
            r#"{"role":"user","content":"\"tool_use\": {}"}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"tool_use","input":{"tool_use":{"id":"x"}}}]}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{},"tool_use":null}]}"#,
        ] {
            assert_eq!(flat(json), None, "{json}");
        }
    }
}
