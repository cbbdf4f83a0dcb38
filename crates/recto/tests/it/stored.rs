//! Guarantees of stored conversations beyond the contract: forks, keys, conflicts, search, erasing,
//! pruning, verifying. Every test runs on every store.

mod backups;
mod finding;
mod forgetting;
mod forks;
mod names;
mod notes;
mod packing;
mod reading;
mod writers;

use recto::{Approx, Conversation, Message, Settings};
use recto_store::{CommitBody, PageKind};

use crate::places::Place;

fn settings() -> Settings {
    Settings::counting_with(Approx)
}

fn say(number: usize) -> Message {
    Message::user(&format!("message number {number}"))
}

async fn texts(conversation: &Conversation) -> Vec<String> {
    let entries = conversation.messages().await.expect("they can be read");
    entries.iter().map(|entry| entry.message.text().into_owned()).collect()
}

/// The rows of a conversation whose messages contain a text.
async fn copies(place: &Place, conversation: &Conversation, text: &str) -> Vec<String> {
    let rows = place.store.rows(conversation.id()).await.unwrap();
    let mut found = Vec::new();
    for row in &rows.commits {
        let body = CommitBody::unpack(&row.body).unwrap();
        if body.entries.iter().any(|entry| entry.body.contains(text)) {
            found.push(format!("version {}", row.head.version));
        }
    }
    for page in rows.pages.iter().filter(|page| page.kind == PageKind::Entries) {
        if page.entries().unwrap().iter().any(|entry| entry.body.contains(text)) {
            found.push(format!("page {}", page.first));
        }
    }
    found
}
