//! Codec of ChatGPT's data export: a ZIP file with `conversations.json` (or `conversations-000.json` and
//! so on), or such a JSON file.
//!
//! A conversation is a graph: `mapping` contains every message with its parent and children, and
//! `current_node` is the last visible message. All branches are imported: first the abandoned ones, each
//! followed by a ROLLBACK to its start, then the branch that leads to `current_node`.
//!
//! | foreign | conversion |
//! |---|---|
//! | a message to a recipient other than `all` | a `tool_use` |
//! | a message from a tool | a `tool_result` for the nearest such call before it |
//! | `thoughts` | `thinking` |
//! | `multimodal_text` | texts; assets by their pointers |
//! | `weight` 0 | an entry of the log that is not visible |
//! | any other content | a part with that content, for export |

mod content;
mod export;

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};

use recto_core::{Append, Delete, LogIndex, Message, Request, Rollback, Step, Timestamp, Version};

use super::message_list::FieldError;
use super::pending_lines::PendingLines;
use super::session_line::SessionLine;
use super::{Codec, Head, Likelihood};
use crate::export::{ExportOptions, Extent};
use crate::import::{ImportOptions, Input, Start, TranscriptWarning};
use crate::json::{self, Str};
use crate::step_writer::StepWriter;
use crate::values::Values;
use crate::zip::{self, Zip};
use crate::{Error, Format};

pub(crate) struct ChatGpt;

impl Codec for ChatGpt {
    fn recognise(&self, head: &Head) -> Likelihood {
        if head.bytes().starts_with(zip::MAGIC) {
            let names = memchr::memmem::find(head.bytes(), b"conversations");
            return if names.is_some() { Likelihood::Certain } else { Likelihood::Maybe };
        }
        let is_graph = |object: &&str| json::get(object, "mapping").is_some_and(json::is_object);
        match head.objects().first().is_some_and(is_graph) {
            true => Likelihood::Certain,
            false => Likelihood::No,
        }
    }

    fn import(&self, input: &dyn Input, out: &mut StepWriter<'_>) -> Result<(), Error> {
        let mut start = Vec::new();
        input.open()?.take(zip::MAGIC.len() as u64).read_to_end(&mut start)?;
        if start != zip::MAGIC {
            return read_file(input.open()?, out);
        }
        let mut found = 0;
        Zip::new(input.open()?).each(is_conversations, |_, entry| {
            found += 1;
            read_file(entry, out)
        })?;
        match found {
            0 => Err(Error::Malformed {
                format: None,
                line: 1,
                field: String::new(),
                reason: "the ZIP file has no conversations.json".into(),
            }),
            _ => Ok(()),
        }
    }

    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        _extent: Extent,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<TranscriptWarning>, Error> {
        export::export(messages, options, file)
    }
}

/// True for `conversations.json`, or a part of it such as `conversations-001.json`, in any folder.
fn is_conversations(name: &str) -> bool {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let part = name.strip_prefix("conversations").and_then(|rest| rest.strip_suffix(".json"));
    part.is_some_and(|part| part.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '_')))
}

/// Reads a list of conversations, or a single one.
fn read_file<'r>(file: impl Read + 'r, out: &mut StepWriter<'_>) -> Result<(), Error> {
    let limit = out.options.limits.message_bytes;
    let mut values = Values::new(file, limit);
    let mut lost = Lost::default();
    while let Some(byte) = values.peek_byte()? {
        match byte {
            b'[' => values.each_item(|values| read_conversation(values, out, &mut lost))?,
            _ => read_conversation(&mut values, out, &mut lost)?,
        }
    }
    let lost = [
        (lost.order, "export writes the nodes in the order of the branches, the current one last"),
        (lost.spaces, "export writes no white space between the fields and nodes"),
        (lost.nodes, "nodes behind the last message of a branch are not kept"),
    ];
    for (line, reason) in lost.into_iter().filter_map(|(line, reason)| Some((line?, reason))) {
        out.warn(line, "mapping", reason);
    }
    Ok(())
}

/// Differences that export of a file does not restore, each with the line where it occurs first.
#[derive(Default)]
struct Lost {
    /// The order of the nodes.
    order: Option<u64>,
    /// White space outside of the nodes.
    spaces: Option<u64>,
    /// Nodes without a message after the last message of a branch.
    nodes: Option<u64>,
}

/// A node of the graph.
struct Node {
    id: String,
    /// The JSON of the node.
    json: String,
    parent: Option<String>,
    children: Vec<String>,
    line: u64,
}

fn read_conversation(
    values: &mut Values<'_>,
    out: &mut StepWriter<'_>,
    lost: &mut Lost,
) -> Result<(), Error> {
    values.peek_byte()?;
    let (line, begin) = (values.line(), values.bytes_taken());
    let mut graph = Graph::default();
    let mut start = Start::default();
    let mut envelope = String::from("{");
    // A graph has to be held in memory as a whole.
    let largest =
        out.options.limits.message_bytes.saturating_mul(ImportOptions::WHOLE_CONVERSATION_FACTOR);
    let mut size = 0;
    values.each_field(|values, key| {
        if envelope.len() > 1 {
            envelope.push(',');
        }
        json::push_string(key, &mut envelope);
        envelope.push(':');
        if key == "mapping" && values.peek_byte()? == Some(b'{') {
            envelope.push_str("null");
            return values.each_field(|values, id| {
                let line = values.line();
                let json = values.value()?.to_owned();
                size += json.len();
                if size > largest {
                    return Err(Error::TooLarge {
                        line,
                        what: "the size of a conversation in bytes",
                        size: size as u64,
                        limit: largest as u64,
                    });
                }
                graph.add(id, json, line);
                Ok(())
            });
        }
        let value = values.value()?;
        let text = || Str::of(value).map(|text| text.text().into_owned());
        match key {
            "title" => start.name = text(),
            "conversation_id" => start.id = text(),
            "id" => start.id = start.id.take().or_else(text),
            "create_time" => start.created = time_of(value),
            "current_node" => graph.current = text(),
            _ => {}
        }
        envelope.push_str(value);
        Ok(())
    })?;
    envelope.push('}');
    if !graph.nodes.is_empty() {
        let node_len = |node: &Node| json::string(&node.id).len() + ":,".len() + node.json.len();
        let nodes: usize = graph.nodes.iter().map(node_len).sum();
        // The envelope has `null` in place of the braces and the nodes. `nodes` counts a comma for each
        // node, but the last node has none.
        let compact = envelope.len() - "null".len() + "{}".len() + nodes - ",".len();
        if values.bytes_taken() - begin != compact as u64 {
            lost.spaces.get_or_insert(line);
        }
    }
    out.start(start)?;
    graph.write_steps(out, line, lost)?;
    out.envelope(envelope)?;
    out.progress(values.bytes_taken());
    Ok(())
}

/// Converts seconds with a fraction to milliseconds.
fn time_of(value: &str) -> Option<Timestamp> {
    let seconds: f64 = value.parse().ok()?;
    let millis = (seconds * 1_000.0).round();
    (millis.abs() < 1e15).then_some(millis as Timestamp)
}

/// The nodes of a conversation.
#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    places: HashMap<String, usize>,
    current: Option<String>,
}

/// A task of the depth-first traversal.
enum Task {
    /// Convert a node.
    Node(usize),
    /// Roll back to a version.
    Rewind(Version),
}

impl Graph {
    fn add(&mut self, id: &str, json: String, line: u64) {
        let parent = json::get_str(&json, "parent").map(|parent| parent.text().into_owned());
        let children = json::get(&json, "children").map(json::items).into_iter().flatten();
        let children =
            children.filter_map(Str::of).map(|child| child.text().into_owned()).collect();
        self.places.insert(id.to_owned(), self.nodes.len());
        self.nodes.push(Node { id: id.to_owned(), json, parent, children, line });
    }

    fn parent_of(&self, place: usize) -> Option<usize> {
        let parent = self.nodes[place].parent.as_ref()?;
        self.places.get(parent).copied().filter(|parent| *parent != place)
    }

    /// The children of every node. Children that their parent does not list come last.
    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        let mut named = vec![false; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate() {
            for child in node.children.iter().filter_map(|child| self.places.get(child)) {
                if self.parent_of(*child) == Some(place) && !named[*child] {
                    named[*child] = true;
                    children[place].push(*child);
                }
            }
        }
        for place in (0..self.nodes.len()).filter(|place| !named[*place]) {
            if let Some(parent) = self.parent_of(place) {
                children[parent].push(place);
            }
        }
        children
    }

    /// The nodes from the root to the current node.
    fn path(&self, children: &[Vec<usize>], roots: &[usize]) -> HashSet<usize> {
        let mut path = HashSet::new();
        let current = self.current.as_ref().and_then(|id| self.places.get(id)).copied();
        if let Some(current) = current {
            let mut place = Some(current);
            while let Some(here) = place.filter(|here| path.insert(*here)) {
                place = self.parent_of(here);
            }
            return path;
        }
        // Without a current node, the last root and the last children.
        let mut place = roots.last().copied();
        while let Some(here) = place.filter(|here| path.insert(*here)) {
            place = children[here].last().copied();
        }
        path
    }

    /// Reports the links that contradict the graph: export writes the links of the graph instead.
    fn report_links(&self, out: &mut StepWriter<'_>) {
        for (place, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent.as_ref().filter(|_| self.parent_of(place).is_none()) {
                let reason = format!(
                    "the parent {parent:?} is not in the conversation: the node starts a branch, and \
                     export writes no such link"
                );
                out.warn(node.line, &format!("mapping.{}.parent", node.id), reason);
            }
            let is_child = |child: &&String| {
                self.places.get(*child).is_some_and(|child| self.parent_of(*child) == Some(place))
            };
            if let Some(child) = node.children.iter().find(|child| !is_child(child)) {
                let reason =
                    format!("{child:?} is not a child of the node: export writes no such link");
                out.warn(node.line, &format!("mapping.{}.children", node.id), reason);
            }
            let parent = self.parent_of(place).map(|parent| &self.nodes[parent]);
            if let Some(parent) = parent.filter(|parent| !parent.children.contains(&node.id)) {
                let reason =
                    format!("the node {:?} names this parent: export adds the link", node.id);
                out.warn(parent.line, &format!("mapping.{}.children", parent.id), reason);
            }
        }
    }

    /// Writes the steps of all branches, the current one last.
    fn write_steps(
        &self,
        out: &mut StepWriter<'_>,
        line: u64,
        lost: &mut Lost,
    ) -> Result<(), Error> {
        self.report_links(out);
        let mut children = self.children();
        let mut roots: Vec<usize> =
            (0..self.nodes.len()).filter(|place| self.parent_of(*place).is_none()).collect();
        let path = self.path(&children, &roots);
        let is_current = |place: &usize| path.contains(place);
        roots.sort_by_key(is_current);
        children.iter_mut().for_each(|list| list.sort_by_key(is_current));
        let current = self.current.as_ref().and_then(|id| self.places.get(id)).copied();

        let mut converter = GraphConverter {
            graph: self,
            out,
            pending: PendingLines::with_capacity(usize::MAX),
            calls: HashMap::new(),
            answered: HashSet::new(),
            results: HashSet::new(),
        };
        let mut visited = HashSet::new();
        let mut newest = None;
        let mut stop = None;
        let mut tasks = Vec::new();
        branches(&roots, Version(0), &mut tasks);
        while let Some(task) = tasks.pop() {
            match task {
                Task::Rewind(version) => converter.rewind(version)?,
                Task::Node(place) if visited.insert(place) => {
                    converter.node(place)?;
                    if newest.replace(place).is_some_and(|before| before > place) {
                        lost.order.get_or_insert(line);
                    }
                    let own = &children[place];
                    let is_here = current == Some(place);
                    let mut version = Version(0);
                    if own.len() > 1 || is_here {
                        converter.out.flush()?;
                        version = converter.out.version();
                    }
                    if is_here {
                        stop = Some(version);
                    }
                    branches(own, version, &mut tasks);
                }
                Task::Node(_) => {}
            }
        }
        if let Some(version) = stop {
            converter.rewind(version)?;
        }
        if converter.pending.has_lines() {
            lost.nodes.get_or_insert(line);
        }
        let unreachable = self.nodes.iter().enumerate().filter(|(it, _)| !visited.contains(it));
        for (_, node) in unreachable {
            let field = format!("mapping.{}", node.id);
            converter.out.warn(node.line, &field, "skipped: its parents form a cycle");
        }
        Ok(())
    }
}

/// Adds the tasks for branches that start at a version: each branch, with a rewind between them.
fn branches(places: &[usize], version: Version, tasks: &mut Vec<Task>) {
    for (number, place) in places.iter().enumerate().rev() {
        tasks.push(Task::Node(*place));
        if number > 0 {
            tasks.push(Task::Rewind(version));
        }
    }
}

/// Converts the nodes of a graph to steps.
struct GraphConverter<'g, 'o, 'a> {
    graph: &'g Graph,
    out: &'o mut StepWriter<'a>,
    /// Nodes without a message. No limit is needed, because the graph is in memory.
    pending: PendingLines,
    /// The recipients of calls, by node.
    calls: HashMap<usize, String>,
    /// The nodes of calls that have a result.
    answered: HashSet<usize>,
    /// The nodes of results.
    results: HashSet<usize>,
}

impl GraphConverter<'_, '_, '_> {
    fn rewind(&mut self, version: Version) -> Result<(), Error> {
        self.out.flush()?;
        if self.out.version() == version {
            return Ok(());
        }
        let reason = "the user switched to another branch";
        self.out.apply(Rollback::ToVersion(version).reason(reason), 0)
    }

    fn node(&mut self, place: usize) -> Result<(), Error> {
        let node = &self.graph.nodes[place];
        let Some(message) = json::get(&node.json, "message") else {
            self.pending.add(0, &node.json, node.line);
            return Ok(());
        };
        let depth = recto_core::json::depth(&node.json);
        let deepest = self.out.options.limits.depth;
        let call = self.call_for(place, message);
        let read = match depth > deepest {
            true => Err(FieldError::new("", format!("{depth} levels deep; {deepest} are allowed"))),
            false => content::read(message, &node.id, call.as_deref()),
        };
        let before = self.pending.take(0);
        let mut warnings = Vec::new();
        let converted = read.and_then(|read| {
            if let Some(called) = read.calls {
                self.calls.insert(place, called);
            }
            let time = json::get(message, "create_time").and_then(time_of);
            let drafts = vec![read.draft];
            let line = SessionLine {
                format: Format::ChatGpt,
                json: &node.json,
                foreign: "",
                role_and_content: None,
                before: before.as_deref(),
                timestamp: time,
            };
            line.messages(&drafts, &mut warnings)
        });
        for FieldError { field, reason } in warnings {
            let field = format!("mapping.{}.message.{field}", node.id);
            self.out.warn(node.line, &field, reason);
        }
        let messages = match converted {
            Ok(messages) => messages,
            Err(error) => {
                let field = format!("mapping.{}.message.{}", node.id, error.field);
                self.out.warn(node.line, field.trim_end_matches('.'), error.reason);
                self.pending.put_back(0, before);
                self.pending.add(0, &node.json, node.line);
                return Ok(());
            }
        };
        let weight = json::get(message, "weight").and_then(|weight| weight.parse::<f64>().ok());
        if weight != Some(0.0) {
            return messages.into_iter().try_for_each(|message| self.out.message(message));
        }
        // The message is part of the log, but the model did not read it.
        self.out.flush()?;
        let first = self.out.log_len() as u32;
        let count = messages.len();
        let indices = (first..first + count as u32).map(LogIndex).collect();
        let reason = "its weight is 0";
        let steps: [Step; 2] =
            [Append { messages }.reason(reason), Delete { indices }.reason(reason)];
        self.out.apply(steps.into_iter().collect::<Request>(), count)
    }

    /// Id of the call to which a message of a tool belongs: of the nearest calls of that tool before it,
    /// the first without a result. Otherwise the nearest call of that tool, otherwise the nearest call of
    /// any tool. At most 64 nodes are searched.
    fn call_for(&mut self, place: usize, message: &str) -> Option<String> {
        let author = json::get(message, "author")?;
        if json::get_str(author, "role")?.escaped() != "tool" {
            return None;
        }
        let name = json::get_str(author, "name").map(|name| name.text()).unwrap_or_default();
        let is_called = |called: &str| {
            name.is_empty() || name.starts_with(called) || called.starts_with(&*name)
        };
        let (mut nearest, mut found) = (None, Vec::new());
        let mut here = place;
        for _ in 0..64 {
            let Some(parent) = self.graph.parent_of(here) else { break };
            here = parent;
            match self.calls.get(&here) {
                Some(called) => {
                    nearest = nearest.or(Some(here));
                    found.extend(is_called(called).then_some(here));
                }
                // Parallel calls are consecutive nodes, and so are their results.
                None if !found.is_empty() && !self.results.contains(&here) => break,
                None => {}
            }
        }
        let is_open = |call: &&usize| !self.answered.contains(call);
        let call = found.iter().rev().find(is_open).or(found.first()).copied().or(nearest)?;
        self.results.insert(place);
        self.answered.insert(call);
        Some(self.graph.nodes[call].id.clone())
    }
}
