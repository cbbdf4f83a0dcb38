//! Messages as a conversation of ChatGPT's export.
//!
//! Nodes that were imported are written as they came. Where an edit took away what they hang on, or
//! what hangs on them, they are linked anew: each to the one before it.

use std::collections::HashSet;
use std::io::Write;

use recto_core::{Message, Role};

use crate::export::{Container, ExportOptions};
use crate::import::Remark;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source;
use crate::{Error, Format};

struct Node {
    id: String,
    json: String,
    /// Whether it says something; others only hold the graph together.
    is_message: bool,
}

pub(super) fn export(
    messages: &mut dyn Iterator<Item = &Message>,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<Remark>, Error> {
    let mut remarks = Vec::new();
    let mut nodes: Vec<Node> = Vec::new();
    for (number, message) in messages.map(MessageParts::of).enumerate() {
        let source = message.source.filter(|source| source.is_from(Format::ChatGpt.name()));
        let before = source.and_then(|source| source.before).map(json::items).into_iter().flatten();
        nodes.extend(before.map(|node| Node::of(node, false)));
        match source.and_then(|source| source.original) {
            Some(original) => nodes.push(Node::of(original, true)),
            None => {
                let mut told = Vec::new();
                nodes.push(made(&message, number, &mut told));
                let line = number as u64 + 1;
                let field = String::new();
                remarks.extend(told.into_iter().map(|message| Remark {
                    line,
                    field: field.clone(),
                    message,
                }));
            }
        }
    }
    if !is_linked(&nodes) {
        link(&mut nodes);
    }
    let mapping: Vec<String> =
        nodes.iter().map(|node| format!("{}:{}", json::string(&node.id), node.json)).collect();
    let mapping = format!("{{{}}}", mapping.join(","));
    let last = nodes.iter().rev().find(|node| node.is_message).map(|node| json::string(&node.id));
    let last = last.unwrap_or_else(|| "null".to_owned());
    let ids: HashSet<&str> = nodes.iter().map(|node| &*node.id).collect();
    let mut talk = String::from("{");
    let envelope = match options.container {
        Container::Envelope(envelope) => envelope,
        Container::List | Container::Lines => {
            r#"{"title":null,"mapping":null,"current_node":null}"#
        }
    };
    for (number, (key, value)) in json::fields(envelope).enumerate() {
        if number > 0 {
            talk.push(',');
        }
        json::push_str(key, &mut talk);
        talk.push(':');
        let is_gone = || Str::of(value).is_none_or(|id| !ids.contains(&*id.text()));
        match key.escaped() {
            "mapping" => talk.push_str(&mapping),
            "current_node" if is_gone() => talk.push_str(&last),
            _ => talk.push_str(value),
        }
    }
    talk.push('}');
    match options.container {
        Container::Lines => writeln!(file, "{talk}")?,
        Container::List | Container::Envelope(_) => writeln!(file, "[{talk}]")?,
    }
    Ok(remarks)
}

impl Node {
    fn of(json: &str, is_message: bool) -> Node {
        let id = json::get_str(json, "id").map(|id| id.text().into_owned()).unwrap_or_default();
        Node { id, json: json.to_owned(), is_message }
    }
}

/// Whether every node's parent and children are there.
fn is_linked(nodes: &[Node]) -> bool {
    let ids: HashSet<&str> = nodes.iter().map(|node| &*node.id).collect();
    nodes.iter().all(|node| {
        let parent = json::get_str(&node.json, "parent");
        let children = json::get(&node.json, "children").map(json::items).into_iter().flatten();
        let mut named = parent.into_iter().chain(children.filter_map(Str::of));
        let is_made = json::get(&node.json, "children").is_none();
        !is_made && named.all(|id| ids.contains(&*id.text()))
    })
}

/// Links each node to the one before it.
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

/// A node for a message that never was one. It is linked later.
fn made(message: &MessageParts<'_>, number: usize, remarks: &mut Vec<String>) -> Node {
    let id = source::hash(&format!("{number} {}", message.json));
    let mut texts = Vec::new();
    let (mut recipient, mut name) = ("\"all\"".to_owned(), "null".to_owned());
    for part in &message.parts {
        match *part {
            Part::Text { text, .. } => texts.push(format!("\"{}\"", text.escaped())),
            Part::ToolUse { name, input, .. } => {
                recipient = format!("\"{}\"", name.escaped());
                texts.push(json::string(input));
            }
            Part::ToolResult { content, json, .. } => {
                if let Some(tool) = json::get(json, "name") {
                    name = tool.to_owned();
                }
                for part in Part::of_result(content) {
                    match part {
                        Part::Text { text, .. } => texts.push(format!("\"{}\"", text.escaped())),
                        _ => remarks.push("only the texts of a result have a place".into()),
                    }
                }
            }
            Part::Thinking { .. } => remarks.push("a thought has no place".into()),
            Part::Media(_) => remarks.push("an image, audio or file has no place".into()),
            Part::Other { kind, .. } => {
                remarks.push(format!("a part of type {} has no place", kind.text()));
            }
        }
    }
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let time = json::get(message.json, "timestamp").and_then(|time| time.parse::<i64>().ok());
    let time = time
        .map_or("null".to_owned(), |time| format!("{}.{:03}", time / 1_000, (time % 1_000).abs()));
    let texts = texts.join(",");
    let json = format!(
        r#"{{"id":"{id}","message":{{"id":"{id}","author":{{"role":"{role}","name":{name},"metadata":{{}}}},"create_time":{time},"content":{{"content_type":"text","parts":[{texts}]}},"weight":1.0,"metadata":{{}},"recipient":{recipient}}}}}"#
    );
    Node { id, json, is_message: true }
}
