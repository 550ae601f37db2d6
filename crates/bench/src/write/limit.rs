//! What bounds a write: making the data, the page cache or the device. Pure arithmetic.

use flatout_io::Caching;
use flatout_measure::overhead::OVERHEAD_SHARE;
use flatout_measure::{Ceiling, Warning, warning};

use super::{Data, Sync};

/// From this share of the time on, a part of the work is what limits the whole.
const DOMINANT_SHARE: f64 = 0.5;

/// The times of a write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Bytes written.
    pub(super) bytes: u64,
    /// Making all of the data, by as many threads as took part in the write.
    pub(super) harness_ns: Option<f64>,
    /// Until the kernel had all bytes.
    pub(super) to_cache_ns: u64,
    /// Until all bytes were durable.
    pub(super) to_durable_ns: Option<u64>,
}

impl Times {
    /// Share of the time to cache that making the data takes.
    pub(super) fn overhead_ratio(&self) -> Option<f64> {
        self.harness_ns.map(|ns| ns / self.to_cache_ns.max(1) as f64)
    }

    /// The warning, when making the data takes more than 1 % of the time to cache.
    pub(super) fn warning(&self, data: Data) -> Option<Warning> {
        let share = self.overhead_ratio().filter(|&share| share > OVERHEAD_SHARE)?;
        let what = match data {
            Data::Random | Data::Pattern => "generating data takes",
            Data::Zero => "the loop over blocks takes",
        };
        let text = format!("{what} {:.1} % of the time to cache", share * 100.0);
        Some(Warning::new(warning::OVERHEAD, text))
    }

    /// What bounds the figure. Only the generator has a rate of its own; what the page cache or
    /// the device could do at most is not known.
    pub(super) fn ceiling(&self, caching: Caching, sync: Sync) -> Ceiling {
        let figure_ns = self.to_durable_ns.unwrap_or(self.to_cache_ns).max(1) as f64;
        let generator_ns = self.harness_ns.filter(|ns| *ns > DOMINANT_SHARE * figure_ns);
        if let Some(ns) = generator_ns {
            let rate = self.bytes as f64 * 1e9 / ns;
            return Ceiling::measured("data generation", Some(rate)).limited_by("data generation");
        }
        let synced = 1.0 - self.to_cache_ns as f64 / figure_ns;
        let waits = caching == Caching::Direct || sync == Sync::Each || synced > DOMINANT_SHARE;
        let limiter = if waits { "device" } else { "page cache" };
        Ceiling::unknown(limiter).limited_by(limiter)
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Provenance;

    use super::*;

    const TIMES: Times = Times {
        bytes: 1000,
        harness_ns: Some(10.0),
        to_cache_ns: 10_000,
        to_durable_ns: Some(12_000),
    };

    #[test]
    fn a_generator_that_takes_more_than_one_percent_is_a_warning_in_words() {
        assert_eq!(TIMES.warning(Data::Random), None);
        assert_eq!(Times { harness_ns: None, ..TIMES }.warning(Data::Random), None);
        let slow = Times { harness_ns: Some(2340.0), ..TIMES };
        let warning = slow.warning(Data::Random).unwrap();
        assert_eq!(warning.code, warning::OVERHEAD);
        assert_eq!(warning.text, "generating data takes 23.4 % of the time to cache");
        assert!(slow.warning(Data::Zero).unwrap().text.starts_with("the loop over blocks"));
    }

    #[test]
    fn a_generator_that_takes_most_of_the_time_is_the_ceiling() {
        let slow = Times { harness_ns: Some(8000.0), ..TIMES };
        let ceiling = slow.ceiling(Caching::Buffered, Sync::End);
        assert_eq!(
            (ceiling.name.as_str(), ceiling.limiter.as_str()),
            ("data generation", "data generation")
        );
        assert_eq!(ceiling.value, Some(1000.0 * 1e9 / 8000.0));
        assert_eq!(ceiling.provenance, Provenance::Measured);
    }

    #[test]
    fn a_slow_generator_before_a_slower_sync_is_not_the_ceiling() {
        let times = Times { harness_ns: Some(9000.0), to_durable_ns: Some(1_000_000), ..TIMES };
        assert_eq!(times.ceiling(Caching::Buffered, Sync::End).limiter, "device");
        assert!(times.warning(Data::Random).is_some());
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
            let ceiling = TIMES.ceiling(caching, sync);
            assert_eq!(ceiling.limiter, limiter, "{caching}, {sync:?}");
            assert_eq!((ceiling.value, ceiling.provenance), (None, Provenance::Unknown));
        }
    }
}
