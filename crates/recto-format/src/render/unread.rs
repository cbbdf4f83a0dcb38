//! Parts that import could not read. Two of their forms are read from the original message and sent as text: a
//! text without a type, and a content that is neither a text nor a list.

use super::exchange::PartPosition;
use super::plan::Planner;
use super::rule;
use super::turn::Block;
use crate::format::anthropic::is_value;
use crate::json::{self, Str};
use crate::parts::Part;

impl<'a> Planner<'a, '_> {
    /// The original message.
    fn original_message(&self, at: usize) -> Option<&'a str> {
        self.messages[at].source.and_then(|source| source.original)
    }

    /// True if the original message has the role of the message. Import gives the role `user` to a message that
    /// it could not read at all.
    fn has_original_role(&self, at: usize) -> bool {
        let role = self.original_message(at).and_then(|original| json::get_str(original, "role"));
        role.is_some_and(|role| role.is(self.messages[at].role.as_str()))
    }

    /// The parts without a type in the original message.
    pub(super) fn untyped_parts(&self, at: usize) -> Vec<&'a str> {
        let content = self.original_message(at).and_then(|it| json::get(it, "content"));
        let parts =
            content.filter(|content| json::is_list(content)).map(json::items).into_iter().flatten();
        parts.filter(|part| json::get_str(part, "type").is_none()).collect()
    }

    /// The texts of the original parts, `{"text": "…"}`, that an unread part replaces. If import could read no
    /// part, one unread part replaces all. Empty if the message has other parts, and the number of unread parts
    /// is not that of the original parts without a type.
    fn untyped_texts(&self, (at, number): PartPosition) -> Vec<Str<'a>> {
        let parts = &self.messages[at].parts;
        let is_unread =
            |part: &&Part<'_>| matches!(part, Part::Other { kind, .. } if kind.is("unread"));
        let untyped = self.untyped_parts(at);
        let nth = parts[..number].iter().filter(is_unread).count();
        let replaced = match parts.iter().filter(is_unread).count() == untyped.len() {
            true => &untyped[nth..=nth],
            false if parts.len() == 1 => &untyped[..],
            false => &[],
        };
        let texts = replaced.iter().filter_map(|part| json::get_str(part, "text"));
        texts.filter(|text| self.has_text(*text)).collect()
    }

    /// Converts a part that import could not read, if the original message has a text there. Returns false if
    /// it has none.
    pub(super) fn convert_unread(
        &mut self,
        position: PartPosition,
        blocks: &mut Vec<Block<'a>>,
    ) -> bool {
        let at = position.0;
        if !self.has_original_role(at) {
            return false; // its texts would be those of another author
        }
        let content = self.original_message(at).and_then(|it| json::get(it, "content"));
        if let Some(value) = content.filter(|content| is_value(content)) {
            let mut text = String::new();
            json::escape_into(value, &mut text);
            blocks.push(Block::text(text));
            return true; // `refused.rs` reports the finding
        }
        let texts = self.untyped_texts(position);
        if !texts.is_empty() && rule::PARTS_HAVE_A_TYPE.targets.contains(&self.dialect.target) {
            self.report(&rule::PARTS_HAVE_A_TYPE, at, "a text without a type");
        }
        blocks.extend(texts.iter().map(|text| Block::text(text.escaped())));
        !texts.is_empty()
    }
}
