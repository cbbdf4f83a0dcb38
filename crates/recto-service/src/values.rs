//! Types of fields that several requests share.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use recto::Version;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// `true`: the value of a field that names a request without options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct True;

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<True, D::Error> {
        struct OnlyTrue;
        impl Visitor<'_> for OnlyTrue {
            type Value = True;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true")
            }
            fn visit_bool<E: de::Error>(self, given: bool) -> Result<True, E> {
                match given {
                    true => Ok(True),
                    false => Err(E::invalid_value(de::Unexpected::Bool(false), &self)),
                }
            }
        }
        deserializer.deserialize_any(OnlyTrue)
    }
}

impl JsonSchema for True {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "True".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": true })
    }
}

/// `true`, or an object with options. `true` means the defaults of all options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrueOr<T>(pub T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for TrueOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TrueOr<T>, D::Error> {
        struct TrueOrObject<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for TrueOrObject<T> {
            type Value = TrueOr<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true or an object with options")
            }
            fn visit_bool<E: de::Error>(self, given: bool) -> Result<TrueOr<T>, E> {
                match given {
                    true => Ok(TrueOr(T::default())),
                    false => Err(E::invalid_value(de::Unexpected::Bool(false), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TrueOr<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(TrueOr)
            }
        }
        deserializer.deserialize_any(TrueOrObject(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for TrueOr<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("TrueOr_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let options = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "const": true }, options] })
    }
}

/// The number of a version. A number above `u32::MAX` is read as `u32::MAX`, which is never a
/// version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(pub Version);

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<At, D::Error> {
        let number = u64::deserialize(deserializer)?;
        Ok(At(Version(u32::try_from(number).unwrap_or(u32::MAX))))
    }
}

impl JsonSchema for At {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0 })
    }
}

/// An additional field of the response to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Include {
    /// `state`: the visible messages and the batch snapshots after the change.
    State,
}

/// The log entries that a request reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Scope {
    /// The visible entries.
    #[default]
    Visible,
    /// The whole log.
    All,
}

impl From<Scope> for recto::Scope {
    fn from(scope: Scope) -> recto::Scope {
        match scope {
            Scope::Visible => recto::Scope::Visible,
            Scope::All => recto::Scope::All,
        }
    }
}

/// A struct that is read from an object only. Serde would also read it from a list of its fields.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        struct OnlyObject<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyObject<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(OnlyObject(PhantomData))
    }
}

/// Reads a struct from an object, and not from a list.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// [`object`] for an optional field.
pub(crate) fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|Object(value)| value))
}

/// Reads a field for which `null` means the default.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
