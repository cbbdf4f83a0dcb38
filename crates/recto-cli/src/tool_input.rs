//! The file of `--tools`: tools in Recto's form, or in the form of a provider or of MCP.

use recto::{EngineError, Tool};
use recto_format::{EnvelopeInfo, Format};
use serde_json::value::RawValue;

use crate::failure::Failure;

/// Reads tools: a list, or an object with the list in `tools`, as in a request or in the response of
/// `tools/list`. Tools in Recto's form keep their bytes; those of providers are converted.
pub(crate) fn read_tools(text: &str) -> Result<Vec<Tool>, Failure> {
    if let Ok(tools) = Tool::list_from_json(text) {
        return Ok(tools);
    }
    let whole: &RawValue = serde_json::from_str(text)
        .map_err(|error| EngineError::InvalidJson { reason: error.to_string() })?;
    let envelope = match whole.get().starts_with('[') {
        true => format!("{{\"tools\":{whole}}}"),
        false => whole.get().to_owned(),
    };
    // The provider is not known, so the tools are stored in Recto's form only.
    let info = EnvelopeInfo::of(&envelope, Format::Recto);
    let is_unread = info.unsupported_fields.iter().any(|field| field == "tools");
    let has_others = is_unread || !info.provider_tools.is_empty();
    match info.tools.is_empty() || has_others {
        true => Err(not_understood(text)),
        false => Ok(info.tools),
    }
}

/// Why tools cannot be read, with an example.
fn not_understood(text: &str) -> Failure {
    let reason = match Tool::list_from_json(text) {
        Err(error) => error.to_string(),
        Ok(_) => "the list has no functions".to_owned(),
    };
    Failure::Usage(format!(
        "the tools cannot be read: {reason}. Example: [{{\"name\": \"ls\", \"description\": \"List a \
         folder.\", \"input_schema\": {{\"type\": \"object\", \"properties\": {{\"path\": {{\"type\": \
         \"string\"}}}}}}}}]. The forms of OpenAI, Anthropic, Gemini and MCP are accepted too; tools that \
         the provider runs itself and two tools with the same name are not"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn tools_are_read_in_every_form() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let gemini = json!({"type": "OBJECT", "properties": {"path": {"type": "STRING"}}});
        let (name, about) = ("ls", "List a folder.");
        for tools in [
            json!([{"name": name, "description": about, "input_schema": schema}]),
            json!([{"type": "function",
                "function": {"name": name, "description": about, "parameters": schema}}]),
            json!([{"type": "function", "name": name, "description": about, "parameters": schema,
                "strict": true}]),
            json!([{"functionDeclarations":
                [{"name": name, "description": about, "parameters": gemini}]}]),
            json!([{"name": name, "description": about, "inputSchema": schema}]),
            json!({"tools": [{"name": name, "description": about, "inputSchema": schema}]}),
            json!({"model": "m", "messages": [], "tools": [{"type": "function",
                "function": {"name": name, "description": about, "parameters": schema}}]}),
        ] {
            let read = read_tools(&tools.to_string()).unwrap();
            assert_eq!((read.len(), read[0].name(), read[0].description()), (1, name, about));
            let written: Value = serde_json::from_str(read[0].json()).unwrap();
            let found = ["input_schema", "inputSchema", "parameters"].map(|key| &written[key]);
            assert!(found.contains(&&schema), "{tools}: {written}");
        }
        // A description is not required by providers.
        let read = read_tools(r#"[{"name":"ls","input_schema":{"type":"object"}}]"#).unwrap();
        assert_eq!((read[0].name(), read[0].description()), ("ls", ""));
    }

    #[test]
    fn own_tools_keep_their_bytes() {
        let tool = r#"{"name":"a", "description":"b",  "extra":1e400}"#;
        assert_eq!(read_tools(&format!("[{tool}]")).unwrap()[0].json(), tool);
        assert!(read_tools("[]").unwrap().is_empty());
    }

    #[test]
    fn an_error_shows_an_example() {
        for wrong in [
            r#"[{"title":"x"}]"#,
            "{}",
            "7",
            r#"[{"type":"web_search"}]"#,
            r#"[{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}]"#,
        ] {
            let error = read_tools(wrong).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{wrong}");
            assert!(error.to_string().contains("Example: [{"), "{error}");
        }
        assert_eq!(read_tools("[").unwrap_err().code(), "invalid_json");
    }
}
