//! A made-up run of an agent, message by message, the same on every machine.
//!
//! A system message, then repeatedly a question, a tool call, its long result and an answer,
//! in Recto's own form. Ten thousand messages have about 12.5 MB of JSON. Results are logs, code,
//! JSON or prose, and ids are random, so that the text packs like that of real runs: zstd makes 0.37
//! of it in one piece, 0.40 by 64 messages, 0.58 by single ones, not a tenth as of repeated phrases.

mod dice;
mod text;

use serde_json::json;

use self::dice::Dice;
use self::text::Kind;

/// The messages of a run without end, as JSON. A shorter run is the beginning of a longer one.
pub struct AgentRun {
    dice: Dice,
    /// How many messages it has given.
    given: usize,
    /// The id of the tool call that has no result yet.
    call: String,
}

impl AgentRun {
    /// The run of a seed.
    pub fn new(seed: u64) -> AgentRun {
        AgentRun { dice: Dice(seed), given: 0, call: String::new() }
    }

    fn call(&mut self) -> String {
        self.call = format!("call_{}", self.dice.hex(24));
        let mut input = self.dice.object(0);
        input.insert("path".to_owned(), json!(self.dice.path()));
        let tokens = self.dice.between(10, 80);
        let text = json!({"type": "text", "text": self.dice.text(Kind::Prose, tokens)});
        let name = self.dice.identifier();
        let call = json!({"type": "tool_use", "id": self.call, "name": name, "input": input});
        json!({"role": "assistant", "content": [text, call]}).to_string()
    }

    fn result(&mut self) -> String {
        // Many short results and few long ones, 200 to 3,000 tokens.
        let tokens = (185_000 / (1 + self.dice.between(0, 999))).clamp(200, 3_000);
        let kind = *self.dice.pick(&[&Kind::Json, &Kind::Logs, &Kind::Code, &Kind::Prose]);
        let content = self.dice.text(kind, tokens);
        let part = json!({"type": "tool_result", "tool_use_id": self.call, "content": content});
        json!({"role": "tool", "content": [part]}).to_string()
    }

    /// Prose, followed by code in a percentage of the cases.
    fn said(&mut self, role: &str, tokens: usize, with_code: usize) -> String {
        let code = if self.dice.chance(with_code) { tokens * 3 / 10 } else { 0 };
        let mut text = self.dice.text(Kind::Prose, tokens - code);
        if code > 0 {
            let code = self.dice.text(Kind::Code, code);
            text = format!("{text}\n\n```\n{code}\n```");
        }
        json!({"role": role, "content": text}).to_string()
    }
}

impl Iterator for AgentRun {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let number = self.given;
        self.given += 1;
        if number == 0 {
            return Some(self.said("system", 500, 100));
        }
        Some(match (number - 1) % 4 {
            0 => {
                let tokens = self.dice.between(50, 200);
                self.said("user", tokens, 30)
            }
            1 => self.call(),
            2 => self.result(),
            _ => {
                let tokens = self.dice.between(50, 400);
                self.said("assistant", tokens, 50)
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
