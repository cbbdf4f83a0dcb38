//! Schemas of values whose types are in other crates.
//!
//! The types of the engine have no schema of their own. The structs here describe them for that
//! purpose only; a test checks responses against the schema, so that the two stay the same.

#![allow(dead_code, reason = "these types are used only for their schemas")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use recto::OperationKind;
pub(crate) use recto_lists::schema::{Anything, CounterName};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

/// Declares a type by a schema that is written by hand.
macro_rules! by_hand {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)*) => {
        $($(#[$doc])*
        pub(crate) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        })*
    };
}

/// The names of the operation form and of the modification form.
fn operation_names() -> Vec<&'static str> {
    let kinds = OperationKind::OPERATIONS.iter();
    let kinds = kinds.filter(|kind| !matches!(kind, OperationKind::ReplaceEntries));
    let modifications = [
        "insert",
        "replace",
        "delete",
        "compress",
        "truncate",
        "filter",
        "clear",
        "batch_start",
        "batch_end",
    ];
    kinds.map(|kind| kind.as_str()).chain(modifications).collect()
}

by_hand! {
    /// A message.
    Message = json_schema!({
        "description": "A message, as section 3 of the contract defines it. Unknown fields are kept.",
        "type": "object",
        "properties": {
            "role": { "enum": ["system", "user", "assistant", "tool"] },
            "content": { "anyOf": [
                { "type": "string" },
                { "type": "array", "items": {
                    "type": "object",
                    "properties": { "type": { "type": "string" } },
                    "required": ["type"],
                } },
            ] },
            "id": { "type": ["string", "null"] },
            "timestamp": { "type": ["integer", "null"] },
            "metadata": {},
            "name": { "type": ["string", "null"] },
        },
        "required": ["role", "content"],
    });

    /// A tool.
    Tool = json_schema!({
        "description": "A tool that the model may call. Unknown fields are kept.",
        "type": "object",
        "properties": { "name": { "type": "string" }, "description": { "type": "string" } },
        "required": ["name", "description"],
    });

    /// An operation.
    Operation = json_schema!({
        "description": "An operation in one of the three forms of sections 4 and 5 of the contract.",
        "type": "object",
        "properties": {
            "operation": { "enum": operation_names() },
            "description": { "type": ["string", "null"] },
        },
        "required": ["operation"],
    });

    /// A query.
    Query = json_schema!({
        "description": "A query, as section 6 of the contract defines it.",
        "type": "object",
        "properties": {
            "scope": { "enum": ["visible", "all", null] },
            "role": { "enum": ["system", "user", "assistant", "tool", null] },
            "roles": { "type": ["array", "null"], "items": { "enum": ["system", "user", "assistant", "tool"] } },
            "contains": { "type": ["string", "array", "null"], "items": { "type": "string" } },
            "excludes": { "type": ["string", "array", "null"], "items": { "type": "string" } },
            "mark": { "type": ["string", "null"] },
            "from": { "type": ["integer", "null"], "minimum": 0 },
            "to": { "type": ["integer", "null"], "minimum": 0 },
            "range": { "type": ["object", "null"], "properties": {
                "start": { "type": "integer", "minimum": 0 }, "end": { "type": "integer", "minimum": 0 },
            } },
            "first": { "type": ["integer", "null"], "minimum": 0 },
            "last": { "type": ["integer", "null"], "minimum": 0 },
            "batchIndex": { "type": ["integer", "null"], "minimum": 0 },
            "version": { "type": ["integer", "null"], "minimum": 0 },
        },
        "additionalProperties": false,
    });
}

/// A table of prices.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Prices {
    /// The source of the prices.
    #[schemars(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The prices, in dollars for a million tokens.
    models: Vec<BTreeMap<String, Value>>,
}

/// An error.
#[derive(JsonSchema)]
pub(crate) struct ErrorResponse {
    /// The error.
    error: ErrorBody,
}

/// The error of a request.
#[derive(JsonSchema)]
pub(crate) struct ErrorBody {
    /// A code of section 7 of the contract.
    code: String,
    /// The cause, the place and the allowed values.
    message: String,
    /// The field that is wrong.
    #[schemars(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Numbers of the error, such as the allowed range.
    #[schemars(skip_serializing_if = "Option::is_none")]
    details: Option<Map<String, Value>>,
}

/// The numbers of messages, batches and tokens of a conversation.
#[derive(JsonSchema)]
#[schemars(rename = "ConversationStats", rename_all = "camelCase")]
pub(crate) struct Stats {
    /// The length of the log.
    total_messages: u64,
    /// The length of the view.
    current_batch_messages: u64,
    /// The length of the live path.
    total_batches: u64,
    /// The current batch.
    current_batch_index: u64,
    /// The tokens of the view.
    tokens: u64,
}

/// A number of messages and their tokens.
#[derive(JsonSchema)]
pub(crate) struct MessageTotals {
    /// The number of messages.
    messages: u64,
    /// Their tokens.
    tokens: u64,
}

/// Log entries and their tokens.
#[derive(JsonSchema)]
pub(crate) struct IndexList {
    /// The log indices, ascending.
    indices: Vec<u32>,
    /// Their tokens together.
    tokens: u64,
}

/// A warning: a fact about a successful request that the caller should know.
#[derive(JsonSchema)]
pub(crate) struct Warning {
    /// The kind of warning, such as `torn_call`.
    code: String,
    /// The log entries that the warning concerns.
    indices: Vec<u32>,
    /// Its meaning.
    message: String,
}

/// The result of a change.
#[derive(JsonSchema)]
#[schemars(rename = "Result", rename_all = "camelCase")]
pub(crate) struct Outcome {
    /// The version afterwards.
    version: u32,
    /// The batch that is current afterwards.
    affected_batch_index: u64,
    /// Whether the request made a version.
    changed: bool,
    /// The entries that were hidden, ascending.
    hidden: Vec<u32>,
    /// The entries that were shown again, ascending.
    shown: Vec<u32>,
    /// The new log entries, ascending.
    added: Vec<u32>,
    /// The figures afterwards.
    stats: Stats,
    /// The unchanged front of the view.
    shared_prefix: MessageTotals,
    /// `true` if the tools are others than before.
    #[schemars(skip_serializing_if = "Option::is_none")]
    tools_changed: Option<bool>,
    /// Warnings about the view.
    warnings: Vec<Warning>,
}

/// A batch of the live path.
#[derive(JsonSchema)]
#[schemars(rename = "Batch", rename_all = "camelCase")]
pub(crate) struct BatchSnapshot {
    /// The number of the batch.
    batch_index: u64,
    /// When it was opened, in milliseconds since 1970.
    timestamp: i64,
    /// The reason for opening it.
    description: String,
    /// The number of messages.
    message_count: u64,
    /// The messages, as they were stored.
    messages: Vec<Message>,
}

/// The visible messages, and a snapshot of each batch below the current one.
#[derive(JsonSchema)]
#[schemars(rename = "MessageArrayState", rename_all = "camelCase")]
pub(crate) struct State {
    /// The visible messages, as they were stored.
    messages: Vec<Message>,
    /// The batches below the current one, from batch 0.
    batch_snapshots: Vec<BatchSnapshot>,
    /// The current batch.
    current_batch_index: u64,
    /// The number of visible messages. (`totalMessages` of `stats` counts the log.)
    total_message_count: u64,
}

/// The mark map.
#[derive(JsonSchema)]
#[schemars(rename = "MarkMapOfConversation", rename_all = "camelCase")]
pub(crate) struct MarkMap {
    /// The view.
    original_indices: Vec<u32>,
    /// Entries by role.
    type_indices: IndicesByRole,
    /// For each batch of the live path the smallest index in its view when it was opened.
    batch_boundaries: Vec<u32>,
    /// The numbers of these batches.
    boundary_to_batch: Vec<u64>,
    /// The current batch.
    current_batch: u64,
}

/// Log entries by role.
#[derive(JsonSchema)]
pub(crate) struct IndicesByRole {
    system: Vec<u32>,
    user: Vec<u32>,
    assistant: Vec<u32>,
    tool: Vec<u32>,
}

/// The difference between two views.
#[derive(JsonSchema)]
#[schemars(rename = "ViewDifference")]
pub(crate) struct Diff {
    /// The messages in both views.
    kept: MessageTotals,
    /// The messages of the first view only.
    hidden: IndexList,
    /// The messages of the second view only.
    shown: IndexList,
    /// The messages in both views, in another order.
    moved: IndexList,
}

/// A version.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct VersionInfo {
    /// Its number.
    version: u32,
    /// The operation that made it.
    operation: String,
    /// The reason of the request.
    description: String,
    /// When it was made, in milliseconds since 1970.
    timestamp: i64,
    /// The length of its view.
    messages: u64,
    /// The tokens of its view.
    tokens: u64,
    /// Its current batch.
    batch: u64,
    /// The version that opened that batch.
    batch_opened_by: u32,
    /// The length of its log.
    log: u64,
    /// The JSON that the writer stored with it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    note: Option<Value>,
}

/// A version that changed whether an entry is visible.
#[derive(JsonSchema)]
#[schemars(rename = "VisibilityChange", rename_all = "camelCase")]
pub(crate) struct Blame {
    /// The version.
    version: u32,
    /// The operation that did it.
    operation: String,
    /// The reason of the request.
    description: String,
    /// When it was done, in milliseconds since 1970.
    timestamp: i64,
    /// Its effect on the entry.
    effect: Effect,
}

/// A version that added a mark to an entry or removed it.
#[derive(JsonSchema)]
#[schemars(rename = "MarkChange", rename_all = "camelCase")]
pub(crate) struct MarkBlame {
    /// The version.
    version: u32,
    /// The operation that did it.
    operation: String,
    /// The reason of the request.
    description: String,
    /// When it was done, in milliseconds since 1970.
    timestamp: i64,
    /// The mark.
    mark: String,
    /// Whether the entry has the mark since then.
    marked: bool,
}

/// The effect of a version on an entry.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) enum Effect {
    Added,
    AddedHidden,
    Hidden,
    Shown,
}

/// The token limit and the compression of a conversation.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Policy {
    /// The largest number of tokens of a request to a model.
    #[schemars(skip_serializing_if = "Option::is_none")]
    token_limit: Option<u64>,
    /// The compression: when and how the view is shortened.
    #[schemars(skip_serializing_if = "Option::is_none")]
    compression: Option<Compression>,
}

/// The compression: when and how the view is shortened.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Compression {
    /// Whether compression is enabled.
    enabled: bool,
    /// The number of tokens above which the view is compressed.
    threshold: u64,
    /// The number of tokens to which the view is compressed.
    target_tokens: u64,
    /// The strategies, in the order in which they are tried.
    strategy: String,
}

/// The manifest of a call of a model.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct Call {
    /// The number of the call, from 1.
    number: u64,
    /// The version whose view was sent.
    version: u32,
    /// The provider.
    target: String,
    /// The model.
    model: String,
    /// The fields other than messages and tools, each with its JSON.
    fields: Vec<(String, String)>,
    /// For a request for a summary: the entries and the instructions.
    #[schemars(skip_serializing_if = "Option::is_none")]
    about: Option<Map<String, Value>>,
    /// The SHA-256 of the bytes that were sent.
    sha256: String,
    /// The number of bytes.
    bytes: u64,
    /// When the call began, in milliseconds since 1970.
    at: i64,
    /// Its duration, in milliseconds.
    millis: u64,
    /// The tokens of the request, as the conversation counts.
    counted: u64,
    /// The expected tokens of the request, calibrated for the model.
    expected: u64,
    /// The usage that the provider reported.
    #[schemars(skip_serializing_if = "Option::is_none")]
    usage: Option<Map<String, Value>>,
    /// The reason why the answer ended.
    #[schemars(skip_serializing_if = "Option::is_none")]
    finish: Option<Value>,
    /// The error, if the answer is missing or incomplete.
    #[schemars(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// The model of the answer, as the provider reports it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    answered_by: Option<String>,
    /// The provider's id of the answer.
    #[schemars(skip_serializing_if = "Option::is_none")]
    answer_id: Option<String>,
    /// Attempts that failed.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<Map<String, Value>>,
    /// Compressions that ran before the call.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    compressed: Vec<Map<String, Value>>,
    /// The totals of the calls on the path to this version.
    cumulative: Map<String, Value>,
    /// The totals of all calls.
    lifetime: Map<String, Value>,
}
