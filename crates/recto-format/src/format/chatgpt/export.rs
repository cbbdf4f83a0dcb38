//! Export of messages as a conversation of ChatGPT's data export.
//!
//! Imported nodes are written with their original bytes. If a node was not imported, or if an edit removed
//! the parent or a child of a node, nodes without a message are dropped, each other node is linked to the one
//! before it, and the last one is the current node.

use std::collections::HashSet;
use std::io::Write;

use recto_core::{Message, Role};

use crate::export::{Container, ExportOptions};
use crate::format::message_list::{CallNames, unsupported_part};
use crate::import::TranscriptWarning;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source;
use crate::{Error, Format};

struct Node {
    id: String,
    json: String,
    /// True if the node has a message. Other nodes only connect the graph.
    is_message: bool,
}

pub(super) fn export(
    messages: &mut dyn Iterator<Item = &Message>,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<TranscriptWarning>, Error> {
    let messages: Vec<MessageParts<'_>> = messages.map(MessageParts::of).collect();
    let mut nodes: Vec<Node> = Vec::new();
    let mut names = CallNames::default();
    messages.iter().for_each(|message| names.record(message));
    let builder = NodeBuilder { messages: &messages, options, names };
    let mut warnings = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let source = message.source.filter(|source| source.is_from(Format::ChatGpt.name()));
        let before = source.and_then(|source| source.before).map(json::items).into_iter().flatten();
        nodes.extend(before.map(|node| Node::of(node, false)));
        match source.and_then(|source| source.original) {
            Some(original) => nodes.push(Node::of(original, true)),
            None => {
                let mut lost = Vec::new();
                builder.message(number, &mut nodes, &mut lost);
                let line = number as u64 + 1;
                warnings.extend(lost.into_iter().map(|it| TranscriptWarning::new(line, "", it)));
            }
        }
    }
    let is_changed = !is_linked(&nodes);
    if is_changed {
        link(&mut nodes);
    }
    let mapping: Vec<String> =
        nodes.iter().map(|node| format!("{}:{}", json::string(&node.id), node.json)).collect();
    let mapping = format!("{{{}}}", mapping.join(","));
    let last = nodes.iter().rev().find(|node| node.is_message).map(|node| json::string(&node.id));
    let last = last.unwrap_or_else(|| "null".to_owned());
    let ids: HashSet<&str> = nodes.iter().map(|node| &*node.id).collect();
    let mut conversation = String::from("{");
    let envelope = match options.container {
        Container::Envelope(envelope) => envelope,
        Container::List | Container::Lines => {
            r#"{"title":null,"mapping":null,"current_node":null}"#
        }
    };
    for (number, (key, value)) in json::fields(envelope).enumerate() {
        if number > 0 {
            conversation.push(',');
        }
        json::push_str(key, &mut conversation);
        conversation.push(':');
        let is_missing = || Str::of(value).is_none_or(|id| !ids.contains(&*id.text()));
        match key.escaped() {
            "mapping" => conversation.push_str(&mapping),
            // The imported node would hide the messages behind it.
            "current_node" if is_changed || is_missing() => conversation.push_str(&last),
            _ => conversation.push_str(value),
        }
    }
    conversation.push('}');
    match options.container {
        Container::Lines => writeln!(file, "{conversation}")?,
        Container::List | Container::Envelope(_) => writeln!(file, "[{conversation}]")?,
    }
    Ok(warnings)
}

impl Node {
    fn of(json: &str, is_message: bool) -> Node {
        let id = json::get_str(json, "id").map(|id| id.text().into_owned()).unwrap_or_default();
        Node { id, json: json.to_owned(), is_message }
    }
}

/// True if every node has a list of children, as imported nodes have, and all parents and children exist.
fn is_linked(nodes: &[Node]) -> bool {
    let ids: HashSet<&str> = nodes.iter().map(|node| &*node.id).collect();
    nodes.iter().all(|node| {
        let parent = json::get_str(&node.json, "parent");
        let children = json::get(&node.json, "children").map(json::items).into_iter().flatten();
        let mut named = parent.into_iter().chain(children.filter_map(Str::of));
        let is_new = json::get(&node.json, "children").is_none();
        !is_new && named.all(|id| ids.contains(&*id.text()))
    })
}

/// Removes the nodes without a message, and links each other node to the one before it.
fn link(nodes: &mut Vec<Node>) {
    nodes.retain(|node| node.is_message);
    let ids: Vec<String> = nodes.iter().map(|node| json::string(&node.id)).collect();
    for (place, node) in nodes.iter_mut().enumerate() {
        let parent = place.checked_sub(1).map_or("null", |before| &*ids[before]);
        let children = ids.get(place + 1).map_or("", |next| &**next);
        let message = json::get(&node.json, "message").unwrap_or("null");
        let id = &ids[place];
        node.json = format!(
            r#"{{"id":{id},"message":{message},"parent":{parent},"children":[{children}]}}"#
        );
    }
}

/// Creates nodes for messages that were not imported from this format. [`link`] links them later.
///
/// A node has the texts of a message, one tool call or one result. Parallel calls become consecutive nodes,
/// and so do their results.
struct NodeBuilder<'a> {
    messages: &'a [MessageParts<'a>],
    options: &'a ExportOptions<'a>,
    names: CallNames<'a>,
}

impl<'a> NodeBuilder<'a> {
    fn message(&self, number: usize, nodes: &mut Vec<Node>, warnings: &mut Vec<String>) {
        let message = &self.messages[number];
        let is_content =
            |part: &Part<'_>| !matches!(part, Part::ToolUse { .. } | Part::ToolResult { .. });
        if message.parts.iter().any(is_content) || message.parts.is_empty() {
            let texts = texts_of(message.parts.iter().filter(|part| is_content(part)), warnings);
            nodes.push(self.node(number, nodes.len(), "null", "\"all\"", &texts));
        }
        for (place, part) in message.parts.iter().enumerate() {
            match *part {
                Part::ToolUse { name, input, .. } => {
                    let recipient = format!("\"{}\"", name.escaped());
                    let input = json::string(input);
                    nodes.push(self.node(number, nodes.len(), "null", &recipient, &input));
                }
                Part::ToolResult { .. } => self.result((number, place), nodes, warnings),
                _ => {}
            }
        }
    }

    fn result(&self, at: (usize, usize), nodes: &mut Vec<Node>, warnings: &mut Vec<String>) {
        let (number, place) = at;
        let Part::ToolResult { id, content, json, .. } = self.messages[number].parts[place] else {
            return;
        };
        let name = match (json::get(json, "name"), self.names.of(id)) {
            (Some(name), _) => name.to_owned(),
            (None, Some(name)) => format!("\"{}\"", name.escaped()),
            (None, None) => "null".to_owned(),
        };
        let inside = Part::of_result(content);
        if inside.iter().any(|part| !matches!(part, Part::Text { .. })) {
            warnings.push("only the texts of a result are supported".into());
        }
        let texts = inside.iter().filter(|part| matches!(part, Part::Text { .. }));
        let texts = texts_of(texts, warnings);
        nodes.push(self.node(number, nodes.len(), &name, "\"all\"", &texts));
    }

    fn node(&self, number: usize, place: usize, name: &str, recipient: &str, texts: &str) -> Node {
        let message = &self.messages[number];
        let id = source::hash(&format!("{place} {}", message.json));
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let time = self.options.time_of(message, number);
        let time = time.map_or("null".to_owned(), |time| {
            format!("{}.{:03}", time / 1_000, (time % 1_000).abs())
        });
        let json = format!(
            r#"{{"id":"{id}","message":{{"id":"{id}","author":{{"role":"{role}","name":{name},"metadata":{{}}}},"create_time":{time},"content":{{"content_type":"text","parts":[{texts}]}},"weight":1.0,"metadata":{{}},"recipient":{recipient}}}}}"#
        );
        Node { id, json, is_message: true }
    }
}

/// The texts of parts, as JSON strings separated by commas.
fn texts_of<'p>(parts: impl Iterator<Item = &'p Part<'p>>, warnings: &mut Vec<String>) -> String {
    let mut texts = Vec::new();
    for part in parts {
        match *part {
            Part::Text { text, .. } => texts.push(format!("\"{}\"", text.escaped())),
            Part::Thinking { .. } => warnings.push("thinking is not supported".into()),
            Part::Media(_) => warnings.push("an image, audio or file is not supported".into()),
            Part::Other { kind, .. } => warnings.push(unsupported_part(kind)),
            Part::ToolUse { .. } | Part::ToolResult { .. } => {}
        }
    }
    texts.join(",")
}
