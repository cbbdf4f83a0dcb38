//! Cache marks (`cache_control`), for Anthropic: at most four, and marks of one hour precede marks of
//! five minutes.
//!
//! Earlier marks are kept and later ones are omitted, so an append changes nothing before it.

use std::borrow::Cow;

use super::plan::Planner;
use super::rule;
use super::turn::{Block, ResultContent};
use crate::json;

/// Maximum number of blocks with a mark.
const MAX_MARKS: usize = 4;

/// The marks of a request so far.
#[derive(Default)]
pub(super) struct CacheMarks {
    count: usize,
    /// True if there is a mark of five minutes.
    has_short: bool,
    /// Positions of the messages whose marks are omitted.
    omitted: Vec<usize>,
}

impl CacheMarks {
    /// Counts a mark. Returns false if it must be omitted.
    pub(super) fn accepts(&mut self, mark: &str) -> bool {
        let is_known = |(key, value): (json::Str<'_>, &str)| match key.escaped() {
            "type" => value == "\"ephemeral\"",
            "ttl" => value == "\"5m\"" || value == "\"1h\"",
            _ => false,
        };
        let is_long = json::get(mark, "ttl") == Some("\"1h\"");
        let is_valid = json::get(mark, "type").is_some() && json::fields(mark).all(is_known);
        if !is_valid || self.count >= MAX_MARKS || (is_long && self.has_short) {
            return false;
        }
        self.count += 1;
        self.has_short |= !is_long;
        true
    }

    fn check(&mut self, mark: &mut Option<&str>, at: usize) {
        if mark.is_some_and(|mark| !self.accepts(mark)) {
            *mark = None;
            self.omitted.push(at);
        }
    }

    fn check_block(&mut self, block: &mut Block<'_>, at: usize) {
        match block {
            Block::Text { extra, .. } | Block::Media { extra, .. } => {
                self.check(&mut extra.cache_control, at);
            }
            Block::Call(call) => self.check(&mut call.extra.cache_control, call.at),
            // The mark is a field of the part.
            Block::ProviderPart { json, .. } => {
                if json::get(json, "cache_control").is_some_and(|mark| !self.accepts(mark)) {
                    *json = Cow::Owned(without_mark(json));
                    self.omitted.push(at);
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
    /// Omits the marks beyond the limit. Marks in the fields of the request, such as tools, count first.
    pub(super) fn limit_cache_marks(&mut self) {
        let mut marks = CacheMarks::default();
        for (key, value) in self.options.fields {
            for mark in json::items(value).filter_map(|item| json::get(item, "cache_control")) {
                let _ = marks.accepts(mark);
            }
            marks.count += usize::from(*key == "cache_control");
        }
        for turn in &mut self.turns {
            let at = turn.from[0];
            turn.blocks.iter_mut().for_each(|block| marks.check_block(block, at));
            for block in &mut turn.blocks {
                let Block::Call(call) = block else { continue };
                let at = call.result.from.unwrap_or(call.at);
                if let ResultContent::Blocks(blocks) = &mut call.result.content {
                    blocks.iter_mut().for_each(|block| marks.check_block(block, at));
                }
                marks.check(&mut call.result.cache_control, at);
            }
        }
        for at in marks.omitted {
            let message = "a cache_control that is the fifth, is of one hour after one of five minutes, \
                           or is invalid";
            self.report(&rule::CACHE_MARKS, at, message);
        }
    }
}
