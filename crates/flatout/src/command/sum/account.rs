//! What was read and found in all, and how fast.

use flatout_report::quantity;

use crate::conclusion::rate;

/// Shorter runs need no closing line.
const WORTH_SAYING_NS: u64 = 1_000_000_000;

/// Counts of a run.
#[derive(Debug, Default)]
pub struct Account {
    /// Files that were read from front to end.
    pub files: u64,
    /// Files without a digest, or with another one than is listed.
    pub failed: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files of a check that are as listed.
    pub matched: u64,
    /// Files of a check that are not.
    pub mismatched: u64,
    /// Files that are not there.
    pub missing: u64,
}

impl Account {
    /// Bytes per second; `None` where nothing was read.
    pub fn rate(&self, elapsed_ns: u64) -> Option<f64> {
        rate(self.bytes, elapsed_ns)
    }

    /// One line about a run that took a while.
    pub fn closing_line(&self, elapsed_ns: u64) -> Option<String> {
        if elapsed_ns < WORTH_SAYING_NS {
            return None;
        }
        let files = quantity::counted(self.files as usize, "file");
        let bytes = quantity::rounded_size(self.bytes);
        let seconds = quantity::number(elapsed_ns as f64 / 1e9);
        let rate = quantity::value("bytes/s", self.rate(elapsed_ns).unwrap_or(0.0));
        Some(format!("{files}, {bytes} in {seconds} s: {rate}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_summed_up_in_one_line() {
        let account = Account { files: 20_000, bytes: 3 << 30, ..Account::default() };
        assert_eq!(account.closing_line(999_999_999), None);
        let line = account.closing_line(2_000_000_000).unwrap();
        assert_eq!(line, "20,000 files, 3 GiB in 2.00 s: 1,536 MiB/s");
        assert_eq!(Account::default().rate(5), None);
    }
}
