//! The account that the kernel keeps of each block device: requests and bytes.
//!
//! Totals since the device appeared, of everything that all processes did; a trial is the
//! difference of two readings. See the kernel's `Documentation/block/stat.rst`.

use std::path::Path;

use crate::attribute;
use crate::storage::{self, DeviceNumber};

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
        Self::of(&folder).or_else(|| Self::of_paths(&folder.canonicalize().ok()?))
    }

    /// The sum over the paths of an NVMe disk (`nvme0c1n1` of `nvme0n1`), which keeps no account
    /// itself on Linux 6.1.
    fn of_paths(disk: &Path) -> Option<Self> {
        let name = disk.file_name()?.to_str()?;
        let (subsystem, namespace) = name.split_at(name.rfind('n')?);
        let is_path = |path: &String| path.starts_with(subsystem) && path.ends_with(namespace);
        let controllers = storage::controllers(&disk.join("device"));
        let accounts = controllers.iter().flat_map(|controller| {
            let paths = attribute::names(controller).into_iter().filter(is_path);
            paths.map(|path| Self::of(&controller.join(path)))
        });
        accounts.reduce(|sum, one| Some(sum?.plus(&one?))).flatten()
    }

    fn of(folder: &Path) -> Option<Self> {
        // A partition's queue is that of the disk, one folder up.
        let queues = ["queue/iostats", "../queue/iostats"];
        let kept = queues.iter().find_map(|name| attribute::text(folder, name));
        let is_kept = kept.as_deref() != Some("0");
        Self::parse(&is_kept.then(|| attribute::text(folder, "stat"))??)
    }

    /// Reads the text of a `stat` file; `None` with fewer than the eleven fields of old kernels.
    pub fn parse(text: &str) -> Option<Self> {
        let fields = text.split_ascii_whitespace().map(|field| field.parse().ok());
        let fields = fields.collect::<Option<Vec<u64>>>().filter(|fields| fields.len() >= 11)?;
        let requests = |first: usize| Requests {
            requests: fields[first],
            bytes: fields[first + 2].saturating_mul(SECTOR_BYTES),
        };
        Some(Self { read: requests(0), write: requests(4) })
    }

    /// The sum with another device's account, for filesystems on several disks.
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |one: Requests, other: Requests| Requests {
            requests: one.requests + other.requests,
            bytes: one.bytes + other.bytes,
        };
        Self { read: sum(self.read, other.read), write: sum(self.write, other.write) }
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

    /// As seen on Linux 6.1, where a later kernel counts what the disk itself was asked for.
    #[test]
    fn a_disk_of_several_paths_has_the_account_of_all_of_them() {
        let subsystem = "virtual/nvme-subsystem/nvme-subsys0";
        let tree = Tree::new(&[]);
        for (disk, number) in [("nvme0n1", "259:1"), ("nvme0n11", "259:3")] {
            let disk = format!("{subsystem}/{disk}");
            tree.device(&disk, number);
            tree.link(&format!("sys/devices/{disk}/device"), "..");
            tree.file(&format!("sys/devices/{disk}/stat"), b"0 0 0 0 0 0 0 0 0 0 0\n");
            tree.file(&format!("sys/devices/{disk}/queue/iostats"), b"0\n");
        }
        let paths = [("0c0n1", 8), ("0c1n1", 24), ("0c1n11", 400)];
        for (controller, (path, sectors)) in [0, 1, 1].into_iter().zip(paths) {
            let folder = format!("pci0000:00/0000:00:0{controller}.0/nvme/nvme{controller}");
            let stat = format!("1 0 {sectors} 0 1 0 8 0 0 0 0\n");
            tree.file(&format!("sys/devices/{folder}/nvme{path}/stat"), stat.as_bytes());
            let link = format!("sys/devices/{subsystem}/nvme{controller}");
            if !tree.root().join(&link).exists() {
                tree.link(&link, &format!("../../../{folder}"));
            }
        }
        let read = |minor| {
            let account = BlockAccount::read(tree.root(), DeviceNumber { major: 259, minor });
            account.map(|account| (account.read.bytes, account.write.requests))
        };
        assert_eq!(read(1), Some((32 * 512, 2)));
        assert_eq!(read(3), Some((400 * 512, 1)), "another namespace");
    }
}
