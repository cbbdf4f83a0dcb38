//! Settings as JSON: the settings of a new conversation, and changes to the settings of an existing one.

use recto::{Compression, EngineError, Policy, Tool};
use recto_agent::Strategy;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::wrong;
use crate::read::check_tool_names;
use crate::schema;

/// Default compression strategies: clear old tool results first, because they are the largest and can be
/// fetched again; then hide the oldest messages except system messages. Neither calls a model.
pub const DEFAULT_STRATEGY: &str = "clear-tool-results,keep-system-and-recent";

/// The settings of a new conversation.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewSettings<'a> {
    /// The token counter. Default: `o200k_base`. It cannot be changed later.
    #[schemars(with = "Option<schema::CounterName>")]
    pub counter: Option<String>,
    /// The tokens of an image, audio or file part. Default: 1000. It cannot be changed later.
    pub media_tokens: Option<u64>,
    /// The tools that the model may call.
    #[serde(borrow)]
    #[schemars(with = "Option<Vec<schema::Tool>>")]
    pub tools: Option<&'a RawValue>,
    /// The first line of the tool description. Default: `Available tools:`. It cannot be changed
    /// later.
    pub heading: Option<String>,
    /// The largest number of tokens of a request to a model. Default: no limit.
    pub token_limit: Option<u64>,
    /// The compression: when and how the view is shortened.
    #[serde(default, deserialize_with = "crate::values::optional_object")]
    pub compression: Option<CompressionSettings>,
    /// Another name for `compression`.
    #[serde(default, deserialize_with = "crate::values::optional_object")]
    pub compression_config: Option<CompressionSettings>,
}

/// The compression: when and how the view is shortened.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompressionSettings {
    /// Whether compression is enabled.
    pub enabled: bool,
    /// The number of tokens above which the view is compressed.
    pub threshold: u64,
    /// The number of tokens to which the view is compressed.
    pub target_tokens: u64,
    /// The strategies, separated by commas, in the order in which they are tried. Default:
    /// `clear-tool-results,keep-system-and-recent`.
    pub strategy: Option<String>,
}

/// Changes to the settings of a conversation. A missing field leaves its setting unchanged.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangedSettings<'a> {
    /// The tools that the model may call; an empty list or `null` for none.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schemars(with = "Option<Vec<schema::Tool>>")]
    pub tools: Option<Option<&'a RawValue>>,
    /// The largest number of tokens of a request to a model; `null` for no limit.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<u64>")]
    pub token_limit: Option<Option<u64>>,
    /// The compression: when and how the view is shortened; `null` for none.
    #[serde(default, deserialize_with = "present_object")]
    #[schemars(with = "Option<CompressionSettings>")]
    pub compression: Option<Option<CompressionSettings>>,
    /// Another name for `compression`.
    #[serde(default, deserialize_with = "present_object")]
    #[schemars(with = "Option<CompressionSettings>")]
    pub compression_config: Option<Option<CompressionSettings>>,
}

/// Reads a field for which `null` is a value. A missing field stays `None` because of `default`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// [`present`] for a struct, which is read from an object only.
fn present_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    crate::values::optional_object(deserializer).map(Some)
}

impl CompressionSettings {
    fn checked(self) -> Result<Compression, EngineError> {
        let CompressionSettings { enabled, threshold, target_tokens, strategy } = self;
        let strategy = strategy.as_deref().unwrap_or(DEFAULT_STRATEGY);
        let strategy = read_strategies(strategy);
        let strategy = strategy.map_err(|reason| wrong("compression.strategy", reason))?;
        let mut compression = Compression::new(threshold, target_tokens, strategy);
        compression.enabled = enabled;
        Ok(compression)
    }
}

/// The value of a field that has two names. Giving both is an error.
fn either<T>(one: Option<T>, other: Option<T>) -> Result<Option<T>, EngineError> {
    match (one, other) {
        (Some(_), Some(_)) => Err(wrong(
            "compressionConfig",
            "compression and compressionConfig are two names for the same field; give one of them",
        )),
        (one, other) => Ok(one.or(other)),
    }
}

impl NewSettings<'_> {
    /// The settings and the policy of the new conversation. The tools, which are part of the settings, and
    /// the policy can be changed later, the other settings cannot.
    pub(crate) fn checked(self) -> Result<(recto::Settings, Policy), EngineError> {
        let mut settings = recto::Settings::counting_with(recto::Approx);
        settings.counter = counter_named(self.counter.as_deref().unwrap_or("o200k_base"))?;
        if let Some(tokens) = self.media_tokens {
            settings.media_tokens = tokens;
        }
        if let Some(tools) = self.tools {
            check_tool_names(tools, "tools")?;
            settings.tools = Tool::list_from_json(tools.get())?;
        }
        if let Some(heading) = self.heading {
            settings.heading = heading;
        }
        let compression = either(self.compression, self.compression_config)?;
        let compression = compression.map(CompressionSettings::checked).transpose()?;
        let policy = Policy { token_limit: self.token_limit, compression };
        policy.check()?;
        Ok((settings, policy))
    }
}

impl ChangedSettings<'_> {
    /// The policy with these changes.
    pub(crate) fn policy(&mut self, before: &Policy) -> Result<Policy, EngineError> {
        let compression = either(self.compression.take(), self.compression_config.take())?;
        let policy = Policy {
            token_limit: self.token_limit.unwrap_or(before.token_limit),
            compression: match compression {
                Some(compression) => compression.map(CompressionSettings::checked).transpose()?,
                None => before.compression.clone(),
            },
        };
        policy.check()?;
        Ok(policy)
    }

    /// The tools to be set, if any were given.
    pub(crate) fn tools(&self) -> Result<Option<Vec<Tool>>, EngineError> {
        match self.tools {
            None => Ok(None),
            Some(None) => Ok(Some(Vec::new())),
            Some(Some(tools)) => {
                check_tool_names(tools, "tools")?;
                Tool::list_from_json(tools.get()).map(Some)
            }
        }
    }
}

pub use recto_lists::counter_named;

/// Parses strategies, separated by commas, and returns their canonical names. `keepRecent` and
/// `keep_recent` mean `keep-recent`. The error lists the known names.
pub fn read_strategies(names: &str) -> Result<String, String> {
    let plain: Vec<String> = names.split(',').map(|name| with_hyphens(name.trim())).collect();
    let known = Strategy::list(&plain.join(",")).map_err(|_| {
        let given: String = names.trim().chars().take(60).collect();
        format!("there is no strategy {given:?}; use {}", Strategy::NAMES.join(", "))
    })?;
    Ok(known.into_iter().map(Strategy::name).collect::<Vec<_>>().join(","))
}

fn with_hyphens(name: &str) -> String {
    let mut plain = String::new();
    for (at, character) in name.char_indices() {
        if character.is_ascii_uppercase() && at > 0 {
            plain.push('-');
        }
        plain.push(character.to_ascii_lowercase());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_read_by_their_names_only() {
        for name in Strategy::NAMES {
            assert_eq!(read_strategies(name).as_deref(), Ok(name));
        }
        assert_eq!(read_strategies("keepRecent").as_deref(), Ok("keep-recent"));
        assert_eq!(
            read_strategies("clear_tool_results, summarise").as_deref(),
            Ok("clear-tool-results,summarise")
        );
        assert_eq!(read_strategies(DEFAULT_STRATEGY).as_deref(), Ok(DEFAULT_STRATEGY));
        for nonsense in ["", "foo", "keep", "keep-recent,", "keep-recent,foo", "\u{1b}[31m"] {
            let refused = read_strategies(nonsense).unwrap_err();
            assert!(refused.contains("keep-system-and-recent") && !refused.contains('\u{1b}'));
        }
    }
}
