//! Fuzz targets. `cargo xtask fuzz` runs them with libFuzzer.
//!
//! `cargo fuzz` builds a target as a libFuzzer program. `cargo build` builds it as a program that runs the
//! inputs in the files that are its arguments: `cargo run -p recto-fuzz --bin wire -- FILE` repeats a crash
//! without libFuzzer, for example in a debugger.

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// Defines the fuzz target of this program: a function that takes bytes.
#[macro_export]
macro_rules! target {
    ($run:path) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| $run(data));

        #[cfg(not(fuzzing))]
        fn main() -> std::io::Result<()> {
            for file in std::env::args_os().skip(1) {
                $run(&std::fs::read(file)?);
            }
            Ok(())
        }
    };
}
