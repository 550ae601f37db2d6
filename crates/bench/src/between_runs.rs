//! What runs of an area usually differ by beyond what their trials show, as the standard deviation of
//! the logarithm of a figure: for the 95 % intervals, where nothing was learned of the machine.
//!
//! Fitted to whole runs on a virtual machine with 2 CPUs (AMD EPYC, family 25, model 17, ext4 on
//! virtio) of three days, 2026-11-25 to 27; docs/measuring.md has the tables.

/// Arithmetic for all of the time, whoever else is there; that of quiet moments does not differ. 2 % on
/// that machine; an Intel Xeon (model 207) whose siblings are busy needs 8.
pub(crate) const SUSTAINED: f64 = 0.08;
/// System calls that touch little memory.
pub(crate) const SYSCALL: f64 = 0.03;
/// Those that move bytes, look names up, or wake somebody on the same CPU.
pub(crate) const SYSCALL_MEMORY: f64 = 0.06;
/// A process that is made and ends: its pages lie elsewhere in each run.
pub(crate) const FORK: f64 = 0.25;
/// The page cache.
pub(crate) const CACHE: f64 = 0.06;
/// Requests to a disk, names and attributes: what the device, its host and the journal do for a while.
pub(crate) const DISK: f64 = 0.12;
/// Names and attributes that are only looked up, in memory.
pub(crate) const LOOKUP: f64 = 0.06;
/// Latency of memory in quiet moments: which pages a run was given. 4 % there; that Xeon needs 5.
pub(crate) const LATENCY: f64 = 0.05;
/// What memory and caches move: the pages, and who else uses caches and controllers. 6 % there;
/// eight runs on that Xeon differed by 7 to 11.
pub(crate) const MEMORY: f64 = 0.07;
/// Between two cores: in a virtual machine the host moves them, which is a factor of four.
pub(crate) const HAND_OVER: f64 = 0.3;
/// Two threads on two CPUs that wake each other: how far apart these are, and how soundly an idle one sleeps,
/// is the host's affair for minutes. In one whole run of eight (AMD EPYC, 2026-11-29) a round trip through
/// pipes, over TCP and over UDP took 1.32, 1.34 and 1.33 times as long as in the middle one, in all of its
/// trials, which agreed within 2 %; in another 1.17 to 1.22 times.
pub(crate) const WAKE_UP: f64 = 0.16;
/// Loopback on one CPU, and what lies between two machines. 7 % there; eight runs on that Xeon differed by 9 to
/// 25 %, some of which shows in trials.
pub(crate) const NETWORK: f64 = 0.12;
/// Trees that are copied.
pub(crate) const COPY: f64 = 0.15;
