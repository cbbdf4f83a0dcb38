//! Random operations on conversations with every kind of exchange: every provider accepts the resulting
//! view.

use proptest::prelude::*;
use recto_core::{Approx, Conversation, Message, Request, Settings};
use recto_format::Target;
use serde_json::json;
use testkit::Model;
use testkit::generate::{self, Choices, Step};

use crate::render::{check, check_fix};

/// A conversation, and the model of it that the generator of steps reads.
struct CheckedConversation {
    model: Model,
    conversation: Conversation,
}

impl CheckedConversation {
    fn new() -> CheckedConversation {
        let conversation = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
        CheckedConversation { model: Model::new(testkit::Settings::default(), 0), conversation }
    }

    /// Applies one request. Every third request appends a part of a transcript.
    fn step(&mut self, numbers: &[u16]) {
        let mut choices = Choices::new(numbers);
        let request = match choices.below(3) {
            0 => {
                let messages = generate::transcript(&mut choices, 6);
                json!({"op": {"operation": "APPEND", "messages": messages}})
            }
            _ => match generate::step(&mut choices, &self.model) {
                Step::Apply(request) => request,
                _ => return,
            },
        };
        let accepted = self.model.apply(&request, 1).is_ok();
        let read = Request::from_json(&request.to_string());
        let applied = read.and_then(|request| self.conversation.apply(request, 1));
        assert_eq!(applied.is_ok(), accepted, "{request}");
        if let Ok((next, _)) = applied {
            self.conversation = next;
        }
    }

    fn view(&self) -> Vec<Message> {
        self.conversation.messages().cloned().collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_view_after_random_operations_is_rendered_as_a_valid_request(
        steps in prop::collection::vec(prop::collection::vec(any::<u16>(), 0..100), 1..20),
    ) {
        let mut conversation = CheckedConversation::new();
        for numbers in &steps {
            conversation.step(numbers);
            let view = conversation.view();
            for target in Target::ALL {
                check(&view, target, None);
            }
        }
        for target in Target::ALL {
            check_fix(&conversation.view(), target, None);
        }
    }
}

/// One conversation of the long run: many requests, each followed by rendering for every target.
/// Returns the number of requests that were validated.
pub(crate) fn run(seed: u64) -> u64 {
    let mut conversation = CheckedConversation::new();
    let mut checked = 0;
    for number in 0..30 {
        conversation.step(&generate::numbers(seed.wrapping_mul(1_009).wrapping_add(number), 120));
        let view = conversation.view();
        for target in Target::ALL {
            checked += u64::from(check(&view, target, None).is_some());
        }
    }
    checked
}
