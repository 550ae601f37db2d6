//! How the program begins: in place of what Rust's runtime does before `main`.
//!
//! That one asks where the stack ends, for which glibc reads /proc/self/maps, and has a stack for signals, to
//! tell an overflow from other faults. A start of a C program took 1.14 (quartiles 1.08–1.22) of the time when it
//! asked likewise (600 rounds, Emerald Rapids, 2026-11-28). Here an overflow is SIGSEGV, and threads have no such
//! stack either. The rest is done here: a broken pipe is an error and no signal, what was printed is written
//! at the end, and the standard descriptors are open (`standard.rs`).

use std::io::Write;
use std::process::ExitCode;

/// Has a function begin the program, whose crate is `no_main`.
#[macro_export]
macro_rules! begin_with {
    ($main:path) => {
        const _: () = {
            // SAFETY: this is the `main` that the C runtime calls, once, and nothing else has the name.
            #[unsafe(export_name = "main")]
            extern "C" fn begin(_words: i32, _first: *const *const u8) -> i32 {
                $crate::start::run($main)
            }
        };
    };
}

/// Runs a program, and returns its exit code.
pub fn run(main: fn() -> ExitCode) -> i32 {
    // SAFETY: signal(2) takes numbers, and other threads are not there yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let code = main();
    // Whoever prints what must not be lost has looked.
    let _ = std::io::stdout().flush();
    let is_it = |&number: &u8| ExitCode::from(number) == code;
    (0..=u8::MAX).find(is_it).map_or(1, i32::from)
}
