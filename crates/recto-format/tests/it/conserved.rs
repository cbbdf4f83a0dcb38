//! Conservation of content: every text, call, result and image of a view is in the request exactly once,
//! and the request has no other content except marked placeholders.

use proptest::prelude::*;
use recto_core::Message;
use recto_format::{Format, NO_MESSAGE, NO_RESULT, RenderOptions, Target, render};
use serde_json::{Value, json};
use testkit::generate::{self, Choices};

use crate::files::messages;
use crate::render::message;

/// Gives every text, call and image of a view a unique mark.
#[derive(Default)]
struct Marks {
    count: usize,
    /// Marks of content that every provider accepts.
    always: Vec<String>,
    /// Marks of thinking, which only its producer accepts.
    thoughts: Vec<String>,
}

impl Marks {
    fn next(&mut self) -> String {
        self.count += 1;
        format!("mark{:04}end", self.count)
    }

    fn mark_message(&mut self, message: &mut Value) {
        match &mut message["content"] {
            Value::String(text) => self.mark_text(text),
            Value::Array(parts) => parts.iter_mut().for_each(|part| self.mark_part(part)),
            _ => {}
        }
    }

    fn mark_text(&mut self, text: &mut String) {
        if text.trim().is_empty() {
            return;
        }
        let mark = self.next();
        // In front, so that the meaning of the text does not change.
        text.insert_str(0, &mark);
        self.always.push(mark);
    }

    fn mark_part(&mut self, part: &mut Value) {
        let kind = part["type"].as_str().unwrap_or_default().to_owned();
        // The fields of a tool part may be in a nested object.
        let part = match &*kind {
            "tool_use" | "tool_result" if part.get(&kind).is_some() => &mut part[&kind],
            _ => part,
        };
        match &*kind {
            "text" | "refusal" => {
                if let Some(Value::String(text)) = part.get_mut(&kind) {
                    self.mark_text(text);
                }
            }
            "thinking" => {
                let mark = self.next();
                part["text"] = json!(mark);
                self.thoughts.push(mark);
            }
            "tool_use" => {
                let mark = self.next();
                part["input"] = json!({ "q": mark });
                self.always.push(mark);
            }
            "tool_result" => match part.get_mut("content") {
                Some(Value::String(text)) => self.mark_text(text),
                Some(Value::Array(parts)) => parts.iter_mut().for_each(|part| self.mark_part(part)),
                _ => {}
            },
            "image" => {
                let mark = self.next();
                let source = json!({"type": "base64", "media_type": "image/png", "data": mark});
                *part = json!({"type": "image", "source": source});
                self.always.push(mark);
            }
            "file" | "audio" => {
                if let Some(Value::String(text)) = part["source"].get_mut("text") {
                    self.mark_text(text);
                }
            }
            _ => {}
        }
    }
}

/// The content of a request: the strings under these keys.
fn collect_texts<'a>(value: &'a Value, key: &str, out: &mut Vec<&'a str>) {
    let keys = ["text", "thinking", "refusal", "content", "output", "error", "arguments"];
    match value {
        Value::String(text) if keys.contains(&key) => out.push(text),
        Value::Array(list) => list.iter().for_each(|item| collect_texts(item, key, out)),
        Value::Object(map) => map.iter().for_each(|(key, value)| collect_texts(value, key, out)),
        _ => {}
    }
}

fn check(transcript: &[Value], model: Option<&str>) {
    let mut marks = Marks::default();
    let mut transcript = transcript.to_vec();
    transcript.iter_mut().for_each(|message| marks.mark_message(message));
    let view: Vec<Message> = transcript.iter().map(message).collect();
    for target in Target::ALL {
        let options = RenderOptions { model, ..RenderOptions::default() };
        let Ok(rendered) = render(&view, target, &options) else {
            // Some providers reject a request with only system messages.
            let is_marked =
                |message: &Message| marks.always.iter().any(|it| message.json().contains(it));
            let has_content = view.iter().any(|it| !it.role().is_system() && is_marked(it));
            assert!(!has_content, "{target}: {view:#?}");
            continue;
        };
        for mark in &marks.always {
            let count = rendered.body.matches(&**mark).count();
            assert_eq!(count, 1, "{target} {mark}\n{}\n{view:#?}", rendered.body);
        }
        for mark in &marks.thoughts {
            let count = rendered.body.matches(&**mark).count();
            assert!(count <= 1, "{target} {mark}\n{}\n{view:#?}", rendered.body);
        }
        let body: Value = serde_json::from_str(&rendered.body).unwrap();
        let mut texts = Vec::new();
        collect_texts(&body, "", &mut texts);
        let placeholders = [NO_RESULT, NO_MESSAGE, "[file]", "[audio]", "[image]", "[document]"];
        for text in texts {
            // The texts of a result may be joined.
            let is_placeholder =
                |line: &str| line.trim().is_empty() || placeholders.contains(&line);
            let is_expected = text.contains("mark") || text.lines().all(is_placeholder);
            assert!(
                is_expected,
                "{target}: unexpected text {text:?}\n{}\n{view:#?}",
                rendered.body
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn all_content_is_rendered_exactly_once(
        numbers in prop::collection::vec(any::<u16>(), 0..200),
        model in 0..4_usize,
    ) {
        let transcript = generate::transcript(&mut Choices::new(&numbers), 12);
        let models = [None, Some("claude-a"), Some("gemini-3-pro"), Some("claude-opus-4-6")];
        check(&transcript, models[model]);
    }
}

#[test]
fn thinking_is_sent_unchanged_to_its_model_and_to_no_other() {
    let json = r#"{"role":"assistant","content":[{"type":"thinking","text":"d\u00e9ep \/ thought","signature":"c2ln"},{"type":"text","text":"4"}],"metadata":{"source":{"provider":"anthropic","model":"claude-a"}}}"#;
    let view = [Message::user("2 + 2?"), Message::from_json(json).unwrap()];
    let rendered = |target, model| {
        let options = RenderOptions { model, ..RenderOptions::default() };
        render(&view, target, &options).unwrap()
    };
    let kept = r#"{"type":"thinking","thinking":"d\u00e9ep \/ thought","signature":"c2ln"}"#;
    for model in [None, Some("claude-a")] {
        let rendered = rendered(Target::Anthropic, model);
        assert!(rendered.body.contains(kept), "{}", rendered.body);
        assert_eq!(rendered.findings, []);
    }
    assert!(!rendered(Target::Anthropic, Some("claude-b")).body.contains("thought"));
    for target in [Target::OpenAiChat, Target::OpenAiResponses, Target::Gemini] {
        let rendered = rendered(target, None);
        assert!(!rendered.body.contains("thought"), "{}", rendered.body);
        assert_eq!(rendered.findings[0].rule.name, "thinking_for_its_maker");
    }
}

/// Both for a converted message and for one that keeps its bytes.
#[test]
fn thinking_is_sent_to_the_alias_of_its_model_and_not_to_another_date() {
    let thinking = r#"{"type":"thinking","thinking":"Hm.","signature":"c2ln","unknown":1}"#;
    let answer = format!(
        r#"{{"role":"assistant","model":"claude-a-20250929","type":"message","id":"msg_1","stop_reason":"end_turn","content":[{thinking},{{"type":"text","text":"4"}}]}}"#
    );
    let (mut imported, _) = messages(&answer, Format::Anthropic);
    let converted = Message::from_json(
        r#"{"role":"assistant","content":[{"type":"thinking","text":"Hm.","signature":"c2ln"},{"type":"text","text":"4"}],"metadata":{"source":{"provider":"anthropic","model":"claude-a-20250929"}}}"#,
    );
    for answer in [imported.remove(0), converted.unwrap()] {
        let view = [Message::user("2 + 2?"), answer];
        for (model, is_sent) in [
            ("claude-a-20250929", true),
            ("claude-a", true),
            ("claude-a-latest", true),
            ("claude-a-20251101", false),
            ("claude-b", false),
        ] {
            let options = RenderOptions { model: Some(model), ..RenderOptions::default() };
            let rendered = render(&view, Target::Anthropic, &options).unwrap();
            assert_eq!(rendered.body.contains("Hm."), is_sent, "{model}: {}", rendered.body);
        }
    }
}
