//! Compares Recto with the verdicts of real providers: `cargo xtask verdicts DIR` runs it.
//!
//! DIR holds two folders: `verdicts` and, if there is one, `sessions` with files of agents (see
//! `sessions.rs`). Without them, DIR itself is the folder of verdicts.
//!
//! The folder of verdicts holds recorded requests as `KIND/ok/NAME.json` and `KIND/refused/NAME.json`, where KIND is
//! `anthropic`, `openai-chat`, `openai-responses`, `gemini`, `bedrock-converse` or `other-chat` (other
//! servers with the interface of chat completions). If there is an
//! `index.jsonl`, its lines `{file, uri, status, response}` name the address, which may name the
//! model, and the provider's error text.
//!
//! For each request it measures:
//!
//! - whether the format is recognised;
//! - which findings of severity error `lint` has, for the request's own provider and model;
//! - whether import and render for the same provider give the same history: as values, and byte by
//!   byte;
//! - whether the tools of the request, stored as the tools of a conversation, are rendered with the same
//!   value and without a finding about them.
//!
//! Lint is given the model and no other fields, as `recto lint` is; a request counts as refused with lint
//! errors also if an error depends on its fields. The format is the recognised one.
//!
//! Then it edits the accepted requests at random: see `edits.rs`.

#![allow(clippy::print_stdout, reason = "the printed table is the result")]

mod edits;
mod sessions;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use recto_core::{Approx, Message, Settings};
use recto_format::{
    EnvelopeInfo, Format, ImportOptions, RenderOptions, Replay, Severity, Target, import, lint,
    render,
};
use serde_json::Value;
use serde_json::value::RawValue;

use edits::{Edits, Shapes};
use sessions::Sessions;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The kinds of requests that Recto renders.
const KINDS: &[(&str, Format, Target)] = &[
    ("anthropic", Format::Anthropic, Target::Anthropic),
    ("openai-chat", Format::OpenAiChat, Target::OpenAiChat),
    ("openai-responses", Format::OpenAiResponses, Target::OpenAiResponses),
    ("gemini", Format::Gemini, Target::Gemini),
    ("bedrock-converse", Format::BedrockConverse, Target::BedrockConverse),
    ("other-chat", Format::OpenAiChat, Target::OpenAiChat),
];

/// Default number of random edits of all accepted requests together.
const EDITS: usize = 120_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: verdicts DIR [--show] [--edits=COUNT]";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let options: Vec<String> = arguments.collect();
    let show = options.iter().any(|option| option == "--show");
    let count = options.iter().find_map(|option| option.strip_prefix("--edits="));
    let edit_count = count.map_or(Ok(EDITS), str::parse)?;
    let files = folder.join("sessions");
    let sessions = match files.is_dir() {
        true => Some(Sessions::check(&files, show)?),
        false => None,
    };
    let folder = match folder.join("verdicts") {
        verdicts if verdicts.is_dir() => verdicts,
        _ => folder,
    };
    let index = Index::read(&folder.join("index.jsonl"))?;
    let mut total = Table::default();
    let mut edits = Edits::default();
    let is_ok = |verdict: Verdict| verdict == Verdict::Ok;
    let mut accepted = 0;
    for &(kind, ..) in KINDS {
        accepted += requests(&folder.join(kind))?.iter().filter(|(it, _)| is_ok(*it)).count();
    }
    let edits_each = usize::div_ceil(edit_count, accepted.max(1));
    for &(kind, format, target) in KINDS {
        let mut table = Table::default();
        let mut shapes = Shapes::default();
        let mut bodies = Vec::new();
        for (verdict, file) in requests(&folder.join(kind))? {
            let name =
                format!("{kind}/{verdict}/{}", file.file_name().unwrap_or_default().display());
            let body = std::fs::read_to_string(&file)?;
            if let Ok(request) = serde_json::from_str(&body) {
                match index.get(&name).filter(|_| !is_ok(verdict)) {
                    Some(recorded) => shapes.add_refused(&request, target, recorded),
                    None if is_ok(verdict) => shapes.add_accepted(&request, target),
                    None => {}
                }
            }
            bodies.push((verdict, name, body));
        }
        for (verdict, name, body) in &bodies {
            let recorded = index.get(name);
            let judged = Judged::of(body, format, target, recorded);
            if show {
                judged.show(name, *verdict, recorded);
            }
            table.add(*verdict, &judged);
            // A request without messages has nothing to edit.
            let _without_messages = with_view(body, format, target, recorded, |view, options| {
                if is_ok(*verdict) {
                    edits.run(name, view, target, options, &shapes, edits_each);
                }
                Ok(())
            });
        }
        println!("{kind}\n{table}");
        total.merge(&table);
    }
    println!("all\n{total}");
    println!("{edits}");
    if let Some(sessions) = &sessions {
        println!("{sessions}");
    }
    if edits.has_failed() {
        return Err("an edited request was rendered in a form that providers refuse".into());
    }
    match sessions.is_some_and(|sessions| sessions.has_failed()) {
        true => Err("the export of a file has other content, and no remark names it".into()),
        false => Ok(()),
    }
}

/// Imports a request and passes on its messages, with its other fields as options.
fn with_view(
    body: &str,
    format: Format,
    target: Target,
    recorded: Option<&Recorded>,
    then: impl FnOnce(&[Message], &RenderOptions<'_>) -> Result<()>,
) -> Result<()> {
    let request: Value = serde_json::from_str(body)?;
    let model = model_of(&request, recorded);
    let mut fields = other_fields(body, target)?;
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    // A body without a known format is imported as the format of its folder.
    let recognised = import(body, None, &ImportOptions::default(), &mut replay).is_ok();
    if !recognised {
        replay = Replay::new(Settings::counting_with(Approx), 0);
        import(body, Some(format), &ImportOptions::default(), &mut replay)?;
    }
    let replayed = replay.conversations.first().ok_or("no conversation")?;
    let view: Vec<Message> = replayed.branches[0].conversation.messages().cloned().collect();
    let tools =
        replayed.envelope.as_deref().map(|envelope| EnvelopeInfo::of(envelope, format).tools);
    let tools = tools.unwrap_or_default();
    // The tools of the conversation replace the field.
    if !tools.is_empty() {
        fields.retain(|key, _| !["tools", "functions", "toolConfig"].contains(&key.as_str()));
    }
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(key, value)| (key.as_str(), value.get())).collect();
    let model = model.as_deref();
    let tools = &tools[..];
    then(&view, &RenderOptions { model, fields: &fields, tools, ..RenderOptions::default() })
}

/// The tools of a request; `None` without tools.
fn tools_of(request: &str) -> Result<Option<Value>> {
    let request: Value = serde_json::from_str(request)?;
    let config = request.get("toolConfig").and_then(|config| config.get("tools"));
    let tools = ["tools", "functions"].iter().find_map(|key| request.get(*key)).or(config);
    Ok(tools.filter(|tools| tools.as_array().is_some_and(|it| !it.is_empty())).cloned())
}

/// The requests below a folder, with the verdict on each.
fn requests(folder: &Path) -> Result<Vec<(Verdict, PathBuf)>> {
    let mut found = Vec::new();
    for verdict in [Verdict::Ok, Verdict::Refused] {
        let Ok(files) = folder.join(verdict.to_string()).read_dir() else { continue };
        let mut files: Vec<PathBuf> =
            files.map(|file| Ok(file?.path())).collect::<std::io::Result<_>>()?;
        files.sort();
        found.extend(files.into_iter().map(|file| (verdict, file)));
    }
    Ok(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    Refused,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Verdict::Ok { "ok" } else { "refused" })
    }
}

/// A line of the index.
struct Recorded {
    uri: String,
    status: u64,
    response: String,
}

struct Index(BTreeMap<String, Recorded>);

impl Index {
    fn read(path: &Path) -> Result<Index> {
        let mut lines = BTreeMap::new();
        for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
            let line: Value = serde_json::from_str(line)?;
            let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
            let status = line["status"].as_u64().unwrap_or_default();
            let recorded = Recorded { uri: text("uri"), status, response: text("response") };
            lines.insert(text("file"), recorded);
        }
        Ok(Index(lines))
    }

    fn get(&self, name: &str) -> Option<&Recorded> {
        self.0.get(name)
    }
}

/// The result of recognition, lint and rendering for one request.
#[derive(Default)]
struct Judged {
    recognised: bool,
    errors: Vec<String>,
    errors_with_fields: Vec<String>,
    /// Whether the tools have the same value; `None` without tools.
    same_tools: Option<bool>,
    /// What rendering changed in the tools.
    tool_findings: Vec<String>,
    same_values: bool,
    same_bytes: bool,
    /// The first difference between the histories of the recorded and the rendered request, or the error.
    difference: String,
}

impl Judged {
    fn of(body: &str, format: Format, target: Target, recorded: Option<&Recorded>) -> Judged {
        let mut judged = Judged {
            recognised: Format::recognise(body.as_bytes()).is_ok_and(|found| found == format),
            ..Judged::default()
        };
        if let Err(error) = judged.compare(body, format, target, recorded) {
            judged.difference = error.to_string();
        }
        judged
    }

    fn compare(
        &mut self,
        body: &str,
        format: Format,
        target: Target,
        recorded: Option<&Recorded>,
    ) -> Result<()> {
        with_view(body, format, target, recorded, |view, options| {
            let errors = |options: &RenderOptions<'_>| -> Vec<String> {
                let findings = lint(view, target, options);
                let is_error = |severity| severity == Severity::Error;
                let errors = findings.iter().filter(|it| is_error(it.rule.severity));
                errors.map(ToString::to_string).collect()
            };
            self.errors = errors(&RenderOptions { fields: &[], ..*options });
            self.errors_with_fields = errors(options);
            let rendered = render(view, target, options)?;
            if let Some(recorded) = tools_of(body)? {
                self.same_tools = Some(tools_of(&rendered.body)?.is_some_and(|it| it == recorded));
            }
            self.tool_findings =
                rendered.tool_findings.iter().map(|it| format!("{it:?}")).collect();
            let (before, after) =
                (History::of(body, target)?, History::of(&rendered.body, target)?);
            self.same_bytes = before.0 == after.0;
            let values = |history: &History| -> Result<Vec<Value>> {
                history.0.iter().map(|part| Ok(serde_json::from_str(part)?)).collect()
            };
            self.same_values = self.same_bytes || values(&before)? == values(&after)?;
            if !self.same_bytes {
                self.difference = before.difference(&after);
            }
            Ok(())
        })
    }

    fn show(&self, name: &str, verdict: Verdict, recorded: Option<&Recorded>) {
        let is_bad = match verdict {
            Verdict::Ok => {
                let findings = [&self.errors, &self.errors_with_fields, &self.tool_findings];
                let is_clean = findings.iter().all(|it| it.is_empty());
                !self.recognised || !is_clean || !self.same_bytes || self.same_tools == Some(false)
            }
            Verdict::Refused => true,
        };
        if !is_bad {
            return;
        }
        let kind = if self.same_values { "bytes" } else { "values" };
        let tools = self.same_tools.unwrap_or(true);
        println!(
            "{name}: recognised {}, tools {tools}, {kind} {}",
            self.recognised, self.difference
        );
        for error in self.errors.iter().chain(&self.errors_with_fields) {
            println!("    lint: {error}");
        }
        self.tool_findings.iter().for_each(|finding| println!("    tools: {finding}"));
        if let Some(recorded) = recorded.filter(|_| verdict == Verdict::Refused) {
            println!("    provider: {}", recorded.response.chars().take(300).collect::<String>());
        }
    }
}

/// The model that a request names, in its body or in its address (`…/models/NAME:generateContent` or
/// `…/model/NAME/converse`).
fn model_of(request: &Value, recorded: Option<&Recorded>) -> Option<String> {
    if let Some(model) = request["model"].as_str() {
        return Some(model.to_owned());
    }
    let uri = recorded?.uri.replace("%3A", ":");
    if let Some((_, rest)) = uri.split_once("/model/") {
        return rest.split('/').next().map(str::to_owned);
    }
    let (_, rest) = uri.split_once("/models/")?;
    let end = rest.find([':', '/', '?']).unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}

/// The fields of a request other than its history.
fn other_fields(body: &str, target: Target) -> Result<BTreeMap<String, &RawValue>> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(body)?;
    let (system, messages) = history_fields(target);
    fields.retain(|key, _| key != messages && !system.contains(&key.as_str()));
    Ok(fields)
}

/// The fields for system texts, and the field with the list of messages.
fn history_fields(target: Target) -> (&'static [&'static str], &'static str) {
    match target {
        Target::Anthropic | Target::BedrockConverse => (&["system"], "messages"),
        Target::OpenAiResponses => (&["instructions"], "input"),
        Target::Gemini => (&["systemInstruction", "system_instruction"], "contents"),
        _ => (&[], "messages"),
    }
}

/// The history of a request: the raw JSON of its system text and of each of its messages.
struct History(Vec<String>);

impl History {
    fn of(body: &str, target: Target) -> Result<History> {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(body)?;
        let (system, messages) = history_fields(target);
        let mut parts = Vec::new();
        for field in system {
            let value = fields.get(*field).map(|value| value.get().to_owned());
            parts.extend(value.filter(|value| value != "null"));
        }
        let messages = fields.get(messages).ok_or("the request has no messages")?;
        match serde_json::from_str::<Vec<&RawValue>>(messages.get()) {
            Ok(list) => parts.extend(list.iter().map(|message| message.get().to_owned())),
            Err(_) => parts.push(messages.get().to_owned()),
        }
        Ok(History(parts))
    }

    fn difference(&self, other: &History) -> String {
        let at = self.0.iter().zip(&other.0).position(|(left, right)| left != right);
        let at = at.unwrap_or(self.0.len().min(other.0.len()));
        let short = |part: Option<&String>| match part {
            Some(part) => part.chars().take(400).collect(),
            None => "nothing".to_owned(),
        };
        format!("at {at}:\n    was {}\n    is  {}", short(self.0.get(at)), short(other.0.get(at)))
    }
}

/// Counts of one kind.
#[derive(Default)]
struct Table {
    accepted: usize,
    refused: usize,
    recognised: usize,
    with_errors: usize,
    with_tools: usize,
    same_tools: usize,
    with_tool_findings: usize,
    same_values: usize,
    same_bytes: usize,
    refused_with_errors: usize,
}

impl Table {
    fn add(&mut self, verdict: Verdict, judged: &Judged) {
        self.recognised += usize::from(judged.recognised);
        if verdict == Verdict::Refused {
            self.refused += 1;
            let is_flagged = !judged.errors.is_empty() || !judged.errors_with_fields.is_empty();
            self.refused_with_errors += usize::from(is_flagged);
            return;
        }
        self.accepted += 1;
        let is_flagged = !judged.errors.is_empty() || !judged.errors_with_fields.is_empty();
        self.with_errors += usize::from(is_flagged);
        self.with_tools += usize::from(judged.same_tools.is_some());
        self.same_tools += usize::from(judged.same_tools == Some(true));
        self.with_tool_findings += usize::from(!judged.tool_findings.is_empty());
        self.same_values += usize::from(judged.same_values);
        self.same_bytes += usize::from(judged.same_bytes);
    }

    fn merge(&mut self, other: &Table) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.recognised += other.recognised;
        self.with_errors += other.with_errors;
        self.with_tools += other.with_tools;
        self.same_tools += other.same_tools;
        self.with_tool_findings += other.with_tool_findings;
        self.same_values += other.same_values;
        self.same_bytes += other.same_bytes;
        self.refused_with_errors += other.refused_with_errors;
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.accepted + self.refused;
        let of = |count: usize, all: usize| {
            let percent = if all == 0 { 100.0 } else { 100.0 * count as f64 / all as f64 };
            format!("{count} of {all} ({percent:.1} %)")
        };
        writeln!(f, "  format recognised               {}", of(self.recognised, requests))?;
        writeln!(f, "  accepted, with lint errors      {}", of(self.with_errors, self.accepted))?;
        writeln!(f, "  accepted, history unchanged     {}", of(self.same_values, self.accepted))?;
        writeln!(f, "  accepted, history byte for byte {}", of(self.same_bytes, self.accepted))?;
        writeln!(f, "  accepted, tools unchanged       {}", of(self.same_tools, self.with_tools))?;
        writeln!(
            f,
            "  accepted, with tool findings    {}",
            of(self.with_tool_findings, self.with_tools)
        )?;
        writeln!(
            f,
            "  refused, with lint errors       {}",
            of(self.refused_with_errors, self.refused)
        )
    }
}
