//! The rules of providers, as data. Rendering, lint and fix share the list.
//!
//! A [`Rule`] has two texts: `check` is the requirement, `repair` is what rendering does where a view
//! violates it. A [`Finding`] is one violation. To add a rule, add it to the `rules!` list and report it
//! in `plan.rs` or a file beside it.

use std::fmt;

use super::Target;

/// Severity of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The content is sent in another form. Nothing is lost.
    Note,
    /// Content is omitted or moved.
    Warning,
    /// The provider would reject the request.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A requirement of providers on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Name of the rule.
    pub name: &'static str,
    /// The targets that require it.
    pub targets: &'static [Target],
    /// Severity of a violation.
    pub severity: Severity,
    /// The requirement.
    pub check: &'static str,
    /// What rendering does where a view violates the requirement.
    pub repair: &'static str,
}

const ALL: &[Target] = &Target::ALL;
const ANTHROPIC: &[Target] = &[Target::Anthropic];
const GEMINI: &[Target] = &[Target::Gemini];
const OPENAI: &[Target] = &[Target::OpenAiChat, Target::OpenAiResponses];
const RESPONSES: &[Target] = &[Target::OpenAiResponses];
const REJECT_UNIONS: &[Target] = &[Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic];
const TYPED: &[Target] = &[Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic];
const TURNS: &[Target] = &[Target::Anthropic, Target::Gemini];

/// Declares a constant for each rule, and the list of all rules.
macro_rules! rules {
    ($($id:ident $name:literal $targets:ident $severity:ident $check:literal $repair:literal)*) => {
        $(pub(crate) const $id: Rule = Rule {
            name: $name,
            targets: $targets,
            severity: Severity::$severity,
            check: $check,
            repair: $repair,
        };)*

        /// Every rule.
        pub const RULES: &[Rule] = &[$($id),*];
    };
}

rules! {
    ANSWERED_CALLS "answered_calls" ALL Error
        "every tool call has a result before the next turn"
        "a marked placeholder stands for the missing result"
    RESULTS_FOLLOW_CALLS "results_follow_calls" ALL Error
        "results directly follow their call, those of parallel calls together"
        "the result is moved after its call"
    RESULTS_HAVE_CALLS "results_have_calls" ALL Error
        "a result has a call before it"
        "its content is kept as text from the user"
    ONE_RESULT_A_CALL "one_result_a_call" ALL Error
        "a call has one result"
        "the first result is used; the content of the others is kept as text from the user"
    CALLS_FROM_THE_ASSISTANT "calls_from_the_assistant" ALL Error
        "only the assistant calls tools"
        "the call is kept as text"
    UNIQUE_IDS "unique_ids" ALL Error
        "no two calls have the same id"
        "a number is appended to the id of the later call and of its result"
    IDS_FIT "ids_fit" ALL Error
        "ids of calls have only characters, and a length, that the provider accepts"
        "the id of the call and its result is encoded by a function of the id alone"
    NAMES_FIT "names_fit" ALL Error
        "names of tools have only characters, and a length, that the provider accepts"
        "the name is encoded by a function of the name alone"
    INPUT_IS_AN_OBJECT "input_is_an_object" TURNS Error
        "the input of a call is a JSON object whose numbers fit into a double"
        "it is wrapped: {\"input\": …}"
    NO_EMPTY_TEXT "no_empty_text" ANTHROPIC Error
        "no text is empty; for Anthropic, none is only white space"
        "the empty text is omitted"
    ERRORS_SAY_SOMETHING "errors_say_something" ANTHROPIC Error
        "a result that is an error has a text and nothing else"
        "a marked placeholder stands for the missing text"
    SOMETHING_IS_SAID "something_is_said" ALL Error
        "a message has content"
        "a message without content is omitted"
    FIRST_FROM_THE_USER "first_from_the_user" GEMINI Error
        "the first message is from the user"
        "a marked placeholder is added as the first message"
    LAST_FROM_THE_USER "last_from_the_user" ANTHROPIC Error
        "the last message is from the user, for models that do not continue their own message (Claude 4.6 and later) and if thinking is enabled"
        "a marked placeholder is added as the last message"
    ALTERNATION "alternation" TURNS Note
        "messages of user and assistant alternate"
        "consecutive messages of one role are merged"
    SYSTEM_IN_FRONT "system_in_front" TURNS Warning
        "system messages precede all other messages"
        "a later system message is kept in its position as text from the user"
    THINKING_FOR_ITS_MAKER "thinking_for_its_maker" ALL Warning
        "thinking and signatures are sent only to the model that produced them"
        "thinking and signatures of other models are omitted"
    THINKING_IS_NOT_LAST "thinking_is_not_last" ANTHROPIC Error
        "a message of the assistant does not end with thinking"
        "thinking at its end is omitted"
    NO_TRAILING_SPACE "no_trailing_space" ANTHROPIC Error
        "a last message from the assistant does not end with white space"
        "the white space at its end is omitted"
    SERVER_CALLS_ARE_WHOLE "server_calls_are_whole" ANTHROPIC Error
        "a call made by the provider's server and its result are in one turn"
        "a call without its result, or a result without its call, is omitted"
    REASONING_WITH_ITS_ITEM "reasoning_with_its_item" RESPONSES Error
        "a reasoning item is followed by the output that the model produced from it"
        "reasoning without output is omitted"
    SIGNED_CALLS "signed_calls" GEMINI Note
        "for Gemini 3 and later, the first call of a turn is signed"
        "a call without a signature gets the one that Google documents for this purpose"
    PARTS_FOR_THEIR_MAKER "parts_for_their_maker" ALL Warning
        "a part that only one provider understands is sent only to that provider"
        "parts of other providers are omitted"
    MEDIA_HAS_A_FORM "media_has_a_form" ALL Warning
        "an image, audio or file is in a form that the provider accepts"
        "media in any other form is omitted"
    MEDIA_FOR_THE_MODEL "media_for_the_model" ALL Error
        "the model accepts the kind of media; OpenAI's files are not audio or video"
        "a marked placeholder replaces the media"
    PARTS_HAVE_A_TYPE "parts_have_a_type" TYPED Error
        "every part of a message has a type"
        "a part without a type is omitted"
    SYSTEM_FOR_THE_MODEL "system_for_the_model" OPENAI Error
        "the model accepts system and developer messages"
        "the message is kept as text from the user"
    MEDIA_WHERE_IT_MAY_STAND "media_where_it_may_stand" ALL Warning
        "images, audio and files are in messages from the user, or in results that support them"
        "other media is moved to a message from the user directly after"
    SCHEMAS_WITHOUT_CHOICE "schemas_without_choice" REJECT_UNIONS Error
        "the schema of a tool's input has no anyOf, oneOf or allOf at its top level and, for OpenAI, no enum or not"
        "the alternatives are merged into one object: all properties, and the required ones that all alternatives share"
    CITATIONS_AGREE "citations_agree" ANTHROPIC Error
        "citations are enabled for all documents or for none"
        "all documents get the setting of the first one"
    CACHE_MARKS "cache_marks" ANTHROPIC Warning
        "at most four blocks have a valid cache_control, and those of one hour precede those of five minutes"
        "a cache_control beyond that is omitted"
    WHOLE_CHARACTERS "whole_characters" ALL Error
        "texts have no lone surrogate"
        "the lone surrogate is replaced by U+FFFD"
    SPEAKERS "speakers" ALL Note
        "the author of a message has a valid name; only chat completions support names"
        "the name is omitted"
    ERRORS_ARE_MARKED "errors_are_marked" OPENAI Note
        "a result has no error flag"
        "the error flag is omitted; the content stays"
}

/// Rules whose repair adds a message and changes no other.
pub(crate) const ADDED_MESSAGES: [Rule; 2] = [FIRST_FROM_THE_USER, LAST_FROM_THE_USER];

/// A violation of a rule by a view.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The violated rule.
    pub rule: &'static Rule,
    /// Position in the view of the message that violates it.
    pub index: usize,
    /// The violation.
    pub message: String,
    /// Position of another message that the repair changes.
    pub(crate) with: Option<usize>,
}

impl Finding {
    /// The finding as JSON: `{rule, severity, index, message, repair}`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "rule": self.rule.name,
            "severity": self.rule.severity.as_str(),
            "index": self.index,
            "message": self.message,
            "repair": self.rule.repair,
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { rule, index, message, .. } = self;
        write!(f, "{} at {index}: {message}; {}: {}", rule.severity, rule.name, rule.repair)
    }
}
