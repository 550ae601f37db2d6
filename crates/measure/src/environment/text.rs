//! Reads single facts out of the texts that the kernel shows. Pure functions; a fact that is not
//! there is `None`.

/// The value of `name: value` or `name\t: value`.
pub(super) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim_end() == name).then(|| value.trim())
    })
}

/// The CPU's name; Arm has only the numbers of maker and part.
pub(super) fn cpu_model(cpuinfo: &str) -> Option<String> {
    if let Some(name) = field(cpuinfo, "model name").filter(|name| !name.is_empty()) {
        return Some(name.to_owned());
    }
    let implementer = field(cpuinfo, "CPU implementer")?;
    let part = field(cpuinfo, "CPU part")?;
    Some(format!("implementer {implementer} part {part}"))
}

/// The widest vector extension. The kernel clears a flag whose registers it does not save, so
/// what is listed can be used.
pub(super) fn simd(cpuinfo: &str) -> Option<&'static str> {
    const LEVELS: [(&str, &str); 8] = [
        ("avx512f", "avx512"),
        ("avx2", "avx2"),
        ("avx", "avx"),
        ("sse4_2", "sse4.2"),
        ("sse2", "sse2"),
        ("sve2", "sve2"),
        ("sve", "sve"),
        ("asimd", "neon"),
    ];
    let flags = field(cpuinfo, "flags").or_else(|| field(cpuinfo, "Features"))?;
    let has = |wanted: &str| flags.split_ascii_whitespace().any(|flag| flag == wanted);
    LEVELS.iter().find(|(flag, _)| has(flag)).map(|(_, level)| *level)
}

/// Whether the CPU says that it is a virtual one; Arm does not tell.
pub(super) fn hypervisor(cpuinfo: &str) -> Option<bool> {
    let flags = field(cpuinfo, "flags")?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// CPUs in a list such as `0-3,8`.
pub(super) fn cpu_count(list: &str) -> Option<u32> {
    let cpus = flatout_sys::numa::parse_cpu_list(list.trim())?;
    (!cpus.is_empty()).then_some(cpus.len() as u32)
}

/// The word in brackets, as in `always [madvise] never`.
pub(super) fn chosen(choices: &str) -> Option<&str> {
    Some(choices.split_once('[')?.1.split_once(']')?.0)
}

/// The three averages of `/proc/loadavg`.
pub(super) fn load_average(line: &str) -> Option<[f64; 3]> {
    let mut fields = line.split_ascii_whitespace().map(|field| field.parse().ok());
    Some([fields.next()??, fields.next()??, fields.next()??])
}

/// Whether the effective user is root, from `/proc/self/status`.
pub(super) fn is_root(status: &str) -> Option<bool> {
    let effective = field(status, "Uid")?.split_ascii_whitespace().nth(1)?;
    Some(effective == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(cpu_count("0-1"), Some(2));
        assert_eq!(cpu_count("0\n"), Some(1));
        assert_eq!(cpu_count("0-3,8,10-11"), Some(7));
        assert_eq!(cpu_count(""), None);
        assert_eq!(cpu_count("3-1"), None);
        assert_eq!(cpu_count("0-4294967295,0-4294967295"), None);
    }

    #[test]
    fn the_levels_of_vector_extensions() {
        let level = |flags: &str| simd(&format!("model name\t: x\nflags\t\t: {flags}\n"));
        assert_eq!(level("fpu sse2 avx avx2 avx512f"), Some("avx512"));
        assert_eq!(level("fpu sse2 sse4_2 avx avx2"), Some("avx2"));
        assert_eq!(level("fpu sse2 avx512vl"), Some("sse2"), "a flag is a whole word");
        assert_eq!(level("fpu"), None);
        assert_eq!(simd("Features\t: fp asimd aes"), Some("neon"));
        assert_eq!(simd(""), None);
    }

    #[test]
    fn the_chosen_one_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("always madvise"), None);
    }

    #[test]
    fn root_is_the_effective_user() {
        assert_eq!(is_root("Name:\tx\nUid:\t1000\t0\t0\t0\n"), Some(true));
        assert_eq!(is_root("Uid:\t1000\t1000\t1000\t1000\n"), Some(false));
        assert_eq!(is_root(""), None);
    }

    #[test]
    fn the_load_has_three_averages() {
        assert_eq!(load_average("0.78 0.41 0.22 1/86 10190"), Some([0.78, 0.41, 0.22]));
        assert_eq!(load_average("0.78 x"), None);
    }
}
