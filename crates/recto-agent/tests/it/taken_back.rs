//! A message that cannot be sent is removed from the view, so that the next one can be sent.

use recto::Message;
use recto_agent::{Budget, Error, Stop, Strategy, Target};
use testserver::ModelServer;

use crate::streams::ScriptedReply;
use crate::{EventLog, agent};

#[tokio::test]
async fn a_message_that_cannot_be_sent_is_removed_from_the_view() {
    let target = Target::OpenAiChat;
    let server = ModelServer::answering(move |_| ScriptedReply::text("Fine.").streamed(target));
    for strategies in [vec![], vec![Strategy::KeepSystemAndRecent]] {
        let threshold = (!strategies.is_empty()).then_some(250);
        let budget =
            Budget { limit: Some(300), threshold, target: 200, strategies, ..Budget::default() };
        let events = EventLog::default();
        let agent = events.attach(agent(target, &server).await.budget(budget));
        assert_eq!(agent.send(Message::user("Hi!")).await.unwrap().stop, Stop::Done);
        let before = agent.conversation().messages().await.unwrap();
        for _ in 0..2 {
            let error = agent.send(Message::user(&"far too long ".repeat(500))).await.unwrap_err();
            assert!(matches!(error, Error::FloorTooHigh { .. }), "{error}");
            assert_eq!(agent.conversation().messages().await.unwrap(), before);
        }
        let hidden = events.texts().into_iter().filter(|event| event.starts_with("hidden"));
        assert_eq!(hidden.collect::<Vec<_>>(), ["hidden 2", "hidden 3"]);
        assert_eq!(agent.send(Message::user("And now?")).await.unwrap().stop, Stop::Done);
    }
}

#[tokio::test]
async fn a_message_over_the_limit_is_hidden_and_later_versions_are_kept() {
    let target = Target::OpenAiChat;
    let server = ModelServer::replying([]);
    // Clearing results is not enough, and nothing else can be hidden.
    let strategies = vec![Strategy::ClearToolResults];
    let (limit, threshold) = (Some(400), Some(300));
    let budget = Budget { limit, threshold, target: 100, strategies, ..Budget::default() };
    let agent = agent(target, &server).await.budget(budget);
    let conversation = agent.conversation();
    for turn in 0..10 {
        let question = Message::user(&format!("question {turn}: {}", "why is that so ".repeat(10)));
        conversation.append([question, Message::assistant("because it is")]).await.unwrap();
    }
    let before = conversation.messages().await.unwrap();
    let error = agent.send(Message::user("And?")).await.unwrap_err();
    assert!(matches!(error, Error::OverLimit { .. }), "{error}");
    assert_eq!(conversation.messages().await.unwrap(), before);
    assert_eq!(server.received().len(), 0);
}
