//! The theoretical peak of a row, factor by factor, each with where it comes from.
//!
//! Operations per second = cores used × clock in that load × ports ÷ micro-operations of a step ×
//! lanes × 2 for multiply-add, 1 for add.

use flatout_sys::throughput::Kernel;

use super::ports::Ports;
use crate::counted;

/// What a row's threads had to themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    pub(super) threads: u32,
    /// CPUs that they may run on.
    pub(super) cpus: u32,
    /// Cores that those CPUs are, and that they are by what the kernel says.
    pub(super) cores: u32,
    pub(super) cores_declared: u32,
    /// CPUs that the quota is worth.
    pub(super) quota_cpus: Option<f64>,
    /// CPU time that they got ÷ time.
    pub(super) cpus_got: f64,
}

impl Share {
    /// Cores that count. A quota lets a short trial have more than its share: then what was got
    /// counts, because the figure cannot be held against less.
    pub(super) fn cores_used(&self) -> f64 {
        let most = f64::from(self.threads.min(self.cpus).min(self.cores).max(1));
        self.quota_cpus.map_or(most, |quota| quota.max(self.cpus_got).min(most))
    }

    /// Whether a quota makes it less.
    pub(super) fn is_limited_by_quota(&self) -> bool {
        let most = f64::from(self.threads.min(self.cpus).max(1));
        self.quota_cpus.is_some_and(|quota| quota < most)
    }

    /// Whether threads wait for each other.
    pub(super) fn is_oversubscribed(&self) -> bool {
        self.threads > self.cpus
    }

    fn words(&self) -> String {
        let used = self.cores_used();
        if self.is_limited_by_quota() {
            return format!("{used:.2} CPUs (quota of the control group, or what was got of it)");
        }
        let from = match (self.is_oversubscribed(), self.cores < self.threads.min(self.cpus)) {
            (_, true) => "cores: some CPUs share one",
            (true, _) => "all CPUs",
            (false, false) => "one for each thread",
        };
        format!("{} ({from})", counted(used, "CPU"))
    }
}

/// The factors of a peak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Factors {
    pub(super) kernel: Kernel,
    pub(super) share: Share,
    pub(super) clock_hz: f64,
    pub(super) ports: Ports,
    /// What the counts loop read.
    pub(super) counted_per_cycle: f64,
}

impl Factors {
    /// Operations per second.
    pub(super) fn per_s(&self) -> f64 {
        let per_step = self.kernel.lanes() * self.kernel.operation.count();
        let steps_per_s = self.clock_hz * self.ports.steps_per_cycle();
        self.share.cores_used() * steps_per_s * per_step as f64
    }

    /// The formula with its numbers and where each is from.
    pub(super) fn words(&self) -> String {
        format!(
            "{} × {:.3} GHz (measured in this load) × {} (counted by a loop of its own: {:.2} per \
             cycle) × {} lanes ({} bytes of {}) × {} ({})",
            self.share.words(),
            self.clock_hz / 1e9,
            self.ports.words(),
            self.counted_per_cycle,
            self.kernel.lanes(),
            self.kernel.level.register_bytes(),
            self.kernel.number.word(),
            self.kernel.operation.count(),
            self.kernel.operation.word(),
        )
    }
}

#[cfg(test)]
mod tests {
    use flatout_sys::throughput::{Level, Number, Operation};

    use super::*;

    fn share(threads: u32, cpus: u32, cores: u32) -> Share {
        let (cores_declared, cpus_got) = (cores, f64::from(threads.min(cpus)));
        Share { threads, cpus, cores, cores_declared, quota_cpus: None, cpus_got }
    }

    fn factors(kernel: (Number, Operation, Level), share: Share, clock_hz: f64, ports: u64) -> f64 {
        let (number, operation, level) = kernel;
        let kernel = Kernel { number, operation, level };
        let ports = Ports { ports, micro_operations: 1 };
        let counted_per_cycle = ports.steps_per_cycle();
        Factors { kernel, share, clock_hz, ports, counted_per_cycle }.per_s()
    }

    #[test]
    fn peaks_of_known_machines() {
        use {Level::*, Number::*, Operation::*};
        // Ice Lake server, AVX-512 at 2.9 GHz: 32 f64 operations per cycle.
        let ice_lake = factors((F64, MultiplyAdd, Avx512), share(2, 4, 4), 2.9e9, 2);
        assert_eq!(ice_lake, 2.0 * 92.8e9);
        // Zen 2 at 3.3 GHz, eight cores with two threads each: 16 per cycle and core.
        let zen = factors((F64, MultiplyAdd, Avx2), share(16, 16, 8), 3.3e9, 2);
        assert!((zen - 8.0 * 52.8e9).abs() < 1.0);
        // Zen 2: four pipes add integers of 32 bytes.
        assert_eq!(factors((I32, Add, Avx2), share(1, 16, 8), 3.3e9, 4), 105.6e9);
        // Zen 3, and Zen 4 with either width, which takes 512 bits in two halves: 16 per cycle.
        let zen3 = factors((F64, MultiplyAdd, Avx2), share(1, 2, 2), 3.5e9, 2);
        let zen4 = |level, ports| factors((F64, MultiplyAdd, level), share(1, 2, 2), 3.7e9, ports);
        assert_eq!((zen3, zen4(Avx2, 2), zen4(Avx512, 1)), (56e9, 59.2e9, 59.2e9));
        // Sapphire Rapids, AVX-512 at 2.6 GHz: two units, 32 per cycle, 64 of f32.
        let sapphire = |number| factors((number, MultiplyAdd, Avx512), share(1, 2, 1), 2.6e9, 2);
        assert_eq!((sapphire(F64), sapphire(F32)), (83.2e9, 166.4e9));
        // Neoverse V1, four units of 16 bytes, at 2.6 GHz: 16 f64 operations per cycle.
        assert_eq!(factors((F64, MultiplyAdd, Sse2), share(1, 2, 2), 2.6e9, 4), 41.6e9);
        // Vectors of 16 bytes with two pipes, as on a Neoverse N1 at 2.5 GHz.
        assert_eq!(factors((F32, Add, Sse2), share(4, 4, 4), 2.5e9, 2), 80e9);
    }

    #[test]
    fn a_quota_scales_the_peak_but_never_below_what_was_got() {
        let contained = Share { quota_cpus: Some(1.5), cpus_got: 1.2, ..share(4, 8, 8) };
        assert_eq!(contained.cores_used(), 1.5);
        assert!(contained.is_limited_by_quota());
        assert_eq!(Share { cpus_got: 3.1, ..contained }.cores_used(), 3.1);
        let wide = Share { quota_cpus: Some(16.0), ..share(4, 8, 8) };
        assert_eq!(wide.cores_used(), 4.0);
        assert!(!wide.is_limited_by_quota());
    }

    #[test]
    fn more_threads_than_cpus_have_the_peak_of_the_cpus() {
        let crowd = share(8, 2, 2);
        assert_eq!(crowd.cores_used(), 2.0);
        assert!(crowd.is_oversubscribed() && crowd.words().contains("all CPUs"));
        assert_eq!(share(2, 2, 1).cores_used(), 1.0);
        assert!(share(2, 2, 1).words().contains("share one"));
    }

    #[test]
    fn every_factor_has_its_source() {
        let kernel =
            Kernel { number: Number::F64, operation: Operation::MultiplyAdd, level: Level::Avx512 };
        let ports = Ports { ports: 2, micro_operations: 1 };
        let share = share(1, 2, 2);
        let factors = Factors { kernel, share, clock_hz: 2.5e9, ports, counted_per_cycle: 1.98 };
        let words = factors.words();
        assert_eq!(
            words,
            "1 CPU (one for each thread) × 2.500 GHz (measured in this load) × 2 ports (counted by \
             a loop of its own: 1.98 per cycle) × 8 lanes (64 bytes of f64) × 2 (multiply-add)"
        );
    }
}
