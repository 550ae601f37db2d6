//! Pressure stall information: for how long work waited for CPU, memory or I/O.
//!
//! `/proc/pressure/*` exists when the kernel was built with `CONFIG_PSI` and it was not switched
//! off at boot; everywhere else each reading is `None`.

use std::fs;
use std::path::Path;

/// What work can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A free CPU.
    Cpu,
    /// Memory: reclaim, swap, refaults.
    Memory,
    /// Block I/O.
    Io,
}

impl Resource {
    /// Every resource, in the order of a report.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Io];

    /// The kernel's name of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
        }
    }
}

/// Total waiting time since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task waited.
    pub some_ns: u64,
    /// All tasks that had work waited at once; `None` on kernels that do not show it.
    pub full_ns: Option<u64>,
}

/// Reads the pressure on `resource` below `root` (`/` for the real one).
///
/// Cost: open, read, close.
pub fn pressure(root: &Path, resource: Resource) -> Option<Pressure> {
    let path = root.join("proc/pressure").join(resource.name());
    parse_pressure(&fs::read_to_string(path).ok()?)
}

/// Reads the text of one file of `/proc/pressure`; `None` without a `some` line.
pub fn parse_pressure(text: &str) -> Option<Pressure> {
    Some(Pressure { some_ns: total_ns(text, "some")?, full_ns: total_ns(text, "full") })
}

fn total_ns(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(kind))?;
    let total = line.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_read_in_nanoseconds() {
        let text = "some avg10=0.07 avg60=0.37 avg300=0.53 total=6941368\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        let pressure = parse_pressure(text).unwrap();
        assert_eq!(pressure.some_ns, 6_941_368_000);
        assert_eq!(pressure.full_ns, Some(12_000));
    }

    #[test]
    fn kernel_5_10_shows_no_full_line_for_cpu() {
        let text = "some avg10=1.00 avg60=1.00 avg300=1.00 total=5\n";
        assert_eq!(parse_pressure(text), Some(Pressure { some_ns: 5_000, full_ns: None }));
    }

    #[test]
    fn garbage_and_a_kernel_without_psi_are_none() {
        assert_eq!(parse_pressure(""), None);
        assert_eq!(parse_pressure("some avg10=0.00\n"), None);
        for resource in Resource::ALL {
            assert_eq!(pressure(Path::new("/nonexistent"), resource), None);
        }
    }
}
