//! The scenario of the demo: an agent on call investigates a failing checkout.
//!
//! The user's first message contains a rule. A summary omits it, the agent breaks it, and the history
//! shows why.

use recto::engine::Conversation;
use recto::{
    Append, BatchStart, Compress, EngineError as Error, Fit, LogIndex, Message, Outcome, Request,
    Restore, Rollback, Settings, Timestamp, Truncate, Undo, View,
};
use serde_json::json;

/// 1 January 2026, 00:00 UTC. The demo does not read the clock.
const START: Timestamp = 1_767_225_600_000;
const MINUTE: Timestamp = 60_000;

/// Token budget of the scenario's model.
const BUDGET: u64 = 170;

/// The message with the user's rule.
const RULE: LogIndex = LogIndex(1);

/// The outcomes of the requests, in order, and the final conversation.
pub(super) struct Scenario {
    /// The final conversation, with all versions.
    pub(super) conversation: Conversation,
    pub(super) budget: u64,
    /// The entry with the user's rule.
    pub(super) rule: LogIndex,
    pub(super) recorded: Outcome,
    /// A plain cut to the newest messages. Its result is discarded, so it leaves no version.
    pub(super) plain_cut: Outcome,
    pub(super) fitted: Outcome,
    pub(super) undone: Outcome,
    pub(super) compressed: Outcome,
    pub(super) opened: Outcome,
    pub(super) tried: Outcome,
    pub(super) rolled_back: Outcome,
    pub(super) restored: Outcome,
}

impl Scenario {
    pub(super) fn run() -> Result<Scenario, Error> {
        let mut runner = ScenarioRunner::new()?;
        let recorded = runner.apply(Append { messages: investigation() })?;

        let keep_last = Some(newest_within(BUDGET, runner.conversation.view()));
        let cut = Truncate { keep_last, ..Truncate::default() };
        let (_, plain_cut) = runner.conversation.apply(cut, START)?;
        let fitted = runner.apply(Fit::within(BUDGET))?;
        let undone = runner.apply(Undo)?;

        let summary = "So far: release 4.2 set timeout_ms to 500, so slow payments fail.";
        let compress =
            Compress { indices: LogIndex::range(1..7), summary: Some(Message::system(summary)) };
        let compressed = runner.apply(compress.reason("the cause is found"))?;

        let before_the_try = compressed.affected_batch();
        let opened = runner.apply(BatchStart::default().reason("let the agent try"))?;
        let tried = runner.apply(Append { messages: mistake() })?;
        let roll_back = Rollback::ToBatch(before_the_try);
        let rolled_back = runner.apply(roll_back.reason("the agent broke the user's rule"))?;
        let restore = Restore { indices: vec![RULE] };
        let restored = runner.apply(restore.reason("the summary had lost the rule"))?;

        Ok(Scenario {
            conversation: runner.conversation,
            budget: BUDGET,
            rule: RULE,
            recorded,
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

    /// The outcomes of the requests that made versions 1 to 8.
    pub(super) fn outcomes(&self) -> [&Outcome; 8] {
        [
            &self.recorded,
            &self.fitted,
            &self.undone,
            &self.compressed,
            &self.opened,
            &self.tried,
            &self.rolled_back,
            &self.restored,
        ]
    }

    /// A message of the scenario.
    pub(super) fn message(&self, index: LogIndex) -> &Message {
        let entry = self.conversation.log().get(index);
        &entry.expect("the scenario uses only indices of its own log").message
    }
}

/// Applies requests. The timestamp of each is one minute after that of the previous one.
struct ScenarioRunner {
    conversation: Conversation,
    now: Timestamp,
}

impl ScenarioRunner {
    fn new() -> Result<ScenarioRunner, Error> {
        let settings = Settings::default();
        Ok(ScenarioRunner { conversation: Conversation::new(settings, START)?, now: START })
    }

    fn apply(&mut self, request: impl Into<Request>) -> Result<Outcome, Error> {
        self.now += MINUTE;
        let (next, outcome) = self.conversation.apply(request, self.now)?;
        self.conversation = next;
        Ok(outcome)
    }
}

/// The largest number of newest messages that together fit the budget. Many programs cut a conversation in
/// this way.
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

/// A typical tool result: long and repetitive.
fn error_log() -> String {
    let line = |n: u32| {
        let (minute, second) = (n * 2, n * 23 % 60);
        let (host, order) = (if n.is_multiple_of(3) { "us-1" } else { "eu-1" }, 73_011 + n * 17);
        format!("08:{minute:02}:{second:02} {host} ERROR order {order}: no answer after 500 ms\n")
    };
    (0..24).map(line).collect()
}

/// A tool call that breaks the user's rule, and its result. The agent does not know the rule, because the
/// view does not contain it.
fn mistake() -> Vec<Message> {
    vec![
        Message::tool_call("c4", "restart", &json!({"host": "eu-1"})),
        Message::tool_result("c4", "eu-1 is restarting. 212 open carts were lost."),
    ]
}
