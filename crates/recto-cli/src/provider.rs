//! Arguments that name a provider, a model or a format.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use recto_format::{Format, Target};
use recto_service::Sent;

use crate::failure::Failure;
use crate::numbers::WhichVersion;
use crate::session::{Named, Session};

/// Which provider and model will read it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Reader {
    /// The provider; unless told, the one that the messages come from, else anthropic
    #[arg(id = "provider", long = "for", value_name = "PROVIDER", value_parser = target_parser())]
    pub(crate) target: Option<Target>,

    /// The model: its prices count, and thinking of other models is left out
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

/// Reads the name of a provider.
pub(crate) fn target_parser() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::name))
        .map(|name| Target::named(&name).expect("only targets are possible"))
}

/// Reads the name of a format.
pub(crate) fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.iter().map(|format| format.name()))
        .map(|name| Format::named(&name).expect("only formats are possible"))
}

/// What is sent of the view, or of the view at a version.
pub(crate) fn sent_at(
    session: &Session,
    named: &Named,
    at: Option<WhichVersion>,
) -> Result<Sent, Failure> {
    let newest = named.talk.version()?;
    let version = at.unwrap_or(WhichVersion::Back(0)).from(newest)?;
    Ok(session.recto.wait(Sent::at(named.talk.inner(), version))?)
}
