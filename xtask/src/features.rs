//! Which features are built together.
//!
//! `--all-features` would switch on features that are not meant to meet: `sum-tree/tiny-nodes`
//! makes every tree in the workspace a different one. So the full set is everything that the
//! packages declare, without those and without whatever turns them on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Features that change the normal build, each with the step that builds it instead.
const APART: &[&str] = &[
    TINY_NODES, // tested by its own step of `cargo xtask test`
];

/// Tree nodes of a few entries, so that short sequences make deep trees.
pub(crate) const TINY_NODES: &str = "sum-tree/tiny-nodes";

/// The same in the engine, where it also lowers the sizes at which it goes another way.
pub(crate) const TINY_ENGINE: &str = "recto-core/tiny-nodes";

/// All features of the workspace, as `package/feature`, each with what it turns on.
pub(crate) struct Features(BTreeMap<String, Vec<String>>);

impl Features {
    pub(crate) fn from_metadata(metadata: &Value) -> Self {
        let mut all = BTreeMap::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let name = package["name"].as_str().unwrap_or_default();
            for (feature, enables) in package["features"].as_object().into_iter().flatten() {
                let enables = enables.as_array().into_iter().flatten();
                let enables = enables.filter_map(Value::as_str).map(|e| qualified(name, e));
                all.insert(format!("{name}/{feature}"), enables.collect());
            }
        }
        Self(all)
    }

    /// Every feature that can be built together with all others, for `--features`.
    pub(crate) fn full(&self) -> Vec<&str> {
        let apart = self.turning_on(APART);
        let all = self.0.keys().map(String::as_str);
        all.filter(|f| !apart.contains(f) && !f.ends_with("/default")).collect()
    }

    /// Whether a build without `--features` already has all of these.
    pub(crate) fn are_default(&self, features: &[&str]) -> bool {
        let defaults = self.turned_on_by_default();
        features.iter().all(|feature| defaults.contains(feature))
    }

    /// What the packages' `default` features turn on, however indirectly.
    fn turned_on_by_default(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&str> = self.0.keys().map(String::as_str).collect();
        next.retain(|feature| feature.ends_with("/default"));
        while let Some(feature) = next.pop() {
            if found.insert(feature) {
                next.extend(self.0.get(feature).into_iter().flatten().map(String::as_str));
            }
        }
        found
    }

    /// The given features and all that turn them on, however indirectly.
    fn turning_on<'a>(&'a self, given: &[&'a str]) -> BTreeSet<&'a str> {
        let mut found: BTreeSet<&str> = given.iter().copied().collect();
        loop {
            let before = found.len();
            for (feature, enables) in &self.0 {
                if enables.iter().any(|e| found.contains(e.as_str())) {
                    found.insert(feature);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }
}

/// `--features a,b`, or nothing for the empty set.
pub(crate) fn arguments(features: &[&str]) -> Vec<String> {
    if features.is_empty() {
        return Vec::new();
    }
    vec!["--features".to_owned(), features.join(",")]
}

/// `extra` inside package `recto` → `recto/extra`; `other?/extra` → `other/extra`.
fn qualified(package: &str, enables: &str) -> String {
    match enables.split_once('/') {
        Some((dependency, feature)) => {
            format!("{}/{feature}", dependency.trim_end_matches('?'))
        }
        None => format!("{package}/{enables}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(packages: Value) -> Features {
        Features::from_metadata(&serde_json::json!({ "packages": packages }))
    }

    #[test]
    fn the_full_set_leaves_out_tiny_nodes_and_what_turns_them_on() {
        let features = features(serde_json::json!([
            { "name": "sum-tree", "features": { "tiny-nodes": [], "serde": ["dep:serde"] } },
            { "name": "recto-core", "features": {
                "default": ["tokens"],
                "tokens": [],
                "deep": ["deeper"],
                "deeper": ["sum-tree?/tiny-nodes"],
            } },
        ]));
        assert_eq!(features.full(), ["recto-core/tokens", "sum-tree/serde"]);
    }

    #[test]
    fn default_features_are_followed_through_others() {
        let features = features(serde_json::json!([
            { "name": "recto", "features": {
                "default": ["exact"],
                "exact": ["recto-core/tokens"],
                "sqlite": [],
            } },
            { "name": "recto-core", "features": { "tokens": [] } },
        ]));
        assert!(features.are_default(&["recto/exact", "recto-core/tokens"]));
        assert!(!features.are_default(&["recto/exact", "recto/sqlite"]));
        assert!(features.are_default(&[]));
    }

    #[test]
    fn no_features_make_no_argument() {
        assert!(arguments(&[]).is_empty());
        assert_eq!(arguments(&["a/x", "b/y"]), ["--features", "a/x,b/y"]);
    }
}
