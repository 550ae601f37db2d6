//! What is known of a row of the cpu area besides its figure.

pub(super) use flatout_measure::sampler::fact::{CONTENDED_NS, CONTENTION_RATIO, WATCHED_NS};
use flatout_measure::{Key, Merge};

/// The clock in the load, in the mean of its threads.
pub(super) const CLOCK_HZ: Key = Key::new("clock_hz", Merge::Median);
/// That of the slowest thread.
pub(super) const CLOCK_SLOWEST_THREAD_HZ: Key = Key::new("clock_slowest_thread_hz", Merge::Median);
/// That of the fastest one.
pub(super) const CLOCK_FASTEST_THREAD_HZ: Key = Key::new("clock_fastest_thread_hz", Merge::Median);
/// The CPUs of the threads, where these are of several kinds.
pub(super) const CPU_NUMBERS: Key = Key::last("cpu_numbers");
/// The clock right before the work.
pub(super) const CLOCK_BEFORE_HZ: Key = Key::new("clock_before_hz", Merge::Median);
/// The clock right after it.
pub(super) const CLOCK_AFTER_HZ: Key = Key::new("clock_after_hz", Merge::Median);
/// What the second kind of chain reads ÷ what the first does.
pub(super) const CHAIN_AGREEMENT_RATIO: Key = Key::new("chain_agreement_ratio", Merge::Median);
/// The time of twice the work ÷ that of the work.
pub(super) const DOUBLING_RATIO: Key = Key::new("doubling_ratio", Merge::Median);
/// The rate of a trial at its own clock: in the middle one, and in the best tenth of them.
pub(super) const OPERATIONS_PER_CYCLE: Key = Key::new("operations_per_cycle", Merge::Median);
pub(super) const OPERATIONS_PER_CYCLE_BEST_DECILE: Key =
    Key::new("operations_per_cycle_best_decile", Merge::UpperDecile);
/// Their shares of the peak.
pub(super) const PER_CYCLE_RATIO: Key = Key::last("per_cycle_ratio");
pub(super) const PER_CYCLE_BEST_DECILE_RATIO: Key = Key::last("per_cycle_best_decile_ratio");
/// Operations of all slices.
pub(super) const OPERATIONS: Key = Key::sum("operations");
/// Slices of work, and those of them that do not count.
pub(super) const SLICES: Key = Key::sum("slices");
pub(super) const SLICES_DISCARDED: Key = Key::sum("slices_discarded");
/// CPU time of the threads ÷ their time.
pub(super) const CPU_USE_RATIO: Key = Key::new("cpu_use_ratio", Merge::Mean);
/// CPU time of the threads ÷ the time.
pub(super) const CPUS_GOT: Key = Key::new("cpus_got", Merge::Mean);
/// Time of all CPUs that the hypervisor took: the share, and in ticks.
pub(super) const STOLEN_RATIO: Key = Key::new("stolen_ratio", Merge::Mean);
pub(super) const STOLEN_TICKS: Key = Key::sum("stolen_ticks");
/// Probes for contention.
pub(super) const PROBES: Key = Key::sum("contention_probes");
/// The peak, factor by factor, in words.
pub(super) const PEAK: Key = Key::last("peak");
/// Whether two CPUs share a core, in words.
pub(super) const VERDICT: Key = Key::last("verdict");
/// The trials of matrices one by one.
pub(super) const TRIALS: Key = Key::new("trials", Merge::Concat);
/// Mean and largest of their figures.
pub(super) const AVERAGE_FLOP_PER_S: Key = Key::new("average_flop_per_s", Merge::Mean);
pub(super) const BEST_FLOP_PER_S: Key = Key::new("best_flop_per_s", Merge::Max);
/// Half of the 95 % interval of these ÷ their median.
pub(super) const HALF_WIDTH: Key = Key::last("half_width");
pub(super) const OWN_TRIALS_PER_S: Key = Key::last("own_trials_per_s");
