//! The `tracing` spans of model calls and tool calls.
//!
//! Spans and events of this crate contain names, numbers and durations. They contain no text of
//! messages, no input or output of tools, no keys and no messages of providers, which may repeat any of
//! these.

use std::time::Duration;

use tracing::Span;
use tracing::field::Empty;

use crate::{Call, Finish, Model};

/// The span of a model call. `purpose` is `reply` or `summary`.
pub(crate) fn model_call(model: &dyn Model, purpose: &'static str) -> Span {
    tracing::info_span!(
        "model_call",
        provider = model.target().name(),
        model = model.name(),
        purpose,
        call = Empty,
        status = Empty,
        finish = Empty,
        failure = Empty,
        attempts = Empty,
        duration_ms = Empty,
        input_tokens = Empty,
        cached_tokens = Empty,
        output_tokens = Empty,
    )
}

/// Records the result of a call in the current span.
pub(crate) fn record_result(call: &Call, failure: Option<&'static str>) {
    let span = Span::current();
    span.record("duration_ms", call.millis);
    // Failed attempts, and the attempt that brought a reply.
    let succeeded = u64::from(call.failure.is_none());
    span.record("attempts", call.attempts.len() as u64 + succeeded);
    if let Some(failure) = failure {
        span.record("failure", failure);
    }
    if let Some(finish) = &call.finish {
        span.record("finish", finish_name(finish));
    }
    if let Some(usage) = call.usage {
        span.record("input_tokens", usage.input);
        span.record("cached_tokens", usage.cached);
        span.record("output_tokens", usage.output);
    }
}

fn finish_name(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Refused => "refused",
        Finish::Cut => "cut",
        Finish::Other(_) => "other",
    }
}

/// The span of a tool call. The name is that of a known tool: the name that a model wrote may be any
/// text.
pub(crate) fn tool_call(tool: Option<&str>) -> Span {
    let tool = tool.unwrap_or("unknown");
    tracing::info_span!(
        "tool_call",
        tool,
        is_error = Empty,
        duration_ms = Empty,
        output_bytes = Empty
    )
}

/// A duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
