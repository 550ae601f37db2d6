//! The rows, as data: which call, under which conditions, and in which order.

use flatout_measure::{Label, Row as Measurable, Unit};

use crate::between_runs;

/// Threads in the widest rows.
pub(super) const MAX_THREADS: u32 = 8;

/// What limits calls that do next to nothing, and those of two threads that wake each other.
pub(super) const ENTRY: &str = "system call entry";
const ENTRY_AND_EXIT: &str = "kernel entry and exit, mitigations included";
const WAKE_UP: &str = "scheduler wake-up of the other CPU";

flatout_sys::words! {
    /// What is called, by rising cost of one call, and `area/test` of the record.
    pub(super) enum Call: id, ALL {
        EmptyFunction = "syscall/empty-call",
        VdsoClock = "syscall/vdso-clock",
        Nonexistent = "syscall/no-such-call",
        Getppid = "syscall/getppid",
        FutexWake = "syscall/futex-wake",
        Lseek = "syscall/lseek",
        Read = "syscall/read",
        Pread = "syscall/pread",
        Write = "syscall/write",
        Fstat = "syscall/fstat",
        Stat = "syscall/stat",
        Statx = "syscall/statx",
        OpenClose = "syscall/open-close",
        MmapMunmap = "syscall/mmap-munmap",
        UringNop = "syscall/uring-nop",
        MinorFault = "syscall/minor-fault",
        FutexPingPong = "syscall/futex-ping-pong",
        PipePingPong = "syscall/pipe-ping-pong",
        ThreadCreateJoin = "syscall/thread-create-join",
        ForkExit = "syscall/fork-exit",
    }
}

/// What a call cannot be faster than.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floor {
    /// None: it makes no system call (a page fault enters the kernel by another door), or is the floor.
    Own,
    /// One bare entry, as it was measured in this run.
    Entry,
    /// A part of an entry, or so many of them and so much work that one says nothing.
    Unknown,
}

impl Call {
    /// What it cannot be faster than, what most likely makes it dearer than that, for one thread, and what
    /// runs differ by, beyond what trials show.
    pub(super) fn limits(self) -> (Floor, &'static str, f64) {
        use Floor::{Entry, Own, Unknown};
        use between_runs::{FORK, SYSCALL, SYSCALL_MEMORY};

        match self {
            Self::EmptyFunction => (Own, "the CPU's clock and its call and return", SYSCALL),
            Self::VdsoClock => (Own, "reading the clock source", SYSCALL),
            Self::Nonexistent => (Own, ENTRY_AND_EXIT, SYSCALL),
            Self::Getppid => (Entry, ENTRY_AND_EXIT, SYSCALL),
            Self::FutexWake => (Entry, "futex lookup", SYSCALL),
            Self::Lseek => (Entry, ENTRY, SYSCALL),
            Self::Read | Self::Pread => (Entry, "page-cache lookup", SYSCALL_MEMORY),
            Self::Write => (Entry, "write path of the file system", SYSCALL_MEMORY),
            Self::Fstat => (Entry, "copying out the attributes", SYSCALL),
            Self::Stat | Self::Statx => (Entry, "path walk", SYSCALL_MEMORY),
            Self::OpenClose => (Unknown, "path walk and making the open file", SYSCALL_MEMORY),
            Self::MmapMunmap => (Unknown, "bookkeeping of mappings", SYSCALL),
            Self::UringNop => (Unknown, "handling of each request", SYSCALL),
            Self::MinorFault => (Own, "exception entry, zeroing and mapping a page", SYSCALL),
            Self::FutexPingPong | Self::PipePingPong => (Unknown, WAKE_UP, SYSCALL_MEMORY),
            Self::ThreadCreateJoin => (Unknown, "making and waking a thread", SYSCALL_MEMORY),
            Self::ForkExit => (Unknown, "page-table work", FORK),
        }
    }

    /// Whether the call works on the file that this area writes.
    pub(super) fn is_on_file(self) -> bool {
        matches!(self, Self::Lseek | Self::Read | Self::Pread | Self::Write | Self::Fstat)
    }

    /// Whether descriptors are looked up or made, so that a shared table would cost extra.
    pub(super) fn uses_descriptor(self) -> bool {
        self.is_on_file()
            || matches!(self, Self::Stat | Self::Statx | Self::OpenClose | Self::UringNop)
    }

    /// Whether it moves bytes.
    pub(super) fn moves_bytes(self) -> bool {
        matches!(self, Self::Read | Self::Pread | Self::Write)
    }

    fn has_thread_rows(self) -> bool {
        matches!(self, Self::Nonexistent | Self::Getppid | Self::Lseek) || self.moves_bytes()
    }
}

flatout_sys::words! {
    /// Which descriptor the threads of a row use.
    pub(super) enum Descriptor: name {
        /// One for all threads, hence one position.
        Shared = "shared",
        /// One for each thread, all of the same file.
        Private = "private",
        /// One for each thread, each of a file of its own.
        OwnFile = "own-file",
    }
}

/// Under which conditions a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// One thread, with a descriptor table of its own.
    Alone,
    /// The same on `/dev/zero` (reads) or `/dev/null` (writes): the way without a file system.
    Device,
    /// Several threads; a descriptor where the call takes one.
    Threads(u32, Option<Descriptor>),
    /// One thread; so many requests per system call.
    Batch(u32),
    /// Two threads that wake each other, on so many CPUs.
    Pair(u32),
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) call: Call,
    pub(super) variant: Variant,
    /// Bytes of a call, where it moves some.
    pub(super) block_bytes: u64,
}

impl Row {
    /// Threads that make the same calls side by side.
    pub(super) fn threads(&self) -> u32 {
        match self.variant {
            Variant::Threads(threads, _) => threads,
            _ => 1,
        }
    }

    /// The descriptor of a call on the file.
    pub(super) fn descriptor(&self) -> Option<Descriptor> {
        match self.variant {
            Variant::Threads(_, descriptor) => descriptor,
            Variant::Alone if self.call.has_thread_rows() && self.call.is_on_file() => {
                Some(Descriptor::Private)
            }
            _ => None,
        }
    }

    /// The device that stands for the file in [`Variant::Device`].
    pub(super) fn device_path(&self) -> &'static str {
        if self.call == Call::Write { "/dev/null" } else { "/dev/zero" }
    }
}

impl Measurable for Row {
    fn label(&self) -> Label {
        let moves_bytes = self.call.moves_bytes();
        let target = match self.variant {
            Variant::Device => self.device_path().trim_start_matches("/dev/"),
            _ => "file",
        };
        let label = Label::new(self.call.id(), Unit::Nanoseconds)
            .with_known("threads", self.call.has_thread_rows().then(|| self.threads()))
            .with_known("block_bytes", moves_bytes.then_some(self.block_bytes))
            .with_known("target", moves_bytes.then_some(target))
            .with_known("descriptor", self.descriptor().map(Descriptor::name))
            .deviating_by(match self.variant {
                Variant::Pair(2) => between_runs::WAKE_UP,
                _ => self.call.limits().2,
            })
            .headline_if(matches!((self.call, self.variant), (Call::Getppid, Variant::Alone)));
        match self.variant {
            Variant::Batch(requests) => label.with("batch_requests", requests),
            Variant::Pair(cpus) => label.with("cpus", cpus),
            _ => label,
        }
    }
}

/// Every row of the full grid: one thread by rising cost, then the calls that several threads
/// make.
pub(super) fn all(block_bytes: u64) -> Vec<Row> {
    let row = |call, variant| Row { call, variant, block_bytes };
    let in_variants_only = [Call::UringNop, Call::FutexPingPong, Call::PipePingPong];
    let alone = Call::ALL.into_iter().filter(|call| !in_variants_only.contains(call));
    let mut rows: Vec<_> = alone.map(|call| row(call, Variant::Alone)).collect();
    rows.extend([Call::Read, Call::Write].map(|call| row(call, Variant::Device)));
    rows.extend([32, 8, 1].map(|batch| row(Call::UringNop, Variant::Batch(batch))));
    for call in [Call::FutexPingPong, Call::PipePingPong] {
        rows.extend([1, 2].map(|cpus| row(call, Variant::Pair(cpus))));
    }
    // Stable, so that variants of a call stay in the order in which they stand above.
    rows.sort_by_key(|row| row.call as usize);
    rows.extend(threaded().map(|(call, variant)| row(call, variant)));
    rows
}

fn threaded() -> impl Iterator<Item = (Call, Variant)> {
    [2, 4, MAX_THREADS].into_iter().flat_map(|threads| {
        let calls = [Call::Lseek, Call::Read, Call::Pread, Call::Write];
        let on_file = calls.into_iter().flat_map(move |call| {
            [Descriptor::OwnFile, Descriptor::Private, Descriptor::Shared]
                .map(|descriptor| (call, Variant::Threads(threads, Some(descriptor))))
        });
        [(Call::Nonexistent, Variant::Threads(threads, None))].into_iter().chain(on_file)
    })
}

/// The rows that say most, for a run that must be short.
pub(super) fn short(block_bytes: u64) -> Vec<Row> {
    const LEFT_OUT: [Call; 4] =
        [Call::Stat, Call::FutexPingPong, Call::ThreadCreateJoin, Call::FutexWake];
    all(block_bytes)
        .into_iter()
        .filter(|row| match row.variant {
            Variant::Alone => !LEFT_OUT.contains(&row.call),
            Variant::Threads(threads, descriptor) => {
                row.call == Call::Read && threads == 2 && descriptor != Some(Descriptor::OwnFile)
            }
            Variant::Batch(requests) => requests == 32,
            Variant::Pair(cpus) => cpus == 2 && !LEFT_OUT.contains(&row.call),
            Variant::Device => false,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use flatout_measure::row::Parameters;

    use super::*;

    #[test]
    fn every_call_has_a_row() {
        let rows = all(1);
        assert!(Call::ALL.into_iter().all(|call| rows.iter().any(|row| row.call == call)));
    }

    #[test]
    fn the_short_set_holds_about_sixteen_rows_and_both_descriptors() {
        let rows = short(1);
        assert!((14..=18).contains(&rows.len()), "{}", rows.len());
        for descriptor in [Descriptor::Shared, Descriptor::Private] {
            let variant = Variant::Threads(2, Some(descriptor));
            assert!(rows.contains(&Row { call: Call::Read, variant, block_bytes: 1 }));
        }
    }

    #[test]
    fn runs_differ_by_more_where_two_cpus_wake_each_other() {
        let deviation = |cpus| {
            let row =
                Row { call: Call::PipePingPong, variant: Variant::Pair(cpus), block_bytes: 1 };
            row.label().deviation_between_runs
        };
        assert!(deviation(2) > deviation(1));
    }

    #[test]
    fn parameters_tell_target_descriptor_and_threads() {
        let row = |call, variant| Row { call, variant, block_bytes: 7 }.parameters();
        let alone = row(Call::Read, Variant::Alone);
        assert_eq!(alone.value("descriptor"), Some(&"private".into()));
        let device = row(Call::Write, Variant::Device);
        assert_eq!(device.value("target"), Some(&"null".into()));
        assert_eq!(device.value("block_bytes"), Some(&7_u64.into()));
        assert_eq!(device.value("descriptor"), None);
        assert_eq!(row(Call::ForkExit, Variant::Alone), Parameters::default());
    }
}
