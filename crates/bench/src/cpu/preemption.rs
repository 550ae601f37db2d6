//! Whether a thread lost its CPU in a stretch of time, as the kernel tells.

use flatout_sys::{monotonic_ns, thread_cpu_ns, usage};

/// Share of its time that a thread must have had its CPU for a stretch to count. What takes it away
/// (other programs, the hypervisor, interrupts) is missing in its CPU time, which excludes stolen
/// time where the kernel is told of it (`CONFIG_PARAVIRT_TIME_ACCOUNTING`).
const CPU_SHARE: f64 = 0.98;

/// What a thread's clocks said when the stretch began.
pub(super) struct PreemptionCheck {
    start_ns: u64,
    cpu_ns: u64,
    switches: u64,
}

impl PreemptionCheck {
    pub(super) fn start() -> Self {
        let switches = usage::thread().involuntary_switches;
        let cpu_ns = thread_cpu_ns();
        Self { start_ns: monotonic_ns(), cpu_ns, switches }
    }

    /// Whether the CPU was lost since then.
    pub(super) fn is_preempted(&self) -> bool {
        let elapsed_ns = monotonic_ns().saturating_sub(self.start_ns).max(1);
        let cpu_ns = thread_cpu_ns().saturating_sub(self.cpu_ns);
        let switched = usage::thread().involuntary_switches != self.switches;
        switched || (cpu_ns as f64) < CPU_SHARE * elapsed_ns as f64
    }
}
