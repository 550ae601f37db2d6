//! `--bwlimit` and `--background`: a copy that leaves something to others.

use clap::Args;
use flatout_bench::option::size;
use flatout_measure::units::size_text;

/// Less is a number that was meant in KiB, as rsync takes it, or a copy that never ends.
const LEAST_BYTES_PER_SECOND: u64 = 1 << 10;

#[derive(Debug, Clone, Default, Args)]
pub struct Limits {
    /// Move so many bytes a second at most, by all threads together: 10M are 10 MiB/s, 0 is no
    /// limit. Shared extents, which move nothing, are not limited
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Limits")]
    pub bwlimit: Option<u64>,
    /// Give way to others: nice 19, I/O of the idle class, and rests while work waits for CPUs or
    /// storage (PSI)
    #[arg(long, help_heading = "Limits")]
    pub background: bool,
}

fn rate(text: &str) -> Result<u64, String> {
    match size(text.strip_suffix("/s").unwrap_or(text))? {
        0 => Ok(0),
        bytes if bytes >= LEAST_BYTES_PER_SECOND => Ok(bytes),
        _ => {
            let least = size_text(LEAST_BYTES_PER_SECOND);
            Err(format!("it must be {least} a second or more; a number without a unit is in bytes"))
        }
    }
}
