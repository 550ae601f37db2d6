//! What goes on at a server: how many tests run at the same time, which the figures of each of them
//! have to say, how much memory all of them may take, and which CPUs each takes.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use flatout_measure::size_text;

use crate::network::spec::MAX_BUFFER_BYTES;
use crate::workers;

/// Most memory for the blocks of all tests of a server: four clients may ask for the most that one
/// can have.
const MAX_BYTES: u64 = 4 * MAX_BUFFER_BYTES;

/// The tests that a server has prepared, and those that run.
#[derive(Debug, Clone, Default)]
pub struct Occupancy(Arc<Mutex<Vec<Place>>>);

/// A test.
#[derive(Debug)]
struct Place {
    /// The CPUs of its threads, if there are so many. No other test has the same.
    cpus: Range<usize>,
    bytes: u64,
    /// Once it runs: the most others that ran at the same time.
    others_most: Option<u16>,
}

impl Occupancy {
    /// Room for a test of so many threads and bytes of blocks.
    ///
    /// Errors: others have taken it, in words.
    pub fn take(&self, threads: usize, bytes: u64) -> Result<Stay, String> {
        let mut places = workers::lock(&self.0);
        let taken_bytes: u64 = places.iter().map(|place| place.bytes).sum();
        if taken_bytes.saturating_add(bytes) > MAX_BYTES {
            return Err(format!(
                "other clients' tests have {} of the {} that the server has for blocks",
                size_text(taken_bytes),
                size_text(MAX_BYTES)
            ));
        }
        // The first gap: places lie in the order of their CPUs.
        let mut first_cpu = 0;
        let has_gap = |place: &Place| {
            let is_free = first_cpu + threads <= place.cpus.start;
            first_cpu = if is_free { first_cpu } else { place.cpus.end };
            is_free
        };
        let index = places.iter().position(has_gap).unwrap_or(places.len());
        let cpus = first_cpu..first_cpu + threads;
        places.insert(index, Place { cpus, bytes, others_most: None });
        Ok(Stay { occupancy: self.clone(), first_cpu })
    }
}

/// The place of a test, for as long as this lives.
#[derive(Debug)]
pub struct Stay {
    occupancy: Occupancy,
    /// The CPU of its first thread.
    pub first_cpu: usize,
}

impl Stay {
    /// The test begins: it is one more beside each of those that run.
    pub fn begin(&self) {
        let mut places = workers::lock(&self.occupancy.0);
        let others = places.iter().filter(|place| place.others_most.is_some()).count();
        let others = u16::try_from(others).unwrap_or(u16::MAX);
        for place in places.iter_mut() {
            if self.is_at(place) || place.others_most.is_some() {
                place.others_most = place.others_most.max(Some(others));
            }
        }
    }

    /// The test has ended. The most others that ran at the same time.
    pub fn end(self) -> u16 {
        let mut places = workers::lock(&self.occupancy.0);
        let own = places.iter_mut().find(|place| self.is_at(place));
        own.and_then(|place| place.others_most).unwrap_or(0)
    }

    fn is_at(&self, place: &Place) -> bool {
        place.cpus.start == self.first_cpu
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        workers::lock(&self.occupancy.0).retain(|place| !self.is_at(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_knows_the_most_others_that_ran_at_the_same_time() {
        let occupancy = Occupancy::default();
        let take = || occupancy.take(1, 1).unwrap();
        let (first, idle, second, third) = (take(), take(), take(), take());
        first.begin();
        second.begin();
        assert_eq!(second.end(), 1);
        third.begin();
        assert_eq!(first.end(), 1, "never more than one at once");
        assert_eq!(third.end(), 1);
        idle.begin();
        assert_eq!(idle.end(), 0, "those before it have ended");
        assert_eq!(take().end(), 0, "what never began saw nobody");
    }

    #[test]
    fn many_at_once_are_counted_from_the_first_to_the_last() {
        let occupancy = Occupancy::default();
        let all: Vec<Stay> = (0..5).map(|_| occupancy.take(1, 0).unwrap()).collect();
        all.iter().for_each(Stay::begin);
        assert!(all.into_iter().all(|stay| stay.end() == 4));
    }

    #[test]
    fn memory_for_all_tests_has_a_bound_and_comes_back() {
        let occupancy = Occupancy::default();
        let mut all: Vec<Stay> =
            (0..4).map(|_| occupancy.take(1, MAX_BUFFER_BYTES).unwrap()).collect();
        let text = occupancy.take(1, 1).unwrap_err();
        assert!(text.contains("1.00 GiB") || text.contains("1 GiB"), "{text}");
        all.pop();
        occupancy.take(1, MAX_BUFFER_BYTES).unwrap();
    }

    #[test]
    fn tests_side_by_side_begin_with_cpus_of_their_own() {
        let occupancy = Occupancy::default();
        let take = |threads| occupancy.take(threads, 0).unwrap();
        let mut all = [1, 4, 2, 1].map(take).map(Some);
        assert_eq!(all.each_ref().map(|stay| stay.as_ref().unwrap().first_cpu), [0, 1, 5, 7]);
        // What is free again is taken again, by those for whom it is enough.
        (all[0], all[2]) = (None, None);
        let later = [2, 1, 3].map(take);
        assert_eq!(later.each_ref().map(|stay| stay.first_cpu), [5, 0, 8]);
    }
}
