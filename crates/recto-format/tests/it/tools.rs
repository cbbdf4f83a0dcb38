//! Descriptions of tools for every provider.

use proptest::prelude::*;
use recto_core::{Message, Tool};
use recto_format::{EnvelopeInfo, Error, Format, RenderOptions, Target, lint, render};
use serde_json::{Value, json};

use crate::render::provider;

fn tool(value: Value) -> Tool {
    Tool::from_json(&value.to_string()).unwrap()
}

fn rendered(tools: &[Tool], target: Target) -> Result<recto_format::Rendered, Error> {
    let view = [
        Message::user("Which flight?"),
        Message::tool_call("c1", "fly.find", &json!({"to": "LIS"})),
        Message::tool_result("c1", "TP 571"),
    ];
    let options = RenderOptions { tools, ..RenderOptions::default() };
    render(&view, target, &options)
}

/// Checks that the provider accepts the messages and the tools.
fn assert_accepted(body: &Value, target: Target) {
    provider(target).check(body).unwrap_or_else(|violation| panic!("{violation}\n{body}"));
    let tools = testkit::provider::tools::check(provider(target), body);
    tools.unwrap_or_else(|violation| panic!("{violation}\n{body}"));
}

fn tools_in(tools: &[Tool], target: Target) -> Value {
    let body: Value = serde_json::from_str(&rendered(tools, target).unwrap().body).unwrap();
    assert_accepted(&body, target);
    tools_of(&body, target).clone()
}

fn tools_of(body: &Value, target: Target) -> &Value {
    if target == Target::BedrockConverse { &body["toolConfig"]["tools"] } else { &body["tools"] }
}

#[test]
fn each_provider_receives_tools_in_its_own_form() {
    let schema =
        json!({"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]});
    for key in ["input_schema", "inputSchema", "parameters"] {
        let find = tool(
            json!({"name": "find", "description": "finds \"flights\"", key: schema, "more": 1}),
        );
        let description = "finds \"flights\"";
        assert_eq!(
            tools_in(std::slice::from_ref(&find), Target::Anthropic),
            json!([{"name": "find", "description": description, "input_schema": schema}])
        );
        assert_eq!(
            tools_in(std::slice::from_ref(&find), Target::OpenAiChat),
            json!([{"type": "function", "function":
                {"name": "find", "description": description, "parameters": schema}}])
        );
        assert_eq!(
            tools_in(std::slice::from_ref(&find), Target::OpenAiResponses),
            json!([{"type": "function", "name": "find", "description": description,
                "parameters": schema, "strict": false}])
        );
        assert_eq!(
            tools_in(std::slice::from_ref(&find), Target::Gemini),
            json!([{"functionDeclarations":
                [{"name": "find", "description": description, "parametersJsonSchema": schema}]}])
        );
        assert_eq!(
            tools_in(std::slice::from_ref(&find), Target::BedrockConverse),
            json!([{"toolSpec":
                {"name": "find", "description": description, "inputSchema": {"json": schema}}}])
        );
    }
}

#[test]
fn a_tool_without_a_schema_accepts_any_object() {
    let any = json!({"type": "object", "properties": {}});
    for tool in
        [Tool::new("now", ""), tool(json!({"name": "now", "description": "", "parameters": null}))]
    {
        assert_eq!(
            tools_in(&[tool], Target::Anthropic),
            json!([{"name": "now", "input_schema": any}])
        );
    }
    let untyped = tool(json!({"name": "now", "description": "", "parameters": {"properties": {}}}));
    assert_eq!(tools_in(&[untyped], Target::Anthropic)[0]["input_schema"], any);
}

#[test]
fn a_schema_without_properties_gets_an_empty_list() {
    let bare = json!({"name": "now", "description": "d", "input_schema": {"type": "object"}});
    for target in Target::ALL {
        let tools = tools_in(&[tool(bare.clone())], target).to_string();
        let schema = r#"{"properties":{},"type":"object"}"#;
        let ordered = r#"{"type":"object","properties":{}}"#;
        assert!(tools.contains(schema) || tools.contains(ordered), "{tools}");
    }
}

#[test]
fn a_name_is_encoded_as_in_calls_and_reported() {
    let tools = [Tool::new("fly.find", "finds")];
    for target in Target::ALL {
        let rendered = rendered(&tools, target).unwrap();
        let body: Value = serde_json::from_str(&rendered.body).unwrap();
        assert_accepted(&body, target);
        let renamed = &rendered.renamed_tools;
        if target == Target::Gemini {
            assert!(renamed.is_empty(), "a dot is allowed there");
            continue;
        }
        assert_eq!((renamed.len(), &*renamed[0].name), (1, "fly.find"));
        // The name is encoded in the description and in the call.
        assert_eq!(rendered.body.matches(&format!("\"{}\"", renamed[0].rendered_name)).count(), 2);
        assert!(!rendered.body.contains("fly.find"), "{}", rendered.body);
    }
}

#[test]
fn tools_that_no_provider_accepts_are_refused() {
    let twice = [Tool::new("a", ""), Tool::new("a", "again")];
    let number = [tool(json!({"name": "a", "description": "", "parameters": {"type": "number"}}))];
    let half =
        r#"{"name": "a", "description": "", "parameters": {"type": "object", "title": "\ud800"}}"#;
    let half = [Tool::from_json(half).unwrap()];
    for tools in [&twice[..], &number, &half] {
        let error = rendered(tools, Target::OpenAiChat).unwrap_err();
        assert!(matches!(&error, Error::InvalidField { field, .. } if field == "tools"), "{error}");
    }
    let fields = [("tools", "[]")];
    let tools = [Tool::new("a", "")];
    let options = RenderOptions { fields: &fields, tools: &tools, ..RenderOptions::default() };
    let error = render(&[Message::user("Hi")], Target::Gemini, &options).unwrap_err();
    assert!(matches!(error, Error::InvalidField { .. }), "{error}");
}

#[test]
fn cache_marks_of_tools_are_counted() {
    let mark = json!({"type": "ephemeral"});
    let marked = |name: &str| tool(json!({"name": name, "description": "", "cache_control": mark}));
    let parts: Vec<Value> = (0..2)
        .map(|n| json!({"type": "text", "text": format!("{n}"), "cache_control": mark}))
        .collect();
    let view =
        [Message::from_json(&json!({"role": "user", "content": parts}).to_string()).unwrap()];
    for (count, left_out) in [(2, 0), (3, 1), (6, 2)] {
        let tools: Vec<Tool> = (0..count).map(|n| marked(&format!("t{n}"))).collect();
        let options = RenderOptions { tools: &tools, ..RenderOptions::default() };
        let rendered = render(&view, Target::Anthropic, &options).unwrap();
        provider(Target::Anthropic).check(&serde_json::from_str(&rendered.body).unwrap()).unwrap();
        assert_eq!(rendered.body.matches("cache_control").count(), 4);
        assert_eq!(lint(&view, Target::Anthropic, &options).len(), left_out);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn random_tools_are_rendered_validly_or_refused(
        names in prop::collection::vec("\\PC{0,80}|[a-z_.-]{1,70}|[0-9]{1,3}|", 1..5),
        description in "\\PC{0,9}",
        schemas in prop::collection::vec(0..6_usize, 5),
    ) {
        let schema = |kind: usize| match kind {
            0 => json!({"input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            1 => json!({"parameters": {"properties": {}}}),
            2 => json!({"inputSchema": {"type": "object"}, "strict": true}),
            3 => json!({"parameters": {"type": "array"}}),
            4 => json!({"input_schema": {}, "cache_control": {"type": "ephemeral"}}),
            _ => json!({}),
        };
        let tools: Vec<Tool> = names.iter().zip(&schemas).map(|(name, kind)| {
            let mut tool = schema(*kind);
            tool["name"] = json!(name);
            tool["description"] = json!(description);
            self::tool(tool)
        }).collect();
        let is_array = |(_, kind): (&String, &usize)| *kind == 3;
        let has_array = names.iter().zip(&schemas).any(is_array);
        let distinct: std::collections::HashSet<&String> = names.iter().collect();
        for target in Target::ALL {
            match rendered(&tools, target) {
                Ok(rendered) => {
                    prop_assert!(!has_array && distinct.len() == names.len());
                    assert_accepted(&serde_json::from_str(&rendered.body).unwrap(), target);
                }
                Err(error) => prop_assert!(has_array || distinct.len() < names.len(), "{}", error),
            }
        }
    }
}

#[test]
fn tools_of_a_request_are_read_as_those_of_a_conversation() {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string","enum":["STRING"]}}}"#;
    let loud = r#"{"type":"OBJECT","properties":{"city":{"type":"STRING","enum":["STRING"]}}}"#;
    let message = r#"{"role":"user","content":"hi"}"#;
    let files = [
        (
            Format::OpenAiChat,
            format!(
                r#"{{"model":"m","messages":[{message}],"tools":[{{"type":"function","function":{{"name":"w","description":"d","parameters":{schema},"strict":true}}}}]}}"#
            ),
            vec!["model"],
        ),
        (
            Format::OpenAiResponses,
            format!(
                r#"{{"instructions":"Be brief.","input":[{message}],"tools":[{{"type":"function","name":"w","description":"d","parameters":{schema}}},{{"type":"web_search"}}]}}"#
            ),
            vec![],
        ),
        (
            Format::Anthropic,
            format!(
                r#"{{"max_tokens":9,"system":"Be brief.","messages":[{message}],"tools":[{{"name":"w","description":"d","input_schema":{schema}}}]}}"#
            ),
            vec!["max_tokens"],
        ),
        (
            Format::Gemini,
            format!(
                r#"{{"systemInstruction":{{"parts":[{{"text":"x"}}]}},"contents":[{{"role":"user","parts":[{{"text":"hi"}}]}}],"tools":[{{"functionDeclarations":[{{"name":"w","description":"d","parameters":{loud}}}]}}]}}"#
            ),
            vec![],
        ),
    ];
    for (format, file, others) in files {
        let replay = crate::files::imported(&file, format);
        let info = EnvelopeInfo::of(replay.conversations[0].envelope.as_deref().unwrap(), format);
        assert_eq!(info.unsupported_fields, others, "{format}");
        let is_search = format == Format::OpenAiResponses;
        assert_eq!(info.provider_tools, if is_search { vec!["web_search"] } else { vec![] });
        assert_eq!(info.tools.len(), 1 + info.provider_tools.len(), "{format}");
        let tool = &info.tools[0];
        assert_eq!((tool.name(), tool.description()), ("w", "d"));
        let read: Value = serde_json::from_str(tool.json()).unwrap();
        assert_eq!(read["input_schema"], serde_json::from_str::<Value>(schema).unwrap());
        for target in Target::ALL {
            let options = RenderOptions { tools: &info.tools, ..RenderOptions::default() };
            render(&[Message::user("hi")], target, &options).unwrap();
        }
    }
    let rest = EnvelopeInfo::of(r#"[{"type":"summary"},{"type":"progress"}]"#, Format::ClaudeCode);
    assert_eq!((rest.trailing_lines, rest.tools.len(), rest.unsupported_fields.len()), (2, 0, 0));
}

#[test]
fn alternatives_at_the_top_of_a_schema_are_merged_where_they_are_rejected() {
    let one = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let two = json!({"type": "object", "properties": {"b": {"type": "number"}}, "required": ["b"]});
    for (word, required, change) in [
        ("allOf", json!(["a", "b"]), "is equivalent"),
        ("anyOf", Value::Null, "allows more inputs"),
        ("oneOf", Value::Null, "allows more inputs"),
    ] {
        let schema = json!({word: [one, two]});
        let tools = [tool(json!({"name": "find", "description": "d", "parameters": schema}))];
        for target in Target::ALL {
            let rendered = rendered(&tools, target).unwrap();
            let body: Value = serde_json::from_str(&rendered.body).unwrap();
            assert_accepted(&body, target);
            if target == Target::Gemini {
                assert_eq!(rendered.tool_findings, []);
                assert!(rendered.body.contains(word), "{}", rendered.body);
                continue;
            }
            let [finding] = &rendered.tool_findings[..] else { panic!("{:?}", rendered) };
            assert_eq!((finding.rule.name, &*finding.tool), ("schemas_without_choice", "find"));
            assert!(finding.message.contains(change), "{word}: {}", finding.message);
            let written = tools_of(&body, target)[0].clone();
            let written = match target {
                Target::OpenAiChat => &written["function"]["parameters"],
                Target::OpenAiResponses => &written["parameters"],
                Target::BedrockConverse => &written["toolSpec"]["inputSchema"]["json"],
                _ => &written["input_schema"],
            };
            let both = json!({"a": {"type": "string"}, "b": {"type": "number"}});
            assert_eq!((&written["properties"], &written["required"]), (&both, &required));
        }
    }
}

/// Requests with tools whose fields Recto does not know, or that the provider runs.
fn requests_with_tools() -> Vec<(Format, Target, Value)> {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    vec![
        (
            Format::Anthropic,
            Target::Anthropic,
            json!([
                {"type": "custom", "name": "f", "description": "", "input_schema": schema,
                    "strict": true, "defer_loading": true, "input_examples": [{}],
                    "allowed_callers": ["direct"], "cache_control": {"type": "ephemeral"}},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 1},
                {"name": "g", "input_schema": {"type": "object"}},
            ]),
        ),
        (
            Format::OpenAiChat,
            Target::OpenAiChat,
            json!([
                {"type": "function", "function": {"name": "f", "parameters": schema, "strict": false}},
                {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}},
            ]),
        ),
        (
            Format::OpenAiResponses,
            Target::OpenAiResponses,
            json!([
                {"type": "function", "name": "f", "parameters": schema},
                {"type": "custom", "name": "sql", "description": "d",
                    "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}},
                {"type": "namespace", "name": "crm", "tools": []},
                {"type": "mcp", "server_label": "a", "server_url": "https://a"},
                {"type": "mcp", "server_label": "a", "server_url": "https://b"},
            ]),
        ),
        (
            Format::Gemini,
            Target::Gemini,
            json!([
                {"functionDeclarations": [
                    {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"type": 1}}},
                        "behavior": "NON_BLOCKING"},
                    {"name": "g", "description": "d"},
                ]},
                {"googleSearch": {}},
                {"function_declarations": [{"name": "h", "parameters": {"type": 6}}],
                    "codeExecution": null},
            ]),
        ),
        (
            Format::BedrockConverse,
            Target::BedrockConverse,
            json!([
                {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}, "strict": true}},
                {"cachePoint": {"type": "default"}},
            ]),
        ),
    ]
}

fn tools_of_request(format: Format, tools: &Value) -> Vec<Tool> {
    let key = if format == Format::BedrockConverse { "toolConfig" } else { "tools" };
    let tools = if key == "tools" { tools.clone() } else { json!({ "tools": tools }) };
    let info = EnvelopeInfo::of(&json!({ key: tools }).to_string(), format);
    assert_eq!(info.unsupported_fields, Vec::<String>::new(), "{format}");
    info.tools
}

#[test]
fn tools_of_a_request_are_unchanged_for_the_same_provider() {
    for (format, target, tools) in requests_with_tools() {
        let imported = tools_of_request(format, &tools);
        let rendered = rendered(&imported, target).unwrap();
        let body: Value = serde_json::from_str(&rendered.body).unwrap();
        assert_eq!(*tools_of(&body, target), tools, "{format}");
        assert_eq!(rendered.tool_findings, [], "{format}");
    }
    let functions = json!([{"name": "f", "parameters": {"type": "object", "properties": {}}}]);
    let envelope = json!({ "functions": functions }).to_string();
    let info = EnvelopeInfo::of(&envelope, Format::OpenAiChat);
    let rendered = rendered(&info.tools, Target::OpenAiChat).unwrap();
    let body: Value = serde_json::from_str(&rendered.body).unwrap();
    assert_eq!((&body["functions"], &body["tools"]), (&functions, &Value::Null));
}

#[test]
fn another_provider_receives_the_functions_and_the_rest_is_reported() {
    for (format, own, tools) in requests_with_tools() {
        let imported = tools_of_request(format, &tools);
        for target in Target::ALL.into_iter().filter(|target| *target != own) {
            let rendered = rendered(&imported, target).unwrap();
            let body: Value = serde_json::from_str(&rendered.body).unwrap();
            assert_accepted(&body, target);
            let is_lost = |it: &recto_format::ToolFinding| it.rule.name == "tools_of_the_provider";
            assert!(rendered.tool_findings.iter().any(is_lost), "{format} for {target}");
        }
    }
}

#[test]
fn an_edited_tool_is_written_as_it_is_now() {
    let (format, target, tools) = requests_with_tools().remove(0);
    let imported = tools_of_request(format, &tools);
    let edited = imported[0].json().replacen("\"description\":\"\"", "\"description\":\"new\"", 1);
    let edited = [Tool::from_json(&edited).unwrap()];
    let body: Value = serde_json::from_str(&rendered(&edited, target).unwrap().body).unwrap();
    assert_eq!(tools_of(&body, target)[0]["description"], "new");
}

/// `metadata.source` is part of a tool that any program may set, so rendering trusts nothing in it.
#[test]
fn stored_bytes_of_a_tool_are_used_only_if_the_tool_is_unchanged_and_they_are_valid() {
    let search = r#"{"name":"web_search","description":"","metadata":{"source":{"format":"openai-responses","provider_tool":true,"original":{"type":"web_search"}}}}"#;
    let rendered = |tool: &str, target: Target| {
        let tools = [Tool::from_json(tool).unwrap()];
        let options = RenderOptions { tools: &tools, ..RenderOptions::default() };
        let request = render(&[Message::user("hi")], target, &options).unwrap();
        serde_json::from_str::<Value>(&request.body).unwrap()["tools"].clone()
    };
    assert_eq!(rendered(search, Target::OpenAiResponses), json!([{"type": "web_search"}]));
    let renamed = search.replacen("web_search", "search2", 1).replacen(r#"":"""#, r#"":"new""#, 1);
    assert_eq!(rendered(&renamed, Target::OpenAiResponses)[0]["name"], "search2");
    for original in [r#""text""#, "{}", "[1]"] {
        let changed = search.replace(r#"{"type":"web_search"}"#, original);
        assert_eq!(rendered(&changed, Target::OpenAiResponses)[0]["name"], "web_search");
    }
    let gemini = r#"{"name":"f","description":"d","metadata":{"source":{"format":"gemini","empty":",\"x\":}]","original":{"name":"f","description":"d"}}}}"#;
    assert!(rendered(gemini, Target::Gemini)[0]["functionDeclarations"].is_array());
}

/// A conversation refuses an empty name, a name of two tools and a schema that is no object. An imported request
/// can have them.
#[test]
fn the_tools_of_every_imported_request_can_be_set() {
    let tools =
        r#"{"name":"t","input_schema":5},{"name":"t","input_schema":{}},{"type":"x","name":""}"#;
    let file = format!(
        r#"{{"max_tokens":9,"messages":[{{"role":"user","content":"hi"}}],"tools":[{tools}]}}"#
    );
    let replay = crate::files::imported(&file, Format::Anthropic);
    let envelope = replay.conversations[0].envelope.as_deref().unwrap();
    let info = EnvelopeInfo::of(envelope, Format::Anthropic);
    assert_eq!(info.tools.iter().map(Tool::name).collect::<Vec<_>>(), ["t", "type"]);
    assert_eq!(info.unsupported_fields, ["max_tokens", "tools"], "the other tool is reported");
    let set = format!("[{},{}]", info.tools[0].json(), info.tools[1].json());
    assert_eq!(Tool::list_from_json(&set).unwrap(), info.tools);
    // The provider that they came from receives the tools as they were.
    let options = RenderOptions { tools: &info.tools, ..RenderOptions::default() };
    let rendered = render(&[Message::user("hi")], Target::Anthropic, &options).unwrap();
    assert!(rendered.body.contains(r#"{"name":"t","input_schema":5}"#), "{}", rendered.body);
}
