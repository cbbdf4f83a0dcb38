//! Arbitrary bytes for every importer. Each must return steps or a typed error.
//!
//! The first byte selects the format, or automatic recognition. Conversations must accept the steps. The
//! imported messages are exported in a format that the fuzzer selects and imported again, and the view is
//! rendered for a provider. Limits are low, so that a few bytes reach them.
#![cfg_attr(fuzzing, no_main)]

use recto_core::{Approx, Limits, Message, Settings};
use recto_format::{
    Container, Error, ExportOptions, Format, ImportOptions, RenderOptions, Replay, Target, export,
    import, render,
};

recto_fuzz::target!(run);

fn run(data: &[u8]) {
    let [format, other, file @ ..] = data else { return };
    let format = Format::ALL.get(usize::from(*format)).copied();
    let other = Format::ALL[usize::from(*other) % Format::ALL.len()];
    let limits = Limits { message_bytes: 4 << 10, depth: 32, ..Limits::default() };
    let options = ImportOptions { limits, ..ImportOptions::default() };
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    let imported = import(file, format, &options, &mut replay);
    if let Err(error) = &imported {
        assert!(!matches!(error, Error::Io(_) | Error::Stopped(_) | Error::Engine(_)), "{error:?}");
        let text = error.to_string();
        assert!(!text.is_empty());
    }
    for replayed in &replay.conversations {
        for recto_format::Branch { conversation, .. } in &replayed.branches {
            conversation.verify().expect("the conversation is consistent");
            let log: Vec<Message> =
                conversation.log().iter().map(|entry| entry.message.clone()).collect();
            write_and_read(
                &log,
                imported.as_ref().copied().unwrap_or(other),
                replayed.envelope.as_deref(),
            );
            let view: Vec<Message> = conversation.messages().cloned().collect();
            write_and_read(&view, other, None);
            for target in Target::ALL {
                match render(&view, target, &RenderOptions::default()) {
                    Ok(_) | Err(Error::NothingToSend { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

/// The exported text must be importable in its format.
fn write_and_read(messages: &[Message], format: Format, envelope: Option<&str>) {
    let container = envelope.map_or(Container::Lines, Container::Envelope);
    let mut file = Vec::new();
    let options = ExportOptions { container, ..Default::default() };
    if export(messages, format, &options, &mut file).is_err() {
        return; // an envelope of another format
    }
    let mut replay = Replay::new(Settings::counting_with(Approx), 0);
    let limits = Limits { message_bytes: 64 << 20, depth: 1_000, ..Limits::default() };
    let options = ImportOptions { limits, ..ImportOptions::default() };
    import(&file, Some(format), &options, &mut replay)
        .unwrap_or_else(|error| panic!("{format}: {error}: {}", String::from_utf8_lossy(&file)));
}
