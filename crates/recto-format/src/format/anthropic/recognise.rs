//! Recognition of Anthropic's Messages, and of requests that only look like them.

use crate::format::recto::is_nested;
use crate::format::{Head, Likelihood};
use crate::json::{self, Str};

/// The likelihood that a file with this head has this format.
pub(super) fn likelihood(head: &Head) -> Likelihood {
    let mut best = Likelihood::No;
    // This format has no messages of role `tool`.
    let is_from_tool =
        |message: &str| json::get_str(message, "role").is_some_and(|role| role.is("tool"));
    for object in head.objects() {
        match request_likelihood(object) {
            Some(likelihood) => best = best.max(likelihood),
            None => return Likelihood::No,
        }
        let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
        for message in std::iter::once(object).chain(listed) {
            if is_from_tool(message) {
                return Likelihood::No;
            }
            best = best.max(message_likelihood(message));
        }
    }
    best
}

/// The likelihood that a message has this format.
fn message_likelihood(message: &str) -> Likelihood {
    let role = json::get_str(message, "role").map(Str::escaped);
    if !matches!(role, Some("user" | "assistant")) {
        return Likelihood::No;
    }
    let blocks = json::get(message, "content").map(json::items).into_iter().flatten();
    let mut best = if is_response(message) { Likelihood::Certain } else { Likelihood::No };
    for block in blocks {
        let kind = json::get_str(block, "type").map(Str::escaped).unwrap_or_default();
        let found = match kind {
            "tool_use" | "tool_result" if is_nested(block) => Likelihood::No,
            // Recto's results are in messages of role `tool`.
            "tool_result" if role == Some("user") => Likelihood::Certain,
            // Thinking in chat completions of Cohere and Mistral has no signature.
            "thinking" if json::get_str(block, "thinking").is_some() => {
                match json::get_str(block, "signature").is_some() {
                    true => Likelihood::Certain,
                    false => Likelihood::Maybe,
                }
            }
            "redacted_thinking" | "server_tool_use" => Likelihood::Certain,
            "tool_use" => Likelihood::Likely,
            "image" if json::get(block, "source").is_some() => Likelihood::Likely,
            "document" => Likelihood::Likely,
            _ => Likelihood::No,
        };
        best = best.max(found);
    }
    best
}

/// True if an object is a response of the API.
fn is_response(object: &str) -> bool {
    let fields = json::Object::of(object);
    fields.get_str("type").is_some_and(|kind| kind.is("message"))
        && (fields.get_str("id").is_some_and(|id| id.escaped().starts_with("msg_"))
            || fields.get("usage").is_some_and(|usage| json::get(usage, "input_tokens").is_some()))
        && fields.get("stop_reason").is_some()
}

/// Fields of chat completion requests, to OpenAI, routers (OpenRouter) or compatible servers (Ollama, Cohere,
/// Mistral, llama.cpp), that Anthropic rejects as unknown.
const CHAT_FIELDS: &[&str] = &[
    "cache_prompt",
    "chat_template_kwargs",
    "documents",
    "frequency_penalty",
    "function_call",
    "functions",
    "grammar",
    "include_reasoning",
    "k",
    "keep_alive",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "min_p",
    "modalities",
    "models",
    "n",
    "options",
    "p",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "provider",
    "random_seed",
    "reasoning",
    "reasoning_effort",
    "reasoning_format",
    "repetition_penalty",
    "response_format",
    "safe_prompt",
    "safety_mode",
    "seed",
    "stop",
    "store",
    "stream_options",
    "think",
    "top_a",
    "top_logprobs",
    "transforms",
    "user",
    "verbosity",
    "web_search_options",
];

/// Fields of a request that counts tokens, which has no `max_tokens`.
const COUNTING_FIELDS: &[&str] =
    &["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"];

/// Types of content parts that only chat completions have.
const CHAT_PARTS: &[&str] = &["image_url", "input_audio", "file", "video_url", "refusal"];

/// True if the fields, tools or messages of a request show that it is a chat completion request.
fn is_chat(fields: &json::Object<'_>, messages: &str) -> bool {
    let tool = fields.get("tools").and_then(|tools| json::items(tools).next());
    let is_chat_part = |part: &str| {
        json::get_str(part, "type").is_some_and(|it| CHAT_PARTS.iter().any(|known| it.is(known)))
    };
    CHAT_FIELDS.iter().any(|field| fields.get(field).is_some())
        || tool.is_some_and(|tool| json::get(tool, "function").is_some())
        || fields.get("tool_choice").is_some_and(|choice| Str::of(choice).is_some())
        || json::items(messages).any(|message| {
            let content = json::get(message, "content").unwrap_or_default();
            json::get(message, "tool_calls").is_some() || json::items(content).any(is_chat_part)
        })
}

/// The likelihood that an object is a request of this format, judged by its fields other than the messages.
/// `None` if it is a request of another format.
fn request_likelihood(object: &str) -> Option<Likelihood> {
    let fields = json::Object::of(object);
    let Some(messages) = fields.get("messages").filter(|list| json::is_list(list)) else {
        return Some(Likelihood::No);
    };
    if fields.get("anthropic_version").is_some() {
        return Some(Likelihood::Certain);
    }
    if is_chat(&fields, messages) {
        return None;
    }
    let model = fields.get_str("model").map(Str::text);
    let is_claude = model
        .as_deref()
        .is_some_and(|model| model.starts_with("claude") || model.contains("anthropic.claude"));
    let tool = fields.get("tools").and_then(|tools| json::items(tools).next());
    let has_own_fields = tool.is_some_and(|tool| json::get(tool, "input_schema").is_some())
        || fields.get("thinking").is_some_and(|it| json::get(it, "budget_tokens").is_some());
    // Chat completions have the system text in the first message, where Anthropic rejects it.
    let role = json::items(messages).next().and_then(|first| json::get_str(first, "role"));
    let is_first = match role.map(Str::escaped) {
        Some("user" | "assistant") => true,
        // The system text alone is a request too, before its first message.
        None => json::items(messages).next().is_none(),
        Some("system") => has_own_fields || fields.get("system").is_some(),
        _ => false,
    };
    if !is_first {
        return Some(Likelihood::No);
    }
    let has_max_tokens = fields.get("max_tokens").is_some();
    if has_own_fields || is_claude && has_max_tokens {
        return Some(Likelihood::Certain);
    }
    let is_typical = fields.get("system").is_some()
        // Cohere's requests have these fields too.
        || fields.get("stop_sequences").is_some()
            && has_max_tokens
            && has_lists(messages)
            && !model.is_some_and(|model| model.contains("command"))
        // Without blocks, a request that counts tokens looks like a chat completion request.
        || is_claude && fields.has_only(COUNTING_FIELDS) && has_lists(messages);
    Some(if is_typical { Likelihood::Likely } else { Likelihood::No })
}

/// True if the content of at least one message is a list.
fn has_lists(messages: &str) -> bool {
    json::items(messages).any(|it| json::get(it, "content").is_some_and(json::is_list))
}
