use serde_json::Value;

use crate::{printed, recto};

fn document() -> Value {
    serde_json::from_str(&printed(&mut recto(&["demo", "--json"]))).expect("one JSON document")
}

#[test]
fn the_page_shows_what_recto_is_for_on_one_screen() {
    let page = printed(&mut recto(&["demo"]));
    assert!(page.lines().count() <= 45);
    for line in page.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert_eq!(line, line.trim_end());
    }
    insta::assert_snapshot!(page);
}

#[test]
fn colours_are_only_for_terminals_and_change_no_text() {
    let plain = printed(&mut recto(&["demo"]));
    assert!(!plain.contains('\u{1b}'));
    let coloured = printed(recto(&["demo"]).env("CLICOLOR_FORCE", "1"));
    assert!(coloured.contains('\u{1b}'));
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
    // NO_COLOR overrides CLICOLOR_FORCE.
    let refused = printed(recto(&["demo"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"));
    assert_eq!(refused, plain);
}

#[test]
fn every_run_prints_the_same() {
    assert_eq!(document(), document());
}

#[test]
fn the_document_has_a_step_for_each_version() {
    let document = document();
    let steps = document["steps"].as_array().unwrap();
    let versions = document["versions"].as_array().unwrap();
    assert_eq!(versions.len(), steps.len() + 1);
    for (step, version) in steps.iter().zip(versions.iter().rev().skip(1)) {
        assert_eq!(step["operation"], version["operation"]);
        assert_eq!(step["result"]["version"], version["version"]);
        assert_eq!(step["result"]["stats"]["tokens"], version["tokens"]);
        assert_eq!(step["view"].as_array().unwrap().len(), version["messages"]);
    }
    let operations: Vec<_> = steps.iter().map(|step| step["operation"].as_str().unwrap()).collect();
    let expected =
        ["APPEND", "FIT", "UNDO", "COMPRESS", "BATCH_START", "APPEND", "ROLLBACK", "RESTORE"];
    assert_eq!(operations, expected);
}

#[test]
fn the_claims_of_the_page_match_the_document() {
    let document = document();
    let steps = document["steps"].as_array().unwrap();
    let view_after = |version: usize| &steps[version - 1]["view"];
    let tokens = |indices: &Value| -> u64 {
        let indices = indices.as_array().unwrap().iter();
        let entry = |index: &Value| &document["log"][index.as_u64().unwrap() as usize];
        indices.map(|index| entry(index)["tokens"].as_u64().unwrap()).sum()
    };

    // Both cuts are within the budget, but only the plain one tears an exchange.
    assert_eq!(document["plainCut"]["warnings"][0]["code"], "torn_result");
    assert_eq!(steps[1]["result"]["warnings"], Value::Array(Vec::new()));
    // The torn result alone would fit into the budget. FIT hid it because its call did not fit.
    let torn = &document["plainCut"]["warnings"][0]["indices"];
    let budget = steps[1]["description"].as_str().unwrap();
    let budget: u64 = budget.split(' ').nth(2).unwrap().parse().unwrap();
    let fitted = view_after(2).as_array().unwrap();
    assert!(!fitted.contains(&torn[0]));
    assert!(tokens(view_after(2)) + tokens(torn) <= budget);

    // UNDO and ROLLBACK restore the earlier views, and the log has every message.
    assert_eq!(view_after(3), view_after(1));
    assert_eq!(view_after(7), view_after(4));
    assert_eq!(document["log"].as_array().unwrap().len(), 13);

    // COMPRESS had hidden the rule when the agent broke it, and the last version shows it again.
    let history = document["blame"]["history"].as_array().unwrap();
    let effects: Vec<_> = history.iter().map(|blame| blame["effect"].as_str().unwrap()).collect();
    assert_eq!(effects, ["added", "hidden", "shown", "hidden", "shown"]);
    assert_eq!(history[3]["operation"], "COMPRESS");
    let changes = &document["diff"]["changes"];
    let tokens_of = |portion: &str| changes[portion]["tokens"].as_u64().unwrap();
    assert_eq!(tokens_of("kept") + tokens_of("hidden"), tokens(view_after(1)));
    assert_eq!(tokens_of("kept") + tokens_of("shown"), tokens(view_after(8)));
}
