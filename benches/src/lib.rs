//! The machine in one line, so that no figure of a bench is seen without it.
//!
//! The benches are a package of their own, so that nobody builds Criterion who does not ask for it:
//! only `cargo bench` and `cargo xtask test --full` do.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "benches print what they find")]

use std::path::Path;

use flatout_measure::environment::capture;
use flatout_report::quantity;

/// Prints CPU, number of CPUs, memory, kernel and load; nothing when the benches are only listed,
/// because other programs read that list.
pub fn print_machine() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let machine = capture(Path::new("/"));
    let unknown = || "unknown".to_owned();
    let cpu = machine.cpu_model.unwrap_or_else(unknown);
    let simd = machine.simd.unwrap_or_else(unknown);
    let cpus = machine.cpus_online.map_or_else(unknown, |count| count.to_string());
    let memory = machine.memory_bytes.map_or_else(unknown, quantity::rounded_size);
    let kernel = machine.kernel_release.unwrap_or_else(unknown);
    let load = machine.load_average.map_or_else(unknown, |load| format!("{:.2}", load[0]));
    println!(
        "machine: {cpu} ({simd}), {cpus} CPUs, {memory} memory, Linux {kernel}, load {load}{}",
        if machine.hypervisor == Some(true) { ", virtual" } else { "" }
    );
}
