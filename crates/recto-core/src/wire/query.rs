//! Queries in JSON.

use super::body::Body;
use crate::json::{self, Kind};
use crate::query::{Pick, Query, QueryAt};
use crate::{BatchIndex, Error, RoleSet, Version};

const FIELDS: &[&str] = &[
    "scope",
    "role",
    "roles",
    "contains",
    "excludes",
    "mark",
    "from",
    "to",
    "range",
    "first",
    "last",
    "batchIndex",
    "version",
];

impl Query {
    /// Reads a query.
    ///
    /// ```
    /// use recto_core::Query;
    ///
    /// Query::from_json(r#"{"role": "user", "contains": "Lisbon", "last": 3}"#)?;
    /// assert!(Query::from_json(r#"{"first": 1, "last": 1}"#).is_err());
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Query, Error> {
        let text = json::value(text)?;
        let fields = json::object(text).ok_or_else(|| {
            Error::operation(format!("a query is an object, not {}", Kind::of(text).name()))
        })?;
        let body = Body::new("a query", &fields);
        body.allow(FIELDS)?;
        at_most_one(&body, &["role", "roles"])?;
        at_most_one(&body, &["range", "first", "last"])?;
        at_most_one(&body, &["batchIndex", "version"])?;
        let roles = match body.role("role")? {
            Some(role) => Some(RoleSet::from(role)),
            None => body.roles("roles")?,
        };
        let mark = body.string("mark")?;
        let time = |field| {
            let number: Option<u64> = body.number(field)?;
            Ok::<_, Error>(number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)))
        };
        let pick = match (body.range()?, body.size("first")?, body.size("last")?) {
            (Some(range), _, _) => Pick::Range(range),
            (_, Some(count), _) => Pick::First(count),
            (_, _, Some(count)) => Pick::Last(count),
            _ => Pick::All,
        };
        let at = match (body.size("batchIndex")?, body.number("version")?) {
            (Some(batch), _) => QueryAt::Batch(BatchIndex(batch)),
            (_, Some(version)) => {
                QueryAt::Version(Version(u32::try_from(version).unwrap_or(u32::MAX)))
            }
            _ => QueryAt::Now,
        };
        let query = Query {
            scope: body.scope()?,
            roles,
            contains: body.words("contains", true)?,
            excludes: body.words("excludes", true)?,
            mark: mark.map(|mark| mark.into_owned()),
            from: time("from")?,
            to: time("to")?,
            pick,
            at,
        };
        query.check()?;
        Ok(query)
    }
}

fn at_most_one(body: &Body<'_>, fields: &[&str]) -> Result<(), Error> {
    let given: Vec<&str> = fields.iter().copied().filter(|field| body.has(field)).collect();
    match given[..] {
        [one, other, ..] => {
            let reason = format!("{one} and {other} exclude each other; give one of them");
            Err(Error::operation_field(other, reason))
        }
        _ => Ok(()),
    }
}
