//! A command that needs a missing feature fails with an error that names the feature.

#[cfg(not(feature = "chat"))]
#[test]
fn chat_reports_that_this_build_has_no_model_clients() {
    let output = crate::run(&["chat", "--for", "anthropic", "--model", "m", "Hello"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("no model clients") && errors.contains("--features chat"), "{errors}");
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_postgres_address_is_refused_by_a_build_without_that_store() {
    let output = crate::run(&["list", "--store", "postgres://localhost/recto"]);
    assert_eq!(output.status.code(), Some(3));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("no postgres store") && errors.contains("--features postgres"),
        "{errors}"
    );
}

/// With all features the commands exist, and nothing is missing.
#[cfg(all(feature = "chat", feature = "postgres"))]
#[test]
fn nothing_is_missing_in_a_build_with_all_features() {
    let help = crate::printed(&mut crate::recto(&["--help"]));
    assert!(help.contains("  chat ") && !help.contains("missing in this build"), "{help}");
}
