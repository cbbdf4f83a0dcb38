//! Arguments that give messages: a text and a role, or JSON.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use recto::{Limits, Message, Role, RoleSet};
use recto_format::Format;
use recto_service::ShownRemark;
use serde_json::value::RawValue;

use crate::context::Context;
use crate::failure::Failure;
use crate::provider::format_parser;
use crate::remarks::remark_lines;

/// The messages that a command adds.
#[derive(Args, Debug)]
pub(crate) struct MessageInput {
    #[command(flatten)]
    source: MessageSource,

    /// Format of the file of --messages, which is converted. Default: recto
    #[arg(long, value_name = "FORMAT", value_parser = format_parser(), requires = "messages")]
    format: Option<Format>,
}

/// The source of messages: a text, a text file or a JSON file.
#[derive(Args, Debug)]
#[group(id = "messages_input", required = true, multiple = true)]
struct MessageSource {
    /// Text of one message
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["text_file", "messages"])]
    text: Option<String>,

    /// File with the text of one message; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    text_file: Option<String>,

    /// File with messages as JSON: one, a list, or one per line; - for standard input
    #[arg(long, value_name = "FILE")]
    messages: Option<String>,
}

/// The role of a message that is given as text.
#[derive(Args, Debug)]
pub(crate) struct RoleArgument {
    /// Role of a message that is given as text
    #[arg(long, value_name = "ROLE", value_parser = role_parser(), default_value = "user")]
    pub(crate) role: Role,
}

impl MessageInput {
    pub(crate) fn read(
        &self,
        role: Role,
        context: &mut Context<'_>,
    ) -> Result<Vec<Message>, Failure> {
        let MessageSource { text, text_file, messages } = &self.source;
        if let Some(file) = messages {
            let text = context.read(file)?;
            let Some(format) = self.format else { return messages_of(&text) };
            let (messages, remarks) = recto_service::converted(&text, format)?;
            let remarks: Vec<ShownRemark> = remarks.iter().map(ShownRemark::from).collect();
            for line in remark_lines(&remarks, "line") {
                context.output.note(&line, context.environment)?;
            }
            return Ok(messages);
        }
        let text = match (text, text_file) {
            (Some(text), _) => text.clone(),
            (None, Some(file)) => context.read(file)?,
            (None, None) => {
                return Err(Failure::Usage(
                    "use --text, --text-file or --messages to give a message".to_owned(),
                ));
            }
        };
        Ok(vec![Message::new(role, &text)?])
    }

    /// Reads exactly one message.
    pub(crate) fn read_one(
        &self,
        role: Role,
        context: &mut Context<'_>,
    ) -> Result<Message, Failure> {
        let messages = self.read(role, context)?;
        let count = messages.len();
        let [message] = <[Message; 1]>::try_from(messages)
            .map_err(|_| Failure::Usage(format!("this command takes one message, not {count}")))?;
        Ok(message)
    }
}

/// Parses messages: a JSON list, or one JSON object after the other.
pub(crate) fn messages_of(text: &str) -> Result<Vec<Message>, Failure> {
    let invalid_json =
        |error: serde_json::Error| recto::EngineError::InvalidJson { reason: error.to_string() };
    let values: Vec<&RawValue> = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text).map_err(invalid_json)?,
        false => {
            let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
            values.collect::<Result<_, _>>().map_err(invalid_json)?
        }
    };
    let limit = Limits::default().messages;
    if values.len() > limit {
        let what = "the number of messages in the request";
        let size = values.len();
        return Err(recto::EngineError::TooLarge { what, size, limit, field: None }.into());
    }
    let parse = |(place, value): (usize, &RawValue)| {
        let number = place + 1;
        if let Some(format) = Format::of_foreign_message(value.get()) {
            return Err(Failure::Foreign { number, format });
        }
        Message::from_json(value.get()).map_err(|cause| Failure::Message { number, cause })
    };
    values.into_iter().enumerate().map(parse).collect()
}

/// Parses a role. `result`, which lists print for a tool message, means `tool`.
pub(crate) fn role_parser() -> impl TypedValueParser<Value = Role> {
    let roles = Role::ALL.map(|role| match role {
        Role::Tool => PossibleValue::new(role.as_str()).alias("result"),
        role => PossibleValue::new(role.as_str()),
    });
    PossibleValuesParser::new(roles).map(|name| match &*name {
        "result" => Role::Tool,
        name => Role::named(name).expect("the parser accepts only names of roles"),
    })
}

/// The given roles; `None` if there are none.
pub(crate) fn role_set(roles: &[Role]) -> Option<RoleSet> {
    (!roles.is_empty()).then(|| roles.iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_object_a_list_or_one_object_per_line() {
        let one = r#"{"role":"user","content":"a"}"#;
        let texts = |text: &str| {
            let messages = messages_of(text).unwrap();
            messages.iter().map(|message| message.text().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(one), ["a"]);
        assert_eq!(texts(&format!("\n{one}\n{one}\n")), ["a", "a"]);
        assert_eq!(texts(&format!(" [{one},{one}]")), ["a", "a"]);
        for (broken, code) in
            [("{", "invalid_json"), ("[1]", "invalid_message"), ("3", "invalid_message")]
        {
            assert_eq!(messages_of(broken).unwrap_err().code(), code, "{broken}");
        }
    }
}
