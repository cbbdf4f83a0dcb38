//! Provider requests: render, lint and cache-plan.

use serde_json::{Value, json};
use testkit::provider::Provider;

use crate::commands::{apply_changes, shop};
use crate::stage::Stage;
use crate::transcripts::{everything, imported, looks};

looks! {
    lint_lists_findings: "lint", "--for", "anthropic";
    lint_of_a_version_may_find_nothing: "lint", "--at", "v9";
    a_dry_run_of_a_fix_shows_what_it_would_put_right: "lint", "--fix", "--dry-run", "--for", "openai-chat";
    render_prints_the_request_and_the_repairs: "render", "--at", "1", "--for", "gemini";
    render_says_what_it_repaired: "render", "--for", "openai-responses", "--field", "max_output_tokens=99";
    cache_plans_say_what_an_edit_costs: "cache-plan", "now-2", "now", "--turns", "20";
}

#[test]
fn rendered_requests_with_tools_are_valid_for_every_provider() {
    let stage = imported();
    let tools = json!([{ "name": "Bash", "description": "runs a command",
        "input_schema": { "type": "object", "properties": { "command": { "type": "string" } } } },
        { "name": "fs.read", "description": "reads", "parameters": { "type": "object" } }]);
    let file = stage.file("tools.json", &tools.to_string());
    stage.plain(&["settings", "--tools", &file]);
    // A cut that separates a call from its result.
    stage.plain(&["delete", "1", "4"]);
    for provider in Provider::ALL {
        let name = provider.name();
        let ran = stage.run(&["render", "--for", name, "--model", "m"]);
        assert_eq!(ran.code, 0, "{}", ran.errors);
        let request: Value = serde_json::from_str(&ran.out).unwrap();
        provider.check(&request).unwrap_or_else(|violation| panic!("{name}: {violation}"));
        testkit::provider::tools::check(provider, &request)
            .unwrap_or_else(|violation| panic!("{name}: {violation}"));
        let is_bedrock = name == "bedrock-converse";
        let tools = if is_bedrock { &request["toolConfig"] } else { &request["tools"] };
        assert!(tools.to_string().contains("runs a command"), "{name}: {}", ran.out);
        assert_eq!(request.get("model").is_some(), name != "gemini" && !is_bedrock);
        assert!(ran.errors.contains("results_have_calls"), "{name}: {}", ran.errors);
        assert_eq!(ran.errors.contains("fs.read"), name != "gemini", "{}", ran.errors);
        let document = stage.json(&["render", "--for", name, "--model", "m"]);
        assert_eq!(document["request"], request);
        assert!(document["repairs"].as_array().unwrap().len() >= 2, "{document}");
        assert_eq!(document["warnings"][0]["code"], "torn_call", "{document}");
        // The view of a version without tools.
        let before = stage.json(&["render", "--for", name, "--at", "12"]);
        assert_eq!(before["request"].get("tools"), None);
    }
}

#[test]
fn the_default_provider_is_the_source_of_the_messages() {
    let stage = imported();
    assert_eq!(stage.json(&["render"])["for"], "anthropic");
    let chat = json!([{ "role": "user", "content": "Hi" }, { "role": "assistant", "content": null,
        "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{" } }] }]);
    let file = stage.file("chat.json", &chat.to_string());
    stage.plain(&["import", &file]);
    let ran = stage.run(&["render", "--json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["for"], "openai-chat", "{document}");
}

#[test]
fn a_view_that_cannot_be_rendered_is_refused() {
    let stage = shop();
    for (arguments, code) in [
        (&["render", "--field", "max_tokens"][..], 2),
        (&["render", "--field", "max_tokens=much"], 2),
        (&["render", "--field", "messages=[]", "--for", "anthropic"], 2),
        (&["render", "--for", "acme"], 2),
        (&["render", "--at", "0", "--for", "gemini"], 1),
        (&["render", "--at", "99"], 1),
        (&["cache-plan", "0", "--model", "llama"], 2),
        (&["cache-plan"], 2),
        (&["delete", "1", "--for", "gemini"], 2),
        (&["erase", "1", "--yes", "--prices", "prices.json"], 2),
        (&["settings", "--no-tools", "--model", "gpt-5"], 2),
    ] {
        let ran = stage.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}{}", ran.out, ran.errors);
    }
}

#[test]
fn a_fix_is_one_request_that_can_be_undone() {
    let stage = imported();
    let found = stage.run(&["lint", "--for", "anthropic", "--json"]);
    assert_eq!(found.code, 1);
    let document: Value = serde_json::from_str(&found.out).unwrap();
    let finding = &document["findings"][0];
    assert_eq!((&finding["rule"], &finding["entry"]), (&json!("answered_calls"), &json!(9)));
    let before = stage.plain(&["show"]);
    assert_eq!(stage.run(&["lint", "--fix", "--expect-version", "3"]).code, 1);
    let fixed = stage.json(&["lint", "--for", "anthropic", "--fix", "--expect-version", "12"]);
    assert_eq!((&fixed["version"], &fixed["dryRun"]), (&json!(13), &json!(false)));
    let lint = stage.json(&["lint", "--for", "anthropic"]);
    let left = lint["findings"].as_array().unwrap();
    assert!(left.iter().all(|finding| finding["severity"] == "note"), "{left:?}");
    let again = stage.plain(&["lint", "--for", "anthropic", "--fix"]);
    assert!(again.contains("0 errors, 0 warnings, 1 note"), "{again}");
    assert_eq!(stage.json(&["info"])["version"], 13, "nothing was left to fix");
    stage.plain(&["undo"]);
    assert_eq!(stage.plain(&["show"]).replace("v14", "v12"), before);
    // Pinned messages must not be hidden.
    stage.plain(&["mark", "pinned", "9"]);
    assert_eq!(stage.run(&["lint", "--for", "anthropic", "--fix"]).code, 1);
}

#[test]
fn cache_plans_use_the_given_prices() {
    let stage = shop();
    apply_changes(&stage);
    let table = json!({ "note": "mine", "models": [
        { "model": "mine", "input": 1000, "cached": 10, "minimum": 0 }] });
    let prices = stage.file("prices.json", &table.to_string());
    let plan = ["cache-plan", "1", "now", "--prices", &prices, "--turns", "3"];
    let document = stage.json(&plan);
    assert_eq!((&document["pricesOf"], &document["for"]), (&json!("mine"), &json!("anthropic")));
    let number = |name: &str| document[name].as_f64().unwrap();
    assert!(number("cachedTokens") > 0.0 && number("newTokens") > 0.0, "{document}");
    let saved = number("savedATurn") * 3.0 - number("costNow");
    assert!((document["over"]["saved"].as_f64().unwrap() - saved).abs() < 1e-12);
    assert!(document["paysOffAfter"].as_u64().unwrap() > 0, "{document}");
    let bad = stage.file("bad.json", r#"{"models": [{"model": "m", "input": -1, "cached": 0}]}"#);
    assert_eq!(stage.run(&["cache-plan", "1", "--prices", &bad]).code, 2);
    // The default table can be printed, edited and passed with --prices.
    let own = stage.file("own.json", &stage.plain(&["cache-plan", "--print-prices"]));
    let with = stage.json(&["cache-plan", "1", "--prices", &own]);
    assert_eq!(with, stage.json(&["cache-plan", "1"]));
    // Every changing command plans in the same way.
    let dry = stage.json(&["delete", "5", "--dry-run", "--for", "gemini", "--prices", &own]);
    assert_eq!(dry["cachePlan"]["for"], "gemini");
    assert_eq!(dry["cachePlan"]["pricesOf"], "gemini-2.5-pro");
    assert!(dry["cachePlan"]["reused"]["tokens"].is_u64(), "{dry}");
    // A dry run prints the same plan as `cache-plan` for the two versions.
    stage.plain(&["delete", "5"]);
    let done = stage.json(&["cache-plan", "now-1", "now", "--for", "gemini", "--prices", &own]);
    for field in ["firstDifference", "cachedTokens", "newTokens", "oldTokens", "costNow"] {
        assert_eq!(dry["cachePlan"][field], done[field], "{field}");
    }
}

#[test]
fn all_commands_have_the_same_default_provider() {
    let stage = Stage::new();
    stage.plain(&["new", "plain"]);
    stage.plain(&["append", "--text", "Hi"]);
    assert_eq!(stage.json(&["lint"])["for"], "anthropic");
    assert_eq!(stage.json(&["cache-plan", "0", "1"])["for"], "anthropic");
    assert_eq!(stage.json(&["delete", "0", "--dry-run"])["cachePlan"]["for"], "anthropic");

    let call = json!([{ "role": "user", "content": "Day?" }, { "role": "assistant", "content": null,
        "tool_calls": [{ "id": "c1", "type": "function",
            "function": { "name": "today", "arguments": "{}" } }] }]);
    let file = stage.file("talk.json", &call.to_string());
    stage.plain(&["import", &file]);
    assert!(stage.run(&["lint", "--json"]).out.contains(r#""for":"openai-chat""#));
    // The older view is empty, and so is the newer one.
    assert_eq!(stage.json(&["cache-plan", "0", "1"])["for"], "openai-chat");
    assert_eq!(stage.json(&["clear", "--dry-run"])["cachePlan"]["for"], "openai-chat");
}

#[test]
fn findings_have_positions_in_a_view_with_a_tool_description() {
    let stage = Stage::new();
    let call = json!({ "role": "assistant", "content": [
        { "type": "tool_use", "id": "c", "name": "ls", "input": {} }] });
    stage.exec(&[json!({
        "create": "a",
        "settings": { "tools": [{ "name": "ls", "description": "lists" }] },
        "messages": [{ "role": "user", "content": "list" }, call],
    })]);
    // The description is entry 0 of the view, and is not sent.
    let linted = stage.run(&["lint", "-c", "a", "--for", "anthropic", "--json"]);
    let findings: Value = serde_json::from_str(&linted.out).unwrap();
    let rendered = stage.json(&["render", "-c", "a", "--for", "anthropic"]);
    for finding in [&findings["findings"][0], &rendered["repairs"][0]] {
        assert_eq!((&finding["index"], &finding["entry"]), (&json!(2), &json!(2)), "{finding}");
    }
    let people = stage.run(&["render", "-c", "a", "--for", "anthropic"]);
    assert!(people.errors.starts_with("#2: "), "{}", people.errors);
    let shown = stage.run(&["lint", "-c", "a", "--for", "anthropic"]).out;
    assert!(shown.lines().any(|line| line.contains(" 2 ") && line.contains("#2")), "{shown}");
}

#[test]
fn an_edit_tells_how_much_bound_thinking_it_costs() {
    let stage = Stage::new();
    let thinking = json!({ "type": "thinking", "thinking": "I look.", "signature": "AAAA" });
    let answer = json!({ "id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-fable-5-1", "content": [thinking, { "type": "text", "text": "Here." }] });
    let question = |text: &str| json!({ "role": "user", "content": text });
    let list = json!([question("Where?"), answer, question("And then?")]);
    let file = stage.file("list.json", &list.to_string());
    stage.plain(&["import", &file, "--name", "a", "--format", "anthropic", "--counter", "approx"]);
    let lint = |stage: &Stage| {
        let arguments = ["lint", "-c", "a", "--for", "anthropic", "--model", "claude-fable-5-1"];
        let ran = stage.run(&arguments);
        format!("{}{}", ran.out, ran.errors)
    };
    assert!(!lint(&stage).contains("thinking_of_its_prefix"), "{}", lint(&stage));
    let edit = ["replace", "-c", "a", "--position", "0", "--text", "Where to?"];
    let dry = stage.json(&[&edit[..], &["--for", "anthropic", "--dry-run"]].concat());
    assert_eq!(dry["cachePlan"]["thinkingBlocks"], 1, "{dry}");
    // The plan of the preview is that of the edit: its request has no such thinking either.
    let bound = ["--for", "anthropic", "--model", "claude-fable-5-1"];
    let dry = stage.json(&[&edit[..], &bound, &["--dry-run"]].concat());
    stage.plain(&edit);
    let done = stage.json(&[&["cache-plan", "now-1", "now", "-c", "a"][..], &bound].concat());
    assert_eq!(dry["cachePlan"]["newTokens"], done["newTokens"], "{dry} {done}");
    assert!(lint(&stage).contains("thinking_of_its_prefix"), "{}", lint(&stage));
    let plan = stage.json(&["cache-plan", "now-1", "now", "-c", "a", "--for", "anthropic"]);
    assert_eq!(plan["thinkingBlocks"], 1, "{plan}");
}

#[test]
fn the_version_of_the_api_decides_which_rules_apply() {
    let stage = Stage::new();
    let cited = json!({ "type": "text", "text": "a", "citations": [{ "type": "char_location" }] });
    let message = json!({ "role": "user", "content": [cited],
        "metadata": { "source": { "provider": "anthropic" } } });
    let file = stage.file("list.json", &json!([message]).to_string());
    stage.plain(&["import", &file, "--name", "a", "--format", "recto", "--counter", "approx"]);
    let rule = "citations_from_the_assistant";
    for (version, is_new) in [("2023-06-01", false), ("2026-10-21", true)] {
        let to = ["-c", "a", "--for", "anthropic", "--api-version", version];
        let rendered = stage.run(&[&["render"][..], &to].concat());
        assert_eq!(rendered.out.contains("char_location"), !is_new, "{}", rendered.out);
        assert_eq!(rendered.errors.contains(rule), is_new, "{}", rendered.errors);
        let ran = stage.run(&[&["lint"][..], &to].concat());
        assert_eq!(ran.out.contains(rule), is_new, "{}", ran.out);
    }
}

/// With thinking, the last message must be from the user.
#[test]
fn lint_applies_the_rules_that_depend_on_other_fields() {
    let stage = Stage::new();
    stage.exec(&[json!({ "create": "a", "messages": [
        { "role": "user", "content": "hi" }, { "role": "assistant", "content": "a" }] })]);
    let lint = ["lint", "-c", "a", "--for", "anthropic", "--model", "claude-sonnet-4-5"];
    assert!(!stage.run(&lint).out.contains("last_from_the_user"));
    let field = ["--field", r#"thinking={"type":"enabled","budget_tokens":1024}"#];
    let ran = stage.run(&[&lint[..], &field].concat());
    assert_eq!((ran.code, ran.out.contains("last_from_the_user")), (1, true), "{}", ran.out);
    let wrong = stage.run(&[&lint[..], &["--field", "thinking=on"]].concat());
    assert_eq!(wrong.code, 2, "{}", wrong.errors);
    assert!(wrong.errors.contains("must be JSON"), "{}", wrong.errors);
}

#[test]
fn an_edit_is_priced_with_the_prices_of_its_model() {
    let stage = Stage::new();
    let plan = |model: &str| {
        let answer = json!({ "id": "c", "object": "chat.completion", "model": model,
            "choices": [{ "message": { "role": "assistant", "content": "word ".repeat(2_000) } }] });
        let question = json!({ "role": "user", "content": "word ".repeat(2_000) });
        let list = json!([question, answer, question]);
        let file = stage.file("list.json", &list.to_string());
        stage.plain(&[
            "import",
            &file,
            "--name",
            model,
            "--format",
            "openai-chat",
            "--counter",
            "approx",
        ]);
        let edit = ["delete", "1", "-c", model, "--for", "openai-chat", "--dry-run"];
        stage.json(&edit)["cachePlan"].clone()
    };
    let known = plan("gpt-5.6-sol");
    assert_eq!(known["pricesOf"], "gpt-5.6-sol", "{known}");
    assert!(known["costNow"].is_number(), "{known}");
    // A model that the table does not have is not priced as another one.
    let unknown = plan("gpt-77");
    assert_eq!((&unknown["pricesOf"], &unknown["costNow"]), (&json!(null), &json!(null)));
    assert_eq!(unknown["unknownModel"], "gpt-77", "{unknown}");
    let edit = ["delete", "1", "-c", "gpt-77", "--dry-run", "--for", "openai-chat"];
    let asked = stage.json(&[&edit[..], &["--model", "gpt-5.5"]].concat());
    assert_eq!(asked["cachePlan"]["pricesOf"], "gpt-5.5", "{asked}");
}
