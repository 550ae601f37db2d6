//! What kind of machine a run was on, as far as it bears on the figures.
//!
//! Names that point to a person or a place are left out: host name, serial numbers, paths.
//! Nothing here fails; what cannot be read is null. Which file each member is from stands in
//! [`capture`]; how the texts are read, in `environment/text.rs`.

mod text;

use std::collections::BTreeMap;
use std::path::Path;

use flatout_sys::quota::Groups;
use flatout_sys::region::base_page_bytes;
use flatout_sys::{attribute, instruction_set};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The machine and its settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this program.
    pub flatout_version: String,
    /// Release of the running kernel.
    pub kernel_release: Option<String>,
    /// The CPU's name for itself.
    pub cpu_model: Option<String>,
    /// Widest vector instructions that the kernel lets programs use: `sse2`, `sse4.2`, `avx`,
    /// `avx2`, `avx512`, `neon`, `sve` or `sve2`.
    pub simd: Option<String>,
    /// The widest of them that our kernels may use, where somebody limited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simd_limit: Option<String>,
    /// CPUs that are switched on.
    pub cpus_online: Option<u32>,
    /// CPUs that this process may run on.
    pub cpus_allowed: Option<u32>,
    /// CPUs that the control group's quota is worth; null without a quota.
    pub cpu_quota_cpus: Option<f64>,
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Memory that programs could get at the start, the page cache included.
    pub memory_available_bytes: Option<u64>,
    /// Memory limit of the control group; null without one.
    pub memory_limit_bytes: Option<u64>,
    /// Size of a page.
    pub page_bytes: Option<u64>,
    /// Whether the CPU says that it is a virtual one.
    pub hypervisor: Option<bool>,
    /// What steers the clock frequency of the first CPU; null where the kernel does not.
    pub governor: Option<String>,
    /// When transparent huge pages are used: `always`, `madvise` or `never`.
    pub transparent_hugepages: Option<String>,
    /// The clock source behind all times.
    pub clocksource: Option<String>,
    /// 0: io_uring for all, 1: for the privileged, 2: for nobody; null before Linux 6.6.
    pub io_uring_disabled: Option<u64>,
    /// The kernel's word on each known CPU vulnerability.
    pub mitigations: BTreeMap<String, String>,
    /// Runnable tasks, averaged over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Whether the effective user is root.
    pub root: Option<bool>,
}

impl Environment {
    /// The same as a JSON value, for the record.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

/// Most bytes read of any one file. `/proc/cpuinfo` repeats itself for each CPU, and asking for
/// all of a large machine takes long, so its beginning must do.
const FILE_MOST_BYTES: u64 = 16 << 10;

/// Looks at the machine whose `proc` and `sys` lie below `root`, `/` for this one.
///
/// Cost: some forty small files, about a millisecond.
pub fn capture(root: &Path) -> Environment {
    let whole = |path: &str| beginning(&root.join(path));
    let line = |path: &str| attribute::text(root, path);
    let (cpuinfo, meminfo) = (whole("proc/cpuinfo"), whole("proc/meminfo"));
    let status = whole("proc/self/status");
    let groups = Groups::discover(root);
    let cpu = "sys/devices/system/cpu";
    Environment {
        flatout_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel_release: line("proc/sys/kernel/osrelease"),
        cpu_model: text::cpu_model(&cpuinfo),
        simd: text::simd(&cpuinfo).map(str::to_owned),
        simd_limit: instruction_set::limit().map(|limit| limit.word().to_owned()),
        cpus_online: line(&format!("{cpu}/online")).and_then(|list| text::cpu_count(&list)),
        cpus_allowed: text::field(&status, "Cpus_allowed_list").and_then(text::cpu_count),
        cpu_quota_cpus: groups.cpu_quota_cpus(),
        memory_bytes: attribute::kib_after(&meminfo, "MemTotal:"),
        memory_available_bytes: attribute::kib_after(&meminfo, "MemAvailable:"),
        memory_limit_bytes: groups.memory_limit_bytes(),
        page_bytes: Some(base_page_bytes() as u64),
        hypervisor: text::hypervisor(&cpuinfo),
        governor: line(&format!("{cpu}/cpu0/cpufreq/scaling_governor")),
        transparent_hugepages: line("sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|choices| text::chosen(&choices).map(str::to_owned)),
        clocksource: line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        io_uring_disabled: attribute::number(root, "proc/sys/kernel/io_uring_disabled"),
        mitigations: mitigations(&root.join(format!("{cpu}/vulnerabilities"))),
        load_average: line("proc/loadavg").and_then(|line| text::load_average(&line)),
        root: text::is_root(&status),
    }
}

/// The beginning of a file as text; nothing where it cannot be read.
fn beginning(path: &Path) -> String {
    let bytes = attribute::beginning(path, FILE_MOST_BYTES).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn mitigations(folder: &Path) -> BTreeMap<String, String> {
    let names = attribute::names(folder).into_iter();
    names.filter_map(|name| Some((name.clone(), attribute::text(folder, &name)?))).collect()
}

#[cfg(test)]
mod tests;
