//! The `privet` binary; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    privet_party::sys::keep_freed_memory();
    privet_party::cli::main()
}
