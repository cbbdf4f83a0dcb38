//! Citations of documents, for Anthropic: all have them switched on, or none has.
//!
//! The first document decides, so that appending changes nothing that stands before.

use std::borrow::Cow;

use super::plan::Planner;
use super::rule;
use super::turn::{AnswerContent, Block};
use crate::json;
use crate::media::MediaKind;

const ON: &str = r#"{"enabled":true}"#;

/// Whether a setting switches citations on.
fn is_on(setting: Option<&str>) -> bool {
    setting.is_some_and(|setting| json::get(setting, "enabled") == Some("true"))
}

/// Whether citations are switched on, if it is a document.
fn setting_of(block: &Block<'_>) -> Option<bool> {
    match block {
        Block::Media { media, extra } if media.kind == MediaKind::File => {
            Some(is_on(extra.citations))
        }
        Block::Own { kind, json } if kind.is("document") => {
            Some(is_on(json::get(json, "citations")))
        }
        _ => None,
    }
}

fn switch(block: &mut Block<'_>, on: bool) {
    match block {
        Block::Media { extra, .. } => extra.citations = on.then_some(ON),
        Block::Own { json, .. } => {
            let mut fields = String::new();
            json::push_other_fields(json, &["citations"], &mut fields);
            if on {
                fields.push_str(&format!(",\"citations\":{ON}"));
            }
            *json = Cow::Owned(format!("{{{}}}", fields.trim_start_matches(',')));
        }
        _ => {}
    }
}

impl Planner<'_, '_> {
    pub(super) fn agree_on_citations(&mut self) {
        let mut wanted = None;
        let mut changed = Vec::new();
        let mut judge = |block: &mut Block<'_>, at: usize| {
            let Some(is_on) = setting_of(block) else { return };
            if is_on != *wanted.get_or_insert(is_on) {
                switch(block, !is_on);
                changed.push(at);
            }
        };
        for turn in &mut self.turns {
            let at = turn.from[0];
            turn.blocks.iter_mut().for_each(|block| judge(block, at));
            for block in &mut turn.blocks {
                let Block::Call(call) = block else { continue };
                let at = call.answer.from.unwrap_or(call.at);
                if let AnswerContent::Blocks(blocks) = &mut call.answer.content {
                    blocks.iter_mut().for_each(|block| judge(block, at));
                }
            }
        }
        for at in changed {
            let why =
                "citations are switched on for some documents, and not for this or only for it";
            self.find(&rule::CITATIONS_AGREE, at, why);
        }
    }
}
