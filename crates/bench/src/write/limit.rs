//! What bounds a write: making the data, the page cache or the device. Pure arithmetic.

use flatout_io::Caching;
use flatout_measure::overhead::OVERHEAD_SHARE;
use flatout_measure::units::percent;
use flatout_measure::{Ceiling, Warning, warning};

use super::{Data, Measured, Sync};

/// From this share of the time on, a part of the work is what limits the whole.
const DOMINANT_SHARE: f64 = 0.5;

/// The warning, when making the data takes more than 1 % of the time until the last write ended.
pub(super) fn overhead(share: f64, data: Data) -> Option<Warning> {
    let what = match data {
        Data::Random | Data::Pattern => "generating data takes",
        Data::Zero => "the loop over blocks takes",
    };
    let text = format!("{what} {} of the time of the writes", percent(share));
    (share > OVERHEAD_SHARE).then(|| Warning::new(warning::OVERHEAD, text))
}

/// What bounds the figure: the generator, where it takes most of the time, `harness_ns` for all of the data;
/// or else that of the control group, or the best write that was measured here, where it is alike. `storage`:
/// what is waited for but the page cache.
pub(super) fn ceiling(
    measured: &Measured,
    harness_ns: Option<f64>,
    (caching, sync, storage): (Caching, Sync, &str),
    known: Option<Ceiling>,
) -> Ceiling {
    let figure_ns = measured.fsynced_ns.unwrap_or(measured.elapsed_ns).max(1) as f64;
    if let Some(ns) = harness_ns.filter(|ns| *ns > DOMINANT_SHARE * figure_ns) {
        let rate = measured.bytes as f64 * 1e9 / ns;
        return Ceiling::measured("data generation", Some(rate)).limited_by("data generation");
    }
    let synced = 1.0 - measured.elapsed_ns as f64 / figure_ns;
    let waits = caching == Caching::Direct || sync == Sync::Each || synced > DOMINANT_SHARE;
    let limiter = if waits { storage } else { "page cache" };
    let bound = known.unwrap_or_else(|| Ceiling::unknown(limiter));
    if bound.limiter.is_empty() { bound.limited_by(limiter) } else { bound }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Provenance;

    use super::*;

    const BUFFERED: (Caching, Sync, &str) = (Caching::Buffered, Sync::End, "device");

    fn best() -> Ceiling {
        Ceiling::known("the best", Some(2e9), Provenance::Earlier)
    }

    fn written(fsynced_ns: u64) -> Measured {
        let fsynced_ns = Some(fsynced_ns);
        Measured { bytes: 1000, elapsed_ns: 10_000, fsynced_ns, ..Measured::default() }
    }

    #[test]
    fn a_generator_that_takes_more_than_one_percent_is_a_warning_in_words() {
        assert_eq!(overhead(0.001, Data::Random), None);
        let warning = overhead(0.234, Data::Random).unwrap();
        assert_eq!(warning.code, warning::OVERHEAD);
        assert_eq!(warning.text, "generating data takes 23 % of the time of the writes");
        assert!(overhead(0.234, Data::Zero).unwrap().text.starts_with("the loop over blocks"));
    }

    #[test]
    fn a_generator_that_takes_most_of_the_time_is_the_ceiling() {
        let ceiling = ceiling(&written(12_000), Some(8000.0), BUFFERED, Some(best()));
        assert_eq!(ceiling.limiter, "data generation");
        assert_eq!(ceiling.value, Some(1000.0 * 1e9 / 8000.0));
        assert_eq!(ceiling.provenance, Provenance::Measured);
    }

    #[test]
    fn a_slow_generator_before_a_slower_sync_is_not_the_ceiling() {
        let ceiling = ceiling(&written(1_000_000), Some(9000.0), BUFFERED, None);
        assert_eq!(ceiling.limiter, "device");
    }

    #[test]
    fn otherwise_page_cache_or_device_limit_it_and_by_how_much_is_unknown() {
        use Caching::{Buffered, Direct};
        for (caching, sync, limiter) in [
            (Buffered, Sync::End, "page cache"),
            (Buffered, Sync::None, "page cache"),
            (Buffered, Sync::Each, "device"),
            (Direct, Sync::End, "device"),
        ] {
            let ceiling = ceiling(&written(12_000), Some(10.0), (caching, sync, "device"), None);
            assert_eq!(ceiling.limiter, limiter, "{caching}, {sync:?}");
            assert_eq!((ceiling.value, ceiling.provenance), (None, Provenance::Unknown));
        }
        let known = ceiling(&written(12_000), Some(10.0), BUFFERED, Some(best()));
        assert_eq!((known.value, &*known.limiter), (Some(2e9), "page cache"));
    }
}
