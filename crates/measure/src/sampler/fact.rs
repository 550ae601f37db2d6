//! Facts that the sampler finds out about every row; readers of records know them by these names.

use crate::fact::{Key, Merge};

/// Trials that were run, whether they count or not.
pub const TRIALS_RUN: Key = Key::last("trials_run");
/// Trials that do not count because others spoiled them, and how many for which reason.
pub const INTERVALS_SPOILED: Key = Key::last("intervals_spoiled");
/// See [`INTERVALS_SPOILED`].
pub const SPOIL_REASONS: Key = Key::last("spoil_reasons");
/// Spoiled trials that count because there were no others.
pub const INTERVALS_DISTURBED: Key = Key::last("intervals_disturbed");
/// Trials that were dropped as warm-up, and their figures.
pub const WARMUP_DROPPED: Key = Key::last("warmup_dropped");
/// See [`WARMUP_DROPPED`].
pub const WARMUP_SAMPLES: Key = Key::last("warmup_samples");
/// Figures that do not count because the row as a whole is refused.
pub const REJECTED_SAMPLES: Key = Key::last("rejected_samples");
/// Samples far from the others, by their place.
pub const OUTLIER_INDICES: Key = Key::last("outlier_indices");
/// Time that the harness itself takes in a trial, and its share of the time.
pub const HARNESS_OVERHEAD_NS: Key = Key::last("harness_overhead_ns");
/// See [`HARNESS_OVERHEAD_NS`].
pub const OVERHEAD_RATIO: Key = Key::last("overhead_ratio");
/// Who had the CPUs during the trials that count: CPUs that this process and all others used in the
/// mean, and the share of the time that its threads wanted a CPU in which they waited for one.
pub const USE_OF_CPUS: Key = Key::last("use_of_cpus");
/// What the 95 % interval takes runs to differ by beyond what trials show: `source` is `learned` (from
/// so many `runs`, by `flatout compare --noise`) or `assumed`, `deviation` that of ln figure. Beside
/// learned ones `half_width_ratio` is half of the interval without what is only assumed. `beside_others`
/// where others were at work, which is more than an assumption.
pub const BETWEEN_RUNS: Key = Key::last("between_runs");
/// The time between probes for contention by an SMT sibling, and the part of it at the end of which there
/// was some; a trial that probes reports both.
pub const WATCHED_NS: Key = Key::sum("watched_ns");
/// See [`WATCHED_NS`].
pub const CONTENDED_NS: Key = Key::sum("contended_ns");
/// Share of that time with contention. A trial of which all time counts reports it itself, as the share of
/// the probes before and after, or in between.
pub const CONTENTION_RATIO: Key = Key::new("contention_ratio", Merge::Mean);
/// How far the first two CPUs were from each other, one way, in the middle of the looks before and after trials.
pub const CPU_DISTANCE_NS: Key = Key::last("cpu_distance_ns");
/// What a trial finds alone on the core, and what it finds beside a busy sibling, where it saw both: figures
/// in the unit of the row.
pub const FIGURE_ALONE: Key = Key::new("figure_alone", Merge::Median);
/// See [`FIGURE_ALONE`].
pub const FIGURE_CONTENDED: Key = Key::new("figure_contended", Merge::Median);
