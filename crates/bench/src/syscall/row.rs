//! The rows, as data: which call, under which conditions, and in which order.

use serde_json::{Map, Value};

/// Threads in the widest rows.
pub(super) const MAX_THREADS: u32 = 8;

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    EmptyFunction,
    VdsoClock,
    Getppid,
    FutexWake,
    Lseek,
    Read,
    Pread,
    Write,
    Fstat,
    Stat,
    Statx,
    OpenClose,
    MmapMunmap,
    UringNop,
    MinorFault,
    FutexPingPong,
    PipePingPong,
    ThreadCreateJoin,
    ForkExit,
}

impl Call {
    pub(super) const ALL: [Self; 19] = [
        Self::EmptyFunction,
        Self::VdsoClock,
        Self::Getppid,
        Self::FutexWake,
        Self::Lseek,
        Self::Read,
        Self::Pread,
        Self::Write,
        Self::Fstat,
        Self::Stat,
        Self::Statx,
        Self::OpenClose,
        Self::MmapMunmap,
        Self::UringNop,
        Self::MinorFault,
        Self::FutexPingPong,
        Self::PipePingPong,
        Self::ThreadCreateJoin,
        Self::ForkExit,
    ];

    /// `area/test` of the record.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::EmptyFunction => "syscall/empty-call",
            Self::VdsoClock => "syscall/vdso-clock",
            Self::Getppid => "syscall/getppid",
            Self::FutexWake => "syscall/futex-wake",
            Self::Lseek => "syscall/lseek",
            Self::Read => "syscall/read",
            Self::Pread => "syscall/pread",
            Self::Write => "syscall/write",
            Self::Fstat => "syscall/fstat",
            Self::Stat => "syscall/stat",
            Self::Statx => "syscall/statx",
            Self::OpenClose => "syscall/open-close",
            Self::MmapMunmap => "syscall/mmap-munmap",
            Self::UringNop => "syscall/uring-nop",
            Self::MinorFault => "syscall/minor-fault",
            Self::FutexPingPong => "syscall/futex-ping-pong",
            Self::PipePingPong => "syscall/pipe-ping-pong",
            Self::ThreadCreateJoin => "syscall/thread-create-join",
            Self::ForkExit => "syscall/fork-exit",
        }
    }

    pub(super) fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|call| call.id() == id)
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

    fn moves_bytes(self) -> bool {
        matches!(self, Self::Read | Self::Pread | Self::Write)
    }

    fn has_thread_rows(self) -> bool {
        self == Self::Getppid || self == Self::Lseek || self.moves_bytes()
    }
}

/// Which descriptor the threads of a row use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descriptor {
    /// One for all threads, hence one position.
    Shared,
    /// One for each thread, all of the same file.
    Private,
    /// One for each thread, each of a file of its own.
    OwnFile,
}

impl Descriptor {
    fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Private => "private",
            Self::OwnFile => "own-file",
        }
    }
}

/// Where two threads that wake each other run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    OneCpu,
    TwoCpus,
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
    /// Two threads that wake each other.
    Pair(Placement),
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) call: Call,
    pub(super) variant: Variant,
}

impl Row {
    /// Threads that make the same calls side by side.
    pub(super) fn threads(&self) -> u32 {
        match self.variant {
            Variant::Threads(threads, _) => threads,
            _ => 1,
        }
    }

    /// What tells this row from others of the same id.
    pub(super) fn parameters(&self, block_bytes: u64) -> Map<String, Value> {
        let mut parameters = Map::new();
        let mut set = |key: &str, value: Value| parameters.insert(key.to_owned(), value);
        if self.call.has_thread_rows() {
            set("threads", self.threads().into());
        }
        if self.call.moves_bytes() {
            set("block_bytes", block_bytes.into());
            set(
                "target",
                if self.variant == Variant::Device { self.device() } else { "file" }.into(),
            );
        }
        match self.variant {
            Variant::Threads(_, Some(descriptor)) => {
                set("descriptor", descriptor.name().into());
            }
            Variant::Alone if self.call.has_thread_rows() && self.call.is_on_file() => {
                set("descriptor", Descriptor::Private.name().into());
            }
            Variant::Batch(requests) => {
                set("batch_requests", requests.into());
            }
            Variant::Pair(placement) => {
                let cpus = if placement == Placement::OneCpu { 1 } else { 2 };
                set("cpus", cpus.into());
            }
            _ => {}
        }
        parameters
    }

    /// The device that stands for the file in [`Variant::Device`].
    fn device(&self) -> &'static str {
        if self.call == Call::Write { "null" } else { "zero" }
    }

    /// Where that device is.
    pub(super) fn device_path(&self) -> &'static str {
        if self.call == Call::Write { "/dev/null" } else { "/dev/zero" }
    }
}

fn row(call: Call, variant: Variant) -> Row {
    Row { call, variant }
}

/// Every row of the full grid: one thread by rising cost, then the calls that several threads
/// make.
pub(super) fn all() -> Vec<Row> {
    let mut rows: Vec<_> = [
        Call::EmptyFunction,
        Call::VdsoClock,
        Call::Getppid,
        Call::FutexWake,
        Call::Lseek,
        Call::Read,
        Call::Pread,
        Call::Write,
        Call::Fstat,
        Call::Stat,
        Call::Statx,
        Call::OpenClose,
        Call::MmapMunmap,
        Call::MinorFault,
        Call::ThreadCreateJoin,
        Call::ForkExit,
    ]
    .into_iter()
    .map(|call| row(call, Variant::Alone))
    .collect();
    rows.extend([Call::Read, Call::Write].map(|call| row(call, Variant::Device)));
    rows.extend([32, 8, 1].map(|batch| row(Call::UringNop, Variant::Batch(batch))));
    for call in [Call::FutexPingPong, Call::PipePingPong] {
        rows.extend(
            [Placement::OneCpu, Placement::TwoCpus].map(|place| row(call, Variant::Pair(place))),
        );
    }
    // Stable, so that variants of a call stay in the order in which they stand above.
    rows.sort_by_key(|row| Call::ALL.iter().position(|&call| call == row.call));
    rows.extend(threaded());
    rows
}

fn threaded() -> Vec<Row> {
    let mut rows = Vec::new();
    for threads in [2, 4, MAX_THREADS] {
        rows.push(row(Call::Getppid, Variant::Threads(threads, None)));
        for call in [Call::Lseek, Call::Read, Call::Pread, Call::Write] {
            for descriptor in [Descriptor::OwnFile, Descriptor::Private, Descriptor::Shared] {
                rows.push(row(call, Variant::Threads(threads, Some(descriptor))));
            }
        }
    }
    rows
}

/// The rows that say most, for a run that must be short.
pub(super) fn short() -> Vec<Row> {
    const LEFT_OUT: [Call; 4] =
        [Call::Stat, Call::FutexPingPong, Call::ThreadCreateJoin, Call::FutexWake];
    all()
        .into_iter()
        .filter(|row| match row.variant {
            Variant::Alone => !LEFT_OUT.contains(&row.call),
            Variant::Threads(threads, descriptor) => {
                row.call == Call::Read && threads == 2 && descriptor != Some(Descriptor::OwnFile)
            }
            Variant::Batch(requests) => requests == 32,
            Variant::Pair(place) => place == Placement::TwoCpus && !LEFT_OUT.contains(&row.call),
            Variant::Device => false,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_leads_back_to_its_call_and_every_call_has_a_row() {
        let rows = all();
        for call in Call::ALL {
            assert_eq!(Call::from_id(call.id()), Some(call));
            assert!(rows.iter().any(|row| row.call == call));
        }
        assert_eq!(Call::from_id("syscall/other"), None);
    }

    #[test]
    fn the_short_set_holds_about_sixteen_rows_and_both_descriptors() {
        let rows = short();
        assert!((14..=18).contains(&rows.len()), "{}", rows.len());
        for descriptor in [Descriptor::Shared, Descriptor::Private] {
            assert!(rows.contains(&row(Call::Read, Variant::Threads(2, Some(descriptor)))));
        }
    }

    #[test]
    fn parameters_tell_target_descriptor_and_threads() {
        let alone = row(Call::Read, Variant::Alone).parameters(7);
        assert_eq!(Value::from(alone).to_string().matches("private").count(), 1);
        let device = row(Call::Write, Variant::Device).parameters(7);
        assert_eq!(device["target"], "null");
        assert_eq!(device["block_bytes"], 7);
        assert!(!device.contains_key("descriptor"));
        assert!(row(Call::ForkExit, Variant::Alone).parameters(7).is_empty());
    }
}
