//! Random views, rendered for every provider and checked by validators of the providers' rules.

use std::io::Write as _;

use proptest::prelude::*;
use recto_core::{Approx, Conversation, Message, Settings};
use recto_format::{Error, Finding, RenderOptions, Rendered, Severity, Target, fix, lint, render};
use serde_json::{Value, json};
use testkit::generate::{self, Choices};
use testkit::provider::{Provider, gemini};

pub(crate) fn provider(target: Target) -> Provider {
    *Provider::ALL.iter().find(|provider| provider.name() == target.name()).unwrap()
}

pub(crate) fn message(value: &Value) -> Message {
    Message::from_json(&value.to_string()).unwrap()
}

pub(crate) fn view(numbers: &[u16], most: usize) -> Vec<Message> {
    let transcript = generate::transcript(&mut Choices::new(numbers), most);
    transcript.iter().map(message).collect()
}

pub(crate) fn shown(view: &[Message]) -> String {
    view.iter().map(Message::json).collect::<Vec<_>>().join("\n")
}

const MODELS: [Option<&str>; 5] =
    [None, Some("claude-a"), Some("gpt-b"), Some("gemini-3-pro"), Some("claude-opus-4-6")];

/// Renders and validates a view. `NothingToSend` is a valid result.
pub(crate) fn check(view: &[Message], target: Target, model: Option<&str>) -> Option<Rendered> {
    let options = RenderOptions { model, ..RenderOptions::default() };
    let rendered = match render(view, target, &options) {
        Ok(rendered) => rendered,
        Err(Error::NothingToSend { .. }) => return None,
        Err(error) => panic!("{target}: {error}"),
    };
    let body: Value = serde_json::from_str(&rendered.body).unwrap_or_else(|error| {
        panic!("{target}: {error} in {}", rendered.body);
    });
    if let Err(violation) = provider(target).check(&body) {
        panic!("{target}: {violation}\n{}\n{}", rendered.body, shown(view));
    }
    if target == Target::Gemini
        && model == MODELS[3]
        && let Err(violation) = gemini::check_signatures(&body)
    {
        panic!("{target}: {violation}\n{}\n{}", rendered.body, shown(view));
    }
    if target == Target::Anthropic && model == MODELS[4] {
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        assert_eq!(last.unwrap()["role"], "user", "{}\n{}", rendered.body, shown(view));
    }
    assert_eq!(render(view, target, &options).unwrap(), rendered, "same view, same bytes");
    Some(rendered)
}

/// Normalizes a request: providers treat a text like a list of one text, and consecutive messages of one
/// role like one message.
fn normalized(body: &str, target: Target) -> Value {
    let mut body: Value = serde_json::from_str(body).unwrap();
    let (list, content, kind) = match target {
        Target::OpenAiResponses => ("input", "content", "input_text"),
        Target::Gemini => ("contents", "parts", "text"),
        _ => ("messages", "content", "text"),
    };
    let Some(messages) = body[list].as_array_mut() else { return body };
    let mut merged: Vec<Value> = Vec::new();
    for mut message in std::mem::take(messages) {
        if let Some(text) = message[content].as_str() {
            let is_assistant = message["role"] == "assistant";
            let kind = if is_assistant && target == Target::OpenAiResponses {
                "output_text"
            } else {
                kind
            };
            message[content] = match target {
                Target::BedrockConverse => json!([{"text": text}]),
                _ => json!([{"type": kind, "text": text}]),
            };
        }
        if target == Target::OpenAiResponses && message["role"].is_string() {
            message["type"] = json!("message");
        }
        let merges = matches!(target, Target::Anthropic | Target::Gemini);
        match merged.last_mut() {
            Some(last) if merges && last["role"] == message["role"] => {
                let more = message[content].as_array().unwrap().clone();
                last[content].as_array_mut().unwrap().extend(more);
            }
            _ => merged.push(message),
        }
    }
    *messages = merged;
    body
}

/// Applies the fix of a view, which is an ordinary request. Afterwards lint has only notes, and the view is
/// rendered as the same provider request.
pub(crate) fn check_fix(view: &[Message], target: Target, model: Option<&str>) {
    let options = RenderOptions { model, ..RenderOptions::default() };
    let findings = lint(view, target, &options);
    if view.is_empty() {
        return;
    }
    let start = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
    let (conversation, _) = start.append(view.to_vec(), 1).unwrap();
    let entries = conversation.entries().map(|entry| (entry.index, entry.message));
    let is_note = |finding: &Finding| finding.rule.severity == Severity::Note;
    let Some(request) = fix(entries, target, &options).unwrap() else {
        assert!(findings.iter().all(is_note), "{findings:#?}");
        return;
    };
    assert!(!findings.iter().all(is_note), "{findings:#?}");
    let (fixed, _) = conversation.apply(request, 2).unwrap();
    let messages: Vec<Message> = fixed.messages().cloned().collect();
    let left = lint(&messages, target, &options);
    assert!(
        left.iter().all(is_note),
        "{target} {left:#?}\n{}\n\n{}",
        shown(view),
        shown(&messages)
    );
    let rendered = |messages: &[Message]| {
        render(messages, target, &options).map(|it| normalized(&it.body, target)).ok()
    };
    assert_eq!(
        rendered(&messages),
        rendered(view),
        "{target}\n{}\n\n{}",
        shown(view),
        shown(&messages)
    );
}

/// The stable prefix does not change when messages are appended.
pub(crate) fn check_append(
    view: &[Message],
    more: &[Message],
    target: Target,
    model: Option<&str>,
) {
    let options = RenderOptions { model, ..RenderOptions::default() };
    let Ok(before) = render(view, target, &options) else { return };
    let all: Vec<Message> = view.iter().chain(more).cloned().collect();
    let after = render(&all, target, &options).unwrap();
    let stable = before.stable;
    assert_eq!(
        before.body.get(..stable),
        after.body.get(..stable),
        "{target}\n{}\n{}\n{}",
        before.body,
        after.body,
        shown(&all)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_view_is_rendered_as_a_valid_request(
        numbers in prop::collection::vec(any::<u16>(), 0..200),
        model in 0..5_usize,
    ) {
        let view = view(&numbers, 12);
        for target in Target::ALL {
            check(&view, target, MODELS[model]);
        }
    }

    #[test]
    fn after_a_fix_lint_has_only_notes_and_the_request_is_the_same(
        numbers in prop::collection::vec(any::<u16>(), 0..200),
        model in 0..5_usize,
    ) {
        let view = view(&numbers, 12);
        for target in Target::ALL {
            check_fix(&view, target, MODELS[model]);
        }
    }

    #[test]
    fn appending_only_appends(
        numbers in prop::collection::vec(any::<u16>(), 0..150),
        more in prop::collection::vec(any::<u16>(), 0..60),
        model in 0..5_usize,
    ) {
        let (view, more) = (view(&numbers, 8), view(&more, 3));
        for target in Target::ALL {
            check_append(&view, &more, target, MODELS[model]);
        }
    }
}

/// The long run of `cargo xtask sim format`: checks random views until the time is over.
#[test]
#[ignore = "runs as long as RECTO_SIM_SECONDS says; use `cargo xtask sim format`"]
#[allow(clippy::print_stderr, reason = "the run reports what it checked")]
fn simulation() {
    let setting = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let first = setting("RECTO_SIM_SEED", 1);
    let seconds = setting("RECTO_SIM_SECONDS", 60);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let (mut seed, mut rendered, mut findings) = (first, 0_u64, 0_u64);
    // The file for the requests, which another validator checks.
    let file =
        std::env::var_os("RECTO_SIM_REQUESTS").map(|path| std::fs::File::create(path).unwrap());
    let mut requests = file.map(std::io::BufWriter::new);
    while std::time::Instant::now() < end {
        let write = |target: Target, body: &str| {
            if let Some(requests) = requests.as_mut().filter(|_| seed - first < MAX_WRITTEN_SEEDS) {
                writeln!(requests, r#"{{"target":"{target}","seed":{seed},"body":{body}}}"#)
                    .unwrap();
            }
        };
        let checked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check_seed(seed, write)));
        match checked {
            Ok((views, found)) => {
                rendered += views;
                findings += found;
            }
            Err(panic) => {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
        seed += 1;
    }
    eprintln!("seeds {first} to {}: {rendered} requests checked, {findings} repairs", seed - 1);
}

/// Number of seeds whose requests are written to the file. The other validator is slower.
const MAX_WRITTEN_SEEDS: u64 = 2_000;

/// Renders and validates one random view for every target, then appends to it.
fn check_seed(seed: u64, mut write: impl FnMut(Target, &str)) -> (u64, u64) {
    let numbers = generate::numbers(seed, 240);
    let (start, more) = numbers.split_at(200);
    let model = MODELS[usize::from(more[0]) % 5];
    let (view, more) = (view(start, 4 + usize::from(more[1]) % 16), view(&more[2..], 3));
    let mut counts = (0, 0);
    for target in Target::ALL {
        if let Some(rendered) = check(&view, target, model) {
            counts.0 += 1;
            counts.1 += rendered.findings.len() as u64;
            write(target, &rendered.body);
        }
        check_append(&view, &more, target, model);
        check_fix(&view, target, model);
    }
    if seed.is_multiple_of(16) {
        counts.0 += crate::operations::run(seed);
    }
    counts
}

#[test]
fn fields_that_would_make_the_request_invalid_are_rejected() {
    let render_with = |fields: &[(&str, &str)], target| {
        let view = [Message::system("Be brief."), Message::user("Hi")];
        let options = RenderOptions { fields, ..RenderOptions::default() };
        render(&view, target, &options).map(|rendered| rendered.body)
    };
    for (target, fields, reason) in [
        (
            Target::Anthropic,
            &[("model", "claude-sonnet-4-5")][..],
            "must be JSON (a string needs quotes)",
        ),
        (Target::Anthropic, &[("max_tokens", "")], "must be JSON"),
        (Target::Anthropic, &[("max_tokens", "1}, {")], "must be JSON"),
        (Target::Anthropic, &[("n", "1"), ("n", "2")], "given twice"),
        (Target::Anthropic, &[("messages", "[]")], "rendering writes it"),
        (Target::Anthropic, &[("system", "\"Hi\"")], "rendering writes it"),
        (Target::Gemini, &[("system_instruction", "{}")], "rendering writes it"),
        (Target::Gemini, &[("contents", "[]")], "rendering writes it"),
        (Target::OpenAiChat, &[("messages", "[]")], "rendering writes it"),
        (Target::OpenAiResponses, &[("input", "[]")], "rendering writes it"),
    ] {
        let error = render_with(fields, target).unwrap_err();
        assert!(matches!(error, Error::InvalidField { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.code(), "invalid_operation");
    }
    let fields = [("model", "\"m\""), ("max_tokens", "1024"), ("system", "\"Be brief.\"")];
    let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
    // A system prompt may be passed as a field if the view has none.
    let body = render(&[Message::user("Hi")], Target::Anthropic, &options).unwrap().body;
    assert!(body.starts_with(r#"{"model":"m","max_tokens":1024,"system":"Be brief.","messages":"#));
    let body = render_with(&fields[..2], Target::Anthropic).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&body).is_ok(), "{body}");
}

#[test]
fn a_view_of_only_a_system_message_is_refused_and_the_error_says_what_is_missing() {
    let error =
        render(&[Message::system("Be brief.")], Target::Anthropic, &RenderOptions::default())
            .unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothing in the view can be sent to anthropic; \
         it needs a text, an image or a file from the user or the model"
    );
}

#[test]
fn parallel_calls_in_separate_messages_stay_together() {
    let input = serde_json::json!({});
    let view = [
        Message::user("Compare them."),
        Message::tool_call("a", "load", &input),
        Message::tool_call("b", "load", &input),
        Message::tool_result("a", "1"),
        Message::tool_result("b", "2"),
    ];
    for target in Target::ALL {
        let rendered = render(&view, target, &RenderOptions::default()).unwrap();
        let notes: Vec<&str> = rendered.findings.iter().map(|finding| finding.rule.name).collect();
        assert!(!notes.contains(&"results_follow_calls"), "{target}: {notes:?}");
        let body = &rendered.body;
        let places: Vec<usize> = match target {
            Target::OpenAiChat => ["\"id\":\"a\"", "\"id\":\"b\"", "_id\":\"a\"", "_id\":\"b\""],
            Target::OpenAiResponses => [
                "call\",\"call_id\":\"a\"",
                "call\",\"call_id\":\"b\"",
                "output\",\"call_id\":\"a\"",
                "output\",\"call_id\":\"b\"",
            ],
            Target::Anthropic => {
                ["\"id\":\"a\"", "\"id\":\"b\"", "use_id\":\"a\"", "use_id\":\"b\""]
            }
            Target::Gemini => [
                "Call\":{\"id\":\"a\"",
                "Call\":{\"id\":\"b\"",
                "Response\":{\"id\":\"a\"",
                "Response\":{\"id\":\"b\"",
            ],
            Target::BedrockConverse => [
                "toolUse\":{\"toolUseId\":\"a\"",
                "toolUse\":{\"toolUseId\":\"b\"",
                "toolResult\":{\"toolUseId\":\"a\"",
                "toolResult\":{\"toolUseId\":\"b\"",
            ],
            other => panic!("no texts for {other}"),
        }
        .iter()
        .map(|part| body.find(part).unwrap_or_else(|| panic!("{target}: {part} in {body}")))
        .collect();
        assert!(places.is_sorted(), "{target}: {body}");
    }
}

#[test]
fn gemini_receives_the_media_type_of_a_file() {
    let part = |more: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"file","source":{{"type":"url","url":"gs://x/y"}}{more}}}]}}"#
        )
    };
    for (more, file) in [
        (r#","media_type":"video/mp4""#, r#"{"fileUri":"gs://x/y","mimeType":"video/mp4"}"#),
        ("", r#"{"fileUri":"gs://x/y"}"#),
    ] {
        let message = Message::from_json(&part(more)).unwrap();
        let rendered = render([&message], Target::Gemini, &RenderOptions::default()).unwrap();
        assert!(rendered.body.contains(file), "{}", rendered.body);
    }
}
