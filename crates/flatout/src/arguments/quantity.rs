//! Sizes and times on the command line, for clap.

use flatout_measure::units;

/// A size in bytes.
pub fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| error.to_string())
}

/// A time in nanoseconds; zero makes no sense for a limit.
pub fn time(text: &str) -> Result<u64, String> {
    match units::parse_time(text) {
        Ok(0) => Err("the time must be longer than 0".to_owned()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(error.to_string()),
    }
}
