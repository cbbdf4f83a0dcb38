//! Compactions: a summary replaces the visible messages of a chain.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use recto_core::{Append, Compress, Message, Request};

use super::Session;
use super::chain::Node;
use crate::Error;
use crate::json::{self, Str};

/// The line that starts a compaction, with the lines that it preserves.
pub(super) struct Boundary {
    pub(super) uuid: Box<str>,
    /// Uuids of preserved lines.
    kept: Vec<Arc<str>>,
    /// Uuids of the first and last line of a preserved range.
    segment: Option<(Box<str>, Box<str>)>,
}

impl Boundary {
    pub(super) fn read(uuid: Str<'_>, line: &str, nodes: &HashMap<Arc<str>, Node>) -> Boundary {
        let metadata = json::get(line, "compactMetadata").unwrap_or("{}");
        let listed = json::get(metadata, "preservedMessages")
            .and_then(|preserved| json::get(preserved, "uuids"))
            .map(json::items)
            .into_iter()
            .flatten()
            .filter_map(Str::of)
            .filter_map(|uuid| nodes.get_key_value(&*uuid.text()));
        let kept = listed.map(|(uuid, _)| Arc::clone(uuid)).collect();
        let segment = json::get(metadata, "preservedSegment");
        let end = |name: &str| Some(Box::from(json::get_str(segment?, name)?.text()));
        let segment = end("headUuid").zip(end("tailUuid"));
        Boundary { uuid: uuid.text().into(), kept, segment }
    }
}

/// True for a line that starts a compaction.
pub(super) fn is_boundary(line: &str) -> bool {
    json::get_str(line, "subtype").is_some_and(|kind| kind.escaped() == "compact_boundary")
}

impl Session<'_, '_> {
    /// Replaces the visible messages, except those that the boundary preserves, with a summary.
    pub(super) fn compaction(
        &mut self,
        number: usize,
        messages: Vec<Message>,
        boundary: Option<Boundary>,
        is_summary: bool,
    ) -> Result<(), Error> {
        let (kept_uuids, segment) =
            boundary.map_or_else(Default::default, |boundary| (boundary.kept, boundary.segment));
        let mut kept: HashSet<u32> = kept_uuids
            .iter()
            .filter_map(|uuid| self.nodes.get(uuid))
            .filter(|node| node.chain == number)
            .flat_map(|node| node.logs())
            .collect();
        let ends = segment
            .and_then(|(head, tail)| Some((self.nodes.get(&*head)?, self.nodes.get(&*tail)?)));
        if let Some((head, tail)) =
            ends.filter(|(head, tail)| (head.chain, tail.chain) == (number, number))
        {
            kept.extend(self.chains[number].between(head, tail).into_iter().flatten());
        }
        let chain = &mut self.chains[number];
        let (kept, indices) = chain.split(&kept);
        let first = self.out.log_len();
        let count = messages.len();
        let mut messages = messages;
        let mut steps: Vec<recto_core::Step> = Vec::new();
        let replaces = !indices.is_empty();
        if replaces {
            let summary = is_summary.then(|| messages.remove(0));
            let reason = "the session was compacted";
            steps.push(Compress { indices, summary }.reason(reason));
        }
        // The summary precedes the preserved messages; further messages follow them.
        let in_front = usize::from(replaces && is_summary);
        if !messages.is_empty() {
            steps.push(Append { messages }.into());
        }
        if steps.is_empty() {
            return Ok(());
        }
        self.out.apply(steps.into_iter().collect::<Request>(), count)?;
        let chain = &mut self.chains[number];
        chain.start_turn(None);
        chain.clear();
        let added: Vec<u32> = (first..first + count).map(|log| log as u32).collect();
        added[..in_front]
            .iter()
            .chain(&kept)
            .chain(&added[in_front..])
            .for_each(|log| chain.push(*log));
        chain.version = self.out.version().0;
        // Children of preserved lines continue from the present view.
        let preserved = kept.iter().filter_map(|log| self.uuids.get(&(number, *log)));
        for uuid in kept_uuids.iter().chain(preserved) {
            if let Some(node) = self.nodes.get_mut(uuid) {
                let moved = chain.node(number, node.is_result, node.logs());
                *node = moved.with_content_hash(node.content_hash);
            }
        }
        Ok(())
    }
}
