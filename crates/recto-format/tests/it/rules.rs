//! `docs/rules.md` lists all rules.

use std::fmt::Write as _;
use std::path::Path;

use recto_format::{RULES, Rule};

fn row(rule: &Rule) -> String {
    let targets: Vec<&str> = rule.targets.iter().map(|target| target.name()).collect();
    let mut out = format!("## {}\n\n{}.\n\n", rule.name, rule.check);
    let mut line = |name: &str, value: &str| writeln!(out, "- {name}: {value}").unwrap();
    line("providers", &targets.join(", "));
    line("applies to", rule.applies_to);
    line("severity", rule.severity.as_str());
    line("repair", rule.repair);
    for evidence in rule.evidence {
        let kind = evidence.kind.as_str();
        line(&format!("source ({kind}, {})", evidence.date), evidence.text);
    }
    out
}

/// Set RECTO_WRITE_RULES=1 to write the page.
#[test]
fn docs_rules_md_lists_all_rules() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, _) = text.split_once("\n## ").unwrap_or((&text, ""));
    let rows: Vec<String> = RULES.iter().map(row).collect();
    let wanted = format!("{}\n\n{}", head.trim_end(), rows.join("\n"));
    if std::env::var_os("RECTO_WRITE_RULES").is_some() {
        std::fs::write(&page, &wanted).unwrap();
        return;
    }
    assert!(text == wanted, "docs/rules.md differs: run this test with RECTO_WRITE_RULES=1");
}

#[test]
fn every_rule_has_a_source_and_a_date() {
    for rule in RULES {
        assert!(!rule.evidence.is_empty(), "{}", rule.name);
        for evidence in rule.evidence {
            assert_eq!(evidence.date.len(), "2026-11-18".len(), "{}", rule.name);
            assert!(!evidence.text.is_empty(), "{}", rule.name);
        }
    }
}
