//! Pressure stall information: for how long at least one task waited for CPU, memory or I/O.
//!
//! `/proc/pressure/*` exists when the kernel was built with `CONFIG_PSI` and it was not switched
//! off at boot; everywhere else each reading is `None`.

use std::path::Path;

use crate::attribute::{after, whole};

crate::words! {
    /// What work can wait for.
    pub enum Resource: name, ALL {
        /// A free CPU.
        Cpu = "cpu",
        /// Block I/O.
        Io = "io",
    }
}

/// Time since boot in which at least one task waited for `resource`; `root` is `/` for the real one.
///
/// Units: nanoseconds; the kernel counts microseconds. Cost: open, read, close.
pub fn pressure(root: &Path, resource: Resource) -> Option<u64> {
    let path = root.join("proc/pressure").join(resource.name());
    waited_ns(&whole(&path)?)
}

/// Reads the text of one file of `/proc/pressure`; `None` without a `some` line.
fn waited_ns(text: &str) -> Option<u64> {
    let mut fields = after(text, "some ")?.split_ascii_whitespace();
    let total = fields.find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_some_tasks_is_read_in_nanoseconds() {
        let text = "some avg10=0.07 avg60=0.37 avg300=0.53 total=6941368\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        assert_eq!(waited_ns(text), Some(6_941_368_000));
    }

    #[test]
    fn garbage_and_a_kernel_without_psi_are_none() {
        assert_eq!(waited_ns(""), None);
        assert_eq!(waited_ns("some avg10=0.00\n"), None);
        for resource in Resource::ALL {
            assert_eq!(pressure(Path::new("/nonexistent"), resource), None);
        }
    }
}
