//! The `recto` command; everything is in the library beside it.

use std::process::ExitCode;

/// A request allocates a hundred times or so; the system's allocator takes a quarter of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    recto_cli::main(std::env::args_os()).into()
}
