//! What shows that a read or a write of a file did what its row says: bytes that a device moved at
//! the bottom of the chain, pages that direct requests left alone, and files that stayed in the cache.

use std::os::fd::BorrowedFd;
use std::path::Path;

use flatout_measure::units::percent;
use flatout_measure::{EVIDENCE, Evidence, Facts, Happened, Measured, Warning, warning};
use flatout_sys::storage::{self, DeviceNumber, IoLimit};
use flatout_sys::{Nature, filesystem};
use rustix::fs::FileType;

use super::accounting::{DIRTIED_BYTES, DISK_READ_BYTES};
use super::cache_watch::{CACHE_LOOKS, CACHE_LOOKS_FILLED};
use crate::fact;

/// The readings that decide, as they are called in the record.
const MOVED_RATIO: &str = "moved_ratio";
const MISSED_RATIO: &str = "missed_ratio";
pub(crate) const FILLED_RATIO: &str = "cache_looks_filled_ratio";
const BOTTOM: &str = "bottom_device_bytes";

/// Share of the bytes asked for that a device must have moved.
const MOVED_SHARE: f64 = 0.9;
/// Share of the bytes of a hot read that may have been fetched from storage.
pub(crate) const MISSED_SHARE: f64 = 0.01;
/// Share of the looks that may find pages of a file of direct requests in the cache: somebody else
/// may read it, too.
const FILLED_SHARE: f64 = 0.1;
/// Share of the bytes written below which what the machine dirtied shows that they were not.
const DIRTIED_SHARE: f64 = 0.5;

/// A part of a whole that is not nothing.
pub(crate) fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    Some(part? / whole.filter(|&whole| whole > 0.0)?)
}

/// Evidence of bytes that a device had to move, by two accounts of them: of the disks, which hold what
/// others asked for, and of the process, which holds what a cache below served; the least is what is shown.
pub(crate) fn moved(
    asked_bytes: f64,
    [one, other]: [Option<f64>; 2],
    ground: Option<Nature>,
) -> Evidence {
    let least = one.zip(other).map(|(one, other)| one.min(other));
    match (ground, ratio(least, Some(asked_bytes))) {
        (Some(Nature::Memory), _) => {
            let text = "the chain ends in memory: no device took part";
            Evidence::read(Happened::No, BOTTOM, 0.0, text)
        }
        (Some(Nature::Network | Nature::Userspace), _) => {
            let text = "another machine or program holds the bytes, and its devices are not seen";
            Evidence::missing(MOVED_RATIO, text)
        }
        (None | Some(Nature::Overlay), _) => {
            let text = "what lies at the bottom of the chain cannot be seen from here";
            Evidence::missing(MOVED_RATIO, text)
        }
        (Some(Nature::Disk), None) => {
            Evidence::missing(MOVED_RATIO, "there is no account of what the disks moved")
        }
        (Some(Nature::Disk), Some(share)) => {
            let happened = if share >= MOVED_SHARE { Happened::Yes } else { Happened::No };
            let text = format!("the disk moved {} of the bytes", percent(share));
            Evidence::read(happened, MOVED_RATIO, share, text)
        }
    }
}

/// Evidence against direct requests: that they went through the page cache, or of direct writes
/// that nobody can tell. None where nothing speaks against them.
pub(crate) fn buffered(facts: &Facts, written_bytes: f64) -> Option<Evidence> {
    let looks = facts.number(CACHE_LOOKS).filter(|&looks| looks > 0.0);
    let Some(looks) = looks else {
        let dirtied = facts.number(DIRTIED_BYTES);
        let is_shown = dirtied.is_some_and(|bytes| bytes < DIRTIED_SHARE * written_bytes);
        let text = "whether these writes went around the page cache cannot be told: nobody could \
                    look at it meanwhile, and the machine dirtied as much";
        return (written_bytes > 0.0 && !is_shown).then(|| Evidence::missing(FILLED_RATIO, text));
    };
    let filled = facts.number(CACHE_LOOKS_FILLED).unwrap_or(0.0);
    let share = ratio(Some(filled), Some(looks)).filter(|&share| share > FILLED_SHARE)?;
    let text = format!(
        "direct requests went through the page cache: {filled:.0} of {looks:.0} looks while they ran \
         found pages of the file there"
    );
    Some(Evidence::read(Happened::No, FILLED_RATIO, share, text))
}

/// What the bytes of a file lie in at the bottom.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bottom {
    /// The kind of place; none where that cannot be seen.
    pub(crate) ground: Option<Nature>,
    /// The devices whose accounts tell what really moved.
    pub(crate) disks: Vec<DeviceNumber>,
    /// What control groups allow of these and of the devices above them.
    pub(crate) limits: Vec<IoLimit>,
    /// How a filesystem is mounted so that a sync returns before storage has the bytes for good.
    pub(crate) unsynced: Option<&'static str>,
}

impl Bottom {
    /// That of an open file.
    ///
    /// Cost: the mount table, some 15 small files per device, and a few of control groups.
    pub(crate) fn of(file: BorrowedFd<'_>, path: &Path) -> Self {
        let root = Path::new("/");
        let chain = storage::chain(root, file, path).ok();
        let bottom = chain.map_or_else(Self::default, |chain| Self {
            ground: chain.ground(),
            limits: storage::limits(root, &chain.devices()),
            unsynced: chain.unsynced(),
            disks: chain.disks,
        });
        // Without /proc there is no mount table, but the filesystem still says what it is.
        let ground = bottom.ground.or_else(|| is_kept_in_memory(file).then_some(Nature::Memory));
        Self { ground, ..bottom }
    }
}

/// Whether no state of the page cache makes a difference to a plain file: its own filesystem is in memory.
/// That of a device's name is no matter.
pub(crate) fn is_kept_in_memory(file: BorrowedFd<'_>) -> bool {
    let is_plain = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode).is_file();
    rustix::fs::fstat(file).is_ok_and(is_plain)
        && filesystem::of(file).is_ok_and(|filesystem| filesystem.in_memory)
}

/// The warning of what counts until bytes are durable, where a filesystem is mounted so.
pub(crate) fn not_durable(option: &str) -> Warning {
    let text = format!(
        "a filesystem of this place is mounted {option}: fsync(2) returns before storage has the \
         bytes for good"
    );
    Warning::new(warning::NOT_DURABLE, text)
}

/// Evidence that a read was served from the page cache.
pub(crate) fn hot(read_bytes: f64, fetched_bytes: Option<f64>) -> Evidence {
    let Some(share) = ratio(fetched_bytes, Some(read_bytes)) else {
        return Evidence::missing(MISSED_RATIO, "nobody counts what was fetched from storage");
    };
    let happened = if share <= MISSED_SHARE { Happened::Yes } else { Happened::No };
    let text = format!("{} of the bytes were fetched from storage", percent(share));
    Evidence::read(happened, MISSED_RATIO, share, text)
}

/// Evidence that the bytes of reads came from the page cache, or from a device.
pub(crate) fn of_reads(facts: &Facts, is_hot: bool, ground: Option<Nature>) -> Evidence {
    let bytes = facts.number(fact::BYTES).unwrap_or(0.0);
    // That of the process ends at the topmost device.
    let accounts = [fact::DEVICE_READ_BYTES, DISK_READ_BYTES].map(|key| facts.number(key));
    if is_hot { hot(bytes, accounts[0]) } else { moved(bytes, accounts, ground) }
}

/// Says what shows that the bytes of a row of reads came from where the row has them, in all of its
/// trials, and warns where they did not.
pub(crate) fn prove_read<R>(measured: &mut Measured<R>, is_hot: bool, ground: Option<Nature>) {
    let Measured { outcome, facts, .. } = measured;
    if outcome.median.is_none() {
        return;
    }
    let evidence = of_reads(facts, is_hot, ground);
    warning::add_all(&mut outcome.warnings, against(&evidence));
    facts.set(EVIDENCE, evidence);
}

/// The warning of bytes that came from elsewhere, or went elsewhere, than the row has them; of files in
/// memory their filesystem's says it.
pub(crate) fn against(evidence: &Evidence) -> Option<Warning> {
    let code = match &*evidence.by {
        MISSED_RATIO => warning::NOT_HOT,
        MOVED_RATIO => warning::NOT_FROM_DEVICE,
        _ => return None,
    };
    (evidence.happened == Happened::No).then(|| Warning::new(code, evidence.text.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use flatout_measure::record::Outcome;
    use flatout_measure::{Label, Row, Unit};

    use super::*;

    const DISK: Option<Nature> = Some(Nature::Disk);
    const MIB: f64 = 1_048_576.0;

    #[test]
    fn the_least_account_of_a_device_at_the_bottom_decides() {
        let happened = |accounts, ground| moved(100.0, accounts, ground).happened;
        assert_eq!(happened([Some(100.0), Some(95.0)], DISK), Happened::Yes);
        assert_eq!(happened([Some(300.0), Some(5.0)], DISK), Happened::No, "for somebody else");
        assert_eq!(happened([Some(5.0), Some(100.0)], DISK), Happened::No, "a cached loop device");
        assert_eq!(happened([None, Some(100.0)], DISK), Happened::Unknown);
        assert_eq!(happened([None; 2], DISK), Happened::Unknown);
        let evidence = moved(100.0, [Some(40.0); 2], DISK);
        assert_eq!((&*evidence.by, evidence.value), ("moved_ratio", Some(0.4)));
    }

    #[test]
    fn a_file_in_memory_is_known_without_a_mount_table() {
        let file = rustix::fs::memfd_create("", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(Bottom::of(file.as_fd(), Path::new("nowhere")).ground, Some(Nature::Memory));
        // Its name lies in memory, its bytes need not.
        let device = std::fs::File::open("/dev/null").unwrap();
        assert!(!is_kept_in_memory(device.as_fd()));
    }

    #[test]
    fn memory_at_the_bottom_is_said_and_what_cannot_be_seen_is_unknown() {
        let full = [Some(100.0), Some(100.0)];
        let memory = moved(100.0, full, Some(Nature::Memory));
        assert_eq!((memory.happened, memory.value), (Happened::No, Some(0.0)));
        assert!(memory.text.contains("memory"), "{memory:?}");
        for ground in [None, Some(Nature::Network), Some(Nature::Userspace), Some(Nature::Overlay)]
        {
            assert_eq!(moved(100.0, full, ground).happened, Happened::Unknown, "{ground:?}");
        }
    }

    #[test]
    fn a_row_of_reads_is_proved_by_all_of_its_trials() {
        struct Reads;
        impl Row for Reads {
            fn label(&self) -> Label {
                Label::new("read/whole", Unit::BytesPerSecond)
            }
        }
        let proved = |is_hot, fetched: u64, disks: Option<u64>| {
            let facts = Facts::default().with(fact::BYTES, 1000_u64);
            let facts = facts.with(fact::DEVICE_READ_BYTES, fetched);
            let facts = facts.with_known(DISK_READ_BYTES, disks);
            let outcome = Outcome { median: Some(1e9), ..Outcome::default() };
            let mut measured = Measured { row: Reads, outcome, facts, further: Vec::new() };
            prove_read(&mut measured, is_hot, DISK);
            let row = measured.record().next().unwrap();
            let codes: Vec<_> = row.warnings.iter().map(|warning| warning.code.clone()).collect();
            (Evidence::of(&row).unwrap().happened, codes.concat())
        };
        let from_elsewhere = (Happened::No, warning::NOT_FROM_DEVICE.to_owned());
        assert_eq!(proved(true, 0, None), (Happened::Yes, String::new()));
        assert_eq!(proved(true, 950, None), (Happened::No, warning::NOT_HOT.to_owned()));
        assert_eq!(proved(false, 1000, Some(1000)), (Happened::Yes, String::new()));
        assert_eq!(proved(false, 100, Some(1000)), from_elsewhere);
        assert_eq!(proved(false, 1000, Some(100)), from_elsewhere);
        // What the topmost device was asked for, a cache below it may have answered.
        assert_eq!(proved(false, 1000, None), (Happened::Unknown, String::new()));
    }

    /// As read on Linux 6.18: btrfs with checksums, then the same file with `chattr +C`.
    #[test]
    fn direct_writes_that_btrfs_buffers_are_seen_while_they_run() {
        let facts = |filled: u64| {
            let facts = Facts::default().with(CACHE_LOOKS, 19_u64);
            facts.with(CACHE_LOOKS_FILLED, filled).with(DIRTIED_BYTES, (96.0 * MIB) as u64)
        };
        let evidence = buffered(&facts(19), 96.0 * MIB).unwrap();
        assert_eq!((evidence.happened, evidence.value), (Happened::No, Some(1.0)));
        assert_eq!(buffered(&facts(0), 96.0 * MIB), None, "whatever others dirty");
        assert_eq!(buffered(&facts(1), 96.0 * MIB), None, "somebody read a page");
    }

    #[test]
    fn where_nobody_looked_what_the_machine_dirtied_decides() {
        let facts = |bytes: f64| Facts::default().with(DIRTIED_BYTES, bytes as u64);
        assert_eq!(buffered(&facts(MIB), 96.0 * MIB), None);
        let unknown = buffered(&facts(96.0 * MIB), 96.0 * MIB).unwrap();
        assert_eq!((unknown.happened, unknown.value), (Happened::Unknown, None));
        assert_eq!(buffered(&Facts::default(), MIB).unwrap().happened, Happened::Unknown);
        assert_eq!(buffered(&Facts::default(), 0.0), None, "reads dirty nothing");
    }

    #[test]
    fn a_read_is_hot_where_storage_was_not_asked() {
        assert_eq!(hot(100.0, Some(0.0)).happened, Happened::Yes);
        assert_eq!(hot(100.0, Some(1.0)).happened, Happened::Yes);
        let cold = hot(100.0, Some(60.0));
        assert_eq!((cold.happened, cold.value), (Happened::No, Some(0.6)));
        assert_eq!(hot(100.0, None).happened, Happened::Unknown);
    }
}
