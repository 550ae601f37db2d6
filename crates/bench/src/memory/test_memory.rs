//! The memory that rows of bandwidth run over: one block to read from, filled with numbers that
//! are known by their place, and one to write to.
//!
//! Both are divided among the threads of a row anew. On a machine with several memory nodes there
//! is a test memory per number of threads instead, so that each part lies where the thread runs
//! that touched it first.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flatout_measure::units::percent;
use flatout_measure::{TrialError, Warning, warning};
use flatout_sys::stream::arena::Arena;
use flatout_sys::stream::{GRANULE_ELEMENTS, numbers};
use flatout_sys::{CancelToken, affinity, numa};

use crate::workers::{self, lock};
use crate::{cores, go_on};

/// Elements of a page of 4 KiB, at which each thread's part begins.
const PAGE_ELEMENTS: usize = 512;
/// What an array lies behind the place where it would lie at the same distance from a page's
/// begin as the one before: 4352 bytes. One core's triad over 440 MB arrays in plain order moved
/// 12.1 GB/s so and 10.6 without, a non-temporal copy 14.3 and 13.0 (two virtual CPUs of a Sapphire
/// Rapids server, medians of 7, one after the other and not interleaved, 2026-11-22).
const SKEW_ELEMENTS: usize = 544;
/// Large pages must make up this share, or the row says so.
const HUGE_SHARE: f64 = 0.99;
/// Likewise pages near the threads that use them.
const NEAR_SHARE: f64 = 0.95;

/// The memory, and who may run on what.
pub(super) struct TestMemory {
    memory: Mutex<Memory>,
    /// CPUs that threads are tied to, in turn.
    cpus: Vec<usize>,
    /// Those that could be used when the area began, ascending.
    pub(super) known_cpus: Vec<usize>,
    /// What is to be said of every row.
    pub(super) warnings: Vec<Warning>,
    /// Share of the memory on large pages; none if the kernel does not say.
    pub(super) huge_ratio: Option<f64>,
    cancel: CancelToken,
    seed: u64,
    /// Sum of the words of all pages before each page of the source, as they were filled.
    sums: Vec<u64>,
}

/// What is read and what is written.
pub(super) struct Memory {
    source: Arena,
    target: Arena,
}

/// The part of one thread. Places count from the first number of the source.
pub(super) struct Lane<'m> {
    pub(super) first: &'m [f64],
    pub(super) second: &'m [f64],
    pub(super) target: &'m mut [f64],
    pub(super) first_index: u64,
}

/// How the memory is divided for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) threads: u32,
    /// Bytes of each array of one thread: a multiple of the granule.
    pub(super) share_bytes: u64,
    /// Arrays that are read: up to two.
    pub(super) sources: u64,
}

/// How much of the source and of the target all threads together need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) source_bytes: u64,
    pub(super) target_bytes: u64,
}

impl Extents {
    /// What these parts need.
    pub(super) fn of(parts: Parts) -> Self {
        let Parts { threads, share_bytes, sources } = parts;
        let page = 8 * PAGE_ELEMENTS as u64;
        let skew = 8 * SKEW_ELEMENTS as u64;
        let part = |bytes: u64| bytes.next_multiple_of(page).saturating_mul(u64::from(threads));
        Self {
            source_bytes: part(sources.max(1) * (share_bytes + skew)),
            target_bytes: part(share_bytes + 2 * skew),
        }
    }

    /// What holds both.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            source_bytes: self.source_bytes.max(other.source_bytes),
            target_bytes: self.target_bytes.max(other.target_bytes),
        }
    }
}

impl TestMemory {
    /// Gets the memory and has it touched and filled by `threads` threads, each tied to the CPU
    /// on which it will run.
    ///
    /// # Errors
    /// The kernel grants no such length, or the threads cannot be started.
    pub(super) fn new(
        extents: Extents,
        threads: u32,
        seed: u64,
        cancel: CancelToken,
    ) -> io::Result<Self> {
        let source = Arena::new(extents.source_bytes as usize)?;
        let target = Arena::new(extents.target_bytes as usize)?;
        let mut new = Self {
            memory: Mutex::new(Memory { source, target }),
            cpus: cores::in_order()?,
            known_cpus: affinity::allowed_cpus()?,
            warnings: Vec::new(),
            huge_ratio: None,
            cancel,
            seed,
            sums: Vec::new(),
        };
        new.sums = new.touch(threads)?;
        Ok(new.proved(threads))
    }

    /// The CPUs that so many threads are tied to.
    pub(super) fn cpus(&self, threads: u32) -> &[usize] {
        &self.cpus[..self.cpus.len().min(threads as usize)]
    }

    /// The memory, for one trial at a time.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    /// Has the memory filled; gives the sums of the source's pages.
    fn touch(&self, threads: u32) -> io::Result<Vec<u64>> {
        let mut memory = self.memory();
        let Memory { source, target } = &mut *memory;
        let sources = pieces(source.as_mut_slice(), threads).into_iter();
        let (mut lanes, mut start) = (Vec::new(), 0);
        for (source, target) in sources.zip(pieces(target.as_mut_slice(), threads)) {
            let length = source.len() as u64;
            lanes.push(Mutex::new(Some((start, source, target))));
            start += length;
        }
        let filled = self.on_workers(
            threads,
            |index| Ok(lanes.get(index as usize).and_then(|lane| lock(lane).take())),
            |lane| {
                let Some((start, source, target)) = lane else { return Vec::new() };
                target.fill(0.0);
                let pages = source.chunks_mut(PAGE_ELEMENTS).zip((*start..).step_by(PAGE_ELEMENTS));
                pages.map(|(page, first)| numbers::fill(page, self.seed, first)).collect()
            },
        );
        let (pages, _) = filled.map_err(io::Error::other)?;
        let pages = pages.into_iter().flatten();
        let before = pages.scan(0_u64, |sum, page| {
            let before = *sum;
            *sum = sum.wrapping_add(page);
            Some(before)
        });
        Ok(before.collect())
    }

    /// Looks whether large pages were granted, and asks for those that were not once more; and where the
    /// memory lies.
    fn proved(mut self, threads: u32) -> Self {
        let memory = self.memory.get_mut().unwrap_or_else(PoisonError::into_inner);
        for arena in [&memory.source, &memory.target] {
            if arena.huge_bytes().is_some_and(|bytes| bytes < arena.length_bytes() as u64) {
                // Refusal is seen in what is counted next.
                let _ = arena.collapse();
            }
        }
        let length = (memory.source.length_bytes() + memory.target.length_bytes()) as f64;
        let huge = memory.source.huge_bytes().zip(memory.target.huge_bytes());
        self.huge_ratio = huge.map(|(source, target)| (source + target) as f64 / length);
        let arenas = [&memory.source, &memory.target];
        let pages: Vec<_> =
            arenas.iter().filter_map(|arena| arena.pages_by_node()).flatten().collect();
        self.warnings.extend(small_pages(self.huge_ratio));
        let nodes = numa::nodes(Path::new("/"));
        if numa::is_local() && nodes.iter().filter(|node| node.memory_bytes > 0).count() > 1 {
            let cpus = self.cpus.iter().cycle().take(threads as usize);
            let home = |cpu| nodes.iter().find(|node| node.cpus.contains(cpu));
            let homes = cpus.filter_map(home).filter(|node| node.memory_bytes > 0);
            let homes: Vec<u32> = homes.map(|node| node.number).collect();
            self.warnings.extend(elsewhere(&pages, &homes, threads));
        }
        self
    }

    /// Runs workers that are tied to CPUs, in turn; what they found, and the time. The
    /// caller's thread is left free.
    fn on_workers<P, T: Send>(
        &self,
        threads: u32,
        prepare: impl Fn(u32) -> Result<P, TrialError> + Sync,
        work: impl Fn(&mut P) -> T + Sync,
    ) -> Result<(Vec<T>, u64), TrialError> {
        let cpus = &self.cpus;
        let pinned = |index: u32| {
            // A CPU that was taken away meanwhile is noticed after the trial.
            let _ = affinity::pin_to(cpus[index as usize % cpus.len().max(1)]);
            prepare(index)
        };
        let work = |_, prepared: &mut P| Ok::<_, TrialError>(work(prepared));
        workers::in_own_thread(|| workers::run(threads, pinned, work))?
    }

    /// Runs `work` over the parts, a thread each, timed from the first start to the last end;
    /// `prepare` runs before and `check` afterwards. The results of all threads and the time.
    ///
    /// # Errors
    /// `Unsupported` where the memory is too short, `Interrupted`, and what `check` says.
    pub(super) fn run<P, T: Send>(
        &self,
        parts: Parts,
        prepare: impl Fn(u32, &mut Lane<'_>) -> P + Sync,
        work: impl Fn(&mut Lane<'_>, &P) -> T + Sync,
        check: impl Fn(u32, &Lane<'_>) -> Result<(), TrialError>,
    ) -> Result<(Vec<T>, u64), TrialError> {
        go_on(self.cancel)?;
        let no_room = || TrialError::Unsupported("there is not enough free memory".to_owned());
        let mut memory = self.memory();
        let lanes = memory.lanes(parts).ok_or_else(no_room)?;
        let slots: Vec<_> = lanes.into_iter().map(|lane| Mutex::new(Some(lane))).collect();
        let prepare = |index: u32| {
            let mut lane = lock(&slots[index as usize]).take().ok_or_else(no_room)?;
            let prepared = prepare(index, &mut lane);
            Ok((lane, prepared))
        };
        let done =
            self.on_workers(parts.threads, prepare, |(lane, prepared)| work(lane, prepared))?;
        drop(slots);
        for (index, lane) in (0..).zip(memory.lanes(parts).ok_or_else(no_room)?) {
            check(index, &lane)?;
        }
        Ok(done)
    }

    /// The sum that a read of `count` numbers from `first_index` on must find.
    pub(super) fn expected_sum(&self, first_index: u64, count: u64) -> u64 {
        self.sum_before(first_index + count).wrapping_sub(self.sum_before(first_index))
    }

    /// The sum of the numbers before `index`: of whole pages as they were filled, of what is left
    /// by their definition.
    fn sum_before(&self, index: u64) -> u64 {
        let pages = (index as usize / PAGE_ELEMENTS).min(self.sums.len().saturating_sub(1));
        let before = self.sums.get(pages).copied().unwrap_or(0);
        let first = (pages * PAGE_ELEMENTS) as u64;
        before.wrapping_add(numbers::sum(self.seed, first, index - first))
    }

    /// Says so if the CPUs are not those that the area began with.
    pub(super) fn changed_cpus(&self) -> Option<Warning> {
        let (known, now) = (&self.known_cpus, affinity::allowed_cpus().ok()?);
        let text = || format!("the CPUs allowed changed from {known:?} to {now:?}");
        (now != *known).then(|| Warning::new(warning::CPUS_CHANGED, text()))
    }
}

impl Memory {
    /// The parts; none where they are empty, or where the memory does not hold them.
    pub(super) fn lanes(&mut self, parts: Parts) -> Option<Vec<Lane<'_>>> {
        let threads = parts.threads.max(1) as usize;
        let sources = parts.sources;
        let share_elements = parts.share_bytes as usize / size_of::<f64>();
        debug_assert!(share_elements.is_multiple_of(GRANULE_ELEMENTS));
        let (source, target) = (self.source.as_slice(), self.target.as_mut_slice());
        let source_part = source.len() / threads / PAGE_ELEMENTS * PAGE_ELEMENTS;
        let target_part = target.len() / threads / PAGE_ELEMENTS * PAGE_ELEMENTS;
        let second = share_elements + SKEW_ELEMENTS;
        let needed = if sources > 1 { second + share_elements } else { share_elements };
        if share_elements == 0
            || source_part < needed
            || target_part < share_elements + 2 * SKEW_ELEMENTS
        {
            return None;
        }
        let lanes = source.chunks(source_part).zip(target.chunks_mut(target_part)).take(threads);
        let lane = |(index, (source, target)): (usize, (_, _))| {
            let (source, target): (&[f64], &mut [f64]) = (source, target);
            let first_index = (index * source_part) as u64;
            let has_second = if sources > 1 { share_elements } else { 0 };
            Lane {
                first: &source[..share_elements],
                second: &source[second..][..has_second],
                target: &mut target[2 * SKEW_ELEMENTS..][..share_elements],
                first_index,
            }
        };
        Some(lanes.enumerate().map(lane).collect())
    }
}

/// A piece of whole pages for each thread; the last takes what is left.
fn pieces(whole: &mut [f64], threads: u32) -> Vec<&mut [f64]> {
    let threads = threads.max(1) as usize;
    let length = whole.len() / threads / PAGE_ELEMENTS * PAGE_ELEMENTS;
    let (equal, last) = whole.split_at_mut((threads - 1) * length);
    equal.chunks_mut(length.max(1)).chain([last]).collect()
}

/// Says so where pages (of a node, so many) do not lie near threads that run on these nodes, and have as many
/// each: the kernel takes those of another node before it gives up files in its cache. Of so many threads those
/// whose node has no memory have none near them.
fn elsewhere(pages: &[(u32, u64)], homes: &[u32], threads: u32) -> Option<Warning> {
    let all: u64 = pages.iter().map(|(_, count)| count).sum();
    let part = |threads_there: usize| all * threads_there as u64 / u64::from(threads.max(1));
    let of_node = |node: u32| part(homes.iter().filter(|&&home| home == node).count());
    let on = |node: u32| pages.iter().filter(move |(on, _)| *on == node).map(|(_, count)| count);
    let nodes: BTreeSet<u32> = homes.iter().copied().collect();
    let near: u64 = nodes.into_iter().map(|node| on(node).sum::<u64>().min(of_node(node))).sum();
    let share = near as f64 / part(homes.len()) as f64;
    let text = || {
        format!(
            "{} of the memory lies near the threads that use it: nodes are full",
            percent(share)
        )
    };
    (share < NEAR_SHARE).then(|| Warning::new(warning::MEMORY_ELSEWHERE, text()))
}

fn small_pages(huge_ratio: Option<f64>) -> Option<Warning> {
    let text = match huge_ratio {
        Some(ratio) if ratio >= HUGE_SHARE => return None,
        Some(ratio) => format!("{} of the memory lies on large pages", percent(ratio)),
        None => "the kernel does not say on which pages the memory lies".to_owned(),
    };
    Some(Warning::new(warning::NO_HUGE_PAGES, text))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Memory for one thread.
    fn memory_of(share_bytes: u64) -> TestMemory {
        let extents = Extents::of(Parts { threads: 1, share_bytes, sources: 1 });
        TestMemory::new(extents, 1, 5, CancelToken::manual()).unwrap()
    }

    #[test]
    fn parts_lie_apart_and_hold_the_numbers_of_their_places() {
        for (threads, share, sources) in [(1, 1024, 2), (2, 32, 2), (3, 4096 + 32, 1), (8, 64, 2)] {
            let parts = Parts { threads, share_bytes: 8 * share as u64, sources };
            let extents = Extents::of(parts);
            let test = TestMemory::new(extents, 2, 5, CancelToken::manual()).unwrap();
            let mut memory = test.memory();
            let lanes = memory.lanes(parts).unwrap();
            assert_eq!(lanes.len(), threads as usize);
            for lane in lanes {
                assert_eq!((lane.first.len(), lane.target.len()), (share, share));
                assert_eq!(lane.second.len(), if sources > 1 { share } else { 0 });
                let holds = |array: &[f64], first: u64| {
                    (first..).zip(array).all(|(index, &at)| at == numbers::number(5, index))
                };
                assert!(holds(lane.first, lane.first_index));
                let second_index = lane.first_index + (share + SKEW_ELEMENTS) as u64;
                assert!(holds(lane.second, second_index));
                let sum = lane.first.iter().map(|number| number.to_bits());
                let sum = sum.fold(0, u64::wrapping_add);
                assert_eq!(test.expected_sum(lane.first_index, share as u64), sum);
                let half = share as u64 / 2;
                let parts = test
                    .expected_sum(lane.first_index, half)
                    .wrapping_add(test.expected_sum(lane.first_index + half, share as u64 - half));
                assert_eq!(parts, sum);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_no_lane() {
        let test = memory_of(4096);
        let fits = |elements: u64, sources| {
            let parts = Parts { threads: 1, share_bytes: 8 * elements, sources };
            test.memory().lanes(parts).is_some()
        };
        // Memory comes in large pages, so there is more than was asked for.
        assert!(!fits(1 << 20, 1));
        assert!(!fits(1 << 17, 2));
        assert!(fits(1 << 16, 2));
        assert!(!fits(0, 1));
    }

    #[test]
    fn cpus_that_were_taken_away_before_are_said_too() {
        let mut test = memory_of(256);
        assert_eq!(test.changed_cpus(), None);
        test.known_cpus.push(usize::MAX);
        assert_eq!(test.changed_cpus().unwrap().code, warning::CPUS_CHANGED);
    }

    #[test]
    fn memory_that_does_not_lie_near_its_threads_is_said() {
        let of = |pages: &[(u32, u64)], homes: &[u32], threads| {
            elsewhere(pages, homes, threads).map(|one| one.text)
        };
        let text = |pages: &[(u32, u64)], homes: &[u32]| of(pages, homes, homes.len() as u32);
        assert_eq!(text(&[(0, 96), (1, 4)], &[0]), None);
        assert_eq!(text(&[(0, 50), (1, 50), (0, 51), (1, 49)], &[0, 1]), None, "two blocks");
        let part = text(&[(0, 30), (1, 70)], &[0]).unwrap();
        assert!(part.starts_with("30 % of the memory lies near"), "{part}");
        assert!(text(&[(1, 100)], &[0, 1]).unwrap().starts_with("50 %"), "the other one is full");
        assert_eq!(of(&[(0, 100)], &[], 2), None, "nodes without memory are not full");
        assert_eq!(of(&[(0, 50), (2, 50)], &[0], 2), None, "one of two");
        assert!(of(&[(0, 10), (2, 90)], &[0], 2).unwrap().starts_with("20 %"), "which is full");
        assert_eq!((text(&[], &[0]), text(&[(0, 0)], &[0])), (None, None), "nobody says");
    }

    #[test]
    fn pages_that_are_not_large_or_not_known_are_said() {
        assert_eq!(small_pages(Some(1.0)), None);
        assert!(small_pages(Some(0.25)).unwrap().text.starts_with("25 %"));
        assert_eq!(small_pages(None).unwrap().code, warning::NO_HUGE_PAGES);
    }

    #[test]
    fn workers_leave_the_callers_thread_free() {
        let test = memory_of(256);
        let own = thread::current().id();
        let (found, _) = test
            .on_workers(
                1,
                |_| Ok(affinity::allowed_cpu_count()),
                |count| (*count, thread::current().id()),
            )
            .unwrap();
        let (count, other) = found[0];
        assert_eq!((count, other == own), (1, false));
        assert_eq!(test.changed_cpus(), None);
    }
}
