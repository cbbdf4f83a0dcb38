//! A JSON object as a list of pairs. Order, repeated names and the spelling of values are kept.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The names and values of an object.
#[derive(Debug)]
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Pairs(Vec::new())
    }
}

impl Pairs<Box<RawValue>> {
    /// The object as JSON text.
    pub(super) fn to_json(&self) -> String {
        let fields = self.0.iter().map(|(name, value)| format!("{}:{value}", Value::from(&**name)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs<T>, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_its_text() {
        let json = r#"{"b":1.50,"a":123456789012345678901234567890,"b":{"x" : 1e400},"\"":null}"#;
        let pairs: Pairs<Box<RawValue>> = serde_json::from_str(json).unwrap();
        assert_eq!(pairs.to_json(), json);
        assert!(serde_json::from_str::<Pairs<Box<RawValue>>>("[]").is_err());
    }
}
