//! A small validator for the part of JSON Schema that the schema of requests uses. It does not check `format`,
//! `minItems`, `maxItems` and `maximum`, and accepts a value that fits several schemas of `oneOf`.

use serde_json::Value;

/// Checks a value against a schema. The error says what is wrong.
pub(crate) fn check(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    let Value::Object(rules) = schema else {
        return match schema {
            Value::Bool(true) => Ok(()),
            _ => Err(format!("{value} is not allowed")),
        };
    };
    for (rule, expected) in rules {
        match rule.as_str() {
            "$ref" => {
                let path = expected.as_str().unwrap().strip_prefix('#').unwrap();
                let target =
                    root.pointer(path).ok_or_else(|| format!("{expected} does not exist"))?;
                check(value, target, root)?;
            }
            "type" => check_type(value, expected)?,
            "const" if value != expected => return Err(format!("{value} is not {expected}")),
            "enum" if !expected.as_array().unwrap().contains(value) => {
                return Err(format!("{value} is none of {expected}"));
            }
            "minimum" if value.as_f64().is_some_and(|value| value < expected.as_f64().unwrap()) => {
                return Err(format!("{value} is below {expected}"));
            }
            "anyOf" | "oneOf" => {
                let tried: Vec<Result<(), String>> = expected
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|schema| check(value, schema, root))
                    .collect();
                if !tried.iter().any(Result::is_ok) {
                    return Err(format!("{value} fits none of {tried:?}"));
                }
            }
            "allOf" => {
                for schema in expected.as_array().unwrap() {
                    check(value, schema, root)?;
                }
            }
            "required" => {
                for name in expected.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        return Err(format!("{name} is missing in {value}"));
                    }
                }
            }
            "properties" => {
                for (name, schema) in expected.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        check(value, schema, root).map_err(|reason| format!("{name}: {reason}"))?;
                    }
                }
            }
            "additionalProperties" => {
                let known = rules.get("properties").and_then(Value::as_object);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if !known.is_some_and(|known| known.contains_key(name)) {
                        check(value, expected, root)
                            .map_err(|reason| format!("{name}: {reason}"))?;
                    }
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(item, expected, root)?;
                }
            }
            "prefixItems" => {
                for (item, schema) in
                    value.as_array().into_iter().flatten().zip(expected.as_array().unwrap())
                {
                    check(item, schema, root)?;
                }
            }
            "const" | "enum" | "minimum" | "description" | "title" | "format" | "default"
            | "$defs" | "$schema" | "requests" | "error" | "minItems" | "maxItems" | "maximum" => {}
            unknown => return Err(format!("the validator does not support {unknown}")),
        }
    }
    Ok(())
}

fn check_type(value: &Value, expected: &Value) -> Result<(), String> {
    let is = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other} is not a type"),
    };
    let fits = match expected {
        Value::Array(types) => types.iter().any(is),
        one => is(one),
    };
    if fits { Ok(()) } else { Err(format!("{value} is not of type {expected}")) }
}
