//! What the kernel says was moved, by whom, and at which cost: read before and after a trial.

use std::path::Path;

use flatout_sys::block_account::BlockAccount;
use flatout_sys::pressure::{self, Resource};
use flatout_sys::steal;
use flatout_sys::storage::DeviceNumber;
use flatout_sys::usage::{self, ProcessIo, Usage};
use serde_json::{Map, Value, json};

/// Readings at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    usage: Usage,
    process: Option<ProcessIo>,
    /// The sum over all disks; none where there is no account of any.
    disks: Option<BlockAccount>,
    io_waited_ns: Option<u64>,
    stolen_ns: Option<u64>,
}

impl Account {
    /// Reads everything. Cost: some six small files.
    pub(super) fn read(disks: &[DeviceNumber]) -> Self {
        let root = Path::new("/");
        let accounts: Option<Vec<BlockAccount>> =
            disks.iter().map(|&disk| BlockAccount::read(root, disk)).collect();
        let stolen = |times: steal::CpuTimes| times.steal.saturating_mul(steal::tick_ns());
        Self {
            usage: usage::usage(),
            process: usage::process_io(),
            disks: accounts.and_then(|all| all.into_iter().reduce(|sum, one| sum.plus(&one))),
            io_waited_ns: pressure::pressure(root, Resource::Io).map(|io| io.some_ns),
            stolen_ns: steal::cpu_times(root).map(stolen),
        }
    }
}

/// What happened between readings: the work ends when its last request has; of a write, the
/// bytes may reach the disk only while they are synced.
#[derive(Debug)]
pub(super) struct Bill {
    pub(super) before: Account,
    pub(super) worked: Account,
    pub(super) synced: Account,
}

impl Bill {
    /// Bytes that storage had to fetch for this process.
    pub(super) fn process_read_bytes(&self) -> Option<u64> {
        let read = |account: &Account| Some(account.process?.device_read_bytes);
        Some(read(&self.worked)?.saturating_sub(read(&self.before)?))
    }

    /// Bytes that this process made dirty or sent to storage.
    pub(super) fn process_write_bytes(&self) -> Option<u64> {
        let written = |account: &Account| Some(account.process?.device_write_bytes);
        Some(written(&self.synced)?.saturating_sub(written(&self.before)?))
    }

    /// What the disks did, for whomever.
    pub(super) fn disks(&self) -> Option<BlockAccount> {
        Some(self.synced.disks?.since(&self.before.disks?))
    }

    /// CPU time until the bytes were durable.
    pub(super) fn usage_until_synced(&self) -> Map<String, Value> {
        let (from, to) = (&self.before.usage, &self.synced.usage);
        let mut map = Map::new();
        map.insert("user_ns".to_owned(), json!(to.user_ns.saturating_sub(from.user_ns)));
        map.insert("system_ns".to_owned(), json!(to.system_ns.saturating_sub(from.system_ns)));
        map
    }

    /// The facts as members of the record; all of them may be summed over trials.
    pub(super) fn facts(&self) -> Map<String, Value> {
        let mut map = Map::new();
        let mut insert = |key: &str, value: Option<u64>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), json!(value));
            }
        };
        let (from, to) = (&self.before, &self.worked);
        let grown = |of: fn(&Usage) -> u64| Some(of(&to.usage).saturating_sub(of(&from.usage)));
        insert("user_ns", grown(|usage| usage.user_ns));
        insert("system_ns", grown(|usage| usage.system_ns));
        insert("minor_faults", grown(|usage| usage.minor_faults));
        insert("process_read_bytes", self.process_read_bytes());
        insert("process_write_bytes", self.process_write_bytes());
        if let Some(disks) = self.disks() {
            insert("disk_read_bytes", Some(disks.read.bytes));
            insert("disk_write_bytes", Some(disks.write.bytes));
            insert("disk_read_requests", Some(disks.read.requests));
            insert("disk_write_requests", Some(disks.write.requests));
        }
        let since = |of: fn(&Account) -> Option<u64>| Some(of(to)?.saturating_sub(of(from)?));
        insert("io_pressure_ns", since(|account| account.io_waited_ns));
        insert("stolen_ns", since(|account| account.stolen_ns));
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_is_the_difference_of_its_readings() {
        let process = |bytes| {
            Some(ProcessIo {
                device_read_bytes: bytes,
                device_write_bytes: 10 * bytes,
                ..ProcessIo::default()
            })
        };
        let account = |bytes| Account { process: process(bytes), ..Account::default() };
        let bill = Bill { before: account(5), worked: account(8), synced: account(9) };
        assert_eq!(bill.process_read_bytes(), Some(3));
        assert_eq!(bill.process_write_bytes(), Some(40));
        let facts = bill.facts();
        assert_eq!(facts["process_read_bytes"], 3);
        assert!(!facts.contains_key("disk_read_bytes"), "no disk, no figure");
    }

    #[test]
    fn this_process_has_an_account() {
        let account = Account::read(&[]);
        assert!(account.usage.peak_memory_bytes > 0 && account.disks.is_none());
    }
}
