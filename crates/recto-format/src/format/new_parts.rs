//! A builder for the content of a message: importers write parts with it.

use crate::json::{self, Str};
use crate::media::{self, MediaBody, MediaKind};

/// The content of a message that has this string or list. Recto has no empty content: a list with one
/// empty text takes its place.
pub(crate) fn content_of(value: &str) -> String {
    let is_empty = match Str::of(value) {
        Some(text) => text.is_empty(),
        None => json::items(value).next().is_none(),
    };
    match is_empty {
        true => NewParts::default().finish(),
        false => value.to_owned(),
    }
}

/// A list of parts in Recto's form, as JSON.
#[derive(Default)]
pub(crate) struct NewParts {
    json: String,
    count: usize,
}

impl NewParts {
    /// An empty list with capacity for this number of bytes of content.
    pub(crate) fn with_capacity(bytes: usize) -> NewParts {
        NewParts { json: String::with_capacity(bytes + 96), count: 0 }
    }

    fn add(&mut self) -> &mut String {
        self.json.push(if self.json.is_empty() { '[' } else { ',' });
        self.count += 1;
        &mut self.json
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// Number of parts.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Length of the JSON in bytes.
    pub(crate) fn len(&self) -> usize {
        self.json.len()
    }

    /// Adds the JSON of a part, unchanged.
    pub(crate) fn raw(&mut self, part: &str) {
        self.add().push_str(part);
    }

    /// Adds a text. `extra` contains further fields, such as `,"signature":"…"`.
    pub(crate) fn text(&mut self, text: Str<'_>, extra: &str) {
        let out = self.add();
        out.push_str(r#"{"type":"text","text":"#);
        json::push_str(text, out);
        out.push_str(extra);
        out.push('}');
    }

    /// Adds thinking.
    pub(crate) fn thinking(&mut self, text: Str<'_>, extra: &str) {
        let out = self.add();
        out.push_str(r#"{"type":"thinking","text":"#);
        json::push_str(text, out);
        out.push_str(extra);
        out.push('}');
    }

    /// Adds a tool call.
    pub(crate) fn call(&mut self, id: Str<'_>, name: Str<'_>, input: &str, extra: &str) {
        let out = self.add();
        out.push_str(r#"{"type":"tool_use","id":"#);
        json::push_str(id, out);
        out.push_str(r#","name":"#);
        json::push_str(name, out);
        out.push_str(r#","input":"#);
        out.push_str(input);
        out.push_str(extra);
        out.push('}');
    }

    /// Adds a tool result. `content` is a JSON string or a list of parts.
    pub(crate) fn result(
        &mut self,
        id: Str<'_>,
        content: Option<&str>,
        is_error: bool,
        extra: &str,
    ) {
        let out = self.add();
        out.push_str(r#"{"type":"tool_result","tool_use_id":"#);
        json::push_str(id, out);
        if let Some(content) = content {
            out.push_str(r#","content":"#);
            out.push_str(content);
        }
        if is_error {
            out.push_str(r#","is_error":true"#);
        }
        out.push_str(extra);
        out.push('}');
    }

    /// Adds an image, audio or file.
    pub(crate) fn media(
        &mut self,
        kind: MediaKind,
        body: MediaBody<'_>,
        name: Option<Str<'_>>,
        extra: &str,
    ) {
        media::write(kind, body, name, extra, self.add());
    }

    /// Adds an object as a part of type `kind`.
    pub(crate) fn typed(&mut self, kind: &str, object: &str) {
        let out = self.add();
        out.push_str(r#"{"type":"#);
        json::push_string(kind, out);
        json::push_other_fields(object, &["type"], out);
        out.push('}');
    }

    /// The list. Without parts, a list with one empty text, because a message must have content.
    pub(crate) fn finish(mut self) -> String {
        if self.json.is_empty() {
            return r#"[{"type":"text","text":""}]"#.to_owned();
        }
        self.json.push(']');
        self.json
    }

    /// The list, which may be empty.
    pub(crate) fn finish_list(mut self) -> String {
        if self.json.is_empty() {
            self.json.push('[');
        }
        self.json.push(']');
        self.json
    }
}

/// The kind of media of a media type.
pub(crate) fn kind_of(media_type: &str) -> MediaKind {
    match media_type.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        _ => MediaKind::File,
    }
}
