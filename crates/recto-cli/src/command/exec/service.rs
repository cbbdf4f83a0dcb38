//! Does what lines ask for, and writes the answers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use recto::{EngineError, Entry, Error, Naming, Policy, Scope, StoreError, StoredConversation};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::request::{Asked, For, Imports, What};
use crate::failure::Failure;
use crate::provider::{Sent, warnings};
use crate::session::Session;
use crate::transcript::{Importing, remark_json};

/// Answers requests.
pub(super) struct Service<'a> {
    session: &'a Session,
    /// Conversations by name, in a store that nobody else can change.
    known: HashMap<String, StoredConversation>,
}

impl<'a> Service<'a> {
    pub(super) fn new(session: &'a Session) -> Service<'a> {
        Service { session, known: HashMap::new() }
    }

    /// The answer to a line: one line of JSON, without its end.
    pub(super) fn answer(&mut self, line: Result<&[u8], EngineError>, number: u64) -> String {
        let answer = line.map_err(Failure::from).and_then(|line| self.perform(line));
        answer.unwrap_or_else(|error| {
            let mut answer = error.to_json();
            answer["error"]["line"] = number.into();
            answer.to_string()
        })
    }

    fn perform(&mut self, line: &[u8]) -> Result<String, Failure> {
        match Asked::read(line)? {
            Asked::Create { name, settings, policy } => {
                let talk = self.session.recto.create(&name, settings)?;
                if policy != Policy::default() {
                    self.session.recto.set_policy(&name, &policy)?;
                }
                let talk = talk.inner().clone();
                let id = talk.id().to_string();
                let answer = json!({ "conversation": name, "id": id, "version": 0 });
                if self.session.is_private() {
                    self.known.insert(name, talk);
                }
                Ok(answer.to_string())
            }
            Asked::Import(imports) => self.import(*imports),
            Asked::Of { conversation, what } => {
                let talk = self.conversation(conversation)?;
                self.session.recto.wait(perform(&talk, what))
            }
        }
    }

    /// Imports everything or nothing.
    fn import(&mut self, imports: Imports) -> Result<String, Failure> {
        let Imports { name, format, data, settings, policy } = imports;
        let recto = &self.session.recto;
        let (options, naming) = (recto_format::ImportOptions::default(), Naming::Exactly(name));
        let importing = Importing { recto, format, options, naming, settings };
        let transcript = importing.run(&*data, &AtomicBool::new(false), &mut |_| ())?;
        let conversations = transcript.told();
        if policy != Policy::default() {
            for told in &conversations {
                recto.set_policy(&told.conversation, &policy)?;
            }
        }
        let first = &conversations[0];
        let remarks: Vec<Value> = transcript.remarks.iter().map(remark_json).collect();
        Ok(written(&json!({
            "conversation": first.conversation,
            "id": first.id,
            "version": first.version,
            "format": transcript.format.name(),
            "conversations": conversations,
            "remarks": remarks,
        })))
    }

    fn conversation(&mut self, name: String) -> Result<StoredConversation, Error> {
        if let Some(talk) = self.known.get(&name) {
            return Ok(talk.clone());
        }
        let found = self.session.recto.conversation(&name);
        let talk = match found {
            // By its id. A beginning is not enough here: a program that misspells a name must not
            // reach another conversation.
            Err(error @ Error::Store(StoreError::ConversationNotFound { .. })) => {
                let all = match name.len() {
                    36 => self.session.recto.list(None, usize::MAX)?,
                    _ => Vec::new(),
                };
                let found = all.into_iter().find(|info| info.id.to_string() == name);
                self.session.recto.conversation(&found.ok_or(error)?.name)?
            }
            found => found?,
        };
        let talk = talk.inner().clone();
        if self.session.is_private() {
            self.known.insert(name, talk.clone());
        }
        Ok(talk)
    }
}

async fn perform(talk: &StoredConversation, what: What) -> Result<String, Failure> {
    Ok(match what {
        What::Apply { request, write } => written(&talk.apply_with(request, write).await?),
        What::Ask(query) => messages(&talk.ask(&query).await?),
        What::MarkMap => written(&talk.mark_map(Scope::Visible).await?),
        What::Snapshot(batch) => written(&talk.snapshot(batch).await?),
        What::Diff { from, to } => written(&talk.diff(from, to).await?),
        What::Render(reader) => render(talk, &reader).await?,
        What::Lint(For { target, model, .. }) => {
            let sent = Sent::at(talk, talk.version().await?).await?;
            let findings = sent.lint(target, model.as_deref());
            written(&json!({ "findings": sent.findings(&findings) }))
        }
    })
}

/// `{"request": …, "repairs": […], "warnings": […]}`, with the request as it is sent.
async fn render(talk: &StoredConversation, reader: &For) -> Result<String, Failure> {
    let sent = Sent::at(talk, talk.version().await?).await?;
    let fields: Vec<(&str, &str)> =
        reader.fields.iter().map(|(name, json)| (&**name, &**json)).collect();
    let rendered = sent.render(reader.target, reader.model.as_deref(), &fields)?;
    let repairs = sent.findings(&rendered.findings);
    let warnings = warnings(&talk.warnings().await?, &rendered);
    let (repairs, warnings) = (written(&repairs), written(&warnings));
    let request = on_one_line(&rendered.body);
    Ok(format!("{{\"request\":{request},\"repairs\":{repairs},\"warnings\":{warnings}}}"))
}

fn written(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("answers can be written")
}

/// `{"messages": [{index, position, role, content, …}]}`: each message as it came, with its number
/// and place in front.
fn messages(entries: &[Entry]) -> String {
    let bytes: usize = entries.iter().map(|entry| entry.message.json().len() + 40).sum();
    let mut answer = String::with_capacity(bytes + 20);
    answer.push_str("{\"messages\":[");
    for (number, entry) in entries.iter().enumerate() {
        if number > 0 {
            answer.push(',');
        }
        push_entry(entry, &mut answer);
    }
    answer.push_str("]}");
    answer
}

fn push_entry(entry: &Entry, answer: &mut String) {
    let json = entry.message.json();
    answer.push_str(&format!("{{\"index\":{}", entry.index));
    if let Some(position) = entry.position {
        answer.push_str(&format!(",\"position\":{position}"));
    }
    // A message may have fields of these names itself; only then is it looked into.
    let rest = match ["\"index\"", "\"position\"", "\\"].iter().any(|text| json.contains(text)) {
        true => without_places(json),
        false => json.to_owned(),
    };
    let inner = rest.trim_start_matches(['{', ' ', '\t', '\n', '\r']);
    answer.push(',');
    answer.push_str(&on_one_line(inner));
}

/// Line ends between fields would end the answer's line; in strings there are none.
fn on_one_line(json: &str) -> Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => Cow::Owned(json.replace(['\n', '\r'], " ")),
        false => Cow::Borrowed(json),
    }
}

/// A message without fields of its own that are called as ours.
fn without_places(json: &str) -> String {
    let Ok(raw) = serde_json::from_str::<RawFields>(json) else { return json.to_owned() };
    if !raw.0.iter().any(|(name, _)| matches!(&**name, "index" | "position")) {
        return json.to_owned();
    }
    let kept = raw.0.iter().filter(|(name, _)| !matches!(&**name, "index" | "position"));
    let kept = kept.map(|(name, value)| format!("{}:{value}", Value::from(&**name)));
    format!("{{{}}}", kept.collect::<Vec<_>>().join(","))
}

/// The fields of an object in order, each as it came.
struct RawFields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for RawFields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = RawFields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
