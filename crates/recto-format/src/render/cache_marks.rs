//! Marks for Anthropic's cache: four at most, and those of an hour before those of five minutes.
//!
//! What comes first keeps its mark, so that appending changes nothing that stands before.

use std::borrow::Cow;

use super::plan::Planner;
use super::rule;
use super::turn::{AnswerContent, Block};
use crate::json;

/// As many blocks may have one.
const MOST: usize = 4;

/// The marks so far, in the order of the request.
#[derive(Default)]
pub(super) struct Marks {
    count: usize,
    /// Whether one of five minutes is among them.
    has_short: bool,
    /// The positions of the messages whose marks are left out.
    lost: Vec<usize>,
}

impl Marks {
    /// Whether a mark may stay.
    pub(super) fn takes(&mut self, mark: &str) -> bool {
        let is_known = |(key, value): (json::Str<'_>, &str)| match key.escaped() {
            "type" => value == "\"ephemeral\"",
            "ttl" => value == "\"5m\"" || value == "\"1h\"",
            _ => false,
        };
        let is_long = json::get(mark, "ttl") == Some("\"1h\"");
        let is_proper = json::get(mark, "type").is_some() && json::fields(mark).all(is_known);
        if !is_proper || self.count >= MOST || (is_long && self.has_short) {
            return false;
        }
        self.count += 1;
        self.has_short |= !is_long;
        true
    }

    fn judge(&mut self, mark: &mut Option<&str>, at: usize) {
        if mark.is_some_and(|mark| !self.takes(mark)) {
            *mark = None;
            self.lost.push(at);
        }
    }

    fn judge_block(&mut self, block: &mut Block<'_>, at: usize) {
        match block {
            Block::Text { extra, .. } | Block::Media { extra, .. } => {
                self.judge(&mut extra.cache_control, at);
            }
            Block::Call(call) => self.judge(&mut call.extra.cache_control, call.at),
            // It has its mark among its fields.
            Block::Own { json, .. } => {
                if json::get(json, "cache_control").is_some_and(|mark| !self.takes(mark)) {
                    *json = Cow::Owned(without_mark(json));
                    self.lost.push(at);
                }
            }
            Block::Refusal(_) | Block::Thinking { .. } => {}
        }
    }
}

fn without_mark(part: &str) -> String {
    let mut fields = String::new();
    json::push_other_fields(part, &["cache_control"], &mut fields);
    format!("{{{}}}", fields.trim_start_matches(','))
}

impl Planner<'_, '_> {
    /// Leaves out the marks that are too many. Those of the request's own fields, such as tools, count.
    pub(super) fn mark_for_cache(&mut self) {
        let mut marks = Marks::default();
        for (key, value) in self.options.fields {
            for mark in json::items(value).filter_map(|item| json::get(item, "cache_control")) {
                let _ = marks.takes(mark);
            }
            marks.count += usize::from(*key == "cache_control");
        }
        for turn in &mut self.turns {
            let at = turn.from[0];
            turn.blocks.iter_mut().for_each(|block| marks.judge_block(block, at));
            for block in &mut turn.blocks {
                let Block::Call(call) = block else { continue };
                let at = call.answer.from.unwrap_or(call.at);
                if let AnswerContent::Blocks(blocks) = &mut call.answer.content {
                    blocks.iter_mut().for_each(|block| marks.judge_block(block, at));
                }
                marks.judge(&mut call.answer.cache_control, at);
            }
        }
        for at in marks.lost {
            let why =
                "a fifth cache_control, one of an hour behind one of five minutes, or no such mark";
            self.find(&rule::CACHE_MARKS, at, why);
        }
    }
}
