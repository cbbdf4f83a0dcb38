//! The measured conversation: a synthetic coding agent, the same on every run.
//!
//! Here, a turn is a message of the user, up to two rounds of tool calls with their results, and an answer. A
//! round has one to three calls. Results have many lines, so their JSON is full of escapes. All ids are unique.

use std::fmt::Write as _;

use recto_core::Message;

/// A word that is only in the texts of tool results, in about one of a thousand.
pub(crate) const RARE_WORD: &str = "checksum_mismatch_7f";

/// Messages, and where the turns start.
pub(crate) struct Transcript {
    pub(crate) messages: Vec<Message>,
    turns: Vec<usize>,
}

impl Transcript {
    /// A transcript of exactly this many messages, in which every call has its result.
    pub(crate) fn of(messages: usize) -> Transcript {
        let mut writer = Writer { dice: Dice(0x5EED), messages: Vec::with_capacity(messages) };
        let mut turns = vec![0];
        writer.system();
        while writer.messages.len() < messages {
            turns.push(writer.messages.len());
            let room = messages - writer.messages.len();
            writer.turn(room);
        }
        Transcript { messages: writer.messages, turns }
    }

    /// The messages of each turn.
    pub(crate) fn turns(&self) -> impl Iterator<Item = &[Message]> {
        let ends = self.turns.iter().skip(1).copied().chain([self.messages.len()]);
        self.turns.iter().zip(ends).map(|(&start, end)| &self.messages[start..end])
    }
}

/// Short messages of the user, for edits.
pub(crate) fn remarks(count: usize) -> Vec<Message> {
    let mut dice = Dice(0xADD);
    let remark = |number| {
        let mut text = format!("remark {number}: ");
        dice.words(&mut text, 40);
        Message::user(&text)
    };
    (0..count).map(remark).collect()
}

/// Words of which only the first is in the transcript, in about one result of a thousand.
pub(crate) fn rare_words(count: usize) -> Vec<String> {
    let mut dice = Dice(0xCAFE);
    let made_up = (1..count).map(|number| {
        let (a, b) = (dice.word(), dice.word());
        format!("{a}_{b}{number}")
    });
    [RARE_WORD.to_owned()].into_iter().chain(made_up).collect()
}

struct Writer {
    dice: Dice,
    messages: Vec<Message>,
}

impl Writer {
    fn push(&mut self, role: &str, content: &str) {
        let number = self.messages.len();
        let json = format!(r#"{{"id":"m{number}","role":"{role}","content":{content}}}"#);
        self.messages.push(Message::from_json(&json).expect("the transcript is well-formed"));
    }

    fn push_text(&mut self, role: &str, bytes: usize) {
        let mut text = String::with_capacity(bytes + 16);
        self.dice.words(&mut text, bytes);
        self.push(role, &quoted(&text));
    }

    fn system(&mut self) {
        self.push_text("system", 1_500);
    }

    /// A turn of at most `room` messages.
    fn turn(&mut self, room: usize) {
        let end = self.messages.len() + room;
        let length = self.dice.between(30, 120);
        self.push_text("user", length);
        for _ in 0..self.dice.between(0, 3) {
            let calls = match self.dice.between(0, 10) {
                0..7 => 1,
                7..9 => 2,
                _ => 3,
            };
            // The message with the calls, a result for each call, and the answer at the end of the turn.
            if self.messages.len() + calls + 2 > end {
                break;
            }
            self.exchange(calls);
        }
        if self.messages.len() < end {
            let length = self.dice.between(60, 400);
            self.push_text("assistant", length);
        }
    }

    fn exchange(&mut self, calls: usize) {
        let first = self.messages.len();
        let mut parts = String::from("[");
        if self.dice.between(0, 2) == 0 {
            let mut text = String::new();
            self.dice.words(&mut text, 50);
            let _ = write!(parts, r#"{{"type":"text","text":{}}},"#, quoted(&text));
        }
        for call in 0..calls {
            let separator = if call == 0 { "" } else { "," };
            let (name, path) = (self.dice.tool(), self.dice.path());
            let _ = write!(
                parts,
                r#"{separator}{{"type":"tool_use","id":"toolu_{first}_{call}","name":"{name}","input":{{"path":"{path}"}}}}"#
            );
        }
        parts.push(']');
        self.push("assistant", &parts);
        for call in 0..calls {
            let text = self.output();
            let content = quoted(&text);
            let part = format!(
                r#"[{{"type":"tool_result","tool_use_id":"toolu_{first}_{call}","content":{content}}}]"#
            );
            self.push("tool", &part);
        }
    }

    /// The output of a tool: mostly short, sometimes long, 1.2 KB on average.
    fn output(&mut self) -> String {
        let bytes = match self.dice.between(0, 10) {
            0..5 => self.dice.between(20, 400),
            5..9 => self.dice.between(500, 2_300),
            _ => self.dice.between(3_000, 7_500),
        };
        let mut text = String::with_capacity(bytes + 128);
        let mut number = self.dice.between(1, 900);
        while text.len() < bytes {
            let indent = ["", "    ", "        ", "\t"][self.dice.between(0, 4)];
            let _ = write!(text, "{number}: {indent}");
            let length = self.dice.between(10, 80);
            self.dice.words(&mut text, length);
            if self.dice.between(0, 4) == 0 {
                let path = self.dice.path();
                let _ = write!(text, " \"{path}\"");
            }
            text.push('\n');
            number += 1;
        }
        if self.dice.between(0, 1_000) == 0 {
            text.push_str(RARE_WORD);
        }
        text
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is a JSON string")
}

/// Random numbers from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` up to, but not including, `end`.
    fn between(&mut self, least: usize, end: usize) -> usize {
        least + (self.roll() % (end - least) as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.between(0, WORDS.len())]
    }

    fn words(&mut self, text: &mut String, bytes: usize) {
        let end = text.len() + bytes;
        while text.len() < end {
            text.push_str(self.word());
            text.push(' ');
        }
        text.pop();
    }

    fn tool(&mut self) -> &'static str {
        ["read_file", "search", "run_tests", "list_files", "edit_file"][self.between(0, 5)]
    }

    fn path(&mut self) -> String {
        format!("src/{}/{}_{}.rs", self.word(), self.word(), self.between(0, 100))
    }
}

const WORDS: [&str; 128] = [
    "the", "of", "and", "to", "in", "is", "for", "on", "that", "with", "as", "are", "this", "be",
    "by", "from", "or", "an", "it", "which", "file", "test", "value", "error", "result", "return",
    "function", "module", "string", "number", "list", "index", "length", "match", "type", "struct",
    "enum", "trait", "impl", "async", "await", "self", "mut", "let", "const", "static", "pub",
    "crate", "use", "where", "while", "loop", "break", "continue", "option", "some", "none", "ok",
    "err", "vec", "slice", "iter", "map", "filter", "collect", "clone", "copy", "drop", "default",
    "debug", "display", "format", "print", "write", "read", "open", "close", "path", "buffer",
    "stream", "socket", "server", "client", "request", "response", "header", "body", "status",
    "query", "table", "column", "row", "key", "token", "parse", "lexer", "parser", "node", "tree",
    "leaf", "root", "parent", "child", "branch", "merge", "commit", "version", "change", "update",
    "delete", "insert", "replace", "restore", "check", "assert", "expect", "panic", "unwrap",
    "handle", "thread", "lock", "mutex", "channel", "sender", "receiver", "timer", "clock",
    "cache",
];
