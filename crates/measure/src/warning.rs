//! Every warning code of the schema. Codes are stable: programs match on them.
//!
//! What speaks against a number travels inside the record as a [`Warning`]; nothing is printed here.

pub use crate::record::Warning;

/// What a code says to the six questions, and so which answer it makes bad. One without says how the
/// row was measured and leaves the answers as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Says {
    /// Did it even happen? The work in question may not have been done. What a row has as evidence
    /// says more, and comes first (`verdict/happened.rs`).
    ///
    /// A loop device on a cached file reads memory, whatever direct I/O says about the file on it;
    /// and what a disk was not seen to move, it did not move. Where twice the work does not take
    /// twice the time, some of it was not done.
    NotDone,
    /// Did it even happen? Nothing could be counted that would show it: no sign of idleness, but no
    /// evidence either, and without evidence the answer is bad.
    Unproven,
    /// Does it matter? The figure is about something else than its name.
    ///
    /// A network or userspace filesystem: the figure is that of a server, a line or a program, and
    /// may be what was wanted, but it is none of a disk here. An overlay is not among them: what is
    /// written to it, and read back, lies on the filesystem below, at the same speed. A file that a
    /// cache can hold measures the cache. Late starts: the load that was asked for was never offered.
    BesideThePoint,
    /// Does it matter? It only labels a figure: the row is meant to be like this.
    Label,
    /// Does it matter? The figure stands for its name, in circumstances that the reader must know.
    Circumstance,
    /// Does it reproduce? However narrow the interval is, the figure will be another one when others
    /// leave device or CPU alone, when the run takes longer, or when the same blocks are read again.
    NotLasting,
    /// Did it break limits? It did not, but a limit that somebody set is likely what was measured.
    /// This is no bad answer by itself: a limit of the group may lie far above the figure, and a
    /// plateau may be one by chance.
    SetLimit,
    /// Did it error? It did not, but there was no time for the row.
    LeftOut,
}

macro_rules! codes {
    ($($(#[doc = $text:literal])+ $name:ident = $code:literal $(=> $says:ident)?;)+) => {
        $($(#[doc = $text])+ pub const $name: &str = $code;)+

        /// Every code with its one-line meaning, sorted as in the source.
        pub const ALL: &[(&str, &str)] = &[$(($code, concat!($($text),+).trim_ascii_start())),+];

        /// The codes that say something to the six questions.
        pub(crate) const SAYING: &[(&str, Says)] = &[$($(($code, Says::$says),)?)+];
    };
}

codes! {
    /// A figure exceeds a derived ceiling by more than 2 %; it is not given.
    ABOVE_CEILING = "above_ceiling";
    /// A figure exceeds a ceiling that was measured; the ceiling is too low.
    CEILING_LOW = "ceiling_low";
    /// A figure exceeds a limit that somebody set: a burst, or the limit does not hold here.
    LIMIT_EXCEEDED = "limit_exceeded";
    /// More than half of the trials were disturbed from outside; they count nevertheless.
    DISTURBED = "disturbed";
    /// Threads waited for a CPU because other programs run on this machine.
    LOCAL_LOAD = "local_load";
    /// The workload reported an error.
    FAILED = "failed";
    /// Fewer than three trials count, so there is no 95 % interval.
    FEW_TRIALS = "few_trials";
    /// The run was interrupted before the row was complete.
    INTERRUPTED = "interrupted";
    /// The time or the amount of a trial is zero or no number; no figure can come of it.
    INVALID_TIME = "invalid_time";
    /// The time allowed was over before the row's first trial, or leaves none for it.
    TIME_SHORT = "time_short" => LeftOut;
    /// Some samples lie far from the others; they are kept.
    OUTLIERS = "outliers";
    /// The harness itself takes more than 1 % of the time measured.
    OVERHEAD = "overhead" => Circumstance;
    /// This machine cannot run the workload.
    UNSUPPORTED = "unsupported";
    /// The figure is noisy: its 95 % interval is wider than ±25 %.
    UNSTABLE = "unstable";
    /// The file has holes, which are read without touching storage.
    SPARSE_FILE = "sparse_file" => NotDone;
    /// The filesystem stores the file compressed: storage moves fewer bytes than are counted.
    COMPRESSED_FILE = "compressed_file" => NotDone;
    /// The file holds blocks of zeros, which thin storage serves without reading.
    ZERO_BLOCKS = "zero_blocks" => NotDone;
    /// The file has extents that were allocated but never written; reading them is free.
    UNWRITTEN_EXTENTS = "unwritten_extents" => NotDone;
    /// The filesystem refuses direct I/O; another way was taken.
    DIRECT_REFUSED = "direct_refused";
    /// Direct I/O was accepted, but the page cache grew: it fell back in silence.
    DIRECT_CACHED = "direct_cached" => NotDone;
    /// The kernel or filesystem refuses uncached buffered I/O; another way was taken.
    DONTCACHE_REFUSED = "dontcache_refused";
    /// Uncached buffered I/O was served from pages that were in the cache already.
    DONTCACHE_HIT = "dontcache_hit" => NotDone;
    /// io_uring is not available here; another engine was taken.
    URING_REFUSED = "uring_refused";
    /// The file cannot be mapped; another engine was taken.
    MMAP_REFUSED = "mmap_refused";
    /// Part of the file was still in the cache when a cold trial began.
    NOT_COLD = "not_cold" => NotDone;
    /// Bytes of the file had not reached storage when the trial began.
    DIRTY_PAGES = "dirty_pages" => NotDone;
    /// No end of the cache is seen twice in the latency curve; its size is declared by the CPU, or assumed.
    CACHE_UNCLEAR = "cache_unclear" => Circumstance;
    /// The file lives in memory (tmpfs or the like); no storage is involved.
    MEMORY_FILESYSTEM = "memory_filesystem" => BesideThePoint;
    /// Blocks are so small that system calls, not storage, set the figure.
    SYSCALL_BOUND = "syscall_bound" => Label;
    /// Blocks are smaller than a page: read-ahead, not the block size, sets the figure.
    READAHEAD_BOUND = "readahead_bound" => Label;
    /// The file is shorter than what was to be read.
    SHORT_FILE = "short_file" => NotDone;
    /// Two passes over the same bytes gave different digests.
    DIGEST_DIFFERS = "digest_differs" => NotDone;
    /// The file shrank while it was read.
    TRUNCATED = "truncated" => NotDone;
    /// Fewer threads ran than were asked for.
    THREADS_REDUCED = "threads_reduced" => BesideThePoint;
    /// More threads than CPUs: they wait for each other.
    OVERSUBSCRIBED = "oversubscribed" => Label;
    /// A trial was too short for the clock or the guard to judge it.
    SHORT_RUN = "short_run" => BesideThePoint;
    /// There was nothing to read, so there is no rate.
    EMPTY_FILE = "empty_file";
    /// The file did not stay in the page cache.
    NOT_HOT = "not_hot";
    /// More than one request in flight was asked of an engine that has one.
    DEPTH_UNUSED = "depth_unused";
    /// The calling thread could not get a descriptor table of its own.
    DESCRIPTOR_TABLE_SHARED = "descriptor_table_shared";
    /// The clock is read by a system call here.
    VDSO_MISSING = "vdso_missing";
    /// Writing ended before the bytes were safe on storage: this is a rate to cache.
    NOT_DURABLE = "not_durable" => Label;
    /// The file lies on a loop device whose backing file the page cache holds.
    LOOP_CACHED = "loop_cached" => NotDone;
    /// The disk moved clearly fewer bytes than were asked of it.
    NOT_FROM_DEVICE = "not_from_device" => NotDone;
    /// No block device is known behind the file, so what it moved could not be counted.
    DEVICE_UNKNOWN = "device_unknown" => Unproven;
    /// The file lies on an overlay; the figure is that of the filesystem below it.
    OVERLAY_FILESYSTEM = "overlay_filesystem" => Circumstance;
    /// The file lies on another machine; the network and the server are part of the figure.
    NETWORK_FILESYSTEM = "network_filesystem" => BesideThePoint;
    /// A program serves the filesystem (FUSE); its time is part of the figure.
    USERSPACE_FILESYSTEM = "userspace_filesystem" => BesideThePoint;
    /// The control group of this process has a limit on the device (io.max).
    IO_LIMIT = "io_limit" => SetLimit;
    /// The rate is flat at a round figure, which is likely a limit that somebody set.
    PLATEAU = "plateau" => SetLimit;
    /// The rate changed level within the run; a run of another length gives another figure.
    BURST = "burst" => NotLasting;
    /// One request took much of the time, and far longer than the others: the storage stood still.
    STALLED = "stalled" => NotLasting;
    /// The first pass over the blocks was clearly slower than the second.
    COLD_BLOCKS = "cold_blocks" => NotLasting;
    /// The file is small enough to be held by a cache as a whole.
    FITS_IN_CACHE = "fits_in_cache" => BesideThePoint;
    /// The filesystem is nearly full, which makes many of them slower.
    NEARLY_FULL = "nearly_full" => Circumstance;
    /// Fewer bytes were used than were asked for, because space is short.
    SIZE_REDUCED = "size_reduced" => Circumstance;
    /// The kernel split requests: the device saw smaller ones than were asked for.
    REQUESTS_SPLIT = "requests_split" => Circumstance;
    /// Others used the device in the same time.
    SHARED_DEVICE = "shared_device" => NotLasting;
    /// The server worked for other clients in the same time: the figure is a share.
    SHARED_SERVER = "shared_server" => NotLasting;
    /// Another client of those measured together ended before this one had all of its trials.
    OTHERS_ENDED = "others_ended";
    /// Creating files is far slower than removing them, as after many were deleted.
    RECENT_DELETES = "recent_deletes";
    /// A device, or a file of the user's, would have been written to; nothing was done.
    WRITE_REFUSED = "write_refused";
    /// Nothing can be written at this place; nothing was done.
    READ_ONLY = "read_only";
    /// The limit of bytes to write ended the row early.
    WRITE_LIMIT = "write_limit" => Circumstance;
    /// The file was written while it was read, so it has no digest.
    CHANGED = "changed";
    /// The file has another digest than the one listed.
    MISMATCH = "mismatch";
    /// The file is not there.
    MISSING = "missing";
    /// A rival is not installed, so it was not raced.
    MISSING_RIVAL = "missing_rival";
    /// Open loop: requests began later than intended, so the rate asked for was not kept.
    LATE_STARTS = "late_starts" => BesideThePoint;
    /// The other program of a pair does the same work a little differently.
    DONE_OTHERWISE = "done_otherwise" => Circumstance;
    /// A copier keeps less of what it copies than the one it is held against.
    KEEPS_LESS = "keeps_less" => Circumstance;
    /// The state of the page cache before a run could not be proved.
    STATE_UNPROVED = "state_unproved";
    /// Two programs do not do the same here, so they are not raced.
    CANNOT_COMPARE = "cannot_compare";
    /// Memory could not be had, or not be shown to lie, on large pages.
    NO_HUGE_PAGES = "no_huge_pages";
    /// A part of the memory does not lie near the threads that use it, because their memory nodes are full.
    MEMORY_ELSEWHERE = "memory_elsewhere" => Circumstance;
    /// The size of a cache that the latency curve shows is not the one that the CPU declares.
    CACHE_DIFFERS = "cache_differs" => Circumstance;
    /// Two kinds of dependency chain read clocks that differ by more than 1 %.
    CLOCK_DISAGREES = "clock_disagrees" => Circumstance;
    /// The clock fell while the row was measured: power, temperature, or contention by an SMT sibling.
    CLOCK_DRIFT = "clock_drift" => NotLasting;
    /// The control group has a CPU quota below what the threads could use.
    CPU_QUOTA = "cpu_quota" => SetLimit;
    /// The CPUs that the process may use changed while it was measured, or its threads cannot be tied to any.
    CPUS_CHANGED = "cpus_changed" => NotLasting;
    /// The host moved CPUs nearer to each other or apart, and the figure depends on where they are.
    CPUS_MOVED = "cpus_moved" => NotLasting;
    /// CPUs that the row used share a core, whatever the machine says of itself.
    CORES_SHARED = "cores_shared" => Circumstance;
    /// An SMT sibling used the core for more than a tenth of the time, or in more than a tenth of the probes.
    SMT_CONTENTION = "smt_contention" => Circumstance;
    /// The CPU has wider registers than any loop that runs here: AVX without AVX2 and FMA.
    NARROW_LOOPS = "narrow_loops" => Circumstance;
    /// Twice the work did not take twice the time.
    NOT_LINEAR = "not_linear" => NotDone;
    /// The hypervisor took a part of the CPU time, in trials that count or in many of the phase's.
    STOLEN_TIME = "stolen_time" => NotLasting;
    /// Both ends are on this machine: what is measured is its kernel and memory, no network.
    LOOPBACK = "loopback" => Label;
    /// Both ends are on this machine, with an interface between them (a veth, a bridge): what is
    /// measured is its kernel and memory, no network.
    ONE_MACHINE = "one_machine" => Label;
    /// Some of the processes share a host: what they send to each other goes through its memory.
    SAME_HOST = "same_host" => Circumstance;
    /// Part of the datagrams that were sent did not arrive.
    DATAGRAMS_LOST = "datagrams_lost" => Circumstance;
    /// Datagrams came so late that they cannot be told from duplicates.
    ACCOUNT_INCOMPLETE = "account_incomplete" => Circumstance;
    /// Some processes, or a host's, are clearly slower than the others.
    STRAGGLERS = "stragglers" => Circumstance;
    /// Some pairs of processes are clearly slower than the others.
    SLOW_PAIRS = "slow_pairs" => Circumstance;
    /// Between two processes one way is clearly slower than the other.
    ASYMMETRIC_PAIRS = "asymmetric_pairs" => Circumstance;
    /// Some processes did less than the fastest had done at the stonewall: the time for it was over.
    WEAR_OUT_BOUNDED = "wear_out_bounded" => Circumstance;
    /// Bytes were thrown away in the kernel instead of being read.
    DISCARDED = "discarded" => Label;
}

/// The first code of a row that says this.
pub(crate) fn saying(warnings: &[Warning], says: Says) -> Option<&str> {
    let mut codes = warnings.iter().map(|warning| warning.code.as_str());
    codes.find(|code| SAYING.contains(&(*code, says)))
}

/// Why a row was not measured for which there was no time.
pub fn no_time() -> Warning {
    Warning::new(TIME_SHORT, "there was no time for it (--max-time allows more)")
}

/// Share of the free space below which a filesystem counts as nearly full.
pub const NEARLY_FULL_SHARE: f64 = 0.05;

/// Share of the time, or of the probes, with contention by an SMT sibling above which that is said.
pub const NOTABLE_CONTENTION: f64 = 0.1;

/// Adds `warning` unless one with its code is there.
pub fn add(warnings: &mut Vec<Warning>, warning: Warning) {
    if !warnings.iter().any(|known| known.code == warning.code) {
        warnings.push(warning);
    }
}

/// Adds each that is not there yet.
pub fn add_all(warnings: &mut Vec<Warning>, more: impl IntoIterator<Item = Warning>) {
    more.into_iter().for_each(|warning| add(warnings, warning));
}

/// Whether a warning with this code is there.
pub fn has(warnings: &[Warning], code: &str) -> bool {
    warnings.iter().any(|warning| warning.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_snake_case_and_explained() {
        for (index, (code, text)) in ALL.iter().enumerate() {
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
            assert!(text.trim() == *text && text.ends_with('.'), "{code}: {text}");
            assert!(ALL[index + 1..].iter().all(|(other, _)| other != code), "{code} twice");
        }
    }

    #[test]
    fn one_warning_per_code_is_kept() {
        let mut warnings = Vec::new();
        add(&mut warnings, Warning::new(OUTLIERS, "first"));
        add(&mut warnings, Warning::new(OUTLIERS, "second"));
        add(&mut warnings, Warning::new(OVERHEAD, "third"));
        assert_eq!(warnings.len(), 2);
        assert_eq!(warnings[0].text, "first");
        assert!(has(&warnings, OVERHEAD) && !has(&warnings, FAILED));
    }
}
