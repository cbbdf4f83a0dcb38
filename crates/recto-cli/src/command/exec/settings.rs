//! The settings of a new conversation, as JSON.

use recto::{Counter, EngineError, Policy, Settings, Tool};

use super::request::{allow, fields, number, string, wrong};
use crate::strategy;

/// Reads `{counter?, mediaTokens?, tools?, heading?, tokenLimit?, compression?}`: how the conversation
/// is set up for ever, and what is wanted of it now.
pub(crate) fn read_settings(text: &str) -> Result<(Settings, Policy), EngineError> {
    let mut settings = Settings::default();
    if text == "null" {
        return Ok((settings, Policy::default()));
    }
    let mut fields = fields(text, "settings")?;
    const KNOWN: [&str; 6] =
        ["counter", "mediaTokens", "tools", "heading", "tokenLimit", "compression"];
    allow(&fields, &KNOWN)?;
    fields.retain(|_, value| value.get() != "null");
    if let Some(counter) = fields.get("counter") {
        let name = string(counter, "counter")?;
        settings.counter = counter_named(&name)?;
    }
    if let Some(tokens) = fields.get("mediaTokens") {
        settings.media_tokens = number(tokens, "mediaTokens")?;
    }
    if let Some(tools) = fields.get("tools") {
        settings.tools = Tool::list_from_json(tools.get())?;
    }
    if let Some(heading) = fields.get("heading") {
        settings.heading = string(heading, "heading")?;
    }
    let wanted = ["tokenLimit", "compression"]
        .into_iter()
        .filter_map(|name| Some(format!("\"{name}\":{}", fields.get(name)?)));
    let wanted = wanted.collect::<Vec<_>>().join(",");
    let mut policy = Policy::from_json(&format!("{{{wanted}}}"))?;
    if let Some(compression) = &mut policy.compression {
        let known = strategy::read(&compression.strategy);
        compression.strategy = known.map_err(|reason| wrong("compression.strategy", reason))?;
    }
    Ok((settings, policy))
}

/// A built-in counter.
pub(crate) fn counter_named(name: &str) -> Result<std::sync::Arc<dyn Counter>, EngineError> {
    <dyn Counter>::named(name).ok_or_else(|| {
        let known = <dyn Counter>::BUILT_IN.join(", ");
        let name = crate::printable::one_line(name, 60);
        wrong("counter", format!("there is no counter {name}; use {known}"))
    })
}
