//! Messages that depend on what is outside the list of messages: calls that the provider runs or stores,
//! responses of the model, system messages inside the list, and parts of other providers.

use recto_core::Message;
use recto_format::{Format, RenderOptions, Severity, Target, lint, render};
use serde_json::{Value, json};

use crate::files::messages;

fn imported(request: &Value, format: Format) -> Vec<Message> {
    messages(&request.to_string(), format).0
}

/// The rendered messages, in the field `key` of the request.
fn rendered(view: &[Message], target: Target, model: &str, key: &str) -> Value {
    let options = RenderOptions { model: Some(model), ..RenderOptions::default() };
    let body = render(view, target, &options).unwrap().body;
    serde_json::from_str::<Value>(&body).unwrap()[key].clone()
}

fn errors(view: &[Message], target: Target, options: &RenderOptions<'_>) -> Vec<String> {
    let findings = lint(view, target, options);
    let is_error = |severity| severity == Severity::Error;
    findings.iter().filter(|it| is_error(it.rule.severity)).map(ToString::to_string).collect()
}

#[test]
fn a_server_call_may_have_its_result_in_a_later_message_or_be_continued() {
    let code = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution",
        "input": {"code": "f()"}});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {},
        "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"});
    let done = json!({"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1",
        "content": {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0,
            "content": []}});
    let programmatic = json!([
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [code, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [done, {"type": "text", "text": "One."}]},
        {"role": "user", "content": "More."},
    ]);
    let paused = json!([
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, code]},
    ]);
    for list in [programmatic, paused] {
        let view = imported(&json!({"max_tokens": 9, "messages": list}), Format::Anthropic);
        let model = "claude-opus-4-8";
        let options = RenderOptions { model: Some(model), ..RenderOptions::default() };
        assert_eq!(errors(&view, Target::Anthropic, &options), Vec::<String>::new());
        assert_eq!(rendered(&view, Target::Anthropic, model, "messages"), list);
    }
}

#[test]
fn a_result_whose_call_is_stored_at_the_provider_is_not_an_error() {
    let target = Target::OpenAiResponses;
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "1"});
    let request = json!({"input": [output], "model": "gpt-5", "previous_response_id": "resp_1"});
    let view = imported(&request, Format::OpenAiResponses);
    assert_eq!(errors(&view, target, &RenderOptions::default()), Vec::<String>::new());
    // The fields show that the request names no stored response.
    let fields = [("model", "\"gpt-5\"")];
    let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
    assert_eq!(errors(&view, target, &options).len(), 1);
    let fields = [("model", "\"gpt-5\""), ("previous_response_id", "\"resp_1\"")];
    let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
    assert_eq!(errors(&view, target, &options), Vec::<String>::new());
    // A call that an edit has removed is not stored.
    let call = json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"});
    let mut view = imported(&json!({"input": [call, output]}), Format::OpenAiResponses);
    view.remove(0);
    assert_eq!(errors(&view, target, &RenderOptions::default()).len(), 1);
    let list = json!([
        {"role": "user", "content": "Go."},
        {"type": "item_reference", "id": "fc_1"},
        output,
    ]);
    let view = imported(&json!({ "input": list }), Format::OpenAiResponses);
    assert_eq!(rendered(&view, target, "gpt-5", "input"), list);
}

#[test]
fn the_message_of_a_response_keeps_its_fields() {
    let message = json!({"role": "assistant", "content": "Hi.", "reasoning_content": "Hm.",
        "annotations": [], "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]});
    let response = json!({"id": "r", "object": "chat.completion", "model": "deepseek-reasoner",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let view = imported(&response, Format::OpenAiChat);
    let list = rendered(&view, Target::OpenAiChat, "deepseek-reasoner", "messages");
    assert_eq!(list, json!([message]));
    let content = json!([{"type": "thinking", "thinking": "Hm.", "signature": "AAAA"},
        {"type": "text", "text": "Hi.", "citations": null}]);
    let response = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content,
        "model": "claude-sonnet-4-5", "stop_reason": "end_turn", "usage": {"input_tokens": 1}});
    let view = imported(&response, Format::Anthropic);
    let list = rendered(&view, Target::Anthropic, "claude-sonnet-4-5", "messages");
    assert_eq!(list, json!([{"role": "assistant", "content": content}]));
}

#[test]
fn a_system_message_stays_one_where_the_model_accepts_it() {
    let text = |role, text: &str| Message::new(role, text).unwrap();
    use recto_core::Role::{Assistant, System, User};
    let view =
        [text(User, "Hi."), text(Assistant, "Yes?"), text(User, "Go."), text(System, "Briefly.")];
    let roles = |model| -> Vec<String> {
        let list = rendered(&view, Target::Anthropic, model, "messages");
        let list = list.as_array().unwrap();
        list.iter().map(|it| it["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles("claude-opus-4-8"), ["user", "assistant", "user", "system"]);
    assert_eq!(roles("claude-sonnet-4-5")[..3], ["user", "assistant", "user"]);
    assert!(!roles("claude-sonnet-4-5").contains(&"system".to_owned()));
}

#[test]
fn a_system_message_keeps_the_fields_that_change_the_effort_or_its_lifetime() {
    let effort = json!({"role": "system", "content": [], "output_config": {"effort": "low"}});
    let reminder =
        json!({"role": "system", "content": "Briefly.", "clear_at": "next_user_message"});
    let (user, assistant) = (
        json!({"role": "user", "content": "Go."}),
        json!({"role": "assistant", "content": "Yes."}),
    );
    let list = json!([user, assistant, effort, user, assistant, user, reminder]);
    let request = json!({"max_tokens": 9, "model": "claude-fable-5-1", "messages": list});
    let view = imported(&request, Format::Anthropic);
    let options = |model| RenderOptions { model: Some(model), ..RenderOptions::default() };
    let found = errors(&view, Target::Anthropic, &options("claude-fable-5-1"));
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(rendered(&view, Target::Anthropic, "claude-fable-5-1", "messages"), list);
    // An older model accepts no system message in the list.
    assert_eq!(errors(&view, Target::Anthropic, &options("claude-sonnet-4-5")).len(), 2);
    let older = rendered(&view, Target::Anthropic, "claude-sonnet-4-5", "messages").to_string();
    assert!(!older.contains("system") && !older.contains("effort"), "{older}");
    assert!(older.contains("Briefly."), "{older}");
}

#[test]
fn a_request_that_continues_a_thread_may_have_results_without_calls() {
    let list = json!([{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}]}]);
    let thread = json!({"type": "continue", "previous_message_id": "msg_1"});
    let request = json!({"max_tokens": 9, "model": "claude-fable-5", "thread": thread,
        "messages": list});
    let view = imported(&request, Format::Anthropic);
    let found = |thread: &str| {
        let fields = [("model", "\"claude-fable-5\""), ("thread", thread)];
        let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
        errors(&view, Target::Anthropic, &options)
    };
    assert_eq!(found(&thread.to_string()), Vec::<String>::new());
    assert_eq!(found(r#"{"type":"create"}"#).len(), 1);
    let fields = [("thread", r#"{"type":"continue","previous_message_id":"msg_1"}"#)];
    let options = RenderOptions { fields: &fields, ..RenderOptions::default() };
    assert!(render(&[], Target::Anthropic, &options).is_err(), "a thread needs a new message");
}

#[test]
fn the_summary_of_a_compaction_is_text_for_other_providers() {
    let request = json!({"max_tokens": 9, "messages": [
        {"role": "assistant", "content": [
            {"type": "compaction", "content": "So far.", "signature": "AAAA"}]},
        {"role": "user", "content": "Go."},
    ]});
    let view = imported(&request, Format::Anthropic);
    let list = rendered(&view, Target::OpenAiChat, "gpt-5", "messages");
    assert_eq!(list[0], json!({"role": "assistant", "content": "So far."}));
}

#[test]
fn audio_by_its_id_is_unchanged() {
    let list = json!([{"role": "user", "content": "Hi."}, {"role": "assistant", "audio": {"id": "a"}},
        {"role": "user", "content": "More."}]);
    let view = imported(&json!({ "messages": list }), Format::OpenAiChat);
    assert_eq!(rendered(&view, Target::OpenAiChat, "gpt-audio", "messages"), list);
}

#[test]
fn a_document_of_the_assistant_is_moved_for_versions_that_reject_it() {
    let document = json!({"type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "x"}});
    let list = json!([
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": [document, {"type": "text", "text": "A."}]},
        {"role": "user", "content": "Go."},
    ]);
    let view = imported(&json!({"max_tokens": 9, "messages": list}), Format::Anthropic);
    for (api_version, is_kept) in [(None, true), (Some("2026-10-21"), false)] {
        let options = RenderOptions { api_version, ..RenderOptions::default() };
        let body = render(&view, Target::Anthropic, &options).unwrap().body;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["messages"] == list, is_kept, "{body}");
        let assistant = body["messages"][1]["content"].to_string();
        assert_eq!(assistant.contains("document"), is_kept, "{body}");
    }
}

/// A message that the loop has stored: it records its producer, and no format.
fn made_by(provider: &str, model: &str, content: &Value) -> Message {
    let source = json!({"source": {"provider": provider, "model": model}});
    let message = json!({"role": "assistant", "content": content, "metadata": source});
    Message::from_json(&message.to_string()).unwrap()
}

#[test]
fn an_answer_that_ends_with_a_compaction_is_continued() {
    let list = json!([
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{"type": "compaction", "content": "So far."}]},
    ]);
    let model = "claude-opus-4-6";
    let view = imported(&json!({"max_tokens": 9, "messages": list}), Format::Anthropic);
    let options = RenderOptions { model: Some(model), ..RenderOptions::default() };
    assert_eq!(errors(&view, Target::Anthropic, &options), Vec::<String>::new());
    assert_eq!(rendered(&view, Target::Anthropic, model, "messages"), list);
}

#[test]
fn newer_blocks_of_the_provider_are_sent_back_if_the_message_was_not_imported() {
    let anthropic = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "advisor", "input": {}},
        {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "advisor_result", "text": "ok"}},
        {"type": "new_tool_use", "id": "new_1", "input": {}},
        {"type": "new_tool_result", "tool_use_id": "new_1", "content": []},
        {"type": "fallback", "from": {"model": "claude-opus-5"}},
        {"type": "text", "text": "Done."},
    ]);
    let model = "claude-opus-5";
    let view =
        [Message::user("Go."), made_by("anthropic", model, &anthropic), Message::user("More.")];
    let list = rendered(&view, Target::Anthropic, model, "messages");
    assert_eq!(list[1]["content"], anthropic);
    // A call without its result is not sent.
    let open = json!([anthropic[2], anthropic[5]]);
    let view = [Message::user("Go."), made_by("anthropic", model, &open), Message::user("More.")];
    let list = rendered(&view, Target::Anthropic, model, "messages");
    assert_eq!(list[1]["content"], json!([anthropic[5]]));
}

#[test]
fn newer_items_of_responses_are_sent_back_if_they_were_not_imported() {
    let search = |id: &str| json!({"type": "tool_search_call", "id": id, "call_id": null, "execution": "server", "arguments": {}, "status": "completed"});
    let found = json!({"type": "tool_search_output", "id": "tso_1", "call_id": null, "execution": "server", "status": "completed", "tools": []});
    let items = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"},
        search("ts_1"),
        found,
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "server_label": "s", "arguments": "{}"},
        {"type": "brand_new_item", "id": "bn_1", "data": "x"},
    ]);
    let model = "gpt-5.4";
    let view = [Message::user("Go."), made_by("openai", model, &items), Message::user("More.")];
    let list = rendered(&view, Target::OpenAiResponses, model, "input");
    assert_eq!(list.as_array().unwrap()[1..6], *items.as_array().unwrap());
    let sent = |items: Value| {
        let view = [Message::user("Go."), made_by("openai", model, &items), Message::user("More.")];
        rendered(&view, Target::OpenAiResponses, model, "input").as_array().unwrap().len() - 2
    };
    // A search without its output, an output without its search, and items of the client and of other providers.
    assert_eq!(sent(json!([search("ts_1")])), 0);
    assert_eq!(sent(json!([found])), 0);
    assert_eq!(sent(json!([{"type": "mcp_approval_response", "id": "mcpa_1"}])), 0);
    assert_eq!(
        sent(json!([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "f", "input": {}}])),
        0
    );
}

#[test]
fn reasoning_needs_an_id_only_where_the_provider_looks_it_up() {
    let answer = json!({"type": "text", "text": "Yes."});
    let with_id = json!({"type": "text", "text": "Yes.", "item_id": "msg_1"});
    let uuid = "76f8b89e-4a41-46fb-86ae-546cc1e4ba6c";
    let texts = json!([{"type": "reasoning_text", "text": "Hm."}]);
    let sent = |model: &str, reasoning: Value, answer: &Value| {
        let made = made_by("openai", model, &json!([reasoning, answer]));
        let view = [Message::user("Go."), made, Message::user("More.")];
        let list = rendered(&view, Target::OpenAiResponses, model, "input");
        list[1] == reasoning
    };
    let encrypted =
        json!({"type": "reasoning", "summary": [], "content": null, "encrypted_content": "AAAA"});
    assert!(sent("gpt-5.4", encrypted.clone(), &answer), "as older rollouts of codex have it");
    assert!(sent("gpt-5.4", encrypted, &with_id));
    assert!(!sent("gpt-5.4", json!({"type": "reasoning", "summary": []}), &answer));
    let named = json!({"type": "reasoning", "id": uuid, "summary": [], "content": texts});
    assert!(sent("deepseek-v4-flash", named.clone(), &answer));
    assert!(!sent("gpt-5.4", named, &answer));
    // OpenAI's reasoning with an id needs an answer with its id.
    let whole =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"});
    assert!(sent("gpt-5.4", whole.clone(), &with_id) && !sent("gpt-5.4", whole, &answer));
}

#[test]
fn fields_beside_a_part_of_gemini_and_search_results_of_bedrock_are_sent_back() {
    let part =
        json!({"executableCode": {"code": "1", "language": "PYTHON"}, "partMetadata": {"n": 1}});
    let content = json!([{"type": "gemini_part", "part": part}]);
    let view =
        [Message::user("Go."), made_by("google", "gemini-3-pro", &content), Message::user("More.")];
    let list = rendered(&view, Target::Gemini, "gemini-3-pro", "contents");
    assert_eq!(list[1]["parts"], json!([part]));
    let result = json!({"title": "t", "source": "https://a.b", "content": [{"text": "x"}]});
    let model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
    let list = json!([
        {"role": "user", "content": [{"text": "Go."}, {"searchResult": result}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"searchResult": result}]}}]},
    ]);
    let request = json!({"inferenceConfig": {"maxTokens": 9}, "messages": list});
    let mut view = imported(&request, Format::BedrockConverse);
    // An edit joins the messages of the user.
    view.push(Message::user("And?"));
    view.insert(0, Message::user("Hi."));
    let list = rendered(&view, Target::BedrockConverse, model, "messages");
    assert_eq!(list[0]["content"][2], json!({"searchResult": result}), "{list}");
    assert_eq!(list[2]["content"][0]["toolResult"]["content"], json!([{"searchResult": result}]));
}

#[test]
fn a_system_instruction_without_texts_is_kept() {
    for parts in [
        json!([]),
        json!([{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"text": "Be brief."}]),
    ] {
        let system = json!({ "parts": parts });
        let contents = json!([{"role": "user", "parts": [{"text": "Hi."}]}]);
        let request = json!({"systemInstruction": system, "contents": contents});
        let (view, remarks) = messages(&request.to_string(), Format::Gemini);
        assert!(remarks.is_empty(), "{remarks:?}");
        assert_eq!(view.len(), 2, "{parts}");
        assert_eq!(rendered(&view, Target::Gemini, "gemini-2.5-pro", "systemInstruction"), system);
    }
}
