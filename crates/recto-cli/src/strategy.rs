//! The names of the strategies that make a view shorter, as people and programs write them.

use recto_agent::Strategy;

/// One strategy, or several in the order in which they are tried, separated by commas: the names that
/// the model loop knows them by. `keepRecent` and `keep_recent` are `keep-recent`.
pub(crate) fn read(names: &str) -> Result<String, String> {
    let plain: Vec<String> = names.split(',').map(|name| with_hyphens(name.trim())).collect();
    let known = Strategy::list(&plain.join(",")).map_err(|_| {
        let given = crate::printable::one_line(names.trim(), 60);
        format!("there is no strategy {given}; use {}", Strategy::NAMES.join(", "))
    })?;
    Ok(known.into_iter().map(Strategy::name).collect::<Vec<_>>().join(","))
}

fn with_hyphens(name: &str) -> String {
    let mut plain = String::new();
    for (at, character) in name.char_indices() {
        if character.is_ascii_uppercase() && at > 0 {
            plain.push('-');
        }
        plain.push(character.to_ascii_lowercase());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_known_by_their_names_and_nothing_else_is() {
        for name in Strategy::NAMES {
            assert_eq!(read(name).as_deref(), Ok(name));
        }
        assert_eq!(read("keepRecent").as_deref(), Ok("keep-recent"));
        assert_eq!(
            read("clear_tool_results, summarise").as_deref(),
            Ok("clear-tool-results,summarise")
        );
        for nonsense in ["", "foo", "keep", "keep-recent,", "keep-recent,foo", "\u{1b}[31m"] {
            let refused = read(nonsense).unwrap_err();
            assert!(refused.contains("keep-system-and-recent") && !refused.contains('\u{1b}'));
        }
    }
}
