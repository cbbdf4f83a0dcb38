//! The story of the demo: an agent on call looks into a failing checkout.
//!
//! The user's first message holds a rule. A summary loses it, the agent breaks it, and the history
//! tells why.

use recto::{
    Append, BatchStart, Compress, Conversation, EngineError as Error, Fit, LogIndex, Message,
    Outcome, Request, Restore, Rollback, Settings, Timestamp, Truncate, Undo, View,
};
use serde_json::json;

/// Midnight of 1 January 2026: the demo reads no clock.
const START: Timestamp = 1_767_225_600_000;
const MINUTE: Timestamp = 60_000;

/// What the model of the story can read.
const BUDGET: u64 = 170;

/// The message with the user's rule.
const RULE: LogIndex = LogIndex(1);

/// What happened: what each request did, in order, and where it led.
pub(super) struct Story {
    /// As it is in the end; every version is still in it.
    pub(super) conversation: Conversation,
    pub(super) budget: u64,
    /// The entry that the agent no longer knows about.
    pub(super) rule: LogIndex,
    pub(super) told: Outcome,
    /// What cutting without looking would have done. It was tried on a value that nobody kept, so
    /// it left no version.
    pub(super) plain_cut: Outcome,
    pub(super) fitted: Outcome,
    pub(super) undone: Outcome,
    pub(super) compressed: Outcome,
    pub(super) opened: Outcome,
    pub(super) tried: Outcome,
    pub(super) rolled_back: Outcome,
    pub(super) restored: Outcome,
}

impl Story {
    pub(super) fn tell() -> Result<Story, Error> {
        let mut teller = Teller::new()?;
        let told = teller.apply(Append { messages: investigation() })?;

        let keep_last = Some(newest_within(BUDGET, teller.conversation.view()));
        let cut = Truncate { keep_last, ..Truncate::default() };
        let (_, plain_cut) = teller.conversation.apply(cut, START)?;
        let fitted = teller.apply(Fit::within(BUDGET))?;
        let undone = teller.apply(Undo)?;

        let summary = "So far: release 4.2 set timeout_ms to 500, so slow payments fail.";
        let compress =
            Compress { indices: LogIndex::range(1..7), summary: Some(Message::system(summary)) };
        let compressed = teller.apply(compress.reason("the cause is found"))?;

        let before_the_try = compressed.affected_batch();
        let opened = teller.apply(BatchStart::default().reason("let the agent try"))?;
        let tried = teller.apply(Append { messages: mistake() })?;
        let roll_back = Rollback::ToBatch(before_the_try);
        let rolled_back = teller.apply(roll_back.reason("the agent broke the user's rule"))?;
        let restore = Restore { indices: vec![RULE] };
        let restored = teller.apply(restore.reason("the summary had lost the rule"))?;

        Ok(Story {
            conversation: teller.conversation,
            budget: BUDGET,
            rule: RULE,
            told,
            plain_cut,
            fitted,
            undone,
            compressed,
            opened,
            tried,
            rolled_back,
            restored,
        })
    }

    /// What each request did; the first one made version 1.
    pub(super) fn outcomes(&self) -> [&Outcome; 8] {
        [
            &self.told,
            &self.fitted,
            &self.undone,
            &self.compressed,
            &self.opened,
            &self.tried,
            &self.rolled_back,
            &self.restored,
        ]
    }

    /// A message of the story.
    pub(super) fn message(&self, index: LogIndex) -> &Message {
        let entry = self.conversation.log().get(index);
        &entry.expect("the story names only its own messages").message
    }
}

/// Applies one request after the other, a minute apart.
struct Teller {
    conversation: Conversation,
    now: Timestamp,
}

impl Teller {
    fn new() -> Result<Teller, Error> {
        let settings = Settings::default();
        Ok(Teller { conversation: Conversation::new(settings, START)?, now: START })
    }

    fn apply(&mut self, request: impl Into<Request>) -> Result<Outcome, Error> {
        self.now += MINUTE;
        let (next, outcome) = self.conversation.apply(request, self.now)?;
        self.conversation = next;
        Ok(outcome)
    }
}

/// What many programs do: count from the end until the budget is used up.
fn newest_within(budget: u64, view: &View) -> usize {
    let fits = |&count: &usize| view.tokens_in(view.len() - count..) <= budget;
    (0..=view.len()).rev().find(fits).unwrap_or(0)
}

fn investigation() -> Vec<Message> {
    vec![
        Message::system("You are on call for a web shop. Find the cause before you act."),
        Message::user("Find out why checkout fails. Never restart eu-1 before 18:00!"),
        Message::tool_call("c1", "read_logs", &json!({"service": "checkout", "level": "error"})),
        Message::tool_result("c1", &error_log()),
        Message::tool_call(
            "c2",
            "git_log",
            &json!({"file": "payment.toml", "patch": true, "since": "2025-12-30", "until": "2026-01-01"}),
        ),
        Message::tool_result(
            "c2",
            "a41f09c release 4.2: tune the timeouts\n\
             @@ -11,5 +11,5 @@ [gateway]\n\
             \x20url = \"https://pay.example/v2\"\n\
             -timeout_ms = 5000\n\
             +timeout_ms = 500\n\
             \x20retries = 0\n\
             \x20keep_alive = true\n\
             \x20currency = \"EUR\"\n",
        ),
        Message::assistant(
            "Payments time out: release 4.2 cut timeout_ms in payment.toml from 5000 to 500.",
        ),
        Message::user("Put it back."),
        Message::tool_call("c3", "edit", &json!({"file": "payment.toml", "timeout_ms": 5000})),
        Message::tool_result("c3", "Saved. eu-1 and us-1 read it when they restart."),
    ]
}

/// A tool result as agents get them: long, and most of it the same.
fn error_log() -> String {
    let line = |n: u32| {
        let (minute, second) = (n * 2, n * 23 % 60);
        let (host, order) = (if n.is_multiple_of(3) { "us-1" } else { "eu-1" }, 73_011 + n * 17);
        format!("08:{minute:02}:{second:02} {host} ERROR order {order}: no answer after 500 ms\n")
    };
    (0..24).map(line).collect()
}

/// What an agent does that knows of no rule.
fn mistake() -> Vec<Message> {
    vec![
        Message::tool_call("c4", "restart", &json!({"host": "eu-1"})),
        Message::tool_result("c4", "eu-1 is restarting. 212 open carts were lost."),
    ]
}
