//! The `recto` command. The library of this package contains everything else.

use std::process::ExitCode;

/// A request makes about a hundred allocations, which take a quarter of its time with the system's
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    recto_cli::main(std::env::args_os()).into()
}
