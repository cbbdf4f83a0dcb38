//! Import of sessions.

use std::collections::HashMap;

use recto_core::{
    Append, Compress, Delete, Insert, LogIndex, Message, Position, Request, Role, Rollback, Step,
    Version,
};

use super::spacing::{Spacing, raw_document};
use super::tree::{Node, RecordTree};
use super::{Effect, Parent, Record, RepeatedId, SessionCodec, SessionState};
use crate::Error;
use crate::format::message_list::FieldError;
use crate::format::pending_lines::PendingLines;
use crate::format::session_line::SessionLine;
use crate::import::{Input, Start};
use crate::json::{self, Str};
use crate::step_writer::{Document, StepWriter};
use crate::values::{Peeked, Values};

pub(super) fn import(
    codec: &dyn SessionCodec,
    input: &dyn Input,
    out: &mut StepWriter<'_>,
) -> Result<(), Error> {
    let limit = out.options.limits.message_bytes;
    let mut values = Values::new(input.open()?, limit);
    let mut reader = Reader::new(codec, out, limit);
    while let Some(byte) = values.peek_byte()? {
        match byte {
            b'[' => {
                (reader.is_lines, reader.is_in_list) = (false, true);
                reader.has_only_lines = false;
                let (number, spacing) = (values.line(), Spacing::at(&mut values)?);
                reader.list(&mut values, "")?;
                if reader.has_started || reader.pending.has_lines() {
                    reader.warn_spacing(&spacing, number);
                    reader.end(Some(("null".to_owned(), spacing)))?;
                    reader.reset();
                }
                (reader.is_lines, reader.is_in_list) = (true, false);
            }
            _ => reader.value(&mut values, "")?,
        }
        reader.out.progress(values.bytes_taken());
    }
    if reader.has_started || reader.pending.has_lines() {
        reader.end(None)?;
    }
    if reader.has_only_lines {
        reader.out.warn_space(&values);
    }
    Ok(())
}

/// Reader of a file of sessions.
struct Reader<'c, 'o, 'a> {
    codec: &'c dyn SessionCodec,
    out: &'o mut StepWriter<'a>,
    /// True if the records of the current session are JSON lines.
    is_lines: bool,
    /// True if the file is JSON lines: it has no list of records and no document.
    has_only_lines: bool,
    /// True inside a list at the top of the file.
    is_in_list: bool,
    has_started: bool,
    start: Start,
    state: SessionState,
    /// Records without a message, until the next message of their branch.
    pending: PendingLines,
    tree: RecordTree,
    branches: Vec<Branch>,
    branch_names: HashMap<String, usize>,
    /// Line on which the last record of JSON lines started.
    last_line: Option<u64>,
}

#[derive(Default)]
struct Branch {
    /// The newest record.
    leaf: Option<usize>,
    /// Version whose view is the current view of the branch.
    view_version: u32,
}

impl<'c, 'o, 'a> Reader<'c, 'o, 'a> {
    fn new(codec: &'c dyn SessionCodec, out: &'o mut StepWriter<'a>, limit: usize) -> Self {
        Reader {
            codec,
            out,
            is_lines: true,
            has_only_lines: true,
            is_in_list: false,
            has_started: false,
            start: Start::default(),
            state: SessionState::default(),
            pending: PendingLines::with_capacity(limit),
            tree: RecordTree::default(),
            branches: vec![Branch::default()],
            branch_names: HashMap::new(),
            last_line: None,
        }
    }

    /// Reads the items of a list of records.
    fn list(&mut self, values: &mut Values<'_>, path: &str) -> Result<(), Error> {
        values.each_item(|values| {
            self.value(values, path)?;
            self.out.progress(values.bytes_taken());
            Ok(())
        })
    }

    /// Reads the next value: a record or a document. An unreadable line is skipped with a warning.
    fn value(&mut self, values: &mut Values<'_>, path: &str) -> Result<(), Error> {
        let number = values.line();
        let is_line = !self.is_in_list && path.is_empty();
        match values.peek_value()? {
            Peeked::Whole { len, depth } => {
                let text = values.peeked(len);
                let deepest = self.out.options.limits.depth;
                if path.is_empty() && self.is_document(text) {
                    let raw = raw_document(text, self.codec.list_keys());
                    return self.document(values, raw);
                }
                if depth > deepest {
                    let reason = format!("skipped: {depth} levels deep; {deepest} are allowed");
                    self.out.warn(number, path, reason);
                } else if json::is_object(text) {
                    if is_line && self.last_line.replace(number) == Some(number) {
                        let reason =
                            "a second record on the line: export writes it on its own line";
                        self.out.warn(number, path, reason);
                    }
                    self.record(text, number)?;
                } else {
                    self.out.warn(number, path, "skipped: a record must be an object");
                }
                values.take(len);
                Ok(())
            }
            Peeked::TooLarge if path.is_empty() && !self.codec.list_keys().is_empty() => {
                self.document(values, None)
            }
            Peeked::TooLarge => {
                self.out.warn(number, path, "skipped: the record exceeds the size limit");
                values.skip_value()
            }
            Peeked::Broken(reason) if is_line => {
                self.out.warn(number, "", format!("skipped: {reason}"));
                values.skip_line()
            }
            Peeked::Broken(reason) => Err(values.malformed(&reason)),
        }
    }

    /// True if an object contains a list of records.
    fn is_document(&self, object: &str) -> bool {
        let keys = self.codec.list_keys();
        keys.iter().any(|key| super::super::message_list::holds_list(object, key))
    }

    /// Reports white space that export does not restore.
    fn warn_spacing(&mut self, spacing: &Spacing, number: u64) {
        let reason = match spacing {
            Spacing::Irregular => "the white space between records differs, and is not kept",
            Spacing::Unknown => "the white space between records is not kept",
            Spacing::None | Spacing::Kept(_) => return,
        };
        self.out.warn(number, "", reason);
    }

    /// Reads a document: an object that contains the list of records of one session. `raw` is its text
    /// with `null` in place of the list, if it is small enough to be in memory.
    fn document(
        &mut self,
        values: &mut Values<'_>,
        raw: Option<(String, Spacing)>,
    ) -> Result<(), Error> {
        let number = values.line();
        if values.peek_byte()? != Some(b'{') {
            return Err(values.too_large());
        }
        if self.has_started {
            self.end(None)?;
            self.reset();
        }
        (self.is_lines, self.has_only_lines) = (false, false);
        let mut envelope = String::from("{");
        let mut has_list = false;
        let codec = self.codec;
        values.each_field(|values, key| {
            if envelope.len() > 1 {
                envelope.push(',');
            }
            json::push_string(key, &mut envelope);
            envelope.push(':');
            let is_list = codec.list_keys().contains(&key) && values.peek_byte()? == Some(b'[');
            if is_list && !has_list {
                has_list = true;
                envelope.push_str("null");
                return self.list(values, key);
            }
            let value = values.value()?;
            envelope.push_str(value);
            if !self.has_started {
                self.note_metadata(key, value);
            }
            Ok(())
        })?;
        envelope.push('}');
        let document = raw.unwrap_or((envelope, Spacing::Unknown));
        self.warn_spacing(&document.1, number);
        self.end(has_list.then_some(document))?;
        self.reset();
        Ok(())
    }

    /// Uses a field of the document as metadata of the conversation.
    fn note_metadata(&mut self, key: &str, value: &str) {
        match key {
            "sessionId" | "session_id" => {
                self.start.id = Str::of(value).map(|id| id.text().into_owned());
            }
            "startTime" => {
                self.start.created = Str::of(value).and_then(|it| super::time_of(&it.text()));
            }
            "title" if Str::of(value).is_some() => {
                self.start.name = Str::of(value).map(|title| title.text().into_owned());
            }
            _ => self.start.name = self.start.name.take().or_else(|| self.codec.title(value)),
        }
    }

    fn reset(&mut self) {
        self.has_started = false;
        self.is_lines = !self.is_in_list;
        self.start = Start::default();
        self.state = SessionState::default();
        self.tree = RecordTree::default();
        self.branches = vec![Branch::default()];
        self.branch_names.clear();
    }

    /// Ends a session: stores the records behind its last message and its document, and rolls back each
    /// branch whose view does not end with its newest record.
    fn end(&mut self, document: Option<(String, Spacing)>) -> Result<(), Error> {
        if !self.has_started && (document.is_some() || self.pending.has_lines()) {
            self.start()?; // a session without messages
        }
        let document = document.as_ref().map(|(text, spacing)| Document {
            text,
            spacing: match spacing {
                Spacing::Kept(spacing) => Some(spacing),
                _ => None,
            },
        });
        self.pending.finish(self.out, document)?;
        for number in 0..self.branches.len() {
            let Branch { leaf, view_version } = self.branches[number];
            let version = self.tree.version_of(leaf);
            if version != view_version {
                self.out.switch_branch(number)?;
                self.out.apply(rewind(version), 0)?;
            }
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Error> {
        self.has_started = true;
        self.start.is_json_lines = self.is_lines;
        self.out.start(std::mem::take(&mut self.start))
    }

    fn record(&mut self, text: &str, number: u64) -> Result<(), Error> {
        let read = self.codec.read(text, &mut self.state);
        self.state.list.message_count += 1;
        for FieldError { field, reason } in std::mem::take(&mut self.state.warnings) {
            self.out.warn(number, &field, reason);
        }
        for FieldError { field, reason } in self.state.list.take_warnings() {
            self.out.warn(number, &field, reason);
        }
        let record = match read {
            Ok(record) => record,
            Err(FieldError { field, reason }) => {
                self.out.warn(number, &field, reason);
                self.pending.add(0, text, number);
                return Ok(());
            }
        };
        if !self.has_started {
            let session = record.session.map(|id| id.text().into_owned());
            self.start.id = self.start.id.take().or(session);
            self.start.created = self.start.created.or(record.time);
            self.start.name = self.start.name.take().or_else(|| self.codec.title(text));
        }
        match record.drafts.is_empty() {
            true => self.record_without_message(&record, text, number),
            false => self.message(record, text, number),
        }
    }

    /// The parent of a record in the tree.
    fn parent_of(&self, record: &Record<'_>, branch: usize) -> Option<usize> {
        match record.parent {
            Parent::Previous => self.branches[branch].leaf,
            Parent::Root => None,
            Parent::Id(id) => self.tree.find(&id.text()).or(self.branches[branch].leaf),
        }
    }

    /// Keeps a record without a message for the next message. A rewind moves the end of its branch; any
    /// other record with a new id is added to the tree.
    fn record_without_message(
        &mut self,
        record: &Record<'_>,
        text: &str,
        number: u64,
    ) -> Result<(), Error> {
        let name = record.branch.map(|name| name.text().into_owned());
        let branch = name.and_then(|name| self.branch_names.get(&name).copied()).unwrap_or(0);
        if let Effect::Rewind(to) = record.effect {
            let to = self.tree.find(&to.text());
            self.branches[branch].leaf = to.and_then(|to| self.tree.nodes[to].parent);
        } else if let Some(id) = record.id
            && self.tree.find(&id.text()).is_none()
        {
            let parent = self.parent_of(record, branch);
            let node = self.tree.add(parent, self.tree.version_of(parent), 0..0, false);
            self.tree.set_id(&id.text(), node);
            self.branches[branch].leaf = Some(node);
        }
        self.pending.add(branch, text, number);
        Ok(())
    }

    /// The branch of a record with a message. The first such record of a subagent starts a fork.
    fn branch_of(&mut self, record: &Record<'_>) -> Result<usize, Error> {
        let Some(name) = record.branch.map(|name| name.text().into_owned()) else { return Ok(0) };
        if let Some(known) = self.branch_names.get(&name) {
            return Ok(*known);
        }
        self.branches.push(Branch::default());
        let branch = self.out.fork(name.clone(), 0, Version(0), 0)?;
        self.branch_names.insert(name, branch);
        Ok(branch)
    }

    fn message(&mut self, record: Record<'_>, text: &str, number: u64) -> Result<(), Error> {
        if !self.has_started {
            self.start()?;
        }
        let branch = self.branch_of(&record)?;
        self.out.switch_branch(branch)?;
        self.pending.report(self.out);
        let before = self.pending.take(branch);
        let line = SessionLine {
            format: self.codec.format(),
            json: text,
            foreign: record.foreign,
            role_and_content: record.role_and_content,
            before: before.as_deref(),
            timestamp: record.time,
        };
        let mut warnings = Vec::new();
        let messages = line.messages(&record.drafts, &mut warnings);
        for FieldError { field, reason } in warnings {
            self.out.warn(number, &field, reason);
        }
        match messages {
            Ok(messages) => self.place(branch, &record, messages),
            Err(FieldError { field, reason }) => {
                self.out.warn(number, &field, reason);
                self.pending.put_back(branch, before);
                self.pending.add(branch, text, number);
                Ok(())
            }
        }
    }

    /// Adds the messages of a record after its parent, and applies its effect. Messages of a repeated id
    /// can replace the earlier ones.
    fn place(
        &mut self,
        branch: usize,
        record: &Record<'_>,
        messages: Vec<Message>,
    ) -> Result<(), Error> {
        let known = record.id.and_then(|id| self.tree.find(&id.text()));
        let leaf = self.branches[branch].leaf;
        let is_system = messages.iter().all(|message| message.role() == Role::System);
        let first = self.out.log_len();
        let logs = first..first + messages.len();
        if let Some(known) = known
            && self.codec.repeated_id() == RepeatedId::Replacement
            && self.tree.nodes[known].log_count > 0
            && self.replace(known, branch, &messages)?
        {
            let (version, last) = (self.out.version().0, leaf.unwrap_or(known));
            self.branches[branch].view_version = version;
            self.tree.nodes[last].version = version;
            let node = &mut self.tree.nodes[known];
            (node.first_log, node.log_count) = (logs.start as u32, logs.len() as u32);
            return Ok(());
        }
        let parent = match known.is_some() && known == leaf {
            true => leaf,
            false => self.parent_of(record, branch),
        };
        let version = self.tree.version_of(parent);
        if version != self.branches[branch].view_version {
            self.out.apply(rewind(version), 0)?;
        }
        let mut first_kept = None;
        match &record.effect {
            Effect::Compaction { first_kept: kept, keeps_system } => {
                first_kept = kept.and_then(|id| self.tree.find(&id.text()));
                let hidden = self.tree.hidden_before(parent, first_kept, *keeps_system);
                self.summarise(hidden, messages)?;
            }
            Effect::Replaces(ids) => {
                let hidden = self.tree.hidden_of(parent, ids);
                self.summarise(hidden, messages)?;
            }
            Effect::None | Effect::Rewind(_) => {
                for message in messages {
                    self.out.message(message)?;
                }
                self.out.flush()?;
            }
        }
        let version = self.out.version().0;
        let node = self.tree.add(parent, version, logs, is_system);
        if let Effect::Compaction { .. } = record.effect {
            self.tree.nodes[node].compaction = Some(first_kept);
        }
        self.branches[branch] = Branch { leaf: Some(node), view_version: version };
        if let Some(id) = record.id {
            self.tree.set_id(&id.text(), node);
        }
        Ok(())
    }

    /// Replaces visible entries by messages in the view. Their messages stay in the log.
    fn summarise(
        &mut self,
        indices: Vec<LogIndex>,
        mut messages: Vec<Message>,
    ) -> Result<(), Error> {
        let reason = "the session was compacted";
        let count = messages.len();
        let mut steps: Vec<Step> = Vec::new();
        if indices.is_empty() {
            steps.push(Insert { position: Position(0), messages }.reason(reason));
        } else {
            let summary = Some(messages.remove(0));
            steps.push(Compress { indices, summary }.reason(reason));
            if !messages.is_empty() {
                steps.push(Append { messages }.reason(reason));
            }
        }
        self.out.apply(steps.into_iter().collect::<Request>(), count)
    }

    /// Replaces the messages of a record by others. Returns false if the record is not visible or too
    /// many records were examined.
    fn replace(
        &mut self,
        known: usize,
        branch: usize,
        messages: &[Message],
    ) -> Result<bool, Error> {
        let Branch { leaf, view_version } = self.branches[branch];
        if self.tree.version_of(leaf) != view_version || !self.tree.is_ancestor(known, leaf) {
            return Ok(false);
        }
        let mut position = 0;
        let mut next = self.tree.nodes[known].parent;
        while let Some(at) = next {
            if !self.tree.may_examine() {
                return Ok(false);
            }
            position += self.tree.nodes[at].log_count;
            next = self.tree.nodes[at].parent;
        }
        let Node { first_log, log_count, .. } = self.tree.nodes[known];
        let indices = (first_log..first_log + log_count).map(LogIndex).collect();
        let reason = "the session recorded a newer form of the message";
        let insert = Insert { position: Position(position as usize), messages: messages.to_vec() };
        let steps = [Delete { indices }.reason(reason), insert.reason(reason)];
        self.out.apply(steps.into_iter().collect::<Request>(), messages.len())?;
        Ok(true)
    }
}

fn rewind(version: u32) -> Step {
    Rollback::ToVersion(Version(version)).reason("the session went back")
}
