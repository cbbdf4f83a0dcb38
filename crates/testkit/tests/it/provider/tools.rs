use serde_json::{Value, json};
use testkit::provider::{Provider, tools::check};

fn definition(provider: Provider, name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    match provider {
        Provider::OpenAiChat => {
            json!({"type": "function", "function": {"name": name, "parameters": schema}})
        }
        Provider::OpenAiResponses => {
            json!({"type": "function", "name": name, "parameters": schema, "strict": false})
        }
        Provider::Anthropic => json!({"name": name, "description": "d", "input_schema": schema}),
        Provider::Gemini => json!({"name": name, "parametersJsonSchema": schema}),
        Provider::BedrockConverse => {
            json!({"toolSpec": {"name": name, "inputSchema": {"json": schema}}})
        }
    }
}

fn request(provider: Provider, tools: &[Value]) -> Value {
    match provider {
        Provider::Gemini => json!({"tools": [{"functionDeclarations": tools}]}),
        Provider::BedrockConverse => json!({"toolConfig": {"tools": tools}}),
        _ => json!({"tools": tools}),
    }
}

/// The object with the name of the tool.
fn inner(provider: Provider, tool: &mut Value) -> &mut Value {
    match provider {
        Provider::OpenAiChat => &mut tool["function"],
        Provider::BedrockConverse => &mut tool["toolSpec"],
        _ => tool,
    }
}

#[test]
fn a_provider_accepts_tools_only_in_its_own_form() {
    for provider in Provider::ALL {
        let tool = definition(provider, "f_1");
        assert_eq!(check(provider, &json!({})), Ok(()));
        assert_eq!(check(provider, &request(provider, std::slice::from_ref(&tool))), Ok(()));
        for other in Provider::ALL.into_iter().filter(|other| *other != provider) {
            let request = request(provider, &[definition(provider, "f_1")]);
            assert!(check(other, &request).is_err(), "{} accepts {request}", other.name());
        }
    }
}

#[test]
fn invalid_tools_are_refused() {
    for provider in Provider::ALL {
        let good = definition(provider, "f");
        let refused = |tools: &[Value]| {
            let request = request(provider, tools);
            let result = check(provider, &request);
            assert!(result.is_err(), "{} accepts {request}", provider.name());
        };
        refused(&[]);
        refused(&[good.clone(), good.clone()]);
        for name in ["", "a b", "é", &"x".repeat(200)] {
            refused(&[definition(provider, name)]);
        }
        for (field, value) in [("description", json!("")), ("name", json!(1)), ("more", json!(1))] {
            let mut tool = good.clone();
            inner(provider, &mut tool)[field] = value;
            refused(&[tool]);
        }
        for schema in ["parameters", "input_schema", "parametersJsonSchema"] {
            let mut tool = good.clone();
            inner(provider, &mut tool)[schema] = json!({"type": "string"});
            refused(&[tool]);
        }
    }
    assert!(
        check(Provider::Gemini, &request(Provider::Gemini, &[definition(Provider::Gemini, "9")]))
            .is_err()
    );
    let mut without_strict = definition(Provider::OpenAiResponses, "f");
    without_strict.as_object_mut().unwrap().remove("strict");
    assert!(check(Provider::OpenAiResponses, &json!({"tools": [without_strict]})).is_err());
}
