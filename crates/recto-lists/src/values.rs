//! Types of fields: providers and formats, by their names.

use std::borrow::Cow;

use recto_core::Counter;
use recto_format::{Format, Target};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

/// A type that is written as one of several names.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident($inner:ty), $what:literal, $all:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let name = Cow::<'de, str>::deserialize(deserializer)?;
                <$inner>::named(&name).map($name).ok_or_else(|| {
                    let known: Vec<&str> = $all.iter().map(|known| known.name()).collect();
                    let known = known.join(", ");
                    de::Error::custom(format_args!("there is no {} {name:?}; use {known}", $what))
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.name())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let known: Vec<&str> = $all.iter().map(|known| known.name()).collect();
                json_schema!({ "enum": known })
            }
        }
    };
}

named! {
    /// A provider: `anthropic`, `openai-chat`, `openai-responses`, `gemini` or `bedrock-converse`.
    Provider(Target), "provider", Target::ALL
}
named! {
    /// The format of a transcript.
    TranscriptFormat(Format), "format", Format::ALL
}

/// Schemas of values of the engine, which have no schema of their own.
pub mod schema {
    use super::*;

    macro_rules! by_hand {
        ($($(#[$doc:meta])* $name:ident = $schema:expr;)*) => {
            $($(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

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

    by_hand! {
        /// Any JSON value.
        Anything = json_schema!({ "description": "Any JSON value." });

        /// A role.
        Role = json_schema!({ "enum": ["system", "user", "assistant", "tool"] });

        /// The name of a token counter.
        CounterName = json_schema!({ "enum": <dyn Counter>::BUILT_IN });
    }
}
