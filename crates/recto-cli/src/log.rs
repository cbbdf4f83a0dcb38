//! `RECTO_LOG`: log messages on standard error.
//!
//! Without the variable no subscriber is installed, so spans and events cost one atomic load each.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::Environment;
use crate::failure::Failure;

/// Installs a subscriber for this process if `RECTO_LOG` is set.
pub(crate) fn install(environment: &Environment) -> Result<(), Failure> {
    let Some(value) = environment.text("RECTO_LOG") else { return Ok(()) };
    let targets = parse(&value).map_err(Failure::Usage)?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // A span is one line with its duration, when it ends.
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(environment.errors_info.colours);
    let subscriber = tracing_subscriber::registry().with(lines).with(targets);
    // It fails if this process has a subscriber already; then that one stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

/// Parses `LEVEL` or `TARGET=LEVEL`, separated by commas. A target is a prefix of a module path. A level
/// without a target applies to the crates of Recto only, because the logs of HTTP libraries can contain
/// keys.
fn parse(value: &str) -> Result<Targets, String> {
    let mut targets = Targets::new();
    for directive in value.split(',').map(str::trim) {
        let (target, level) = directive.split_once('=').unwrap_or(("recto", directive));
        let (target, level) = (target.trim(), level.trim());
        // An empty level would be read as `error`.
        let is_complete = !target.is_empty() && !level.is_empty();
        let level = level.parse::<LevelFilter>().ok().filter(|_| is_complete);
        let level = level.ok_or_else(|| {
            format!(
                "RECTO_LOG has the invalid part {directive:?}; use a level (error, warn, info, debug, \
                 trace, off) or TARGET=LEVEL, separated by commas: RECTO_LOG=warn,recto_store=debug"
            )
        })?;
        targets = targets.with_target(target, level);
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_without_a_target_applies_to_the_crates_of_recto() {
        let targets = parse("warn").unwrap();
        for (target, is_enabled) in
            [("recto_store::sqlite", true), ("recto", true), ("hyper", false)]
        {
            assert_eq!(targets.would_enable(target, &Level::WARN), is_enabled, "{target}");
            assert!(!targets.would_enable(target, &Level::INFO), "{target}");
        }
        let targets = parse("off, recto_store = debug,hyper=INFO").unwrap();
        assert!(targets.would_enable("recto_store", &Level::DEBUG));
        assert!(targets.would_enable("hyper::client", &Level::INFO));
        assert!(!targets.would_enable("recto_cli", &Level::ERROR));
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_part() {
        for (value, part) in [
            ("debgu", "\"debgu\""),
            ("recto=loud", "\"recto=loud\""),
            ("warn,", "\"\""),
            ("=debug", "\"=debug\""),
            ("recto_store", "\"recto_store\""),
        ] {
            let error = parse(value).unwrap_err();
            assert!(error.contains(part) && error.contains("TARGET=LEVEL"), "{value}: {error}");
        }
    }
}
