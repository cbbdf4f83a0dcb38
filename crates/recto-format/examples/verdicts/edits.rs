//! Random edits of accepted requests. After a third of the edits, rendering is told that thinking behind the
//! edit is invalid. The rendered request must have no shape that occurs only in refused requests, and must
//! pass the validators that the original request passes.

use std::collections::BTreeSet;
use std::fmt;

use recto_core::Message;
use recto_format::{Error, RenderOptions, Target, render};
use serde_json::{Value, json};
use testkit::provider::Provider;

use super::{Recorded, history_fields};

/// Shapes of requests: what each message consists of, and which messages follow each other.
#[derive(Default)]
pub(crate) struct Shapes {
    /// The shapes that a model of the provider accepted.
    accepted: BTreeSet<String>,
    /// The shapes that each model accepted.
    accepted_by_model: BTreeSet<(String, String)>,
    /// The shapes of refused requests whose error text does not name a message.
    refused: BTreeSet<String>,
    /// The shapes of the messages that error texts name, for the model that refused them.
    refused_by_model: BTreeSet<(String, String)>,
}

impl Shapes {
    pub(crate) fn add_accepted(&mut self, request: &Value, target: Target) {
        let model = model_of(request);
        for shape in shapes_of(request, target, |_| true) {
            self.accepted_by_model.insert((model.clone(), shape.clone()));
            self.accepted.insert(shape);
        }
    }

    /// Adds a request that was refused with status 400: other codes are about keys, models and limits.
    pub(crate) fn add_refused(&mut self, request: &Value, target: Target, recorded: &Recorded) {
        if recorded.status != 400 {
            return;
        }
        let model = model_of(request);
        match position_in(&recorded.response) {
            Some(named) => {
                let shapes = shapes_of(request, target, |at| at == named);
                self.refused_by_model
                    .extend(shapes.into_iter().map(|shape| (model.clone(), shape)));
            }
            None => self.refused.extend(shapes_of(request, target, |_| true)),
        }
    }

    /// A shape of the request that occurs only among refused requests: the model refused it, and the
    /// error text was about it; or it was in a refused request, and no model accepted it.
    fn only_refused(&self, request: &Value, target: Target) -> Option<String> {
        let model = model_of(request);
        let is_bad = |shape: &String| {
            let of_model = (model.clone(), shape.clone());
            self.refused.contains(shape) && !self.accepted.contains(shape)
                || self.refused_by_model.contains(&of_model)
                    && !self.accepted_by_model.contains(&of_model)
        };
        shapes_of(request, target, |_| true).into_iter().find(is_bad)
    }
}

fn model_of(request: &Value) -> String {
    request["model"].as_str().unwrap_or_default().to_owned()
}

/// The position of the message that an error text names: `messages[3]`, `input[4].content[0]` or
/// `messages.2.content.1`.
fn position_in(error: &str) -> Option<usize> {
    ["messages", "input", "contents"].iter().find_map(|list| {
        error.match_indices(list).find_map(|(at, _)| {
            let rest = error[at + list.len()..].strip_prefix(['[', '.'])?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().ok()
        })
    })
}

/// The shapes of the messages whose position is wanted: of the message itself, of the message as the first or
/// the last one, and of the pair with the next message.
fn shapes_of(request: &Value, target: Target, is_wanted: impl Fn(usize) -> bool) -> Vec<String> {
    let (_, list) = history_fields(target);
    let messages = request[list].as_array().map(Vec::as_slice).unwrap_or_default();
    let all: Vec<String> = messages.iter().map(shape_of).collect();
    let last = all.len().saturating_sub(1);
    let mut shapes = Vec::new();
    for (at, shape) in all.iter().enumerate().filter(|(at, _)| is_wanted(*at)) {
        shapes.push(shape.clone());
        if at == 0 {
            shapes.push(format!("first {shape}"));
        }
        if at == last {
            shapes.push(format!("last {shape}"));
        }
        if let Some(next) = all.get(at + 1) {
            shapes.push(format!("{shape} → {next}"));
        }
    }
    shapes
}

/// A request whose consecutive messages of one role are joined, as Anthropic and Google do.
fn joined(request: &Value, target: Target) -> Value {
    let mut request = request.clone();
    let (_, list) = history_fields(target);
    let content = match target {
        Target::Anthropic => "content",
        Target::Gemini => "parts",
        _ => return request,
    };
    let mut messages: Vec<Value> = Vec::new();
    for mut message in request[list].as_array().cloned().unwrap_or_default() {
        if let Some(text) = message[content].as_str() {
            message[content] = json!([{ "type": "text", "text": text }]);
        }
        match messages.last_mut() {
            Some(last) if last["role"] == message["role"] => {
                let more = message[content].as_array().cloned().unwrap_or_default();
                if let Some(blocks) = last[content].as_array_mut() {
                    blocks.extend(more);
                }
            }
            _ => messages.push(message),
        }
    }
    request[list] = Value::Array(messages);
    request
}

/// The messages of a request, shortened.
fn history_of(request: &Value, target: Target) -> String {
    let (_, list) = history_fields(target);
    let messages = request[list].as_array().map(Vec::as_slice).unwrap_or_default();
    let short = |message: &Value| message.to_string().chars().take(240).collect::<String>();
    let lines: Vec<String> = messages.iter().map(|it| format!("\n        {}", short(it))).collect();
    lines.concat()
}

/// The shape of a message: its role and type, which of some fields it has, and the types of its parts.
/// Consecutive parts of the same type are listed once.
fn shape_of(message: &Value) -> String {
    let text = |key: &str| message[key].as_str().unwrap_or_default();
    let mut shape = format!("{} {}", text("role"), text("type"));
    if message["id"].is_string() {
        shape.push_str(" with id");
    }
    for key in ["tool_calls", "tool_call_id", "reasoning_content"] {
        if !message[key].is_null() {
            shape.push_str(&format!(" {key}"));
        }
    }
    let content = if message["parts"].is_array() { &message["parts"] } else { &message["content"] };
    let mut last = String::new();
    for part in content.as_array().into_iter().flatten() {
        let kind = match part["type"].as_str() {
            Some(kind) => kind.to_owned(),
            None => part
                .as_object()
                .map_or("?".into(), |it| it.keys().cloned().collect::<Vec<_>>().join("+")),
        };
        if kind != last {
            shape.push_str(&format!(" [{kind}]"));
        }
        last = kind;
    }
    shape
}

/// Figures of a run.
#[derive(Default)]
pub(crate) struct Edits {
    rendered: usize,
    /// Views without content for the provider.
    empty: usize,
    with_refused_shapes: usize,
    invalid: usize,
    /// Examples of failures.
    examples: Vec<String>,
    shape_examples: Vec<String>,
}

impl Edits {
    const MAX_EXAMPLES: usize = 10;

    /// Makes `count` random edits, each of the given view, and renders each edited view.
    pub(crate) fn run(
        &mut self,
        name: &str,
        view: &[Message],
        target: Target,
        options: &RenderOptions<'_>,
        shapes: &Shapes,
        count: usize,
    ) {
        let provider = Provider::ALL.iter().find(|provider| provider.name() == target.name());
        let violation =
            |body: &Value| provider.and_then(|it| it.check(&joined(body, target)).err());
        let is_judged = render(view, target, options).is_ok_and(|rendered| {
            serde_json::from_str(&rendered.body).is_ok_and(|body| violation(&body).is_none())
        });
        let mut dice = Dice(name.bytes().fold(0x9e37_79b9, |sum: u64, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }));
        for number in 0..count {
            let Edited { view: edited, first } = dice.edit(view);
            // Some models accept thinking only behind unchanged messages.
            let invalid: Vec<usize> = (first..edited.len()).collect();
            let invalid_thinking = if number % 3 == 0 { &invalid[..] } else { &[] };
            let rendered =
                match render(&edited, target, &RenderOptions { invalid_thinking, ..*options }) {
                    Ok(rendered) => rendered,
                    Err(Error::NothingToSend { .. }) => {
                        self.empty += 1;
                        continue;
                    }
                    Err(error) => {
                        self.invalid += 1;
                        self.example(format!("{name}, edit {number}: {error}"));
                        continue;
                    }
                };
            self.rendered += 1;
            let Ok(body) = serde_json::from_str::<Value>(&rendered.body) else {
                self.invalid += 1;
                self.example(format!("{name}, edit {number}: not JSON"));
                continue;
            };
            if let Some(shape) = shapes.only_refused(&body, target) {
                self.with_refused_shapes += 1;
                let example =
                    format!("{name}, edit {number}: {shape}{}", history_of(&body, target));
                self.shape_examples.push(example);
            }
            if let Some(violation) = violation(&body).filter(|_| is_judged) {
                self.invalid += 1;
                let history = history_of(&body, target);
                self.example(format!("{name}, edit {number}: {violation}{history}"));
            }
        }
    }

    fn example(&mut self, text: String) {
        if self.examples.len() < Self::MAX_EXAMPLES {
            self.examples.push(text);
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.with_refused_shapes + self.invalid > 0
    }
}

impl fmt::Display for Edits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "random edits of accepted requests")?;
        writeln!(f, "  rendered                        {}", self.rendered)?;
        writeln!(f, "  nothing left to send            {}", self.empty)?;
        writeln!(f, "  with shapes only of refused     {}", self.with_refused_shapes)?;
        writeln!(f, "  rejected by the validators      {}", self.invalid)?;
        let examples = self.shape_examples.iter().take(Self::MAX_EXAMPLES).chain(&self.examples);
        examples.into_iter().try_for_each(|example| writeln!(f, "    {example}"))
    }
}

/// Random numbers (xorshift): the same for the same name.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// One to three edits: DELETE, TRUNCATE at either end, REPLACE, INSERT or a move.
    fn edit(&mut self, view: &[Message]) -> Edited {
        let mut edited = view.to_vec();
        let mut first = edited.len();
        for _ in 0..=self.below(3) {
            let mut at = self.below(edited.len());
            match self.below(6) {
                0 if !edited.is_empty() => drop(edited.remove(at)),
                1 => {
                    edited.drain(..at);
                    at = 0;
                }
                2 => {
                    edited.truncate(at + 1);
                    at = edited.len();
                }
                3 if !edited.is_empty() => {
                    edited[at] = match edited[at].role() {
                        recto_core::Role::Assistant => Message::assistant("An edited answer."),
                        _ => Message::user("An edited question."),
                    };
                }
                4 => {
                    let new = match self.below(3) {
                        0 => Message::assistant("An inserted answer."),
                        1 => Message::system("An inserted rule."),
                        _ => Message::user("An inserted question."),
                    };
                    edited.insert(at.min(edited.len()), new);
                }
                _ if !edited.is_empty() => {
                    let moved = edited.remove(at);
                    let to = self.below(edited.len() + 1);
                    edited.insert(to, moved);
                    at = at.min(to);
                }
                _ => {}
            }
            first = first.min(at);
        }
        Edited { view: edited, first }
    }
}

/// An edited view.
struct Edited {
    view: Vec<Message>,
    /// The first position that an edit has changed. Thinking from here on follows other messages.
    first: usize,
}
