//! Saving and loading a whole conversation.

use proptest::prelude::*;
use recto_core::{
    Approx, Conversation, Counter, Error, Message, Position, Replace, SavedConversation, Settings,
};
use serde_json::Value;
use testkit::Model;
use testkit::generate::{self, Choices};

use crate::driver::{Pair, fingerprint, reloaded};

fn some_conversation(seed: u64, steps: u64) -> Conversation {
    let settings = generate::settings(&mut Choices::new(&generate::numbers(seed, 8)));
    let mut pair = Pair::new(Model::new(settings, 0), 0);
    for number in 0..steps {
        let numbers = generate::numbers(seed.wrapping_mul(77_003).wrapping_add(number), 120);
        let step = generate::step(&mut Choices::new(&numbers), &pair.model);
        pair.step(&step);
    }
    pair.engine
}

#[test]
fn a_loaded_message_has_the_same_bytes() {
    let json =
        r#"{ "role":"user" , "content":"\u00e9\ud800", "n":1.50, "n":1e400, "z":{"b":1,"a":-0} }"#;
    let start = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
    let (conversation, _) = start.append([Message::from_json(json).unwrap()], 1).unwrap();
    assert_eq!(reloaded(&conversation).messages().next().unwrap().json(), json);
}

#[test]
fn the_saved_size_grows_with_the_changes_not_with_versions_times_length() {
    let start = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
    let messages = (0..2_000).map(|number| Message::user(&format!("message {number}")));
    let (mut conversation, _) = start.append(messages, 1).unwrap();
    let before = serde_json::to_string(&conversation.save()).unwrap().len();
    for number in 0..100 {
        let message = Message::user("changed");
        let replace = Replace { index: Position(number * 19), message };
        conversation = conversation.apply(replace, 2).unwrap().0;
    }
    let after = serde_json::to_string(&conversation.save()).unwrap().len();
    let bytes_a_version = (after - before) / 100;
    assert!(bytes_a_version < 1_000, "{bytes_a_version} bytes for each version");
    assert_eq!(fingerprint(&reloaded(&conversation)), fingerprint(&conversation));
}

#[test]
fn a_custom_counter_is_given_when_loading() {
    #[derive(Debug)]
    struct Words;
    impl Counter for Words {
        fn name(&self) -> &str {
            "words"
        }
        fn count(&self, text: &str) -> u64 {
            text.split_whitespace().count() as u64
        }
    }
    let start = Conversation::new(Settings::counting_with(Words), 0).unwrap();
    let (conversation, _) = start.append([Message::user("three little words")], 1).unwrap();
    let saved = conversation.save();
    assert_eq!(saved.counter_name(), "words");
    assert!(matches!(Conversation::load(&saved), Err(Error::UnknownCounter { .. })));
    let other = Conversation::load_with(&saved, std::sync::Arc::new(Approx));
    assert!(matches!(other, Err(Error::OtherCounter { .. })));
    let loaded = Conversation::load_with(&saved, std::sync::Arc::new(Words)).unwrap();
    assert_eq!(loaded.stats().tokens, 6);
}

/// Changes one number somewhere in a JSON value.
fn damage(value: &mut Value, skip: &mut usize, to: u64) -> bool {
    match value {
        Value::Number(_) => {
            if *skip == 0 {
                *value = to.into();
                return true;
            }
            *skip -= 1;
            false
        }
        Value::Array(list) => list.iter_mut().any(|value| damage(value, skip, to)),
        Value::Object(map) => map.values_mut().any(|value| damage(value, skip, to)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_value_is_refused_or_its_invariants_hold(
        seed in 0..20u64,
        place in any::<prop::sample::Index>(),
        to in prop_oneof![0..12u64, Just(u64::from(u32::MAX)), Just(u64::MAX)],
    ) {
        let saved = some_conversation(seed, 25).save();
        let mut value: Value = serde_json::to_value(&saved).unwrap();
        let mut numbers = usize::MAX;
        damage(&mut value, &mut numbers, to);
        let mut skip = place.index(usize::MAX - numbers);
        assert!(damage(&mut value, &mut skip, to), "one number was changed");
        let Ok(saved) = serde_json::from_str::<SavedConversation>(&value.to_string()) else {
            return Ok(());
        };
        if let Ok(conversation) = Conversation::load(&saved) {
            conversation.verify().expect("the invariants hold after loading");
        }
    }
}
