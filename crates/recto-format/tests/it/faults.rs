//! Faults that were found with recorded requests of real providers. Every request was written for these
//! tests.

mod accepted;
mod recognition;
mod repairs;

use recto_core::Message;
use recto_format::{Finding, Format, RenderOptions, Rendered, Severity, Target, lint, render};
use serde_json::{Value, json};

use crate::files::messages;

/// The messages of a request, whose format must be recognised.
fn view_of(request: &str, format: Format) -> Vec<Message> {
    assert_eq!(Format::recognise(request.as_bytes()).unwrap(), format, "{request}");
    messages(request, format).0
}

fn options(model: Option<&str>) -> RenderOptions<'_> {
    RenderOptions { model, ..RenderOptions::default() }
}

fn rendered(view: &[Message], target: Target, model: Option<&str>) -> (Value, Rendered) {
    let rendered = render(view, target, &options(model)).unwrap();
    (serde_json::from_str(&rendered.body).unwrap(), rendered)
}

fn errors(view: &[Message], target: Target, model: Option<&str>) -> Vec<Finding> {
    let mut findings = lint(view, target, &options(model));
    findings.retain(|finding| finding.rule.severity == Severity::Error);
    findings
}

/// Checks that a request is recognised, has no errors and is rendered with the same history, byte for
/// byte.
fn check_round_trip(request: &str, format: Format, target: Target, list: &str) {
    let view = view_of(request, format);
    let value: Value = serde_json::from_str(request).unwrap();
    let model = value["model"].as_str();
    assert_eq!(errors(&view, target, model), [], "{request}");
    let (_, rendered) = rendered(&view, target, model);
    assert_eq!(rendered.findings, [], "{request}");
    let raw = |text: &str, field: &str| {
        let fields: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
            serde_json::from_str(text).unwrap();
        fields.get(field).map(|value| value.get().to_owned())
    };
    for field in [list, "system", "instructions", "systemInstruction", "system_instruction"] {
        assert_eq!(raw(&rendered.body, field), raw(request, field), "{field} of {request}");
    }
}

fn text(role: &str, text: &str) -> Message {
    Message::from_json(&json!({"role": role, "content": text}).to_string()).unwrap()
}

fn message(value: Value) -> Message {
    Message::from_json(&value.to_string()).unwrap()
}
