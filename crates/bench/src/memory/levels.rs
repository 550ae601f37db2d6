//! The levels of the memory hierarchy: found in a latency curve, or taken from what the CPU says.
//!
//! [`detect`] is a pure function of the curve. It looks for climbs between flat stretches and
//! knows no machine; what the CPU declares only gives the levels their names, so that both sizes
//! can be held against each other. How the curve is measured: `memory/latency.rs`.

mod climb;

use flatout_measure::{Provenance, Warning, size_text, statistics, warning};
use flatout_sys::cpu_cache::DataCache;

use climb::Climb;

/// The name of the level behind the last cache.
pub(crate) const MEMORY: &str = "DRAM";
/// The last cache where neither the CPU nor the curve tells one: more than most have.
const ASSUMED_CACHE_BYTES: u64 = 64 << 20;
const CACHES: [&str; 5] = ["L1", "L2", "L3", "L4", "L5"];

/// One point of a latency curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// Length of what the chase walks through.
    pub(super) working_set_bytes: u64,
    /// Time per step.
    pub(super) latency_ns: f64,
}

/// One level of the hierarchy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    /// `L1`, `L2`, `L3`, … or [`MEMORY`].
    pub(super) name: &'static str,
    /// The largest working set that lives in it; none where no end was seen (memory).
    pub(super) bytes: Option<u64>,
    /// Time of one dependent load; none where nothing was measured.
    pub(super) latency_ns: Option<f64>,
    /// Where `bytes` is from: measured, or the CPU's own description.
    pub(super) provenance: Provenance,
    /// What the CPU says of this level, if it says anything.
    pub(super) declared_bytes: Option<u64>,
}

/// The hierarchy, nearest level first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Levels {
    /// One entry per level, nearest first; the last one has no end.
    pub(super) levels: Vec<Level>,
    /// The largest cache that the CPU says it has, seen in the curve or not.
    pub(super) largest_declared_bytes: Option<u64>,
}

impl Levels {
    /// The levels as the CPU describes them, without latencies.
    pub(super) fn declared(caches: &[DataCache]) -> Self {
        let level = |name, bytes| Level {
            name,
            bytes,
            latency_ns: None,
            provenance: Provenance::Cpuid,
            declared_bytes: bytes,
        };
        let cache =
            |cache: &DataCache| level(cache_name(cache.level as usize - 1), Some(cache.bytes));
        let known = sane(caches);
        let memory = level(MEMORY, None);
        let memory = (!known.is_empty()).then_some(memory);
        Self {
            levels: known.iter().map(cache).chain(memory).collect(),
            largest_declared_bytes: known.last().map(|cache| cache.bytes),
        }
    }

    /// The level in which a working set of one thread lives; none if nothing is known.
    pub(super) fn of(&self, working_set_bytes: u64) -> Option<&Level> {
        self.levels.iter().find(|level| level.bytes.is_none_or(|bytes| working_set_bytes <= bytes))
    }

    /// Takes caches for what is declared that end earlier: those before the last cache, which no other
    /// core shares, and the last one where other programs were at work. What a guest beside this one
    /// leaves of them changes within minutes and says nothing of their size (on an AMD EPYC, family 25,
    /// model 17, an L2 of 1 MiB ended there in two of six runs, at 512 KiB in four, 2026-11-26).
    pub(super) fn distrust_short(&mut self, is_loaded: bool) {
        let caches = self.levels.iter().filter(|level| level.name != MEMORY).count();
        let trusted = if is_loaded { caches } else { caches.saturating_sub(1) };
        for level in &mut self.levels[..trusted] {
            if level.bytes.zip(level.declared_bytes).is_some_and(|(seen, all)| seen < all) {
                (level.bytes, level.provenance) = (level.declared_bytes, Provenance::Cpuid);
            }
        }
    }

    /// Size of the last cache: what arrays must exceed to be in memory.
    ///
    /// The larger one of what was measured and what the CPU says, because others can take a part of a
    /// shared cache away for a while and give it back.
    pub(super) fn last_cache_bytes(&self) -> u64 {
        let seen = self.levels.iter().filter_map(|level| level.bytes);
        seen.chain(self.largest_declared_bytes).max().unwrap_or(ASSUMED_CACHE_BYTES)
    }

    /// What is to be said of rows in memory where that size is known to nobody.
    pub(super) fn assumed(&self) -> Option<Warning> {
        let mut seen = self.levels.iter().filter_map(|level| level.bytes);
        seen.next().or(self.largest_declared_bytes).is_none().then(|| {
            let assumed = size_text(ASSUMED_CACHE_BYTES);
            let text = format!("nobody tells how large the last cache is: {assumed} are assumed");
            Warning::new(warning::CACHE_UNCLEAR, text)
        })
    }
}

/// How far two sizes of one cache may lie apart to be one: a step of the curve, half a power of two,
/// and a bit.
const AGREE_LOG2: f64 = 0.6;
/// Latency over that of a hit up to which a working set lives in a cache: next to all levels known
/// lie further apart, and a set that is half in the next one stays below.
pub(super) const STILL_HIT: f64 = 2.0;
/// Latency over that of the level before, and of memory over that of a cache, from which on they
/// are two.
pub(super) const APART: f64 = 1.5;

/// Latency over that of the level before from which on it is none of a cache, which tells where the
/// curve does not go on to memory, or translation makes it slower there: last caches answer within 12
/// times that of the one before (Emerald Rapids), memory takes 20 times and more.
const FAR: f64 = 16.0;

/// The levels that two curves over the same working sets show, which were measured one after the
/// other.
///
/// A cache that is declared and that both end at the same place was measured there. Of one on
/// whose end they do not agree, the size is the declared one, which its provenance says; one that
/// shows in neither is left out, and there are never more levels than are declared. Where nothing
/// is declared, levels are those of [`detect`] as far as both have them.
pub(super) fn agreed(first: &[Point], second: &[Point], caches: &[DataCache]) -> Levels {
    let curve = quietest(first, second);
    let is_one = |a: u64, b: u64| (a as f64 / b as f64).log2().abs() <= AGREE_LOG2;
    let declared = Levels::declared(caches);
    if declared.levels.is_empty() {
        let [first, second, both] = [first, second, &curve[..]].map(detect);
        let alike = |(index, level): &(usize, &Level)| {
            let bytes = |levels: &[Level]| levels.get(*index).and_then(|level| level.bytes);
            [&first, &second].iter().all(|levels| {
                level.bytes.zip(bytes(levels)).is_some_and(|(seen, other)| is_one(seen, other))
            })
        };
        let seen = both.iter().enumerate().take_while(alike).map(|(_, level)| *level);
        let mut levels: Vec<Level> = seen.collect();
        levels.extend(both.last().filter(|last| last.bytes.is_none()));
        return Levels { levels, largest_declared_bytes: None };
    }
    if !is_usable(first) || !is_usable(second) {
        return declared;
    }
    let known = sane(caches);
    let [first, second, both] = [first, second, &curve[..]].map(|curve| hits(curve, &known));
    let end = |hit: Option<Hit>| hit.and_then(|hit| hit.end_bytes);
    let level = |(index, level): (usize, &Level)| {
        let halves = [first[index], second[index]];
        let seen = both[index].or(halves[0]).or(halves[1])?;
        let measured = seen.end_bytes.filter(|&bytes| {
            halves.iter().all(|half| end(*half).is_some_and(|other| is_one(bytes, other)))
        });
        let provenance = if measured.is_some() { Provenance::Measured } else { level.provenance };
        let bytes = measured.or(level.bytes);
        Some(Level { bytes, latency_ns: Some(seen.latency_ns), provenance, ..*level })
    };
    let (memory, caches) = declared.levels.split_last().expect("it is not empty");
    let mut levels: Vec<Level> = caches.iter().enumerate().filter_map(level).collect();
    if levels.windows(2).any(|pair| pair[0].bytes >= pair[1].bytes) {
        return declared;
    }
    // A curve that ends before the last cache does, and shows no end of it, does not tell which of both
    // its end is.
    let is_last = |level: &Level| Some(level.name) == caches.last().map(|last| last.name);
    let longest = curve.last().map_or(0, |point| point.working_set_bytes);
    let is_told = levels.last().is_some_and(is_last) || declared.last_cache_bytes() < longest;
    let latency_ns = is_told.then(|| behind(&curve, levels.last()));
    let latency_ns = latency_ns.and_then(|behind| statistics::median(&behind));
    let provenance = if latency_ns.is_some() { Provenance::Measured } else { memory.provenance };
    levels.push(Level { latency_ns, provenance, ..*memory });
    Levels { levels, ..declared }
}

/// The latencies of memory behind the last cache: of what that could not hold as it is declared, since
/// it may be there for a while, or else of what it was not seen to hold.
pub(super) fn behind(curve: &[Point], last: Option<&Level>) -> Vec<f64> {
    let from = |bytes: u64| -> Vec<f64> {
        let behind = curve.iter().filter(|point| point.working_set_bytes >= bytes);
        behind.map(|point| point.latency_ns).collect()
    };
    let declared = last.and_then(|level| level.declared_bytes).map(|bytes| from(2 * bytes));
    declared
        .filter(|behind| !behind.is_empty())
        .unwrap_or_else(|| from(2 * last.and_then(|level| level.bytes).unwrap_or(0) + 1))
}

/// How a cache shows in a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hit {
    /// The largest working set that lives in it, where its end was seen.
    end_bytes: Option<u64>,
    latency_ns: f64,
}

/// How each of the declared caches shows in `curve`, if it does: its latency is the least beyond
/// twice the end of the one before it, its end the last point before twice that latency.
fn hits(curve: &[Point], caches: &[DataCache]) -> Vec<Option<Hit>> {
    let largest_bytes = caches.last().map_or(0, |cache| cache.bytes);
    // The least of it: on small pages translation makes the longest slower than memory is.
    let behind = curve.iter().filter(|point| point.working_set_bytes > largest_bytes);
    let memory_ns = behind.map(|point| point.latency_ns).reduce(f64::min);
    let (mut nearer_bytes, mut nearer_ns) = (0, 0.0);
    let mut hit = |cache: &DataCache| {
        let far = |point: &&Point| point.working_set_bytes > 2 * nearer_bytes;
        let inside = curve.iter().filter(far);
        let inside = inside.filter(|point| point.working_set_bytes <= cache.bytes);
        let latency_ns = inside.map(|point| point.latency_ns).reduce(f64::min)?;
        let is_far = nearer_ns > 0.0 && latency_ns > FAR * nearer_ns;
        let is_memory = memory_ns.is_some_and(|memory_ns| latency_ns * APART > memory_ns);
        if is_far || is_memory || latency_ns < APART * nearer_ns {
            return None;
        }
        let mut beyond = curve.iter().filter(|point| point.working_set_bytes > nearer_bytes);
        let lives = beyond.by_ref().take_while(|point| point.latency_ns < STILL_HIT * latency_ns);
        let end_bytes = lives.last()?.working_set_bytes;
        // Without a point behind it no end was seen; beyond what is declared it is another's.
        let is_end = curve.last().is_some_and(|last| last.working_set_bytes > end_bytes);
        let is_its_own = end_bytes <= cache.bytes.saturating_mul(3) / 2;
        // One that ends a little early is still as large: what it holds of the next working sets is none
        // of the next one's latency (an L2 of 1 MiB that others left at 512 KiB made an L3 of 13.7 ns one
        // of 11.3, AMD EPYC, family 25, model 17, 2026-11-26).
        let is_whole = end_bytes.saturating_mul(2) >= cache.bytes;
        let own_bytes = if is_whole { cache.bytes } else { end_bytes };
        (nearer_bytes, nearer_ns) = (own_bytes, latency_ns);
        Some(Hit { end_bytes: (is_end && is_its_own).then_some(end_bytes), latency_ns })
    };
    caches.iter().map(&mut hit).collect()
}

/// The lower one of two curves at each point.
pub(super) fn quietest(first: &[Point], second: &[Point]) -> Vec<Point> {
    let lower =
        |(a, b): (&Point, &Point)| Point { latency_ns: a.latency_ns.min(b.latency_ns), ..*a };
    undisturbed(&first.iter().zip(second).map(lower).collect::<Vec<_>>())
}

/// Finds the levels in `curve`, working sets ascending.
///
/// Whatever disturbs a chase makes it slower, so a point that is slower than one with a larger
/// working set is taken for that one's latency before anything is looked for.
///
/// A level is a flat stretch between two climbs (see `levels/climb.rs`). Its latency is the median
/// of the stretch. It ends at the largest working set whose latency lies below the geometric mean
/// of its own and the next level's: there the larger part of the way up is still ahead. With two
/// points per power of two this is at most half a power of two below the truth, if the
/// replacement is anything like least recently used.
///
/// The last stretch is memory. A curve with fewer than four points, or with latencies that are no
/// positive numbers, gives nothing.
fn detect(curve: &[Point]) -> Vec<Level> {
    if !is_usable(curve) {
        return Vec::new();
    }
    let curve = &undisturbed(curve)[..];
    let climbs = climb::find(curve);
    let (knees, stretches) = knees(curve, &climbs);
    let level = |name, bytes, latency_ns| Level {
        name,
        bytes,
        latency_ns: Some(latency_ns),
        provenance: Provenance::Measured,
        declared_bytes: None,
    };
    let caches = knees.iter().zip(&stretches).enumerate();
    let caches = caches.map(|(index, (&bytes, &ns))| level(cache_name(index), Some(bytes), ns));
    caches.chain([level(MEMORY, None, stretches[climbs.len()])]).collect()
}

/// Whether a curve has points enough, ascending, with latencies that can be.
fn is_usable(curve: &[Point]) -> bool {
    curve.len() >= 4
        && curve.iter().all(|point| point.latency_ns.is_finite() && point.latency_ns > 0.0)
        && curve.windows(2).all(|pair| pair[0].working_set_bytes < pair[1].working_set_bytes)
}

/// The curve without bumps: each point as low as the lowest of those with larger working sets.
fn undisturbed(curve: &[Point]) -> Vec<Point> {
    let mut points = curve.to_vec();
    for index in (1..points.len()).rev() {
        points[index - 1].latency_ns = points[index - 1].latency_ns.min(points[index].latency_ns);
    }
    points
}

/// The end of the level before each climb, and the latency of each flat stretch.
fn knees(curve: &[Point], climbs: &[Climb]) -> (Vec<u64>, Vec<f64>) {
    let stretches = stretches(curve, climbs);
    let ends = climbs.iter().zip(stretches.windows(2));
    (ends.map(|(&climb, pair)| knee_bytes(curve, climb, pair[0], pair[1])).collect(), stretches)
}

/// Latency of each flat stretch: before the first climb, between two, and after the last.
fn stretches(curve: &[Point], climbs: &[Climb]) -> Vec<f64> {
    let starts = std::iter::once(0).chain(climbs.iter().map(|climb| climb.last));
    let ends = climbs.iter().map(|climb| climb.first).chain(std::iter::once(curve.len() - 1));
    let median = |(start, end): (usize, usize)| {
        let part: Vec<f64> = curve[start..=end].iter().map(|point| point.latency_ns).collect();
        statistics::median(&part).unwrap_or(curve[end].latency_ns)
    };
    starts.zip(ends).map(median).collect()
}

fn knee_bytes(curve: &[Point], climb: Climb, below_ns: f64, above_ns: f64) -> u64 {
    let middle_ns = (below_ns * above_ns).sqrt();
    let part = &curve[climb.first..=climb.last];
    let passed = part.iter().position(|point| point.latency_ns > middle_ns).unwrap_or(part.len());
    part[passed.saturating_sub(1)].working_set_bytes
}

fn cache_name(index: usize) -> &'static str {
    CACHES[index.min(CACHES.len() - 1)]
}

/// The caches that can be: level 1 and up, ascending in level and size.
fn sane(caches: &[DataCache]) -> Vec<DataCache> {
    let mut known: Vec<DataCache> = Vec::new();
    let mut sorted = caches.to_vec();
    sorted.sort_by_key(|cache| (cache.level, cache.bytes));
    for cache in sorted {
        let above = known.last().map_or((0, 0), |last| (last.level, last.bytes));
        if cache.level > above.0 && cache.bytes > above.1 && cache.level as usize <= CACHES.len() {
            known.push(cache);
        }
    }
    known
}

#[cfg(test)]
mod tests;
