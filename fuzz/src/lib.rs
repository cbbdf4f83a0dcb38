//! Fuzz targets. `cargo xtask fuzz` runs them with libFuzzer.
//!
//! Built by `cargo fuzz`, a target is a libFuzzer program. Built by `cargo build`, it is a program that runs
//! the inputs in the files that it gets as arguments: `cargo run -p recto-fuzz --bin wire -- FILE` repeats a
//! finding in a debugger, without libFuzzer.

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// Makes a function that takes bytes the target of this program.
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
