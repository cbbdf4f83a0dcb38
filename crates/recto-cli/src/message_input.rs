//! Messages as arguments bring them: a text and a role, or JSON.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use recto::{Limits, Message, Role, RoleSet};
use recto_format::{Format, Remark};
use serde_json::value::RawValue;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::foreign;
use crate::page::{Line, NOTE};
use crate::provider::format_parser;

/// Messages to be added.
#[derive(Args, Debug)]
pub(crate) struct MessageInput {
    #[command(flatten)]
    from: Whence,

    /// The format of the file of --messages, from which the messages are converted; unless told, they are Recto's own
    #[arg(long, value_name = "FORMAT", value_parser = format_parser(), requires = "messages")]
    format: Option<Format>,
}

/// Where messages come from.
#[derive(Args, Debug)]
#[group(id = "messages_input", required = true, multiple = true)]
struct Whence {
    /// The text of one message
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["text_file", "messages"])]
    text: Option<String>,

    /// A file with the text of one message; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    text_file: Option<String>,

    /// A file with messages as JSON: one, a list, or one a line; - for standard input
    #[arg(long, value_name = "FILE")]
    messages: Option<String>,
}

/// Who speaks in a message that is given as text.
#[derive(Args, Debug)]
pub(crate) struct Speaks {
    /// Who speaks in a message that is given as text
    #[arg(long, value_name = "ROLE", value_parser = role_parser(), default_value = "user")]
    pub(crate) role: Role,
}

impl MessageInput {
    pub(crate) fn read(&self, role: Role, desk: &mut Desk<'_>) -> Result<Vec<Message>, Failure> {
        let Whence { text, text_file, messages } = &self.from;
        if let Some(file) = messages {
            let text = desk.read(file)?;
            let Some(format) = self.format else { return messages_of(&text) };
            let (messages, remarks) = foreign::convert(&text, format)?;
            for Remark { line, message, .. } in remarks {
                let line = Line::wrapping().styled(NOTE, format!("line {line}: ")).text(message);
                desk.output.aside(&line, desk.surroundings)?;
            }
            return Ok(messages);
        }
        let text = match (text, text_file) {
            (Some(text), _) => text.clone(),
            (None, Some(file)) => desk.read(file)?,
            (None, None) => {
                return Err(Failure::Usage(
                    "give a message: --text, --text-file or --messages".to_owned(),
                ));
            }
        };
        Ok(vec![Message::new(role, &text)?])
    }

    /// Exactly one message.
    pub(crate) fn read_one(&self, role: Role, desk: &mut Desk<'_>) -> Result<Message, Failure> {
        let messages = self.read(role, desk)?;
        let count = messages.len();
        let [message] = <[Message; 1]>::try_from(messages).map_err(|_| {
            Failure::Usage(format!("one message is needed here, and {count} are given"))
        })?;
        Ok(message)
    }
}

/// Reads messages: a list, or one after the other.
pub(crate) fn messages_of(text: &str) -> Result<Vec<Message>, Failure> {
    let broken =
        |error: serde_json::Error| recto::EngineError::InvalidJson { reason: error.to_string() };
    let values: Vec<&RawValue> = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text).map_err(broken)?,
        false => {
            let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
            values.collect::<Result<_, _>>().map_err(broken)?
        }
    };
    let limit = Limits::default().messages;
    if values.len() > limit {
        let what = "the number of messages in the request";
        let size = values.len();
        return Err(recto::EngineError::TooLarge { what, size, limit, field: None }.into());
    }
    let own = |(place, value): (usize, &RawValue)| {
        let number = place + 1;
        if let Some(format) = foreign::format_of(value.get()) {
            return Err(Failure::Foreign { number, format });
        }
        Message::from_json(value.get()).map_err(|cause| Failure::Message { number, cause })
    };
    values.into_iter().enumerate().map(own).collect()
}

/// Reads a role.
pub(crate) fn role_parser() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str))
        .map(|name| Role::named(&name).expect("only roles are possible"))
}

/// The roles that were named, if any were.
pub(crate) fn role_set(roles: &[Role]) -> Option<RoleSet> {
    (!roles.is_empty()).then(|| roles.iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_as_one_as_a_list_or_one_a_line() {
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
