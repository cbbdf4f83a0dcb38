//! What a line asks for.

use std::collections::BTreeMap;

use recto::{BatchIndex, EngineError, Query, Request, Version, Write};
use recto_format::{Format, Target};
use serde_json::value::RawValue;

/// What a line asks for.
pub(super) enum Asked {
    Create { name: String, settings: recto::Settings, policy: recto::Policy },
    Import(Box<Imports>),
    Of { conversation: String, what: What },
}

/// A transcript that is to be imported.
pub(super) struct Imports {
    pub(super) name: String,
    pub(super) format: Option<Format>,
    /// The file: JSON as it stands, or the text that a string holds.
    pub(super) data: String,
    pub(super) settings: recto::Settings,
    pub(super) policy: recto::Policy,
}

/// For whom a view is rendered or linted.
pub(super) struct For {
    pub(super) target: Target,
    pub(super) model: Option<String>,
    /// More fields of the request, with their JSON.
    pub(super) fields: Vec<(String, String)>,
}

/// What is asked of a conversation.
pub(super) enum What {
    Apply { request: Request, write: Write },
    Ask(Query),
    MarkMap,
    Snapshot(BatchIndex),
    Diff { from: Version, to: Version },
    Render(For),
    Lint(For),
}

/// What may be asked of a conversation.
const QUESTIONS: [&str; 8] = ["op", "ops", "ask", "markMap", "snapshot", "diff", "render", "lint"];

type Fields<'a> = BTreeMap<&'a str, &'a RawValue>;

impl Asked {
    pub(super) fn read(line: &[u8]) -> Result<Asked, EngineError> {
        let text = std::str::from_utf8(line).map_err(|error| EngineError::InvalidJson {
            reason: format!("it is not UTF-8 at byte {}", error.valid_up_to()),
        })?;
        let fields = fields(text, "a request")?;
        if let Some(name) = fields.get("import") {
            return Ok(Asked::Import(Box::new(Imports::read(name, &fields)?)));
        }
        match (fields.get("create"), fields.get("conversation")) {
            (Some(name), None) => {
                allow(&fields, &["create", "settings"])?;
                let settings = fields.get("settings").map_or("{}", |settings| settings.get());
                let (settings, policy) = super::read_settings(settings)?;
                Ok(Asked::Create { name: string(name, "create")?, settings, policy })
            }
            (None, Some(name)) => {
                let conversation = string(name, "conversation")?;
                Ok(Asked::Of { conversation, what: What::read(&fields)? })
            }
            (Some(_), Some(_)) => {
                Err(wrong("create", "create and conversation exclude each other; give one of them"))
            }
            (None, None) => Err(wrong(
                "conversation",
                "a request names a conversation, or makes one: {\"create\": NAME} or {\"import\": NAME}",
            )),
        }
    }
}

impl Imports {
    fn read(name: &RawValue, fields: &Fields<'_>) -> Result<Imports, EngineError> {
        allow(fields, &["import", "format", "data", "settings"])?;
        let format = match fields.get("format").filter(|format| format.get() != "null") {
            None => None,
            Some(format) => {
                let name = string(format, "format")?;
                let known = || Format::ALL.iter().map(|format| format.name());
                Some(one_of("format", &name, Format::named(&name), known())?)
            }
        };
        let data = fields.get("data").ok_or_else(|| {
            wrong("data", "an import needs data: the transcript as JSON, or as a string")
        })?;
        let data = match data.get().starts_with('"') {
            true => string(data, "data")?,
            false => data.get().to_owned(),
        };
        let settings = fields.get("settings").map_or("{}", |settings| settings.get());
        let (settings, policy) = super::read_settings(settings)?;
        if !settings.tools.is_empty() {
            let reason = "a conversation is imported without tools; set them afterwards";
            return Err(wrong("settings", reason));
        }
        Ok(Imports { name: string(name, "import")?, format, data, settings, policy })
    }
}

impl For {
    fn read(question: &str, fields: &Fields<'_>) -> Result<For, EngineError> {
        let name = string(fields[question], question)?;
        let known = Target::ALL.iter().map(|target| target.name());
        let target = one_of(question, &name, Target::named(&name), known)?;
        let given = |name: &str| fields.get(name).copied().filter(|value| value.get() != "null");
        let model = given("model").map(|model| string(model, "model")).transpose()?;
        let more = match given("fields") {
            Some(more) => self::fields(more.get(), "fields")?,
            None => Fields::new(),
        };
        let more = more.iter().map(|(name, json)| ((*name).to_owned(), json.get().to_owned()));
        Ok(For { target, model, fields: more.collect() })
    }
}

/// What a name means, or which names are known.
fn one_of<'k, T>(
    field: &str,
    given: &str,
    found: Option<T>,
    known: impl Iterator<Item = &'k str>,
) -> Result<T, EngineError> {
    found.ok_or_else(|| {
        let given = crate::printable::one_line(given, 60);
        let known = known.collect::<Vec<_>>().join(", ");
        wrong(field, format!("there is no {field} {given:?}; use {known}"))
    })
}

impl What {
    fn read(fields: &Fields<'_>) -> Result<What, EngineError> {
        let mut asked = QUESTIONS.iter().filter(|name| fields.contains_key(**name));
        let Some(&name) = asked.next() else {
            let known: Vec<&str> = std::iter::once("conversation").chain(QUESTIONS).collect();
            allow(fields, &known)?;
            let reason = format!("a request asks for something: {}", QUESTIONS.join(", "));
            return Err(EngineError::InvalidOperation { reason, field: None });
        };
        if let Some(other) = asked.next() {
            return Err(wrong(
                other,
                format!("{name} and {other} exclude each other; give one of them"),
            ));
        }
        let value = fields[name];
        if !matches!(name, "op" | "ops" | "render" | "lint") {
            allow(fields, &["conversation", name])?;
        }
        match name {
            "op" | "ops" => {
                allow(fields, &["conversation", name, "expectedVersion", "idempotencyKey"])?;
                let write = write(fields)?;
                let request = Request::from_json(&format!("{{\"{name}\":{value}}}"))?;
                Ok(What::Apply { request, write })
            }
            "ask" => Ok(What::Ask(Query::from_json(value.get())?)),
            "markMap" => match value.get() {
                "true" => Ok(What::MarkMap),
                _ => Err(wrong("markMap", "markMap must be true")),
            },
            "render" => {
                allow(fields, &["conversation", name, "model", "fields"])?;
                Ok(What::Render(For::read(name, fields)?))
            }
            "lint" => {
                allow(fields, &["conversation", name, "model"])?;
                Ok(What::Lint(For::read(name, fields)?))
            }
            "snapshot" => Ok(What::Snapshot(BatchIndex(number(value, "snapshot")? as usize))),
            _ => {
                let inner = self::fields(value.get(), "diff")?;
                allow(&inner, &["from", "to"])?;
                let version = |name: &'static str| match inner.get(name) {
                    Some(value) => {
                        Ok(Version(u32::try_from(number(value, name)?).unwrap_or(u32::MAX)))
                    }
                    None => Err(wrong(name, format!("diff needs {name}, a version"))),
                };
                Ok(What::Diff { from: version("from")?, to: version("to")? })
            }
        }
    }
}

fn write(fields: &Fields<'_>) -> Result<Write, EngineError> {
    let given = |name: &str| fields.get(name).copied().filter(|value| value.get() != "null");
    let version = given("expectedVersion").map(|value| number(value, "expectedVersion"));
    let version = version.transpose()?.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let key = given("idempotencyKey").map(|value| string(value, "idempotencyKey")).transpose()?;
    Ok(Write { expected_version: version.map(Version), key })
}

/// The fields of an object. A name that is given twice is refused: which one was meant?
pub(super) fn fields<'a>(text: &'a str, what: &str) -> Result<Fields<'a>, EngineError> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Fields<'de>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut fields = Fields::new();
            while let Some((name, value)) = map.next_entry::<&str, &RawValue>()? {
                if fields.insert(name, value).is_some() {
                    return Err(serde::de::Error::custom(format_args!("{name} is given twice")));
                }
            }
            Ok(fields)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde::Deserializer::deserialize_map(&mut reader, Visitor);
    let read = read.and_then(|fields| reader.end().map(|()| fields));
    read.map_err(|error| match error.classify() {
        serde_json::error::Category::Data => EngineError::InvalidOperation {
            reason: format!("{what} is an object: {error}"),
            field: None,
        },
        _ => EngineError::InvalidJson { reason: error.to_string() },
    })
}

pub(super) fn allow(fields: &Fields<'_>, known: &[&str]) -> Result<(), EngineError> {
    match fields.keys().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let name = crate::printable::one_line(name, 60);
            Err(wrong(&name, format!("{name} is not known here; use {}", known.join(", "))))
        }
    }
}

pub(super) fn wrong(field: &str, reason: impl Into<String>) -> EngineError {
    EngineError::InvalidOperation { reason: reason.into(), field: Some(field.to_owned()) }
}

pub(super) fn string(value: &RawValue, field: &str) -> Result<String, EngineError> {
    serde_json::from_str(value.get()).map_err(|_| wrong(field, format!("{field} must be a string")))
}

pub(super) fn number(value: &RawValue, field: &str) -> Result<u64, EngineError> {
    serde_json::from_str(value.get())
        .map_err(|_| wrong(field, format!("{field} must be a whole number from 0")))
}
