//! Schemas of tools' inputs as providers take them: of an object, with its properties at the top.
//!
//! Some providers refuse a choice at the top of a schema (`anyOf`). There what the choice says is
//! gathered into one object. `allOf` and a choice with one way that an object can go say the same then;
//! of several ways, the object has the properties of all and demands what all of them demand.

use std::borrow::Cow;

use crate::json::{self, Str};

/// How deep choices are looked into, and how many schemas in all: references may form a ring.
const DEEPEST: usize = 8;
const MOST: usize = 1_000;

/// What is gathered, or stands beside it and says nothing about the input.
const GATHERED: [&str; 8] =
    ["type", "properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref"];
const BESIDE: [&str; 8] =
    ["description", "title", "$schema", "$id", "$defs", "definitions", "$comment", "examples"];

/// What became of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// It is written otherwise and says the same.
    Rewritten,
    /// It says less than it did.
    Looser,
}

/// A schema that says that it is one of an object, and which properties that has, as providers demand;
/// with nothing of `refused` at its top. `None` if it is none of an object.
pub(super) fn of_object<'a>(schema: &'a str, refused: &[&str]) -> Option<(Cow<'a, str>, Change)> {
    if !json::is_object(schema) || !json::lone_surrogates(schema).is_empty() {
        return None;
    }
    let kind = json::get(schema, "type");
    if kind.is_some_and(|kind| !says_object(kind)) {
        return None;
    }
    let has_properties = json::get(schema, "properties").is_some();
    if refused.iter().any(|key| json::get(schema, key).is_some()) {
        return gathered(schema, refused);
    }
    if kind == Some("\"object\"") && has_properties {
        return Some((Cow::Borrowed(schema), Change::None));
    }
    let mut whole = String::from(r#"{"type":"object""#);
    if !has_properties {
        whole.push_str(r#","properties":{}"#);
    }
    json::push_other_fields(schema, &["type"], &mut whole);
    whole.push('}');
    Some((Cow::Owned(whole), Change::None))
}

/// Whether a type is that of objects. A tool's input is never anything else.
fn says_object(kind: &str) -> bool {
    kind == "\"object\"" || (json::is_list(kind) && json::items(kind).any(says_object))
}

fn gathered<'a>(schema: &str, refused: &[&str]) -> Option<(Cow<'a, str>, Change)> {
    let mut gathering = Gathering { root: schema, looked_at: 0 };
    let mut shape = gathering.shape(schema, 0)?;
    let others = refused.iter().filter(|key| !GATHERED.contains(key));
    shape.is_same &= others.clone().all(|key| json::get(schema, key).is_none());
    // What was inside a choice is not found there any more.
    let is_lost = |key: &str| schema.contains(&format!("\"#/{key}"));
    if ["anyOf", "oneOf", "allOf"].into_iter().any(is_lost) {
        shape = Shape { is_same: false, ..Shape::default() };
    }
    let mut out = String::from(r#"{"type":"object","properties":{"#);
    for (number, (key, value)) in shape.properties.iter().enumerate() {
        out.push_str(if number > 0 { "," } else { "" });
        json::push_string(key, &mut out);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    if !shape.required.is_empty() {
        let required: Vec<String> = shape.required.iter().map(|key| json::string(key)).collect();
        out.push_str(&format!(r#","required":[{}]"#, required.join(",")));
    }
    if let Some(additional) = shape.additional {
        out.push_str(&format!(r#","additionalProperties":{additional}"#));
    }
    let known: Vec<&str> = GATHERED.iter().chain(refused).copied().collect();
    json::push_other_fields(schema, &known, &mut out);
    out.push('}');
    let change = if shape.is_same { Change::Rewritten } else { Change::Looser };
    Some((Cow::Owned(out), change))
}

/// What a schema demands of an object.
#[derive(Clone, Default)]
struct Shape {
    properties: Vec<(String, String)>,
    required: Vec<String>,
    additional: Option<String>,
    /// Whether that is all it says.
    is_same: bool,
}

impl Shape {
    fn anything(is_same: bool) -> Shape {
        Shape { is_same, ..Shape::default() }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|(name, _)| name == key).map(|(_, schema)| &**schema)
    }

    fn says_nothing(&self) -> bool {
        self.properties.is_empty() && self.additional.is_none()
    }

    /// Adds a property; where it is there already, `word` says how the two are tied.
    fn add(&mut self, key: &str, schema: &str, word: &str) {
        match self.properties.iter_mut().find(|(name, _)| name == key) {
            Some((_, known)) if known == schema => {}
            Some((_, known)) => *known = format!(r#"{{"{word}":[{known},{schema}]}}"#),
            None => self.properties.push((key.to_owned(), schema.to_owned())),
        }
    }

    /// Both at once.
    fn and(mut self, other: Shape) -> Shape {
        self.is_same &= other.is_same;
        let has_same_keys = self.properties.len() == other.properties.len()
            && other.properties.iter().all(|(key, _)| self.get(key).is_some());
        self.additional = match (self.additional.take(), &other.additional) {
            (None, None) => None,
            (Some(own), None) if other.says_nothing() => Some(own),
            (None, Some(_)) if self.properties.is_empty() => other.additional.clone(),
            (Some(own), Some(others)) if own == *others && has_same_keys => Some(own),
            _ => {
                self.is_same = false; // what is additional to one is not to the other
                None
            }
        };
        for (key, schema) in &other.properties {
            self.add(key, schema, "allOf");
        }
        for key in other.required {
            if !self.required.contains(&key) {
                self.required.push(key);
            }
        }
        self
    }

    /// One of the two.
    fn or(mut self, other: Shape) -> Shape {
        self.is_same = false;
        for (key, schema) in &other.properties {
            self.add(key, schema, "anyOf");
        }
        self.required.retain(|key| other.required.contains(key));
        self.additional =
            self.additional.take().filter(|own| Some(own) == other.additional.as_ref());
        self
    }
}

struct Gathering<'a> {
    root: &'a str,
    looked_at: usize,
}

impl<'a> Gathering<'a> {
    /// What a schema demands of an object; `None` if it takes none.
    fn shape(&mut self, schema: &'a str, depth: usize) -> Option<Shape> {
        self.looked_at += 1;
        if schema == "false" {
            return None;
        }
        if !json::is_object(schema) || depth > DEEPEST || self.looked_at > MOST {
            return Some(Shape::anything(schema == "true"));
        }
        if json::get(schema, "type").is_some_and(|kind| !says_object(kind)) {
            return None;
        }
        let mut shape = own_shape(schema, depth > 0);
        if let Some(place) = json::get_str(schema, "$ref") {
            let found = match self.find(&place.text()) {
                Some(found) => self.shape(found, depth + 1)?,
                None => Shape::anything(false),
            };
            shape = shape.and(found);
        }
        for part in listed(schema, "allOf") {
            shape = shape.and(self.shape(part, depth + 1)?);
        }
        for choice in ["anyOf", "oneOf"] {
            if json::get(schema, choice).is_none() {
                continue;
            }
            let ways = listed(schema, choice).filter_map(|way| self.shape(way, depth + 1));
            let ways: Vec<Shape> = ways.collect();
            shape = shape.and(ways.into_iter().reduce(Shape::or)?);
        }
        Some(shape)
    }

    /// What a reference into this schema names.
    fn find(&self, place: &str) -> Option<&'a str> {
        let (list, name) = place.strip_prefix("#/")?.split_once('/')?;
        let is_list = ["$defs", "definitions"].contains(&list);
        json::get(json::get(self.root, list).filter(|_| is_list)?, name)
    }
}

/// What a schema says beside its choices. `is_inside`: other words of it are lost.
fn own_shape(schema: &str, is_inside: bool) -> Shape {
    let mut shape = Shape::anything(true);
    for (key, value) in json::fields(schema) {
        match &*key.text() {
            "properties" if json::is_object(value) => {
                json::fields(value)
                    .for_each(|(key, schema)| shape.add(&key.text(), schema, "allOf"));
            }
            "required" => {
                let keys = json::items(value).filter_map(Str::of);
                shape.required.extend(keys.map(|key| key.text().into_owned()));
            }
            "additionalProperties" if value != "true" => shape.additional = Some(value.to_owned()),
            key => {
                let is_told = GATHERED.contains(&key) || BESIDE.contains(&key);
                shape.is_same &= is_told || !is_inside;
            }
        }
    }
    shape
}

fn listed<'a>(schema: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    json::get(schema, key).map(json::items).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

    fn shaped(schema: &str) -> (String, Change) {
        let (json, change) = of_object(schema, &CHOICES).unwrap();
        (json.into_owned(), change)
    }

    #[test]
    fn what_holds_all_at_once_says_the_same_in_one_object() {
        let schema = r##"{"description":"d","allOf":[{"$ref":"#/$defs/a"},{"type":"object","properties":{"b":{"type":"number"}},"required":["b"]}],"$defs":{"a":{"properties":{"a":{"type":"string"}},"required":["a"]}}}"##;
        let expected = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}},"required":["a","b"],"description":"d","$defs":{"a":{"properties":{"a":{"type":"string"}},"required":["a"]}}}"#;
        assert_eq!(shaped(schema), (expected.to_owned(), Change::Rewritten));
        // Of the ways, an object can go only one.
        let schema = r#"{"anyOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"type":"null"}]}"#;
        let expected = r#"{"type":"object","properties":{"a":{}},"additionalProperties":false}"#;
        assert_eq!(shaped(schema), (expected.to_owned(), Change::Rewritten));
    }

    #[test]
    fn of_several_ways_the_object_demands_what_all_demand() {
        let schema = r#"{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"oneOf":[{"properties":{"a":{"type":"string"},"n":{"type":"number"}},"required":["a","n"]},{"properties":{"a":{"type":"null"}},"required":["a"]}]}"#;
        let expected = r#"{"type":"object","properties":{"id":{"type":"string"},"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"n":{"type":"number"}},"required":["id","a"]}"#;
        assert_eq!(shaped(schema), (expected.to_owned(), Change::Looser));
    }

    #[test]
    fn rings_end_and_what_cannot_be_found_is_anything() {
        let ring = r##"{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}"##;
        assert_eq!(shaped(ring).1, Change::Looser);
        let lost = r##"{"anyOf":[{"properties":{"a":{"$ref":"#/anyOf/1"}}},{"properties":{}}]}"##;
        assert_eq!(
            shaped(lost),
            (r#"{"type":"object","properties":{}}"#.to_owned(), Change::Looser)
        );
        assert!(of_object(r#"{"anyOf":[{"type":"string"}]}"#, &CHOICES).is_none());
        let plain = r#"{"type":"object","properties":{"a":{"anyOf":[{},{}]}}}"#;
        assert_eq!(shaped(plain), (plain.to_owned(), Change::None));
    }
}
