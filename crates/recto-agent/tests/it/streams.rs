//! Replies in the formats of the providers, as one body and as streams of events.

use recto_agent::Target;
use serde_json::{Value, json};
use testserver::Reply;

/// The reply of a model in a test.
#[derive(Clone, Default)]
pub(crate) struct ScriptedReply {
    pub(crate) thinking: &'static str,
    pub(crate) signature: &'static str,
    pub(crate) text: String,
    /// Id, name, arguments.
    pub(crate) calls: Vec<(String, String, String)>,
    /// Input, cached and output tokens; `None` if the provider reports no usage.
    pub(crate) usage: Option<(u64, u64, u64)>,
    pub(crate) is_cut_short: bool,
}

impl ScriptedReply {
    pub(crate) fn text(text: impl Into<String>) -> ScriptedReply {
        ScriptedReply { text: text.into(), usage: Some((100, 0, 10)), ..ScriptedReply::default() }
    }

    pub(crate) fn call(id: &str, name: &str, arguments: &str) -> ScriptedReply {
        ScriptedReply { text: String::new(), ..ScriptedReply::text("") }
            .and_call(id, name, arguments)
    }

    pub(crate) fn and_call(mut self, id: &str, name: &str, arguments: &str) -> ScriptedReply {
        self.calls.push((id.into(), name.into(), arguments.into()));
        self
    }

    pub(crate) fn streamed(&self, target: Target) -> Reply {
        Reply::stream(self.events(target))
    }

    pub(crate) fn whole(&self, target: Target) -> Reply {
        Reply::json(200, self.whole_body(target))
    }

    pub(crate) fn whole_body(&self, target: Target) -> String {
        let body = match target {
            Target::OpenAiChat => self.chat_whole(),
            Target::OpenAiResponses => self.response("completed"),
            _ => self.anthropic_whole(),
        };
        body.to_string()
    }

    /// The reply as a stream of server-sent events.
    pub(crate) fn events(&self, target: Target) -> String {
        match target {
            Target::OpenAiChat => self.chat(),
            Target::OpenAiResponses => self.responses(),
            _ => self.anthropic(),
        }
    }

    fn pieces(text: &str) -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(5).map(|piece| piece.iter().collect()).collect()
    }

    fn chat(&self) -> String {
        let mut out = String::new();
        let mut chunk = |delta: Value, finish: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            let chunk = json!({"id": "chatcmpl-1", "model": "m-1-2026", "choices": [choice]});
            out.push_str(&format!("data: {chunk}\n\n"));
        };
        chunk(json!({"role": "assistant", "content": ""}), None);
        for piece in ScriptedReply::pieces(self.thinking) {
            chunk(json!({"reasoning_content": piece}), None);
        }
        for piece in ScriptedReply::pieces(&self.text) {
            chunk(json!({"content": piece}), None);
        }
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": ""});
            let start = json!({"index": index, "id": id, "type": "function", "function": function});
            chunk(json!({"tool_calls": [start]}), None);
            for piece in ScriptedReply::pieces(arguments) {
                let piece = json!({"index": index, "function": {"arguments": piece}});
                chunk(json!({"tool_calls": [piece]}), None);
            }
        }
        chunk(json!({}), Some(self.chat_finish()));
        if let Some(usage) = self.chat_usage() {
            let chunk = json!({"id": "chatcmpl-1", "choices": [], "usage": usage});
            out.push_str(&format!("data: {chunk}\n\n"));
        }
        out + "data: [DONE]\n\n"
    }

    fn chat_finish(&self) -> &'static str {
        match (self.is_cut_short, self.calls.is_empty()) {
            (true, _) => "length",
            (false, true) => "stop",
            (false, false) => "tool_calls",
        }
    }

    fn chat_usage(&self) -> Option<Value> {
        let (input, cached, output) = self.usage?;
        Some(json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }))
    }

    fn chat_whole(&self) -> Value {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|(id, name, arguments)| {
                let function = json!({"name": name, "arguments": arguments});
                json!({"id": id, "type": "function", "function": function})
            })
            .collect();
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        if !self.thinking.is_empty() {
            message["reasoning_content"] = json!(self.thinking);
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.chat_finish()});
        let mut whole = json!({"id": "chatcmpl-1", "model": "m-1-2026", "choices": [choice]});
        if let Some(usage) = self.chat_usage() {
            whole["usage"] = usage;
        }
        whole
    }

    fn anthropic_usage(&self) -> (Value, Value) {
        let (input, cached, output) = self.usage.unwrap_or_default();
        let start = json!({"input_tokens": input - cached, "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0, "output_tokens": 1});
        (start, json!({"output_tokens": output}))
    }

    fn anthropic_blocks(&self) -> Vec<Value> {
        let mut blocks = Vec::new();
        if !self.thinking.is_empty() {
            let (thinking, signature) = (self.thinking, self.signature);
            blocks.push(json!({"type": "thinking", "thinking": thinking, "signature": signature}));
        }
        if !self.text.is_empty() {
            blocks.push(json!({"type": "text", "text": self.text}));
        }
        blocks
    }

    fn anthropic_stop(&self) -> &'static str {
        match (self.is_cut_short, self.calls.is_empty()) {
            (true, _) => "max_tokens",
            (false, true) => "end_turn",
            (false, false) => "tool_use",
        }
    }

    fn anthropic_whole(&self) -> Value {
        let mut blocks = self.anthropic_blocks();
        for (id, name, arguments) in &self.calls {
            let input: Value = serde_json::from_str(arguments).unwrap();
            blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        }
        let mut whole = json!({"id": "msg_1", "type": "message", "role": "assistant",
            "model": "m-1-2026", "content": blocks, "stop_reason": self.anthropic_stop()});
        if self.usage.is_some() {
            let (mut start, end) = self.anthropic_usage();
            start["output_tokens"] = end["output_tokens"].clone();
            whole["usage"] = start;
        }
        whole
    }

    fn anthropic(&self) -> String {
        let mut out = String::new();
        let mut event = |data: Value| {
            out.push_str(&format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()));
        };
        let (start, end) = self.anthropic_usage();
        let mut message = json!({"id": "msg_1", "type": "message", "role": "assistant",
            "model": "m-1-2026", "content": [], "stop_reason": null});
        if self.usage.is_some() {
            message["usage"] = start;
        }
        event(json!({"type": "message_start", "message": message}));
        event(json!({"type": "ping"}));
        let mut index = 0;
        for block in self.anthropic_blocks() {
            let (key, kind) = match block["type"].as_str() {
                Some("thinking") => ("thinking", "thinking_delta"),
                _ => ("text", "text_delta"),
            };
            let text = block[key].as_str().unwrap();
            let empty = json!({"type": block["type"], key: ""});
            event(json!({"type": "content_block_start", "index": index, "content_block": empty}));
            for piece in ScriptedReply::pieces(text) {
                let delta = json!({"type": kind, key: piece});
                event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            if key == "thinking" {
                let delta = json!({"type": "signature_delta", "signature": self.signature});
                event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            event(json!({"type": "content_block_stop", "index": index}));
            index += 1;
        }
        for (id, name, arguments) in &self.calls {
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            event(json!({"type": "content_block_start", "index": index, "content_block": block}));
            for piece in ScriptedReply::pieces(arguments) {
                let delta = json!({"type": "input_json_delta", "partial_json": piece});
                event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            event(json!({"type": "content_block_stop", "index": index}));
            index += 1;
        }
        let delta = json!({"stop_reason": self.anthropic_stop(), "stop_sequence": null});
        let mut last = json!({"type": "message_delta", "delta": delta});
        if self.usage.is_some() {
            last["usage"] = end;
        }
        event(last);
        event(json!({"type": "message_stop"}));
        out
    }

    fn items(&self) -> Vec<Value> {
        let mut items = Vec::new();
        if !self.thinking.is_empty() {
            let summary = json!([{"type": "summary_text", "text": self.thinking}]);
            items.push(json!({"type": "reasoning", "id": "rs_1", "summary": summary,
                "encrypted_content": self.signature}));
        }
        if !self.text.is_empty() {
            let content = json!([{"type": "output_text", "text": self.text, "annotations": []}]);
            items.push(json!({"type": "message", "id": "msg_1", "role": "assistant",
                "status": "completed", "content": content}));
        }
        for (id, name, arguments) in &self.calls {
            let status = if self.is_cut_short { "incomplete" } else { "completed" };
            items.push(json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id,
                "name": name, "arguments": arguments, "status": status}));
        }
        items
    }

    fn response(&self, status: &str) -> Value {
        let mut response = json!({"id": "resp_1", "model": "m-1-2026", "status": status,
            "output": self.items(), "error": null});
        if self.is_cut_short {
            response["status"] = json!("incomplete");
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        if let Some((input, cached, output)) = self.usage {
            response["usage"] = json!({"input_tokens": input, "output_tokens": output,
                "input_tokens_details": {"cached_tokens": cached},
                "output_tokens_details": {"reasoning_tokens": 0}});
        }
        response
    }

    fn responses(&self) -> String {
        let mut out = String::new();
        let mut event = |data: Value| {
            out.push_str(&format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()));
        };
        event(json!({"type": "response.created",
            "response": {"id": "resp_1", "model": "m-1-2026", "status": "in_progress"}}));
        for (index, item) in self.items().into_iter().enumerate() {
            let mut added = item.clone();
            let (kind, text) = match item["type"].as_str().unwrap() {
                "message" => {
                    added["content"] = json!([]);
                    ("response.output_text.delta", self.text.clone())
                }
                "function_call" => {
                    added["arguments"] = json!("");
                    let text = item["arguments"].as_str().unwrap().to_owned();
                    ("response.function_call_arguments.delta", text)
                }
                _ => ("response.reasoning_summary_text.delta", self.thinking.to_owned()),
            };
            event(
                json!({"type": "response.output_item.added", "output_index": index, "item": added}),
            );
            for piece in ScriptedReply::pieces(&text) {
                event(json!({"type": kind, "output_index": index, "delta": piece}));
            }
            event(
                json!({"type": "response.output_item.done", "output_index": index, "item": item}),
            );
        }
        let end = if self.is_cut_short { "response.incomplete" } else { "response.completed" };
        event(json!({"type": end, "response": self.response("completed")}));
        out
    }
}
