//! The rules of providers, as data: the same list serves rendering, linting and fixing.

use std::fmt;

use super::Target;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The provider takes it in another form; nothing is lost.
    Note,
    /// Something has no place at the provider, or is moved.
    Warning,
    /// The provider would refuse the request.
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

/// Something that providers demand of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Who demands it.
    pub targets: &'static [Target],
    /// How bad it is to break it.
    pub severity: Severity,
    /// What is demanded.
    pub check: &'static str,
    /// What rendering does where it is broken.
    pub repair: &'static str,
}

const ALL: &[Target] = &Target::ALL;
const ANTHROPIC: &[Target] = &[Target::Anthropic];
const GEMINI: &[Target] = &[Target::Gemini];
const OPENAI: &[Target] = &[Target::OpenAiChat, Target::OpenAiResponses];
const RESPONSES: &[Target] = &[Target::OpenAiResponses];
const REFUSE_CHOICES: &[Target] = &[Target::OpenAiChat, Target::OpenAiResponses, Target::Anthropic];
const TURNS: &[Target] = &[Target::Anthropic, Target::Gemini];

/// Declares the rules once: the constants and the list of all.
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
        "every tool call is answered before the next turn"
        "a marked placeholder stands for the missing result"
    RESULTS_FOLLOW_CALLS "results_follow_calls" ALL Error
        "results stand right behind their call, all parallel ones together"
        "the result is moved behind its call"
    RESULTS_HAVE_CALLS "results_have_calls" ALL Error
        "a result has a call before it"
        "its content is kept as text from the user"
    ONE_RESULT_A_CALL "one_result_a_call" ALL Error
        "a call has one result"
        "the first answers; the content of the others is kept as text from the user"
    CALLS_FROM_THE_ASSISTANT "calls_from_the_assistant" ALL Error
        "only the assistant calls tools"
        "the call is kept as text"
    UNIQUE_IDS "unique_ids" ALL Error
        "no two calls have the same id"
        "the later call, and its result, get a number behind the id"
    IDS_FIT "ids_fit" ALL Error
        "ids of calls have the provider's characters and length"
        "the id is encoded anew, for the call and its result, by a function of the id alone"
    NAMES_FIT "names_fit" ALL Error
        "names of tools have the provider's characters and length"
        "the name is encoded anew by a function of the name alone"
    INPUT_IS_AN_OBJECT "input_is_an_object" TURNS Error
        "the input of a call is a JSON object, of numbers that a double can hold"
        "it is wrapped: {\"input\": …}"
    NO_EMPTY_TEXT "no_empty_text" ALL Error
        "no text is empty; for Anthropic, none is only white space"
        "the empty text is left out"
    ERRORS_SAY_SOMETHING "errors_say_something" ANTHROPIC Error
        "a result that is an error has a text, and only text"
        "a marked placeholder stands for the missing text"
    SOMETHING_IS_SAID "something_is_said" ALL Error
        "a message says something"
        "a message with nothing left in it is left out"
    FIRST_FROM_THE_USER "first_from_the_user" TURNS Error
        "the first message is from the user"
        "what the assistant said first is kept as text from the user"
    LAST_FROM_THE_USER "last_from_the_user" ANTHROPIC Error
        "the user speaks last, for models that do not go on from words of their own (Claude 4.6 and later), and where thinking is switched on"
        "a marked placeholder stands for what the user says"
    ALTERNATION "alternation" TURNS Note
        "user and assistant take turns"
        "neighbouring messages of one side become one"
    SYSTEM_IN_FRONT "system_in_front" TURNS Warning
        "system messages stand in front of all others"
        "a later one is kept in its place as text from the user"
    THINKING_FOR_ITS_MAKER "thinking_for_its_maker" ALL Warning
        "thinking and signatures go only to the model that made them"
        "thinking of others, and their signatures, are left out"
    THINKING_IS_NOT_LAST "thinking_is_not_last" ANTHROPIC Error
        "an assistant's message does not end with thinking"
        "thinking at its end is left out"
    NO_TRAILING_SPACE "no_trailing_space" ANTHROPIC Error
        "a last message from the assistant does not end with white space"
        "the white space at its end is left out"
    SERVER_CALLS_ARE_WHOLE "server_calls_are_whole" ANTHROPIC Error
        "calls that the provider's server made stand with their results"
        "the half without the other is left out"
    REASONING_WITH_ITS_ITEM "reasoning_with_its_item" RESPONSES Error
        "a reasoning item is followed by what the model made of it"
        "reasoning that leads to nothing is left out"
    SIGNED_CALLS "signed_calls" GEMINI Note
        "for Gemini 3 and later, the first call of a turn is signed"
        "a call made elsewhere gets the signature that Google documents for that"
    PARTS_FOR_THEIR_MAKER "parts_for_their_maker" ALL Warning
        "parts that only one provider understands go only there"
        "parts of others are left out"
    MEDIA_HAS_A_FORM "media_has_a_form" ALL Warning
        "an image, audio or file has a form that the provider takes"
        "one that has none is left out"
    MEDIA_WHERE_IT_MAY_STAND "media_where_it_may_stand" ALL Warning
        "images, audio and files stand in messages from the user, or in results that can hold them"
        "elsewhere they are moved into a message from the user right behind"
    SCHEMAS_WITHOUT_CHOICE "schemas_without_choice" REFUSE_CHOICES Error
        "the schema of a tool's input has no anyOf, oneOf or allOf at its top, for OpenAI no enum or not either"
        "one object has the properties of all ways, and demands what all of them demand"
    CITATIONS_AGREE "citations_agree" ANTHROPIC Error
        "either all documents have citations switched on, or none"
        "all do as the first one"
    CACHE_MARKS "cache_marks" ANTHROPIC Warning
        "at most four blocks have a cache_control, those of an hour in front of those of five minutes"
        "the first keep it"
    WHOLE_CHARACTERS "whole_characters" ALL Error
        "texts have no half of a surrogate pair"
        "the half is replaced by U+FFFD"
    SPEAKERS "speakers" ALL Note
        "names of speakers have a place and fit it; only chat completions have one"
        "the name is left out"
    ERRORS_ARE_MARKED "errors_are_marked" OPENAI Note
        "a result cannot be marked as an error"
        "the mark is left out, the content stays"
}

/// A rule that a view breaks for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The position in the view of the message that breaks it.
    pub index: usize,
    /// What is wrong there.
    pub message: String,
    /// Another position that the repair changes too.
    pub(crate) with: Option<usize>,
}

impl Finding {
    /// As JSON: `{rule, severity, index, message, repair}`.
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
