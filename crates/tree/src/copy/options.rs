//! What a copy is to be like.

use flatout_io::transfer::{BUFFER_BYTES, Method};
use flatout_io::{Engine, SizeClass, Tuning};
use flatout_sys::cancel::CancelToken;

use super::Rules;

/// Attributes that a copy keeps of its source, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Preserve(u16);

impl Preserve {
    /// Nothing but names, bytes and kinds.
    pub const NOTHING: Self = Self(0);
    /// Permissions with the set-id and sticky bits, and access control lists.
    pub const MODE: Self = Self(1);
    /// User and group.
    pub const OWNERSHIP: Self = Self(2);
    /// Access and modification times, in nanoseconds.
    pub const TIMESTAMPS: Self = Self(4);
    /// Names that are one file stay one file.
    pub const LINKS: Self = Self(8);
    /// Extended attributes, file capabilities among them.
    pub const XATTR: Self = Self(16);
    /// The security context (SELinux).
    pub const CONTEXT: Self = Self(32);
    /// All of them, as `cp -a`.
    pub const ALL: Self = Self(63);
    /// Where modes are not kept: those of any new file, 0666 and 0777 less the umask. Otherwise they
    /// are those of the source less the umask, as with cp.
    pub const PLAIN_MODE: Self = Self(64);
    /// What was there keeps what its source has nothing of: special bits, attributes; as with cp.
    pub const WHAT_IS_THERE: Self = Self(128);

    /// Flags of chattr(1), which `cp -a` does not keep: who locks a file would find its copy locked.
    pub const FLAGS: Self = Self(256);
    /// The project that pays for the room (quotas); `cp -a` does not keep it.
    pub const PROJECT: Self = Self(512);

    /// Extended attributes and capabilities that are lost make a copy incomplete.
    pub const DEMANDED: Self = Self(1024);

    /// This, and `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This without `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The set as a number, which tells it from others.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether all of `other` is kept.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How a file gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appearance {
    /// A new file at once, marked as unfinished; one that was there is replaced as a whole.
    Plain,
    /// New files, too, only when they are complete (`--atomic`).
    Atomic,
    /// A file that was there is cut and written again (`--in-place`).
    InPlace,
    /// The same, but what it holds already is not written (`--in-place --delta`).
    Amended,
    /// Whatever was there is written to as it is, or goes first, by the rules of cp.
    AsFound(Rules),
}

/// Which files of the target count as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchanged {
    /// Those that this program is known to have made from that very source, where neither has been
    /// changed since.
    Recorded,
    /// Those of the same type, size and modification time, whatever they hold (`--quick-check`).
    SizeAndTime,
    /// Those of the same content (`--checksum`).
    Content,
    /// None (`--always`).
    Never,
}

/// Which files make room for their copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// Those that this user may write.
    Writable,
    /// Read-only ones, too (`--force`).
    Protected,
}

/// When something is done at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum When {
    /// Where it can be had.
    #[default]
    Auto,
    /// Or the copy fails.
    Always,
    /// Not at all.
    Never,
}

/// How far a copy goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// Everything below the operand.
    #[default]
    Everything,
    /// Not into other filesystems; their mount points become empty directories.
    OneFilesystem,
}

/// What must be true when a file counts as copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assurance {
    /// The kernel took all bytes.
    Accepted,
    /// Digested on the way, and read back from the device (`--verify`).
    Verified,
}

/// Whether each entry is told of as it is in the end (`--manifest`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inventory {
    /// Not at all.
    None,
    /// With a digest of the bytes of each file, made on the way.
    Digests,
}

/// When the copy returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the kernel has all.
    #[default]
    Cached,
    /// When storage has all (`--sync`).
    Durable,
}

/// Settings that were measured on the filesystems of a copy. What is asked for goes before them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tuned {
    /// Threads for small files whose contents are cached.
    pub usual_threads: Option<u32>,
    /// Threads when it turns out that they wait for the source.
    pub most_threads: Option<u32>,
    /// For files of more than 4 MiB: engine, block, requests in flight, and threads for one file.
    pub large: Option<Tuning>,
}

impl Tuned {
    /// What moves the bytes of a file of this length, if that was measured.
    pub(super) fn method(&self, length_bytes: u64) -> Option<Method> {
        let large = self.large.filter(|_| SizeClass::of(length_bytes) == SizeClass::Large)?;
        Some(match large.engine {
            // That is how copies are made by default.
            Engine::Sync if large.block_bytes == BUFFER_BYTES as u64 => return None,
            Engine::Sync => Method::Sync,
            Engine::Mmap => Method::Mmap,
            Engine::Uring => Method::Uring,
        })
    }

    /// Whether several threads may share a large file.
    pub(super) fn shares(&self) -> bool {
        self.large.is_none_or(|large| large.threads > 1)
    }
}

/// Whether anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Everything.
    Done,
    /// Nothing: it is found out what would be (`--dry-run`).
    Planned,
}

/// What of a target goes that its source does not have (`--delete`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// Nothing is deleted beyond so many.
    pub most: Option<u64>,
    /// Whether what is excluded goes, too (`--delete-excluded`).
    pub takes_excluded: bool,
}

/// What a copy is to be like.
#[derive(Debug, Clone, Copy)]
pub struct CopyOptions {
    /// What it keeps.
    pub preserve: Preserve,
    /// How files get their names.
    pub appearance: Appearance,
    /// What need not be copied again.
    pub unchanged: Unchanged,
    /// What may be replaced.
    pub overwrite: Overwrite,
    /// Whether it is done.
    pub effect: Effect,
    /// What goes; `None`: nothing.
    pub deletion: Option<Deletion>,
    /// How far it goes.
    pub reach: Reach,
    /// The method (`--engine`); `None`: the best for each file.
    pub method: Option<Method>,
    /// Sharing of extents.
    pub reflink: When,
    /// Holes: kept where the source has them, made wherever there are zeros, or filled.
    pub sparse: When,
    /// What must be true of a file.
    pub assurance: Assurance,
    /// Whether it is told what there is in the end.
    pub inventory: Inventory,
    /// What must be true at the end.
    pub durability: Durability,
    /// Threads; 0: as many as turn out to be useful.
    pub threads: u32,
    /// Bytes per request; 0: the best.
    pub block_bytes: u64,
    /// Requests in flight of the ring; 0: the best.
    pub depth: u32,
    /// What was measured here, for what is left open.
    pub tuned: Tuned,
    /// Descriptors held open at most; 0: what the limit of the process allows.
    pub max_fds: u32,
    /// Memory for what is remembered; beyond it, a file without a name takes it.
    pub max_memory_bytes: u64,
    /// The umask; `None`: it is looked up when it is needed.
    pub umask: Option<u32>,
    /// The wish to stop.
    pub cancel: CancelToken,
}
