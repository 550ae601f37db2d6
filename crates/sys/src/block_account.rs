//! The account that the kernel keeps of each block device: requests, bytes, time.
//!
//! Totals since the device appeared, of everything that all processes did; a trial is the
//! difference of two readings. See the kernel's `Documentation/block/stat.rst`.

use std::fs;
use std::path::Path;

use crate::storage::DeviceNumber;

/// A sector of the account, whatever the disk's own sectors are.
const SECTOR_BYTES: u64 = 512;

const NS_PER_MS: u64 = 1_000_000;

/// The kernel shows times as milliseconds in 32 bits: they begin anew after 49 days.
const TIME_WRAP_NS: u64 = (1 << 32) * NS_PER_MS;

/// One kind of request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that the device finished, after merging and splitting.
    pub requests: u64,
    /// Requests that became part of an adjacent one while they waited.
    pub merges: u64,
    /// Bytes of the finished requests; 0 for flushes, which carry none.
    pub bytes: u64,
    /// Time from queue to end, summed over the requests.
    pub wait_ns: u64,
}

/// The account of one block device. A partition has its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockAccount {
    /// Reads.
    pub read: Requests,
    /// Writes.
    pub write: Requests,
    /// Discards, since Linux 4.18.
    pub discard: Requests,
    /// Flushes of the disk's cache, since Linux 5.5; never counted for partitions.
    pub flush: Requests,
    /// Requests that are under way right now.
    pub in_flight_requests: u64,
    /// Time in which at least one request was under way. Since Linux 5.0 only sampled at the
    /// ends of requests, to a tick of the kernel's clock.
    pub busy_ns: u64,
    /// Time under way, summed over all requests of all kinds.
    pub wait_ns: u64,
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
        let kept = queues.iter().find_map(|name| fs::read_to_string(folder.join(name)).ok());
        if kept.is_some_and(|kept| kept.trim() == "0") {
            return None;
        }
        Self::parse(&fs::read_to_string(folder.join("stat")).ok()?)
    }

    /// Reads the text of a `stat` file; `None` with fewer than the eleven fields of old kernels.
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Option<Vec<u64>> =
            text.split_ascii_whitespace().map(|field| field.parse().ok()).collect();
        let fields = fields.filter(|fields| fields.len() >= 11)?;
        let field = |index: usize| fields.get(index).copied().unwrap_or(0);
        let time_ns = |index| field(index).saturating_mul(NS_PER_MS);
        let requests = |first| Requests {
            requests: field(first),
            merges: field(first + 1),
            bytes: field(first + 2).saturating_mul(SECTOR_BYTES),
            wait_ns: time_ns(first + 3),
        };
        let flush = Requests { requests: field(15), wait_ns: time_ns(16), ..Requests::default() };
        Some(Self {
            read: requests(0),
            write: requests(4),
            discard: requests(11),
            flush,
            in_flight_requests: field(8),
            busy_ns: time_ns(9),
            wait_ns: time_ns(10),
        })
    }

    /// What happened since an earlier reading. Requests under way are those of this reading.
    ///
    /// A time that has begun anew is set right. Where requests are fewer than before, another device
    /// took the place of that one: nothing is known of it.
    pub fn since(&self, earlier: &Self) -> Self {
        let kinds = [(&self.read, &earlier.read), (&self.write, &earlier.write)];
        if kinds.iter().any(|(later, earlier)| later.requests < earlier.requests) {
            return Self { in_flight_requests: self.in_flight_requests, ..Self::default() };
        }
        Self {
            read: self.read.since(&earlier.read),
            write: self.write.since(&earlier.write),
            discard: self.discard.since(&earlier.discard),
            flush: self.flush.since(&earlier.flush),
            in_flight_requests: self.in_flight_requests,
            busy_ns: time_since(self.busy_ns, earlier.busy_ns),
            wait_ns: time_since(self.wait_ns, earlier.wait_ns),
        }
    }

    /// The sum with another device's account, for filesystems on several disks. Times are sums
    /// too: the busy time of two disks may exceed the time that has passed.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            read: self.read.plus(&other.read),
            write: self.write.plus(&other.write),
            discard: self.discard.plus(&other.discard),
            flush: self.flush.plus(&other.flush),
            in_flight_requests: self.in_flight_requests + other.in_flight_requests,
            busy_ns: self.busy_ns + other.busy_ns,
            wait_ns: self.wait_ns + other.wait_ns,
        }
    }
}

impl Requests {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            merges: self.merges.saturating_sub(earlier.merges),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            wait_ns: time_since(self.wait_ns, earlier.wait_ns),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            merges: self.merges + other.merges,
            bytes: self.bytes + other.bytes,
            wait_ns: self.wait_ns + other.wait_ns,
        }
    }
}

fn time_since(later_ns: u64, earlier_ns: u64) -> u64 {
    match later_ns.checked_sub(earlier_ns) {
        Some(passed) => passed,
        None => (later_ns + TIME_WRAP_NS).saturating_sub(earlier_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Tree;

    const STAT: &str = "  816507   168153 1292565950  5553753   282567   166263 293586048  2103765        0   671516  7722228   133208       52 283268344    57485    69056     7224\n";

    #[test]
    fn all_seventeen_fields_have_their_place() {
        let account = BlockAccount::parse(STAT).unwrap();
        let read = Requests {
            requests: 816_507,
            merges: 168_153,
            bytes: 1_292_565_950 * 512,
            wait_ns: 5_553_753_000_000,
        };
        assert_eq!(account.read, read);
        assert_eq!(account.write.requests, 282_567);
        assert_eq!(account.write.bytes, 293_586_048 * 512);
        assert_eq!(account.in_flight_requests, 0);
        assert_eq!(account.busy_ns, 671_516_000_000);
        assert_eq!(account.wait_ns, 7_722_228_000_000);
        assert_eq!(account.discard.requests, 133_208);
        assert_eq!(account.discard.merges, 52);
        assert_eq!(account.flush.requests, 69_056);
        assert_eq!(account.flush.wait_ns, 7_224_000_000);
    }

    #[test]
    fn old_kernels_show_eleven_fields() {
        let account = BlockAccount::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!(account.in_flight_requests, 9);
        assert_eq!(account.discard, Requests::default());
        assert_eq!(account.flush, Requests::default());
        for bad in ["", "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10 x"] {
            assert_eq!(BlockAccount::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_difference_survives_the_wrap_of_a_time() {
        let earlier = BlockAccount::parse("10 0 8 4294967290 0 0 0 0 0 0 0").unwrap();
        let later = BlockAccount::parse("12 1 24 4 0 0 0 0 3 0 0").unwrap();
        let passed = later.since(&earlier);
        let expected = Requests { requests: 2, merges: 1, bytes: 8192, wait_ns: 10_000_000 };
        assert_eq!(passed.read, expected);
        assert_eq!(passed.in_flight_requests, 3);
        let other = BlockAccount { in_flight_requests: 0, ..BlockAccount::default() };
        assert_eq!(earlier.since(&later), other, "another device");
        assert_eq!(passed.plus(&passed).read.bytes, 16384);
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
