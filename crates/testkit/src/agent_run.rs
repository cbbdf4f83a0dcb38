//! A synthetic run of an agent, message by message, the same on every machine.
//!
//! The run has a system message, then repeatedly a user message, a tool call, its long result and an
//! answer, all in the form of Recto. Ten thousand messages have about 12.5 MB of JSON. Results are logs,
//! code, JSON or prose, and ids are random, so that the text compresses like that of real runs. The
//! compressed size with zstd is 0.37 of the text as one stream, 0.40 in blocks of 64 messages and 0.58
//! message by message. Repeated phrases would compress to less than 0.1.

mod random;
mod text;

use serde_json::json;

use self::random::Random;
use self::text::Kind;

/// An endless iterator over the messages of a run, as JSON. A shorter run is a prefix of a longer one.
pub struct AgentRun {
    random: Random,
    /// Number of messages so far.
    count: usize,
    /// The id of the tool call that has no result yet.
    call: String,
}

impl AgentRun {
    /// The run with this seed.
    pub fn new(seed: u64) -> AgentRun {
        AgentRun { random: Random(seed), count: 0, call: String::new() }
    }

    fn call(&mut self) -> String {
        self.call = format!("call_{}", self.random.hex(24));
        let mut input = self.random.object(0);
        input.insert("path".to_owned(), json!(self.random.path()));
        let tokens = self.random.between(10, 80);
        let text = json!({"type": "text", "text": self.random.text(Kind::Prose, tokens)});
        let name = self.random.identifier();
        let call = json!({"type": "tool_use", "id": self.call, "name": name, "input": input});
        json!({"role": "assistant", "content": [text, call]}).to_string()
    }

    fn result(&mut self) -> String {
        // Many short results and few long ones, 200 to 3,000 tokens.
        let tokens = (185_000 / (1 + self.random.between(0, 999))).clamp(200, 3_000);
        let kind = *self.random.pick(&[&Kind::Json, &Kind::Logs, &Kind::Code, &Kind::Prose]);
        let content = self.random.text(kind, tokens);
        let part = json!({"type": "tool_result", "tool_use_id": self.call, "content": content});
        json!({"role": "tool", "content": [part]}).to_string()
    }

    /// A message of prose. In `with_code` percent of the cases, code follows the prose.
    fn text_message(&mut self, role: &str, tokens: usize, with_code: usize) -> String {
        let code = if self.random.chance(with_code) { tokens * 3 / 10 } else { 0 };
        let mut text = self.random.text(Kind::Prose, tokens - code);
        if code > 0 {
            let code = self.random.text(Kind::Code, code);
            text = format!("{text}\n\n```\n{code}\n```");
        }
        json!({"role": role, "content": text}).to_string()
    }
}

impl Iterator for AgentRun {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let number = self.count;
        self.count += 1;
        if number == 0 {
            return Some(self.text_message("system", 500, 100));
        }
        Some(match (number - 1) % 4 {
            0 => {
                let tokens = self.random.between(50, 200);
                self.text_message("user", tokens, 30)
            }
            1 => self.call(),
            2 => self.result(),
            _ => {
                let tokens = self.random.between(50, 400);
                self.text_message("assistant", tokens, 50)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_messages_have_about_twelve_megabytes() {
        let bytes: usize = AgentRun::new(1).take(10_000).map(|json| json.len() + 1).sum();
        assert!((11_500_000..13_500_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn every_result_answers_the_call_before_it() {
        let run: Vec<serde_json::Value> =
            AgentRun::new(2).take(41).map(|json| serde_json::from_str(&json).unwrap()).collect();
        for turn in run[1..].chunks(4) {
            assert_eq!(turn[1]["content"][1]["id"], turn[2]["content"][0]["tool_use_id"]);
        }
    }
}
