//! An object as a list of pairs, for values of any type.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// The names and values of an object, in order. Names that are given twice are kept.
///
/// With raw values, reading and writing an object keeps the spelling of each value:
///
/// ```
/// use recto_json::Pairs;
/// use serde_json::value::RawValue;
///
/// let mut fields: Pairs<&RawValue> = serde_json::from_str(r#"{"b": 1.50, "a": {"x" : 1}}"#)?;
/// fields.0.retain(|(name, _)| name != "a");
/// assert_eq!(fields.to_json(), r#"{"b":1.50}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// [`Fields`](crate::Fields) borrows names and values from the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairs<T>(pub Vec<(String, T)>);

impl<T> Pairs<T> {
    /// Whether the object has a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// A name that is given twice.
    pub fn repeated_name(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

impl<T: Serialize> Pairs<T> {
    /// The object as JSON text.
    ///
    /// # Panics
    /// If a value cannot be written as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("the values can be written")
    }
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Pairs(Vec::new())
    }
}

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::with_capacity(4);
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Object(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn an_object_keeps_its_text() {
        let json = r#"{"b":1.50,"a":123456789012345678901234567890,"b":{"x" : 1e400},"\"":null}"#;
        let pairs: Pairs<Box<RawValue>> = serde_json::from_str(json).unwrap();
        assert_eq!(pairs.to_json(), json);
        assert_eq!(pairs.repeated_name(), Some("b"));
        assert!(pairs.has("\"") && !pairs.has("x"));
        assert!(serde_json::from_str::<Pairs<Box<RawValue>>>("[]").is_err());
        assert_eq!(serde_json::from_str::<Pairs<u8>>(r#"{"a": 1}"#).unwrap().repeated_name(), None);
    }
}
