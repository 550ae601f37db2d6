//! The most that the memory modules can give, if the firmware says what they are.

use std::path::Path;

use flatout_measure::{Ceiling, Provenance, environment};
use flatout_sys::dimm::{self, Dimm, Source};

/// What bounds a rate of memory.
const LIMITER: &str = "memory modules";

/// The peak rate of the modules below `root` (`/` for the real one), in bytes per second; without
/// a value, and with the reason as its name, where it is not known.
///
/// Source of the formula: transfers per second × width of the data ÷ 8 × channels in use; the
/// transfers are those of the clock that the modules run at, not of the one they are made for.
pub fn peak(root: &Path) -> Ceiling {
    peak_of(dimm::dimms(root), environment::capture(root).hypervisor == Some(true))
}

fn unknown(why: &str) -> Ceiling {
    Ceiling::unknown(format!("peak of the memory modules: unknown, {why}")).limited_by(LIMITER)
}

/// The peak from what was found; modules of a virtual machine are not believed.
fn peak_of(found: Option<(Source, Vec<Dimm>)>, is_virtual: bool) -> Ceiling {
    if is_virtual {
        return unknown("a virtual machine does not know its modules");
    }
    let Some((source, dimms)) = found else {
        return unknown("neither SMBIOS (root alone may read it) nor udev tells what they are");
    };
    let Some(rates) = dimms.iter().map(bytes_per_s).collect::<Option<Vec<u64>>>() else {
        return unknown("the firmware does not give speed and width of each");
    };
    let fastest = rates.iter().copied().max().unwrap_or(0);
    let source = match source {
        Source::Smbios => "SMBIOS",
        Source::Udev => "SMBIOS by way of udev",
    };
    let (value, how) = match dimm::channels(&dimms) {
        Some(channels) => (
            fastest as f64 * channels as f64,
            format!("{channels} channels of {}", mega_bytes(fastest)),
        ),
        None => (
            rates.iter().map(|&rate| rate as f64).sum(),
            format!(
                "{} modules of up to {}, each taken for a channel of its own because the firmware \
                 names none: at most this",
                dimms.len(),
                mega_bytes(fastest)
            ),
        ),
    };
    let name = format!("peak of the memory modules ({source}): {how}");
    Ceiling::known(name, Some(value), Provenance::Smbios).limited_by(LIMITER)
}

/// Rate of one module on a channel of its own.
///
/// Some firmware gives the clock for the transfers that are configured, of which each has two (1200 MT/s of
/// modules made for 2400): modules that run at half of their speed are not to be told from these.
fn bytes_per_s(dimm: &Dimm) -> Option<u64> {
    let (configured, rated) = (dimm.configured_transfers_per_s, dimm.rated_transfers_per_s);
    let is_clock = |rated: &u64| configured.is_some_and(|hz| rated.abs_diff(2 * hz) < rated / 100);
    let transfers = rated.filter(is_clock).or(configured).or(rated)?;
    let width = u64::from(dimm.data_width_bits?);
    transfers.checked_mul(width).map(|bits| bits / 8).filter(|&bytes| bytes > 0)
}

fn mega_bytes(bytes_per_s: u64) -> String {
    format!("{} MB/s", bytes_per_s / 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn dimm(locator: &str, transfers_per_s: u64) -> Dimm {
        Dimm {
            locator: locator.to_owned(),
            data_width_bits: Some(64),
            configured_transfers_per_s: Some(transfers_per_s),
            rated_transfers_per_s: Some(4_800_000_000),
            ..Dimm::default()
        }
    }

    #[test]
    fn channels_are_multiplied_and_not_modules() {
        let names = ["DIMM_A1", "DIMM_A2", "DIMM_B1", "DIMM_B2"];
        let dimms = names.iter().map(|name| dimm(name, 2_666_000_000)).collect();
        let peak = peak_of(Some((Source::Smbios, dimms)), false);
        assert_eq!((peak.value, peak.provenance), (Some(2.0 * 21.328e9), Provenance::Smbios));
        assert!(peak.name.contains("2 channels of 21328 MB/s"), "{}", peak.name);
    }

    #[test]
    fn an_eight_channel_server_reaches_its_figure() {
        let names = ["A", "B", "C", "D", "E", "F", "G", "H"];
        let dimms = names.iter().map(|name| dimm(&format!("DIMM_{name}1"), 4_800_000_000));
        let peak = peak_of(Some((Source::Udev, dimms.collect())), false);
        assert_eq!(peak.value, Some(307.2e9));
        assert!(peak.name.contains("udev"));
    }

    #[test]
    fn without_channels_the_bound_is_loose_and_says_so() {
        let dimms = vec![dimm("Slot 1", 3_200_000_000), dimm("Slot 2", 3_200_000_000)];
        let peak = peak_of(Some((Source::Smbios, dimms)), false);
        assert_eq!(peak.value, Some(2.0 * 25.6e9));
        assert!(peak.name.contains("at most"), "{}", peak.name);
    }

    #[test]
    fn the_rated_speed_serves_where_no_other_is_given() {
        let old = Dimm { configured_transfers_per_s: None, ..dimm("DIMM_A1", 1) };
        assert_eq!(peak_of(Some((Source::Smbios, vec![old])), false).value, Some(38.4e9));
    }

    #[test]
    fn a_clock_is_not_taken_for_transfers() {
        let rate = |configured: u64, rated: u64| {
            let configured = Some(configured * 1_000_000);
            let rated = Some(rated * 1_000_000);
            let dimm = Dimm {
                configured_transfers_per_s: configured,
                rated_transfers_per_s: rated,
                ..dimm("DIMM_A1", 1)
            };
            bytes_per_s(&dimm).unwrap() / 8_000_000
        };
        assert_eq!([rate(1200, 2400), rate(1067, 2133), rate(667, 1333)], [2400, 2133, 1333]);
        assert_eq!([rate(2666, 3200), rate(3200, 3200), rate(1866, 3200)], [2666, 3200, 1866]);
    }

    #[test]
    fn what_is_not_known_is_unknown_and_says_why() {
        let no_speed =
            Dimm { configured_transfers_per_s: None, rated_transfers_per_s: None, ..dimm("A", 1) };
        let no_width = Dimm { data_width_bits: None, ..dimm("A", 1) };
        let good = || dimm("DIMM_A1", 3_200_000_000);
        let cases = [
            (None, false, "udev"),
            (Some((Source::Smbios, vec![good()])), true, "virtual"),
            (Some((Source::Smbios, vec![good(), no_speed])), false, "speed"),
            (Some((Source::Udev, vec![no_width])), false, "width"),
        ];
        for (found, is_virtual, word) in cases {
            let peak = peak_of(found, is_virtual);
            assert_eq!((peak.value, peak.provenance), (None, Provenance::Unknown));
            assert!(peak.name.contains(word), "{}", peak.name);
        }
    }

    #[test]
    fn a_virtual_machine_is_known_by_its_cpu() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        let write = |text: &str| fs::write(root.path().join("proc/cpuinfo"), text).unwrap();
        write("processor\t: 0\nflags\t\t: fpu hypervisor avx\n");
        assert!(peak(root.path()).name.contains("virtual"));
        write("processor\t: 0\nflags\t\t: fpu avx\n");
        assert!(peak(root.path()).name.contains("udev"));
    }
}
