//! `docs/rules.md` lists all rules.

use std::fmt::Write as _;
use std::path::Path;

use recto_core::Message;
use recto_format::{Format, RULES, RenderOptions, Rule, Target, lint};
use serde_json::{Value, json};

fn row(rule: &Rule) -> String {
    let targets: Vec<&str> = rule.targets.iter().map(|target| target.name()).collect();
    let mut out = format!("## {}\n\n{}.\n\n", rule.name, rule.check);
    let mut line = |name: &str, value: &str| writeln!(out, "- {name}: {value}").unwrap();
    line("providers", &targets.join(", "));
    line("applies to", rule.applies_to);
    line("severity", rule.severity.as_str());
    line("repair", rule.repair);
    for evidence in rule.evidence {
        let kind = evidence.kind.as_str();
        line(&format!("source ({kind}, {})", evidence.date), evidence.text);
    }
    out
}

/// Set RECTO_WRITE_RULES=1 to write the page.
#[test]
fn docs_rules_md_lists_all_rules() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, _) = text.split_once("\n## ").unwrap_or((&text, ""));
    let rows: Vec<String> = RULES.iter().map(row).collect();
    let wanted = format!("{}\n\n{}", head.trim_end(), rows.join("\n"));
    if std::env::var_os("RECTO_WRITE_RULES").is_some() {
        std::fs::write(&page, &wanted).unwrap();
        return;
    }
    assert!(text == wanted, "docs/rules.md differs: run this test with RECTO_WRITE_RULES=1");
}

#[test]
fn every_rule_has_a_source_and_a_date() {
    for rule in RULES {
        assert!(!rule.evidence.is_empty(), "{}", rule.name);
        for evidence in rule.evidence {
            assert_eq!(evidence.date.len(), "2026-11-18".len(), "{}", rule.name);
            assert!(!evidence.text.is_empty(), "{}", rule.name);
        }
    }
}

/// Rules whose tests are elsewhere in this folder, by name.
const TESTED_ELSEWHERE: &[&str] = &[
    "tools_of_the_provider",
    "alternation",
    "calls_have_reasoning",
    "calls_have_tools",
    "citations_agree",
    "citations_from_the_assistant",
    "content_is_text",
    "documents_have_a_text",
    "first_from_the_user",
    "item_ids",
    "last_from_the_user",
    "media_for_the_model",
    "media_has_a_form",
    "no_empty_lists",
    "parts_of_the_role",
    "reasoning_with_its_item",
    "results_follow_calls",
    "results_have_calls",
    "schemas_without_choice",
    "speakers",
    "stored_items",
    "thinking_first",
    "thinking_for_its_maker",
    "thinking_of_its_prefix",
    "thinking_of_the_last_calls",
];

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

/// A message of the assistant that a provider produced.
fn made_by(provider: &str, content: Value) -> Value {
    let source = json!({"source": {"provider": provider}});
    json!({"role": "assistant", "content": content, "metadata": source})
}

fn call(id: &str, name: &str, input: Value) -> Value {
    assistant(json!([{"type": "tool_use", "id": id, "name": name, "input": input}]))
}

fn result(id: &str, content: &str, is_error: bool) -> Value {
    let part =
        json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error});
    json!({"role": "tool", "content": [part]})
}

#[test]
fn every_rule_is_reported_for_a_view_that_violates_it() {
    use Target::{Anthropic, Gemini, OpenAiChat};
    let hi = || user(json!("hi"));
    let text = |text: &str| json!({"type": "text", "text": text});
    let mark =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let image = json!({"type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let thinking = json!({"type": "thinking", "text": "hm", "signature": "AAAA"});
    let server = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let gemini_part = json!({"type": "gemini_part", "part": {"executableCode": {}}});
    let cases: Vec<(&str, Target, Option<&str>, Vec<Value>)> = vec![
        ("answered_calls", Anthropic, None, vec![hi(), call("c1", "f", json!({}))]),
        (
            "one_result_a_call",
            Anthropic,
            None,
            vec![
                hi(),
                call("c1", "f", json!({})),
                result("c1", "a", false),
                result("c1", "b", false),
            ],
        ),
        (
            "calls_from_the_assistant",
            Anthropic,
            None,
            vec![user(json!([
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
            ]))],
        ),
        (
            "unique_ids",
            OpenAiChat,
            None,
            vec![
                hi(),
                call("c1", "f", json!({})),
                result("c1", "a", false),
                call("c1", "f", json!({})),
                result("c1", "b", false),
            ],
        ),
        (
            "ids_fit",
            Anthropic,
            None,
            vec![hi(), call("a.b", "f", json!({})), result("a.b", "a", false)],
        ),
        (
            "names_fit",
            Anthropic,
            None,
            vec![hi(), call("c1", "a b", json!({})), result("c1", "a", false)],
        ),
        (
            "input_is_an_object",
            Anthropic,
            None,
            vec![hi(), call("c1", "f", json!(7)), result("c1", "a", false)],
        ),
        ("no_empty_text", Anthropic, None, vec![user(json!([text(""), text("a")]))]),
        (
            "errors_say_something",
            Anthropic,
            None,
            vec![hi(), call("c1", "f", json!({})), result("c1", "", true)],
        ),
        ("has_content", Anthropic, None, vec![hi(), assistant(json!([thinking])), hi()]),
        (
            "system_in_front",
            Gemini,
            None,
            vec![hi(), json!({"role": "system", "content": "s"}), hi()],
        ),
        (
            "thinking_is_not_last",
            Anthropic,
            None,
            vec![hi(), made_by("anthropic", json!([text("a"), thinking])), hi()],
        ),
        (
            "no_trailing_space",
            Anthropic,
            Some("claude-sonnet-4-5"),
            vec![hi(), assistant(json!("a "))],
        ),
        (
            "server_calls_are_whole",
            Anthropic,
            None,
            vec![hi(), made_by("anthropic", json!([server, text("a")])), hi()],
        ),
        (
            "signed_calls",
            Gemini,
            Some("gemini-3-pro"),
            vec![hi(), call("c1", "f", json!({})), result("c1", "a", false)],
        ),
        ("parts_of_the_provider", OpenAiChat, None, vec![user(json!([gemini_part, text("a")]))]),
        (
            "system_for_the_model",
            OpenAiChat,
            Some("o1-mini"),
            vec![json!({"role": "system", "content": "s"}), hi()],
        ),
        ("media_where_it_may_stand", Anthropic, None, vec![hi(), assistant(json!([image])), hi()]),
        (
            "cache_marks",
            Anthropic,
            None,
            vec![user(json!([mark("a"), mark("b"), mark("c"), mark("d"), mark("e"),]))],
        ),
        (
            "errors_are_marked",
            OpenAiChat,
            None,
            vec![hi(), call("c1", "f", json!({})), result("c1", "a", true)],
        ),
    ];
    let mut tested: Vec<&str> = TESTED_ELSEWHERE.to_vec();
    let mut check = |rule, target, model, view: &[Message]| {
        let options = RenderOptions { model, ..RenderOptions::default() };
        let names: Vec<&str> =
            lint(view, target, &options).iter().map(|finding| finding.rule.name).collect();
        assert!(names.contains(&rule), "{rule}: {names:?}");
        tested.push(rule);
    };
    for (rule, target, model, view) in cases {
        let view: Vec<Message> =
            view.iter().map(|it| Message::from_json(&it.to_string()).unwrap()).collect();
        check(rule, target, model, &view);
    }
    let lone = Message::from_json(r#"{"role":"user","content":"a \ud800"}"#).unwrap();
    check("whole_characters", OpenAiChat, None, &[lone]);
    let untyped = r#"{"model":"gpt-5","messages":[{"role":"user","content":[{"text":"a"}]}]}"#;
    let view = crate::files::messages(untyped, Format::OpenAiChat).0;
    check("parts_have_a_type", OpenAiChat, Some("gpt-5"), &view);
    for rule in RULES {
        assert!(tested.contains(&rule.name), "no test for {}", rule.name);
    }
}

/// The tests in a folder, without those of this file.
fn read_tests(folder: &Path, text: &mut String) {
    for path in folder.read_dir().unwrap().map(|file| file.unwrap().path()) {
        match path.is_dir() {
            true => read_tests(&path, text),
            false if path.ends_with("rules.rs") => {}
            false => text.push_str(&std::fs::read_to_string(path).unwrap()),
        }
    }
}

#[test]
fn the_rules_that_are_tested_elsewhere_are_named_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut text = String::new();
    read_tests(&folder, &mut text);
    for rule in TESTED_ELSEWHERE {
        assert!(RULES.iter().any(|known| known.name == *rule), "there is no rule {rule}");
        assert!(text.contains(&format!("\"{rule}\"")), "no test names {rule}");
    }
}

/// Docs and types that list the providers, besides those that the compiler or a schema checks.
#[test]
fn lists_of_providers_have_all_of_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in [
        "README.md",
        "docs/cli.md",
        "docs/exec.md",
        "docs/glossary.md",
        "docs/rust.md",
        "node/src/types.ts",
        "python/recto/types.py",
        "crates/recto-lists/src/values.rs",
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let is_list =
            |line: &&str| ["anthropic", "openai-chat", "gemini"].iter().all(|it| line.contains(it));
        let mut lists = text.lines().filter(is_list).peekable();
        assert!(lists.peek().is_some(), "{file} lists no providers");
        for list in lists {
            for target in Target::ALL {
                assert!(
                    list.contains(target.name()),
                    "{file}: {} is not in {list:?}",
                    target.name()
                );
            }
        }
    }
}
