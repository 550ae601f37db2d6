//! Device numbers, by which `/sys`, `/proc` and the control groups name block devices.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// Major and minor number of a device. Written `254:0`, as in `/sys/dev/block`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver; 0 for a filesystem without a block device of its own.
    pub major: u32,
    /// The device among those of the driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// That of `st_dev` or `st_rdev`.
    pub(crate) fn of(device: u64) -> Self {
        Self { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = ParseIntError;

    /// Errors: the text is not two numbers with a colon between them.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (major, minor) = text.trim().split_once(':').unwrap_or_default();
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read() {
        let device: DeviceNumber = "259:17\n".parse().unwrap();
        assert_eq!(device, DeviceNumber { major: 259, minor: 17 });
        assert_eq!(device.to_string(), "259:17");
        for bad in ["", "8", "8:", ":1", "8:1:2", "a:b"] {
            assert!(bad.parse::<DeviceNumber>().is_err(), "{bad}");
        }
    }
}
