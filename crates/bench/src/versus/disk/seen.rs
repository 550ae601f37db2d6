//! What a program says about its trial, and whether that can be true.

use flatout_measure::{Facts, Unit};

use crate::Error;
use crate::versus::fact;
use crate::versus::printed::wrong;
use crate::versus::race::Checked;

/// No disk and no page cache moves more in a second: such a figure counts work that was not done.
const MOST_BYTES_PER_S: f64 = 1e12;
/// How far a rate may lie from what the program's own bytes and time make.
const SLACK: f64 = 0.1;

/// One trial in base units, as its program printed it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// Bytes per second.
    pub(super) bytes_per_s: f64,
    /// Operations per second; none where the program counts bytes alone.
    pub(super) operations_per_s: Option<f64>,
    /// Bytes moved.
    pub(super) bytes: u64,
    /// Bytes of a request.
    pub(super) block_bytes: f64,
    /// Seconds that it took; none where the program does not say.
    pub(super) elapsed_s: Option<f64>,
}

impl Seen {
    /// The figure in `unit`, if the trial is what was asked for.
    ///
    /// Errors: nothing was moved, in blocks of another size, or at a speed that cannot be.
    pub(super) fn checked(
        &self,
        name: &str,
        block_bytes: u64,
        unit: Unit,
    ) -> Result<Checked, Error> {
        let fail = |text: String| Err(wrong(format!("{name} {text}")));
        if self.bytes == 0 {
            return fail("moved no bytes".to_owned());
        }
        if (self.block_bytes - block_bytes as f64).abs() >= 1.0 {
            return fail(format!(
                "moved blocks of {:.0} bytes instead of {block_bytes}",
                self.block_bytes
            ));
        }
        let is_possible = |rate: f64| rate.is_finite() && rate > 0.0 && rate <= MOST_BYTES_PER_S;
        if !is_possible(self.bytes_per_s) {
            return fail(format!("printed a rate that cannot be: {} bytes/s", self.bytes_per_s));
        }
        if let Some(elapsed_s) = self.elapsed_s {
            let own = self.bytes as f64 / elapsed_s;
            let is_near = (own / self.bytes_per_s - 1.0).abs() <= SLACK;
            if !is_near {
                return fail(format!(
                    "printed {:.0} bytes/s, but its bytes and time make {own:.0}",
                    self.bytes_per_s
                ));
            }
        }
        let operations_per_s = self.bytes_per_s / block_bytes as f64;
        let is_near = |told: f64| (told / operations_per_s - 1.0).abs() <= SLACK;
        if let Some(told) = self.operations_per_s.filter(|&told| !is_near(told)) {
            return fail(format!(
                "printed {told:.0} operations/s, but its bytes make {operations_per_s:.0}"
            ));
        }
        let figure = match unit {
            Unit::OperationsPerSecond => self.operations_per_s.unwrap_or(operations_per_s),
            _ => self.bytes_per_s,
        };
        let facts = Facts::default().with(fact::MOVED_BYTES, self.bytes);
        Ok(Checked { figure: Some(figure), warnings: Vec::new(), facts })
    }
}

#[cfg(test)]
mod tests {
    use flatout_sys::process::Account;

    use super::*;
    use crate::versus::printed::output;

    fn seen() -> Seen {
        Seen {
            bytes_per_s: 4096.0e3,
            operations_per_s: Some(1000.0),
            bytes: 4_096_000,
            block_bytes: 4096.0,
            elapsed_s: Some(1.0),
        }
    }

    #[track_caller]
    fn fails(seen: Seen, text: &str) {
        let error = seen.checked("fio", 4096, Unit::BytesPerSecond).unwrap_err().to_string();
        assert!(error.starts_with("fio ") && error.contains(text), "{error}");
    }

    #[test]
    fn a_sound_trial_has_the_figure_of_its_unit() {
        assert_eq!(
            seen().checked("fio", 4096, Unit::BytesPerSecond).unwrap().figure,
            Some(4096.0e3)
        );
        assert_eq!(
            seen().checked("fio", 4096, Unit::OperationsPerSecond).unwrap().figure,
            Some(1000.0)
        );
        let bytes_alone = Seen { operations_per_s: None, elapsed_s: None, ..seen() };
        let checked = bytes_alone.checked("fio", 4096, Unit::OperationsPerSecond).unwrap();
        assert_eq!(checked.figure, Some(1000.0));
        assert_eq!(checked.facts.count(fact::MOVED_BYTES), Some(4_096_000));
    }

    #[test]
    fn what_cannot_be_is_no_figure() {
        fails(Seen { bytes: 0, ..seen() }, "no bytes");
        fails(Seen { block_bytes: 8192.0, ..seen() }, "blocks of 8192 bytes instead of 4096");
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e12] {
            fails(Seen { bytes_per_s: rate, ..seen() }, "cannot be");
        }
        fails(Seen { bytes_per_s: 8192.0e3, ..seen() }, "its bytes and time make 4096000");
        fails(Seen { elapsed_s: Some(0.0), ..seen() }, "make inf");
        fails(Seen { operations_per_s: Some(5000.0), ..seen() }, "its bytes make 1000");
        fails(Seen { operations_per_s: Some(f64::NAN), ..seen() }, "NaN operations/s");
    }

    #[test]
    fn what_is_no_text_is_no_output() {
        let garbage = Account { stdout: vec![0xff], ..Account::default() };
        assert!(output("fio", &garbage).is_err());
    }
}
