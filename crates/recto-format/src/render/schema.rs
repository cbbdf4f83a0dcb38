//! Input schemas of tools in a form that providers accept: an object with its properties at the top
//! level.
//!
//! Some providers reject alternatives (`anyOf` and others) at the top level of a schema. For them, the
//! alternatives are merged into one object. The merged schema of an `allOf`, or of alternatives of which
//! only one allows an object, is equivalent. The merged schema of several alternatives has the properties
//! of all of them, and requires those that each of them requires.

use std::borrow::Cow;

use crate::json::{self, Str};

/// Maximum depth of alternatives that are merged. References may form a cycle.
const MAX_DEPTH: usize = 8;
/// Maximum number of schemas that are visited in a merge.
const MAX_VISITED: usize = 1_000;

/// Keywords that are merged.
const MERGED_KEYWORDS: [&str; 8] =
    ["type", "properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref"];
/// Keywords that do not restrict the input.
const ANNOTATIONS: [&str; 8] =
    ["description", "title", "$schema", "$id", "$defs", "definitions", "$comment", "examples"];

/// How a schema was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// The schema is equivalent.
    Rewritten,
    /// The schema allows more inputs than before.
    Looser,
}

/// The schema with an explicit `type` and `properties`, as providers require, and without the keywords
/// `rejected` at its top level. `None` if the schema does not describe an object.
pub(super) fn of_object<'a>(schema: &'a str, rejected: &[&str]) -> Option<(Cow<'a, str>, Change)> {
    if !json::is_object(schema) || !json::lone_surrogates(schema).is_empty() {
        return None;
    }
    let kind = json::get(schema, "type");
    if kind.is_some_and(|kind| !allows_object(kind)) {
        return None;
    }
    let has_properties = json::get(schema, "properties").is_some();
    if rejected.iter().any(|key| json::get(schema, key).is_some()) {
        return merged(schema, rejected);
    }
    if kind == Some("\"object\"") && has_properties {
        return Some((Cow::Borrowed(schema), Change::None));
    }
    let mut completed = String::from(r#"{"type":"object""#);
    if !has_properties {
        completed.push_str(r#","properties":{}"#);
    }
    json::push_other_fields(schema, &["type"], &mut completed);
    completed.push('}');
    Some((Cow::Owned(completed), Change::None))
}

/// True if a `type` keyword allows objects. The input of a tool is always an object.
fn allows_object(kind: &str) -> bool {
    kind == "\"object\"" || (json::is_list(kind) && json::items(kind).any(allows_object))
}

fn merged<'a>(schema: &str, rejected: &[&str]) -> Option<(Cow<'a, str>, Change)> {
    let mut merger = Merger { root: schema, visited: 0 };
    let mut shape = merger.shape(schema, 0)?;
    let others = rejected.iter().filter(|key| !MERGED_KEYWORDS.contains(key));
    shape.is_exact &= others.clone().all(|key| json::get(schema, key).is_none());
    // After the merge, a reference into an alternative has no target.
    let is_referenced = |key: &str| schema.contains(&format!("\"#/{key}"));
    if ["anyOf", "oneOf", "allOf"].into_iter().any(is_referenced) {
        shape = Shape { is_exact: false, ..Shape::default() };
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
    let known: Vec<&str> = MERGED_KEYWORDS.iter().chain(rejected).copied().collect();
    json::push_other_fields(schema, &known, &mut out);
    out.push('}');
    let change = if shape.is_exact { Change::Rewritten } else { Change::Looser };
    Some((Cow::Owned(out), change))
}

/// The requirements of a schema on an object.
#[derive(Clone, Default)]
struct Shape {
    properties: Vec<(String, String)>,
    required: Vec<String>,
    additional: Option<String>,
    /// True if the schema has no further requirements.
    is_exact: bool,
}

impl Shape {
    fn anything(is_exact: bool) -> Shape {
        Shape { is_exact, ..Shape::default() }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.properties.iter().find(|(name, _)| name == key).map(|(_, schema)| &**schema)
    }

    fn has_no_properties(&self) -> bool {
        self.properties.is_empty() && self.additional.is_none()
    }

    /// Adds a property. If the property exists, the keyword combines both schemas.
    fn add(&mut self, key: &str, schema: &str, keyword: &str) {
        match self.properties.iter_mut().find(|(name, _)| name == key) {
            Some((_, known)) if known == schema => {}
            Some((_, known)) => *known = format!(r#"{{"{keyword}":[{known},{schema}]}}"#),
            None => self.properties.push((key.to_owned(), schema.to_owned())),
        }
    }

    /// The requirements of both shapes.
    fn and(mut self, other: Shape) -> Shape {
        self.is_exact &= other.is_exact;
        let has_same_keys = self.properties.len() == other.properties.len()
            && other.properties.iter().all(|(key, _)| self.get(key).is_some());
        self.additional = match (self.additional.take(), &other.additional) {
            (None, None) => None,
            (Some(own), None) if other.has_no_properties() => Some(own),
            (None, Some(_)) if self.properties.is_empty() => other.additional.clone(),
            (Some(own), Some(others)) if own == *others && has_same_keys => Some(own),
            _ => {
                // A property can be additional in one schema and known in the other.
                self.is_exact = false;
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

    /// The requirements that both shapes share.
    fn or(mut self, other: Shape) -> Shape {
        self.is_exact = false;
        for (key, schema) in &other.properties {
            self.add(key, schema, "anyOf");
        }
        self.required.retain(|key| other.required.contains(key));
        self.additional =
            self.additional.take().filter(|own| Some(own) == other.additional.as_ref());
        self
    }
}

/// Merges the alternatives of a schema.
struct Merger<'a> {
    root: &'a str,
    /// Number of schemas visited.
    visited: usize,
}

impl<'a> Merger<'a> {
    /// The requirements of a schema on an object; `None` if the schema allows no object.
    fn shape(&mut self, schema: &'a str, depth: usize) -> Option<Shape> {
        self.visited += 1;
        if schema == "false" {
            return None;
        }
        if !json::is_object(schema) || depth > MAX_DEPTH || self.visited > MAX_VISITED {
            return Some(Shape::anything(schema == "true"));
        }
        if json::get(schema, "type").is_some_and(|kind| !allows_object(kind)) {
            return None;
        }
        let mut shape = own_shape(schema, depth > 0);
        if let Some(reference) = json::get_str(schema, "$ref") {
            let found = match self.resolve(&reference.text()) {
                Some(found) => self.shape(found, depth + 1)?,
                None => Shape::anything(false),
            };
            shape = shape.and(found);
        }
        for part in schemas_in(schema, "allOf") {
            shape = shape.and(self.shape(part, depth + 1)?);
        }
        for keyword in ["anyOf", "oneOf"] {
            if json::get(schema, keyword).is_none() {
                continue;
            }
            let alternatives: Vec<Shape> =
                schemas_in(schema, keyword).filter_map(|it| self.shape(it, depth + 1)).collect();
            shape = shape.and(alternatives.into_iter().reduce(Shape::or)?);
        }
        Some(shape)
    }

    /// The schema that a reference into the root schema names.
    fn resolve(&self, reference: &str) -> Option<&'a str> {
        let (list, name) = reference.strip_prefix("#/")?.split_once('/')?;
        let is_list = ["$defs", "definitions"].contains(&list);
        json::get(json::get(self.root, list).filter(|_| is_list)?, name)
    }
}

/// The requirements of a schema without its alternatives. If the schema is nested, keywords that cannot
/// be merged are lost.
fn own_shape(schema: &str, is_nested: bool) -> Shape {
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
                let is_merged = MERGED_KEYWORDS.contains(&key) || ANNOTATIONS.contains(&key);
                shape.is_exact &= is_merged || !is_nested;
            }
        }
    }
    shape
}

fn schemas_in<'a>(schema: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
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
    fn a_merged_all_of_is_equivalent() {
        let schema = r##"{"description":"d","allOf":[{"$ref":"#/$defs/a"},{"type":"object","properties":{"b":{"type":"number"}},"required":["b"]}],"$defs":{"a":{"properties":{"a":{"type":"string"}},"required":["a"]}}}"##;
        let expected = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}},"required":["a","b"],"description":"d","$defs":{"a":{"properties":{"a":{"type":"string"}},"required":["a"]}}}"#;
        assert_eq!(shaped(schema), (expected.to_owned(), Change::Rewritten));
        // Only one alternative allows an object.
        let schema = r#"{"anyOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"type":"null"}]}"#;
        let expected = r#"{"type":"object","properties":{"a":{}},"additionalProperties":false}"#;
        assert_eq!(shaped(schema), (expected.to_owned(), Change::Rewritten));
    }

    #[test]
    fn several_alternatives_require_what_all_of_them_require() {
        let schema = r#"{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"oneOf":[{"properties":{"a":{"type":"string"},"n":{"type":"number"}},"required":["a","n"]},{"properties":{"a":{"type":"null"}},"required":["a"]}]}"#;
        let expected = r#"{"type":"object","properties":{"id":{"type":"string"},"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"n":{"type":"number"}},"required":["id","a"]}"#;
        assert_eq!(shaped(schema), (expected.to_owned(), Change::Looser));
    }

    #[test]
    fn cycles_end_and_an_unknown_reference_allows_anything() {
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
