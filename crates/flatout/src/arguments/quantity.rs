//! Sizes and times on the command line, for clap.

use flatout_measure::units;

/// A size in bytes.
pub fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| error.to_string())
}

/// Something per second: a number, or a size.
pub fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => size(text).map(|bytes| bytes as f64),
    }
}

/// A time in nanoseconds; zero makes no sense for a limit.
pub fn time(text: &str) -> Result<u64, String> {
    match units::parse_time(text) {
        Ok(0) => Err("the time must be longer than 0".to_owned()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(error.to_string()),
    }
}
