//! Built-in tools of OpenAI's Responses.

use std::borrow::Cow;

use crate::format::new_parts::NewParts;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::Part;

/// A built-in tool that the caller runs. Its calls and outputs are items of special types. They become
/// ordinary calls and results, with the unchanged item in `item` for OpenAI.
pub(super) struct BuiltInTool {
    call: &'static str,
    output: &'static str,
    pub(super) name: &'static str,
    /// The field of the call that holds its input.
    pub(super) input: &'static str,
}

const BUILT_IN_TOOLS: [BuiltInTool; 4] = [
    BuiltInTool {
        call: "local_shell_call",
        output: "local_shell_call_output",
        name: "local_shell",
        input: "action",
    },
    BuiltInTool { call: "shell_call", output: "shell_call_output", name: "shell", input: "action" },
    BuiltInTool {
        call: "apply_patch_call",
        output: "apply_patch_call_output",
        name: "apply_patch",
        input: "operation",
    },
    BuiltInTool {
        call: "computer_call",
        output: "computer_call_output",
        name: "computer",
        input: "action",
    },
];

impl BuiltInTool {
    pub(super) fn called_by(kind: &str) -> Option<&'static BuiltInTool> {
        BUILT_IN_TOOLS.iter().find(|tool| tool.call == kind)
    }

    pub(super) fn answered_by(kind: &str) -> Option<&'static BuiltInTool> {
        BUILT_IN_TOOLS.iter().find(|tool| tool.output == kind)
    }
}

/// Converts the output of a built-in tool: its text, a screenshot, or the JSON as text.
pub(super) fn built_in_output(output: &str) -> Cow<'_, str> {
    if Str::of(output).is_some() {
        return Cow::Borrowed(output);
    }
    let Some(url) = json::get_str(output, "image_url") else {
        return Cow::Owned(json::string(output));
    };
    let mut parts = NewParts::default();
    parts.media(MediaKind::Image, MediaBody::of_url(url), None, "");
    Cow::Owned(parts.finish_list())
}

/// The original item of a call or result, if it belongs to a built-in tool.
pub(crate) fn item_of<'a>(part: &Part<'a>) -> Option<&'a str> {
    if !part.has_known_fields() {
        return None;
    }
    let is_exchange = matches!(part, Part::ToolUse { .. } | Part::ToolResult { .. });
    let item = json::get(part.json(), "item").filter(|_| is_exchange)?;
    let kind = json::get_str(item, "type")?.text();
    let is_built_in =
        BuiltInTool::called_by(&kind).is_some() || BuiltInTool::answered_by(&kind).is_some();
    is_built_in.then_some(item)
}
