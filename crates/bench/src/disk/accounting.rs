//! What the kernel says was moved, by whom, and at which cost: read before and after a trial.

use std::path::Path;

use flatout_measure::fact::{Facts, Key};
use flatout_sys::block_account::BlockAccount;
use flatout_sys::pressure::{self, Resource};
use flatout_sys::steal;
use flatout_sys::storage::DeviceNumber;
use flatout_sys::usage::{self, ProcessIo, Usage};

use super::fact;

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

/// One reading of an account, where there is one.
type Reading = fn(&Account) -> Option<u64>;

/// CPU time of this process.
const CPU_TIME: [(Key, Reading); 2] = [
    (fact::USER_NS, |account| Some(account.usage.user_ns)),
    (fact::SYSTEM_NS, |account| Some(account.usage.system_ns)),
];
/// What else belongs to the work alone.
const OF_THE_WORK: [(Key, Reading); 4] = [
    (fact::MINOR_FAULTS, |account| Some(account.usage.minor_faults)),
    (fact::PROCESS_READ_BYTES, |account| Some(account.process?.device_read_bytes)),
    (fact::IO_PRESSURE_NS, |account| account.io_waited_ns),
    (fact::STOLEN_NS, |account| account.stolen_ns),
];
/// What may happen only while the bytes are synced.
const UNTIL_SYNCED: [(Key, Reading); 5] = [
    (fact::PROCESS_WRITE_BYTES, |account| Some(account.process?.device_write_bytes)),
    (fact::DISK_READ_BYTES, |account| Some(account.disks?.read.bytes)),
    (fact::DISK_WRITE_BYTES, |account| Some(account.disks?.write.bytes)),
    (fact::DISK_READ_REQUESTS, |account| Some(account.disks?.read.requests)),
    (fact::DISK_WRITE_REQUESTS, |account| Some(account.disks?.write.requests)),
];

/// The readings of a trial: the work ends when its last request has; of a write, the bytes may
/// reach the disk only while they are synced.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) before: Account,
    pub(super) worked: Account,
    pub(super) synced: Account,
}

impl Accounts {
    /// What happened between the readings.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = self.until(&self.worked, &CPU_TIME);
        facts.extend(self.until(&self.worked, &OF_THE_WORK));
        facts.extend(self.until(&self.synced, &UNTIL_SYNCED));
        facts
    }

    /// CPU time until the bytes were durable.
    pub(super) fn cpu_time_until_synced(&self) -> Facts {
        self.until(&self.synced, &CPU_TIME)
    }

    fn until(&self, end: &Account, readings: &[(Key, Reading)]) -> Facts {
        let mut facts = Facts::default();
        for (key, read) in readings {
            let both = read(end).zip(read(&self.before));
            facts.set_known(*key, both.map(|(end, before)| end.saturating_sub(before)));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_the_differences_of_readings() {
        let process = |bytes| {
            Some(ProcessIo {
                device_read_bytes: bytes,
                device_write_bytes: 10 * bytes,
                ..ProcessIo::default()
            })
        };
        let account = |bytes| Account { process: process(bytes), ..Account::default() };
        let accounts = Accounts { before: account(5), worked: account(8), synced: account(9) };
        let facts = accounts.facts();
        assert_eq!(facts.count(fact::PROCESS_READ_BYTES), Some(3));
        assert_eq!(facts.count(fact::PROCESS_WRITE_BYTES), Some(40));
        assert_eq!(facts.value(fact::DISK_READ_BYTES), None, "no disk, no figure");
    }

    #[test]
    fn this_process_has_an_account() {
        let account = Account::read(&[]);
        assert!(account.usage.peak_memory_bytes > 0 && account.disks.is_none());
    }
}
