//! Arguments for providers, models and formats.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use recto_format::{Format, Target};
use recto_service::{ProviderView, Recipient};

use crate::failure::Failure;
use crate::numbers::VersionArgument;
use crate::session::{NamedConversation, Session};

/// Selects the provider and the model that a view is rendered for.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ProviderArguments {
    /// Provider. Default: the one that the messages come from, else anthropic
    #[arg(id = "provider", long = "for", value_name = "PROVIDER", value_parser = target_parser())]
    pub(crate) target: Option<Target>,

    /// Model: `render` writes it into the request, plans use its prices; thinking of other models is omitted
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Version of the provider's API, such as 2026-10-21 at anthropic. Default: the oldest
    #[arg(long, value_name = "VERSION")]
    pub(crate) api_version: Option<String>,
}

impl ProviderArguments {
    /// The model and the API that a view is sent to.
    pub(crate) fn recipient(&self, sent: &ProviderView) -> Recipient<'_> {
        Recipient {
            target: self.target.unwrap_or_else(|| sent.likely_target()),
            model: self.model.as_deref(),
            api_version: self.api_version.as_deref(),
        }
    }
}

/// A field to add to a request.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    json: String,
}

impl std::str::FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Field, String> {
        let (name, json) = text.split_once('=').ok_or("use NAME=JSON, such as max_tokens=1024")?;
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(json) {
            return Err(format!("the value must be JSON (a string needs quotes): {error}"));
        }
        Ok(Field { name: name.to_owned(), json: json.to_owned() })
    }
}

/// Fields as pairs of name and JSON value.
pub(crate) fn pairs(fields: &[Field]) -> Vec<(&str, &str)> {
    fields.iter().map(|Field { name, json }| (&**name, &**json)).collect()
}

/// Parses the name of a provider.
pub(crate) fn target_parser() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::name))
        .map(|name| Target::named(&name).expect("the parser accepts only names of targets"))
}

/// Parses the name of a format.
pub(crate) fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.iter().map(|format| format.name()))
        .map(|name| Format::named(&name).expect("the parser accepts only names of formats"))
}

/// The view that a provider is sent, at a version or now.
pub(crate) fn sent_at(
    session: &Session,
    named: &NamedConversation,
    at: Option<VersionArgument>,
) -> Result<ProviderView, Failure> {
    let newest = named.handle.version()?;
    let version = at.unwrap_or(VersionArgument::Back(0)).from(newest)?;
    Ok(session.recto.wait(ProviderView::at(named.handle.inner(), version))?)
}
