//! The data caches of a CPU as the kernel knows them (CPUID on x86, firmware tables on Arm).
//!
//! In a virtual machine this is what the hypervisor says, which may be the host's whole last
//! cache, a part of it, or made up. Nothing here is measured.

use std::fs;
use std::path::Path;

use crate::attribute::text;

/// One cache that holds data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataCache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// Size of one instance.
    pub bytes: u64,
    /// CPUs that share one instance, as the kernel lists them (`0-1`); empty if it does not say.
    pub shared_cpus: String,
}

/// The data caches of CPU `cpu`, nearest first, from `sys/devices/system/cpu` below `root` (`/`
/// for the real one). Where the real machine's is hidden, those of the CPU that this thread is on,
/// which then says nothing about who shares them. None where nobody says.
///
/// Cost: a dozen small files are read.
pub fn data_caches(root: &Path, cpu: usize) -> Vec<DataCache> {
    let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache"));
    let mut caches: Vec<DataCache> = match fs::read_dir(folder) {
        Ok(entries) => entries.flatten().filter_map(|entry| read_cache(&entry.path())).collect(),
        Err(_) if root == Path::new("/") => of_this_cpu(),
        Err(_) => Vec::new(),
    };
    caches.sort_by_key(|cache| (cache.level, cache.bytes));
    caches
}

/// As the CPU itself says: leaf 4 of Intel's "cpuid", whose layout AMD's 0x8000001d has.
#[cfg(target_arch = "x86_64")]
fn of_this_cpu() -> Vec<DataCache> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const INTEL: u32 = 4;
    const AMD: u32 = 0x8000_001d;
    /// More than any CPU has.
    const MOST: u32 = 16;
    let has_amd = __cpuid(0x8000_0000).eax >= AMD && __cpuid_count(AMD, 0).eax & 0x1f != 0;
    let has_intel = __cpuid(0).eax >= INTEL;
    let Some(leaf) = has_amd.then_some(AMD).or(has_intel.then_some(INTEL)) else {
        return Vec::new();
    };
    let answers = (0..MOST).map(|index| __cpuid_count(leaf, index));
    let caches = answers.take_while(|answer| answer.eax & 0x1f != 0);
    caches.filter_map(|answer| from_registers([answer.eax, answer.ebx, answer.ecx])).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn of_this_cpu() -> Vec<DataCache> {
    Vec::new()
}

/// One answer: kind and level, then line, partitions and ways less one, then sets less one.
#[cfg(any(target_arch = "x86_64", test))]
fn from_registers([eax, ebx, ecx]: [u32; 3]) -> Option<DataCache> {
    const DATA_OR_UNIFIED: [u32; 2] = [1, 3];
    let [line, partitions, ways] = [(0, 12), (12, 10), (22, 10)]
        .map(|(shift, bits)| u64::from(ebx >> shift & ((1 << bits) - 1)) + 1);
    DATA_OR_UNIFIED.contains(&(eax & 0x1f)).then(|| DataCache {
        level: eax >> 5 & 7,
        bytes: line * partitions * ways * (u64::from(ecx) + 1),
        shared_cpus: String::new(),
    })
}

fn read_cache(folder: &Path) -> Option<DataCache> {
    if !["Data", "Unified"].contains(&text(folder, "type")?.as_str()) {
        return None;
    }
    Some(DataCache {
        level: text(folder, "level")?.parse().ok().filter(|&level| level > 0)?,
        bytes: parse_size(&text(folder, "size")?)?,
        shared_cpus: text(folder, "shared_cpu_list").unwrap_or_default(),
    })
}

/// Reads `48K`, `2048K`, `32M`; none of nothing and of 0.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, scale) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let count: u64 = digits.parse().ok()?;
    count.checked_mul(scale).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(caches: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (index, (level, kind, size)) in caches.iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu3/cache/index{index}");
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let files =
                [("level", *level), ("type", *kind), ("size", *size), ("shared_cpu_list", "3,7")];
            for (name, text) in files {
                fs::write(folder.join(name), format!("{text}\n")).unwrap();
            }
        }
        root
    }

    #[test]
    fn instructions_are_left_out_and_sizes_have_units() {
        let root = tree(&[
            ("1", "Data", "48K"),
            ("1", "Instruction", "32K"),
            ("3", "Unified", "105M"),
            ("2", "Unified", "2048K"),
        ]);
        let caches = data_caches(root.path(), 3);
        let sizes: Vec<_> = caches.iter().map(|cache| (cache.level, cache.bytes)).collect();
        assert_eq!(sizes, [(1, 48 << 10), (2, 2 << 20), (3, 105 << 20)]);
        assert_eq!(caches[0].shared_cpus, "3,7");
        assert!(data_caches(root.path(), 0).is_empty(), "another CPU");
    }

    /// Sizes as published, in the kernel's spelling.
    #[test]
    fn caches_of_known_cpus_are_read() {
        let cpus = [
            ("EPYC 7763, Zen 3", ["32K", "512K", "32768K"], [32, 512, 32 << 10]),
            ("EPYC 9654, Zen 4", ["32K", "1024K", "32768K"], [32, 1024, 32 << 10]),
            ("Xeon 8380, Ice Lake", ["48K", "1280K", "61440K"], [48, 1280, 60 << 10]),
            ("Xeon 8480+, Sapphire Rapids", ["48K", "2048K", "107520K"], [48, 2048, 105 << 10]),
            ("Graviton2, Neoverse N1", ["64K", "1024K", "32768K"], [64, 1024, 32 << 10]),
        ];
        for (cpu, [first, second, third], kib) in cpus {
            let root = tree(&[
                ("1", "Data", first),
                ("1", "Instruction", "32K"),
                ("2", "Unified", second),
                ("3", "Unified", third),
            ]);
            let caches = data_caches(root.path(), 3);
            let found: Vec<u64> = caches.iter().map(|cache| cache.bytes >> 10).collect();
            assert_eq!(found, kib, "{cpu}");
        }
        // An Arm guest whose firmware has no sizes: the kernel makes no file of them.
        let root = tree(&[("1", "Data", "64K")]);
        fs::remove_file(root.path().join("sys/devices/system/cpu/cpu3/cache/index0/size")).unwrap();
        assert!(data_caches(root.path(), 3).is_empty());
    }

    /// Where /sys is hidden. The registers are those of a Zen 4.
    #[test]
    fn the_cpu_itself_says_what_the_kernel_says() {
        let sizes = |all: &[DataCache]| all.iter().map(|cache| cache.bytes).collect::<Vec<_>>();
        let kib =
            |registers| from_registers(registers).map(|cache| (cache.level, cache.bytes >> 10));
        assert_eq!(kib([0x4121, 0x01c0_003f, 0x3f]), Some((1, 32)));
        assert_eq!(kib([0x4122, 0x01c0_003f, 0x3f]), None, "instructions");
        assert_eq!(kib([0x4163, 0x03c0_003f, 0x7fff]), Some((3, 32 << 10)));
        let own = sizes(&of_this_cpu());
        let kernel: Vec<_> = (0..4).map(|cpu| sizes(&data_caches(Path::new("/"), cpu))).collect();
        if own.is_empty() || kernel[0].is_empty() {
            return eprintln!("skipped: the kernel or the CPU does not say");
        }
        // Cores may be of several kinds.
        assert!(kernel.contains(&own), "{own:?} {kernel:?}");
    }

    #[test]
    fn what_cannot_be_is_left_out() {
        let root = tree(&[("0", "Data", "48K"), ("1", "Data", "0K"), ("2", "Unified", "x")]);
        assert!(data_caches(root.path(), 3).is_empty());
        assert_eq!(parse_size(""), None);
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("18446744073709551615G"), None);
    }
}
