//! What the kernel says was moved, by whom, and at which cost: read before and after a trial.

use std::path::Path;

use flatout_measure::{Facts, Key};
use flatout_sys::block_account::BlockAccount;
use flatout_sys::pressure::{self, Resource};
use flatout_sys::storage::DeviceNumber;
use flatout_sys::usage::{self, ProcessIo, Usage};
use flatout_sys::{page_cache, steal};

/// CPU time and page faults of this process.
pub(crate) const USER_NS: Key = Key::sum("user_ns");
pub(crate) const SYSTEM_NS: Key = Key::sum("system_ns");
/// I/O accounting of this process: fetched from storage, made dirty or sent there.
pub(crate) const PROCESS_READ_BYTES: Key = Key::sum("process_read_bytes");
pub(crate) const PROCESS_WRITE_BYTES: Key = Key::sum("process_write_bytes");
/// I/O accounting of the disks, for whomever they worked.
pub(crate) const DISK_READ_BYTES: Key = Key::sum("disk_read_bytes");
pub(crate) const DISK_WRITE_BYTES: Key = Key::sum("disk_write_bytes");
pub(crate) const DISK_READ_REQUESTS: Key = Key::sum("disk_read_requests");
pub(crate) const DISK_WRITE_REQUESTS: Key = Key::sum("disk_write_requests");
/// Bytes that the whole machine made dirty in the page cache: no process dirtied more.
pub(crate) const DIRTIED_BYTES: Key = Key::sum("dirtied_bytes");
/// Time in which a task of the machine waited for I/O, and CPU time stolen by the hypervisor.
pub(crate) const IO_PRESSURE_NS: Key = Key::sum("io_pressure_ns");
pub(crate) const STOLEN_NS: Key = Key::sum("stolen_ns");

/// Whose accounts are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// Those of this process. Cost: getrusage and a small file.
    Process,
    /// Those of these disks and of the machine, too. Cost: some seven small files.
    Machine(&'a [DeviceNumber]),
    /// The same, where a trial reads them when it begins alone, and its caller when all is over.
    Begin(&'a [DeviceNumber]),
}

/// Readings at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    usage: Usage,
    process: Option<ProcessIo>,
    /// The sum over all disks; none where there is no account of any.
    disks: Option<BlockAccount>,
    dirtied_bytes: Option<u64>,
    io_waited_ns: Option<u64>,
    stolen_ns: Option<u64>,
}

impl Account {
    /// Reads everything in the scope.
    pub(crate) fn read(scope: Scope<'_>) -> Self {
        let own = Self { usage: usage::usage(), process: usage::process_io(), ..Self::default() };
        let (Scope::Machine(disks) | Scope::Begin(disks)) = scope else { return own };
        let root = Path::new("/");
        let accounts = disks.iter().map(|&disk| BlockAccount::read(root, disk));
        let stolen = |times: steal::CpuTimes| times.steal.saturating_mul(steal::tick_ns());
        Self {
            disks: accounts.reduce(|sum, one| Some(sum?.plus(&one?))).flatten(),
            dirtied_bytes: page_cache::dirtied_bytes(root),
            io_waited_ns: pressure::pressure(root, Resource::Io),
            stolen_ns: steal::cpu_times(root).map(stolen),
            ..own
        }
    }

    /// What happened since; for work that must not wait for a reading when it ends.
    pub(crate) fn until_now(self, scope: Scope<'_>) -> Accounts {
        let now = Self::read(scope);
        Accounts { before: self, synced: now.clone(), worked: now }
    }
}

/// One reading of an account, where there is one.
type Reading = fn(&Account) -> Option<u64>;

/// Times, which are held against that of a figure: until the last request, or until all is durable.
const TIMES: [(Key, Reading); 4] = [
    (USER_NS, |account| Some(account.usage.user_ns)),
    (SYSTEM_NS, |account| Some(account.usage.system_ns)),
    (IO_PRESSURE_NS, |account| account.io_waited_ns),
    (STOLEN_NS, |account| account.stolen_ns),
];
/// What else belongs to the work alone.
const OF_THE_WORK: [(Key, Reading); 3] = [
    (Key::sum("minor_faults"), |account| Some(account.usage.minor_faults)),
    (PROCESS_READ_BYTES, |account| Some(account.process?.device_read_bytes)),
    (DIRTIED_BYTES, |account| account.dirtied_bytes),
];
/// What may happen only while the bytes are synced.
const UNTIL_SYNCED: [(Key, Reading); 5] = [
    (PROCESS_WRITE_BYTES, |account| Some(account.process?.device_write_bytes)),
    (DISK_READ_BYTES, |account| Some(account.disks?.read.bytes)),
    (DISK_WRITE_BYTES, |account| Some(account.disks?.write.bytes)),
    (DISK_READ_REQUESTS, |account| Some(account.disks?.read.requests)),
    (DISK_WRITE_REQUESTS, |account| Some(account.disks?.write.requests)),
];

/// The readings of a trial: the work ends when its last request has; of a write, the bytes may
/// reach the disk only while they are synced.
pub(crate) struct Accounts {
    pub(crate) before: Account,
    pub(crate) worked: Account,
    pub(crate) synced: Account,
}

impl Accounts {
    /// What happened between the readings.
    pub(crate) fn facts(&self) -> Facts {
        let mut facts = until(&self.before, &self.worked, &TIMES);
        facts.extend(until(&self.before, &self.worked, &OF_THE_WORK));
        facts.extend(until(&self.before, &self.synced, &UNTIL_SYNCED));
        facts
    }

    /// Times until the bytes were durable: of the CPU, of waiting for I/O, stolen.
    pub(crate) fn times_until_synced(&self) -> Facts {
        until(&self.before, &self.synced, &TIMES)
    }
}

/// What happened between two readings.
fn until(before: &Account, end: &Account, readings: &[(Key, Reading)]) -> Facts {
    let mut facts = Facts::default();
    for (key, read) in readings {
        let both = read(end).zip(read(before));
        facts.set_known(*key, both.map(|(end, before)| end.saturating_sub(before)));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_the_differences_of_readings() {
        let process =
            |bytes| Some(ProcessIo { device_read_bytes: bytes, device_write_bytes: 10 * bytes });
        let account = |bytes| Account { process: process(bytes), ..Account::default() };
        let accounts = Accounts { before: account(5), worked: account(8), synced: account(9) };
        let facts = accounts.facts();
        assert_eq!(facts.count(PROCESS_READ_BYTES), Some(3));
        assert_eq!(facts.count(PROCESS_WRITE_BYTES), Some(40));
        assert_eq!(facts.value(DISK_READ_BYTES), None, "no disk, no figure");
    }

    #[test]
    fn a_figure_until_all_is_durable_has_the_times_until_then() {
        let account = |ns| Account {
            io_waited_ns: Some(ns),
            stolen_ns: Some(10 * ns),
            usage: Usage { user_ns: 100 * ns, ..Usage::default() },
            ..Account::default()
        };
        let accounts = Accounts { before: account(1), worked: account(3), synced: account(8) };
        let times = |facts: Facts| [IO_PRESSURE_NS, STOLEN_NS, USER_NS].map(|key| facts.count(key));
        assert_eq!(times(accounts.facts()), [Some(2), Some(20), Some(200)]);
        assert_eq!(times(accounts.times_until_synced()), [Some(7), Some(70), Some(700)]);
    }

    #[test]
    fn this_process_has_an_account() {
        let account = Account::read(Scope::Process);
        assert!(account.usage.peak_memory_bytes > 0 && account.disks.is_none());
    }
}
