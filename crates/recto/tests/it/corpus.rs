//! Hostile messages, requests and queries on every store: each has the same result as in the engine alone,
//! and a refused request changes nothing.

use recto::{
    Append, Approx, Conversation, Error, LogIndex, Message, Query, Request, Settings, Version,
};
use testkit::corpus::{KEPT, QUERIES, REQUESTS, START, all_messages, name, without_space_around};

use crate::places::{Place, on_every_store};

on_every_store! {
    a_hostile_message_is_returned_byte_for_byte_or_refused
    a_hostile_request_has_the_same_result_as_without_a_store
    a_hostile_query_has_the_same_result_as_without_a_store
}

fn code_of<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => KEPT,
        Err(error) => error.code(),
    }
}

async fn send(conversation: &Conversation, request: &str) -> Result<recto::Outcome, Error> {
    conversation.apply(Request::from_json(request)?).await
}

/// The visible entries: indices and the bytes of the messages.
async fn shown(conversation: &Conversation) -> Vec<(LogIndex, String)> {
    let entries = conversation.messages().await.expect("they can be read");
    entries.iter().map(|entry| (entry.index, entry.message.json().to_owned())).collect()
}

fn shown_by(conversation: &recto::engine::Conversation) -> Vec<(LogIndex, String)> {
    let entry =
        |index| (index, conversation.message(index).expect("it is loaded").json().to_owned());
    conversation.view().iter().map(entry).collect()
}

/// The same conversation in a store and in the engine alone.
async fn start(place: &Place) -> (Conversation, recto::engine::Conversation) {
    let stored = place.recto().create("start", Settings::counting_with(Approx)).await.unwrap();
    let mut plain = recto::engine::Conversation::new(Settings::counting_with(Approx), 0).unwrap();
    for request in START {
        send(&stored, request).await.unwrap();
        plain = plain.apply(Request::from_json(request).unwrap(), 0).unwrap().0;
    }
    (stored, plain)
}

async fn a_hostile_message_is_returned_byte_for_byte_or_refused(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", Settings::counting_with(Approx)).await.unwrap();
    let mut kept = Vec::new();
    for (json, expected) in all_messages() {
        let request = format!(r#"{{"operation":"APPEND","messages":[{json}]}}"#);
        let appended = send(&conversation, &request).await;
        match expected {
            // Inside a request the error may be another one, because an empty list of messages is refused.
            "invalid_json" => assert!(appended.is_err(), "{}", name(&json)),
            _ => assert_eq!(code_of(&appended), expected, "{}", name(&json)),
        }
        if expected == KEPT {
            kept.push(Message::from_json(without_space_around(&json)).unwrap());
        }
        assert_eq!(
            conversation.version().await.unwrap(),
            Version(kept.len() as u32),
            "{}",
            name(&json)
        );
    }
    assert!(kept.len() > 90);
    // Read by another `Recto`: some rows are packed, others are not.
    let again = place.recto().conversation("a").await.unwrap();
    for (number, message) in (0..).zip(&kept) {
        let found = again.message(LogIndex(number)).await.unwrap().unwrap();
        assert!(found.json() == message.json(), "{}", name(message.json()));
        assert_eq!(found.text(), message.text());
    }
    assert_eq!(again.messages().await.unwrap().len(), kept.len());
    let report = again.verify().await.unwrap();
    assert_eq!((report.faults, report.entries as usize), (Vec::new(), kept.len()));
    // The search accepts every text, and each result has all words of it.
    for message in kept.iter().filter(|message| message.text().len() < 1_000) {
        let words = recto_store::words_of(&message.text());
        let found = place.recto().search(&message.text(), 1_000).await.unwrap();
        assert_eq!(found.is_empty(), words.is_empty(), "{}", name(message.json()));
        for found in found {
            let has = recto_store::words_of(&found.message.text());
            assert!(words.iter().all(|word| has.contains(word)), "{}", name(message.json()));
        }
    }
}

async fn a_hostile_request_has_the_same_result_as_without_a_store(place: Place) {
    let (stored, plain) = start(&place).await;
    let version = stored.version().await.unwrap();
    for (number, &(request, expected)) in REQUESTS.iter().enumerate() {
        let fork = stored.fork(&format!("{number}"), version).await.unwrap();
        let before = place.store.rows(fork.id()).await.unwrap();
        let done = send(&fork, request).await;
        assert_eq!(code_of(&done), expected, "{request}");
        let alone = Request::from_json(request).and_then(|request| plain.apply(request, 0));
        let again = place.recto().conversation(&format!("{number}")).await.unwrap();
        match (done, alone) {
            (Ok(done), Ok((next, _))) => {
                assert_eq!(done.version, next.version(), "{request}");
                assert_eq!(shown(&again).await, shown_by(&next), "{request}");
                assert!(again.verify().await.unwrap().is_sound(), "{request}");
            }
            (Err(refused), Err(alone)) => {
                assert_eq!(refused.to_json(), alone.to_json(), "{request}");
                assert_eq!(place.store.rows(fork.id()).await.unwrap(), before, "{request}");
            }
            (done, alone) => panic!("{request}: {done:?}, without a store {alone:?}"),
        }
    }
    assert_eq!(shown(&stored).await, shown_by(&plain));
}

async fn a_hostile_query_has_the_same_result_as_without_a_store(place: Place) {
    let (_, plain) = start(&place).await;
    let stored = place.recto().conversation("start").await.unwrap();
    stored.append([Message::user("hidden"), Message::user("c")]).await.unwrap();
    let plain =
        plain.apply(Append { messages: vec![Message::user("hidden"), Message::user("c")] }, 0);
    let plain = plain.unwrap().0;
    for &(query, expected) in QUERIES {
        let query = Query::from_json(query);
        let alone = query.clone().and_then(|query| plain.query(&query)).map_err(Error::from);
        let found = match query {
            Ok(query) => stored.query(&query).await,
            Err(error) => Err(error.into()),
        };
        assert_eq!(code_of(&found), expected, "{found:?}");
        let found =
            found.map(|found| found.into_iter().map(|entry| entry.index).collect::<Vec<_>>());
        let alone = alone.map(|hits| hits.into_iter().map(|hit| hit.index).collect::<Vec<_>>());
        // Errors have no equality: their texts are compared.
        let text = |error: Error| error.to_string();
        assert_eq!(found.map_err(text), alone.map_err(text));
    }
}
