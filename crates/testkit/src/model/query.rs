//! Queries (section 6).

use serde_json::Value;

use super::Model;
use super::operation::{Range, Scope};
use super::refusal::Refusal;
use super::role::Role;
use super::wire::Fields;

/// A query whose fields have been checked.
pub(super) struct Query {
    at: QueryAt,
    scope: Scope,
    roles: Option<Vec<Role>>,
    contains: Option<Vec<String>>,
    excludes: Option<Vec<String>>,
    mark: Option<String>,
    from: Option<u64>,
    to: Option<u64>,
    pick: Pick,
}

/// The view, marks and log that a query reads.
enum QueryAt {
    Now,
    /// The last view of a batch, with the present log and marks.
    Batch(usize),
    /// A version: its view, its marks and its log.
    Version(u64),
}

/// Selects from the entries that pass the filters.
enum Pick {
    All,
    Range(Range),
    First(usize),
    Last(usize),
}

const FIELDS: [&str; 13] = [
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
    pub(super) fn read(json: &Value) -> Result<Query, Refusal> {
        let fields = Fields::of(json)?;
        fields.only(&FIELDS)?;
        at_most_one(&fields, &["role", "roles"])?;
        at_most_one(&fields, &["range", "first", "last"])?;
        at_most_one(&fields, &["batchIndex", "version"])?;
        Ok(Query {
            at: match (fields.count("batchIndex")?, fields.number("version")?) {
                (Some(batch), _) => QueryAt::Batch(batch),
                (None, Some(version)) => QueryAt::Version(version),
                (None, None) => QueryAt::Now,
            },
            scope: fields.scope()?,
            roles: match fields.role("role")? {
                Some(role) => Some(vec![role]),
                None => fields.roles("roles")?,
            },
            contains: fields.one_or_more_labels("contains")?,
            excludes: fields.one_or_more_labels("excludes")?,
            mark: fields.label("mark")?,
            from: fields.number("from")?,
            to: fields.number("to")?,
            pick: match (fields.count("first")?, fields.count("last")?) {
                (Some(count), _) => Pick::First(count),
                (None, Some(count)) => Pick::Last(count),
                (None, None) => match fields.range("range")? {
                    Some(range) => {
                        range.require_order()?;
                        Pick::Range(range)
                    }
                    None => Pick::All,
                },
            },
        })
    }

    /// The index of every entry that the query finds and, if it is visible, its position.
    pub(super) fn entries(&self, model: &Model) -> Result<Vec<(usize, Option<usize>)>, Refusal> {
        let now = model.newest();
        let (view, marks, log_len) = match self.at {
            QueryAt::Now => (now.view(), &now.marks, model.log_len()),
            QueryAt::Batch(batch) => (&now.batch(batch)?.view[..], &now.marks, model.log_len()),
            QueryAt::Version(version) => {
                let then = model.version_record(version)?;
                (then.state.view(), &then.state.marks, then.log_len)
            }
        };
        let is_marked = |index: usize| {
            let set = |mark: &String| marks.get(mark).is_some_and(|set| set.contains(&index));
            self.mark.as_ref().is_none_or(set)
        };
        let base: Vec<usize> = match self.scope {
            Scope::Visible => view.to_vec(),
            Scope::All => (0..log_len).collect(),
        };
        let left: Vec<usize> = base
            .into_iter()
            .filter(|&index| is_marked(index) && self.matches(model, index))
            .collect();
        let position = |index| view.iter().position(|&visible| visible == index);
        Ok(self.pick.of(&left).iter().map(|&index| (index, position(index))).collect())
    }

    fn matches(&self, model: &Model, index: usize) -> bool {
        let contains = |word: &String| model.text(index).contains(word);
        let timestamp = i128::from(model.timestamp(index));
        self.roles.as_ref().is_none_or(|roles| roles.contains(&model.role(index)))
            && self.contains.as_ref().is_none_or(|words| words.iter().any(contains))
            && self.excludes.as_ref().is_none_or(|words| !words.iter().any(contains))
            && self.from.is_none_or(|from| i128::from(from) <= timestamp)
            && self.to.is_none_or(|to| timestamp < i128::from(to))
    }
}

impl Pick {
    fn of<'a>(&self, list: &'a [usize]) -> &'a [usize] {
        match *self {
            Pick::All => list,
            Pick::Range(range) => range.of(list),
            Pick::First(count) => &list[..count.min(list.len())],
            Pick::Last(count) => &list[list.len().saturating_sub(count)..],
        }
    }
}

fn at_most_one(fields: &Fields, names: &[&str]) -> Result<(), Refusal> {
    let given = names.iter().filter(|name| fields.get(name).is_some()).count();
    if given > 1 {
        return Err(Refusal::operation(format!("only one of {} may be given", names.join(", "))));
    }
    Ok(())
}
