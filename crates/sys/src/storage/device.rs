//! Device numbers, by which `/sys`, `/proc` and the control groups name block devices.

use std::fmt;
use std::str::FromStr;

/// Major and minor number of a device. Written `254:0`, as in `/sys/dev/block`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver; 0 for a filesystem without a block device of its own.
    pub major: u32,
    /// The device among those of the driver.
    pub minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.major, self.minor)
    }
}

/// A text that is not two numbers with a colon between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a device number is written MAJOR:MINOR")]
pub struct NotADeviceNumber;

impl FromStr for DeviceNumber {
    type Err = NotADeviceNumber;

    fn from_str(text: &str) -> Result<Self, NotADeviceNumber> {
        let (major, minor) = text.trim().split_once(':').ok_or(NotADeviceNumber)?;
        let number = |text: &str| text.parse().map_err(|_| NotADeviceNumber);
        Ok(Self { major: number(major)?, minor: number(minor)? })
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
            assert_eq!(bad.parse::<DeviceNumber>(), Err(NotADeviceNumber), "{bad}");
        }
    }
}
