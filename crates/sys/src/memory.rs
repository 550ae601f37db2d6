//! How much memory a program may still take, and how much of it waits for storage.

/// Bytes that can be had without swapping (`MemAvailable` of /proc/meminfo); `None` if unknown.
pub fn available_bytes() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// Bytes of files, of all programs together, that storage does not have yet (`Dirty` and
/// `Writeback` of /proc/meminfo); `None` if unknown.
pub fn unwritten_bytes() -> Option<u64> {
    unwritten(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available(meminfo: &str) -> Option<u64> {
    field(meminfo, "MemAvailable:")
}

fn unwritten(meminfo: &str) -> Option<u64> {
    Some(field(meminfo, "Dirty:")? + field(meminfo, "Writeback:")?)
}

fn field(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found() {
        let text = "MemTotal:       24684084 kB\nMemAvailable:   20000000 kB\n";
        assert_eq!(available(text), Some(20_480_000_000));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        let text = "Dirty:  3 kB\nWriteback:   2 kB\nWritebackTmp:  9 kB\n";
        assert_eq!(unwritten(text), Some(5 * 1024));
        assert_eq!(unwritten("Dirty:  3 kB\n"), None);
    }
}
