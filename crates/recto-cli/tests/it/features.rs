//! The features of the command. Unit tests check the errors of a build without them (`chat_missing.rs`,
//! `advice.rs`).

/// With all features the commands exist, and nothing is missing.
#[cfg(all(feature = "chat", feature = "postgres"))]
#[test]
fn nothing_is_missing_in_a_build_with_all_features() {
    let help = crate::printed(&mut crate::recto(&["--help"]));
    assert!(help.contains("  chat ") && !help.contains("missing in this build"), "{help}");
}
