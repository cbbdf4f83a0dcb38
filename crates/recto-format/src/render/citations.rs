//! Citations of documents, for Anthropic: enabled for all documents or for none.
//!
//! The first document decides, so an append changes nothing before it.

use std::borrow::Cow;

use super::plan::Planner;
use super::rule;
use super::turn::{Block, ResultContent};
use crate::json;
use crate::media::MediaKind;

const ON: &str = r#"{"enabled":true}"#;

/// True if a setting enables citations.
fn is_on(setting: Option<&str>) -> bool {
    setting.is_some_and(|setting| json::get(setting, "enabled") == Some("true"))
}

/// For a document, whether citations are enabled.
fn setting_of(block: &Block<'_>) -> Option<bool> {
    match block {
        Block::Media { media, extra } if media.kind == MediaKind::File => {
            Some(is_on(extra.citations))
        }
        Block::ProviderPart { kind, json } if kind.is("document") => {
            Some(is_on(json::get(json, "citations")))
        }
        _ => None,
    }
}

fn switch(block: &mut Block<'_>, on: bool) {
    match block {
        Block::Media { extra, .. } => extra.citations = on.then_some(ON),
        Block::ProviderPart { json, .. } => {
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
    pub(super) fn align_citations(&mut self) {
        let mut wanted = None;
        let mut changed = Vec::new();
        let mut align = |block: &mut Block<'_>, at: usize| {
            let Some(is_on) = setting_of(block) else { return };
            if is_on != *wanted.get_or_insert(is_on) {
                switch(block, !is_on);
                changed.push(at);
            }
        };
        for turn in &mut self.turns {
            let at = turn.from[0];
            turn.blocks.iter_mut().for_each(|block| align(block, at));
            for block in &mut turn.blocks {
                let Block::Call(call) = block else { continue };
                let at = call.result.from.unwrap_or(call.at);
                if let ResultContent::Blocks(blocks) = &mut call.result.content {
                    blocks.iter_mut().for_each(|block| align(block, at));
                }
            }
        }
        for at in changed {
            let message =
                "the citations setting of this document differs from that of the first document";
            self.report(&rule::CITATIONS_AGREE, at, message);
        }
    }
}
