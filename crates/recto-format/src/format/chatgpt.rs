//! ChatGPT's export: a ZIP file with `conversations.json` (or `conversations-000.json` and so on), or
//! such a JSON file alone.
//!
//! A conversation is a graph: `mapping` has every message with its parent and children, and
//! `current_node` is where the user stands. All branches are told: first the ones that were left, each
//! followed by a ROLLBACK to where it began, at last the one that leads to `current_node`.
//!
//! | foreign | here |
//! |---|---|
//! | a message to somebody else than `all` | a `tool_use` |
//! | a message from a tool | a `tool_result` for the nearest such call before it |
//! | `thoughts` | `thinking` |
//! | `multimodal_text` | texts; assets by their pointers |
//! | `weight` 0 | in the log, but hidden |
//! | a content that has no words here | a part with that content, for export |

mod content;
mod export;

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};

use recto_core::{Append, Delete, LogIndex, Message, Request, Rollback, Step, Timestamp, Version};

use super::message_list::Misfit;
use super::session_line::{Asides, SessionLine};
use super::{Codec, Head, Likelihood};
use crate::export::{ExportOptions, Extent};
use crate::import::{ImportOptions, Input, Out, Remark, Start};
use crate::json::{self, Str};
use crate::values::Values;
use crate::zip::{self, Zip};
use crate::{Error, Format};

pub(crate) struct ChatGpt;

impl Codec for ChatGpt {
    fn recognise(&self, head: &Head) -> Likelihood {
        if head.bytes().starts_with(zip::MAGIC) {
            let names = memchr::memmem::find(head.bytes(), b"conversations");
            return if names.is_some() { Likelihood::Surely } else { Likelihood::Maybe };
        }
        let is_graph = |object: &&str| json::get(object, "mapping").is_some_and(json::is_object);
        match head.objects().first().is_some_and(is_graph) {
            true => Likelihood::Surely,
            false => Likelihood::No,
        }
    }

    fn import(&self, input: &dyn Input, out: &mut Out<'_>) -> Result<(), Error> {
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
                reason: "there is no conversations.json in the ZIP file".into(),
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
    ) -> Result<Vec<Remark>, Error> {
        export::export(messages, options, file)
    }
}

/// `conversations.json`, or a part of it such as `conversations-001.json`, in any folder.
fn is_conversations(name: &str) -> bool {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let part = name.strip_prefix("conversations").and_then(|rest| rest.strip_suffix(".json"));
    part.is_some_and(|part| part.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '_')))
}

/// A list of conversations, or one.
fn read_file<'r>(file: impl Read + 'r, out: &mut Out<'_>) -> Result<(), Error> {
    let limit = out.options.limits.message_bytes;
    let mut values = Values::new(file, limit);
    while let Some(byte) = values.peek_byte()? {
        match byte {
            b'[' => values.each_item(|values| read_conversation(values, out))?,
            _ => read_conversation(&mut values, out)?,
        }
    }
    Ok(())
}

/// A node of the graph.
struct Node {
    id: String,
    /// As it stands in the file.
    json: String,
    parent: Option<String>,
    children: Vec<String>,
    line: u64,
}

fn read_conversation(values: &mut Values<'_>, out: &mut Out<'_>) -> Result<(), Error> {
    let mut graph = Graph::default();
    let mut start = Start::default();
    let mut envelope = String::from("{");
    // It is held whole, since it is a graph.
    let largest = out.options.limits.message_bytes.saturating_mul(ImportOptions::WHOLE_FACTOR);
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
                        what: "a conversation's size in bytes",
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
    out.start(start)?;
    graph.tell(out)?;
    out.envelope(envelope)?;
    out.progress(values.bytes_taken());
    Ok(())
}

/// Milliseconds, from seconds with a fraction.
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

/// What is still to be told.
enum Task {
    Node(usize),
    GoBack(Version),
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

    /// The children of a node; those that the parent forgot to name come last.
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

    /// The way from the root to where the user stands.
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
        // Nobody says where: the newest of everything.
        let mut place = roots.last().copied();
        while let Some(here) = place.filter(|here| path.insert(*here)) {
            place = children[here].last().copied();
        }
        path
    }

    /// Tells all branches, the current one last.
    fn tell(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let mut children = self.children();
        let mut roots: Vec<usize> =
            (0..self.nodes.len()).filter(|place| self.parent_of(*place).is_none()).collect();
        let path = self.path(&children, &roots);
        let is_off = |place: &usize| path.contains(place);
        roots.sort_by_key(is_off);
        children.iter_mut().for_each(|list| list.sort_by_key(is_off));
        let current = self.current.as_ref().and_then(|id| self.places.get(id)).copied();

        let mut teller = Teller {
            graph: self,
            out,
            before: Asides::within(usize::MAX),
            calls: HashMap::new(),
            answered: HashSet::new(),
            answers: HashSet::new(),
        };
        let mut told = HashSet::new();
        let mut stop = None;
        let mut tasks = Vec::new();
        branches(&roots, Version(0), &mut tasks);
        while let Some(task) = tasks.pop() {
            match task {
                Task::GoBack(version) => teller.go_back(version)?,
                Task::Node(place) if told.insert(place) => {
                    teller.node(place)?;
                    let own = &children[place];
                    let is_here = current == Some(place);
                    let mut version = Version(0);
                    if own.len() > 1 || is_here {
                        teller.out.flush()?;
                        version = teller.out.version();
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
            teller.go_back(version)?;
        }
        let left = self.nodes.iter().enumerate().filter(|(place, _)| !told.contains(place));
        for (_, node) in left {
            teller.out.remark(
                node.line,
                &format!("mapping.{}", node.id),
                "left out: its parents form a ring",
            );
        }
        Ok(())
    }
}

/// Each branch, and in between back to where they begin.
fn branches(places: &[usize], version: Version, tasks: &mut Vec<Task>) {
    for (number, place) in places.iter().enumerate().rev() {
        tasks.push(Task::Node(*place));
        if number > 0 {
            tasks.push(Task::GoBack(version));
        }
    }
}

/// Puts out the messages of a graph.
struct Teller<'g, 'o, 'a> {
    graph: &'g Graph,
    out: &'o mut Out<'a>,
    /// Nodes without a message. The graph is in memory anyway: there is room for all.
    before: Asides,
    /// The calls so far: by node, who was called.
    calls: HashMap<usize, String>,
    /// The calls that have an answer, and the nodes that are answers.
    answered: HashSet<usize>,
    answers: HashSet<usize>,
}

impl Teller<'_, '_, '_> {
    fn go_back(&mut self, version: Version) -> Result<(), Error> {
        self.out.flush()?;
        if self.out.version() == version {
            return Ok(());
        }
        let reason = "the user went to another branch";
        self.out.apply(Rollback::ToVersion(version).reason(reason), 0)
    }

    fn node(&mut self, place: usize) -> Result<(), Error> {
        let node = &self.graph.nodes[place];
        let Some(message) = json::get(&node.json, "message") else {
            self.before.add(0, &node.json, node.line);
            return Ok(());
        };
        let depth = recto_core::json::depth(&node.json);
        let deepest = self.out.options.limits.depth;
        let call = self.call_for(place, message);
        let read = match depth > deepest {
            true => Err(Misfit::new("", format!("{depth} levels deep; {deepest} are allowed"))),
            false => content::read(message, &node.id, call.as_deref()),
        };
        let before = self.before.take(0);
        let mut told = Vec::new();
        let made = read.and_then(|read| {
            if let Some(called) = read.calls {
                self.calls.insert(place, called);
            }
            let time = json::get(message, "create_time").and_then(time_of);
            let drafts = vec![read.draft];
            let line = SessionLine {
                format: Format::ChatGpt,
                json: &node.json,
                foreign: "",
                said: None,
                before: before.as_deref(),
                timestamp: time,
            };
            line.messages(&drafts, &mut told)
        });
        for Misfit { field, reason } in told {
            let field = format!("mapping.{}.message.{field}", node.id);
            self.out.remark(node.line, &field, reason);
        }
        let messages = match made {
            Ok(messages) => messages,
            Err(misfit) => {
                let field = format!("mapping.{}.message.{}", node.id, misfit.field);
                self.out.remark(node.line, field.trim_end_matches('.'), misfit.reason);
                self.before.put_back(0, before);
                self.before.add(0, &node.json, node.line);
                return Ok(());
            }
        };
        let weight = json::get(message, "weight").and_then(|weight| weight.parse::<f64>().ok());
        if weight != Some(0.0) {
            return messages.into_iter().try_for_each(|message| self.out.message(message));
        }
        // It is part of the record, but the model did not read it.
        self.out.flush()?;
        let first = self.out.log_len() as u32;
        let count = messages.len();
        let indices = (first..first + count as u32).map(LogIndex).collect();
        let reason = "its weight is 0";
        let steps: [Step; 2] =
            [Append { messages }.reason(reason), Delete { indices }.reason(reason)];
        self.out.apply(steps.into_iter().collect::<Request>(), count)
    }

    /// The call that a tool's message answers: of the nearest ones before it to that tool, the first that
    /// has no answer; else the nearest.
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
                // Calls that were made at once stand one behind the other, and so do their answers.
                None if !found.is_empty() && !self.answers.contains(&here) => break,
                None => {}
            }
        }
        let is_open = |call: &&usize| !self.answered.contains(call);
        let call = found.iter().rev().find(is_open).or(found.first()).copied().or(nearest)?;
        self.answers.insert(place);
        self.answered.insert(call);
        Some(self.graph.nodes[call].id.clone())
    }
}
