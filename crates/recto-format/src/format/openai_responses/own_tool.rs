//! Tools of OpenAI's own.

use std::borrow::Cow;

use crate::format::new_parts::NewParts;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::Part;

/// A tool of OpenAI's own that runs at the user's. Its calls and answers are items of their own types;
/// here they are calls and results as all others, with the item beside them for OpenAI.
pub(super) struct OwnTool {
    call: &'static str,
    output: &'static str,
    pub(super) name: &'static str,
    /// The field that says what is to be done.
    pub(super) input: &'static str,
}

const OWN_TOOLS: [OwnTool; 4] = [
    OwnTool {
        call: "local_shell_call",
        output: "local_shell_call_output",
        name: "local_shell",
        input: "action",
    },
    OwnTool { call: "shell_call", output: "shell_call_output", name: "shell", input: "action" },
    OwnTool {
        call: "apply_patch_call",
        output: "apply_patch_call_output",
        name: "apply_patch",
        input: "operation",
    },
    OwnTool {
        call: "computer_call",
        output: "computer_call_output",
        name: "computer",
        input: "action",
    },
];

impl OwnTool {
    pub(super) fn called_by(kind: &str) -> Option<&'static OwnTool> {
        OWN_TOOLS.iter().find(|tool| tool.call == kind)
    }

    pub(super) fn answered_by(kind: &str) -> Option<&'static OwnTool> {
        OWN_TOOLS.iter().find(|tool| tool.output == kind)
    }
}

/// What such a tool answered: its text, a picture of the screen, or the JSON as text.
pub(super) fn own_output(output: &str) -> Cow<'_, str> {
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

/// The item that a call or a result was, where it is one of OpenAI's own tools.
pub(crate) fn item_of<'a>(part: &Part<'a>) -> Option<&'a str> {
    let is_exchange = matches!(part, Part::ToolUse { .. } | Part::ToolResult { .. });
    let item = json::get(part.json(), "item").filter(|_| is_exchange && part.has_more())?;
    let kind = json::get_str(item, "type")?.text();
    let is_own = OwnTool::called_by(&kind).is_some() || OwnTool::answered_by(&kind).is_some();
    is_own.then_some(item)
}
