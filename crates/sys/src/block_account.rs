//! The account that the kernel keeps of each block device: requests and bytes.
//!
//! Totals since the device appeared, of everything that all processes did; a trial is the
//! difference of two readings. See the kernel's `Documentation/block/stat.rst`.

use std::path::Path;

use crate::attribute;
use crate::storage::DeviceNumber;

/// A sector of the account, whatever the disk's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// One kind of request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that the device finished, after merging and splitting.
    pub requests: u64,
    /// Bytes of the finished requests.
    pub bytes: u64,
}

/// The account of one block device. A partition has its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockAccount {
    /// Reads.
    pub read: Requests,
    /// Writes.
    pub write: Requests,
}

impl BlockAccount {
    /// Reads the account of a device below `root` (`/` for the real one); `None` when there is
    /// no such device, or when its queue keeps no account (`queue/iostats` is 0).
    ///
    /// Cost: two small files.
    pub fn read(root: &Path, device: DeviceNumber) -> Option<Self> {
        let folder = root.join(format!("sys/dev/block/{device}"));
        // A partition's queue is that of the disk, one folder up.
        let queues = ["queue/iostats", "../queue/iostats"];
        let kept = queues.iter().find_map(|name| attribute::text(&folder, name));
        if kept.is_some_and(|kept| kept == "0") {
            return None;
        }
        Self::parse(&attribute::text(&folder, "stat")?)
    }

    /// Reads the text of a `stat` file; `None` with fewer than the eleven fields of old kernels.
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Option<Vec<u64>> =
            text.split_ascii_whitespace().map(|field| field.parse().ok()).collect();
        let fields = fields.filter(|fields| fields.len() >= 11)?;
        let requests = |first: usize| Requests {
            requests: fields[first],
            bytes: fields[first + 2].saturating_mul(SECTOR_BYTES),
        };
        Some(Self { read: requests(0), write: requests(4) })
    }

    /// The sum with another device's account, for filesystems on several disks.
    pub fn plus(&self, other: &Self) -> Self {
        Self { read: self.read.plus(&other.read), write: self.write.plus(&other.write) }
    }
}

impl Requests {
    fn plus(&self, other: &Self) -> Self {
        Self { requests: self.requests + other.requests, bytes: self.bytes + other.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Tree;

    const STAT: &str = "  816507   168153 1292565950  5553753   282567   166263 293586048  2103765        0   671516  7722228   133208       52 283268344    57485    69056     7224\n";

    #[test]
    fn requests_and_bytes_have_their_place() {
        let account = BlockAccount::parse(STAT).unwrap();
        let read = Requests { requests: 816_507, bytes: 1_292_565_950 * 512 };
        let write = Requests { requests: 282_567, bytes: 293_586_048 * 512 };
        assert_eq!(account, BlockAccount { read, write });
        assert_eq!(account.plus(&account).write.bytes, 2 * write.bytes);
    }

    #[test]
    fn old_kernels_show_eleven_fields() {
        let account = BlockAccount::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!((account.read.requests, account.write.bytes), (1, 7 * 512));
        for bad in ["", "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10 x"] {
            assert_eq!(BlockAccount::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_queue_without_account_is_none() {
        let tree = Tree::new(&[
            ("sys/dev/block/8:0/stat", STAT),
            ("sys/dev/block/8:0/queue/iostats", "0\n"),
            ("sys/dev/block/8:0/part/stat", STAT),
            ("sys/dev/block/8:16/stat", STAT),
            ("sys/dev/block/8:16/queue/iostats", "1\n"),
        ]);
        tree.link("sys/dev/block/8:1", "8:0/part");
        let read = |minor| BlockAccount::read(tree.root(), DeviceNumber { major: 8, minor });
        assert_eq!(read(0), None);
        assert_eq!(read(1), None, "a partition of that disk");
        assert!(read(16).is_some());
        assert_eq!(read(32), None, "no such device");
    }
}
