//! How close a copy ran to what this machine can do, by what `flatout tune` measured here.
//!
//! No copy can take less time than each of these: the kernel takes its files and bytes one after
//! the other at the best rates that were measured ([`Limits::taking_s`]), and the device writes, and
//! reads, what went over it meanwhile ([`Limits::device_s`]). The longer one is the limit, and
//! names what limits. Directories, links and attributes are not counted, so that the share of a
//! tree of many of these is a lower bound.

use std::os::fd::AsFd;
use std::path::Path;

use flatout_io::{MachineProfile, ProfileEntry, SizeClass, Work};
use flatout_sys::filesystem;
use flatout_tree::copy::Operand;
use flatout_tree::copy::operand::parent;
use flatout_tree::copy::options::Tuned;
use rustix::fs::{CWD, Mode, OFlags};
use serde_json::{Value, json};

/// A copy that is shorter is mostly its own beginning and end.
pub const LEAST_NS: u64 = 100_000_000;
/// Above this share the limit was measured too low: clocks and rates are no better than this.
const TOLERANCE: f64 = 1.02;
/// One part in so many of the bytes moves a limit little; the program's own pages come from a device, too.
const LITTLE_PART: u64 = 10;

/// What was measured for a pair of filesystems, in seconds for a file or a byte.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// For bytes that the page cache holds, and for others.
    byte_s: [f64; 2],
    /// For a file beside its bytes, likewise.
    file_s: [f64; 2],
    /// For a byte that the device of the target writes; `None` where there is none.
    written_s: Option<f64>,
    /// For a byte that the device of the source reads.
    fetched_s: Option<f64>,
    /// Source and target share a device.
    is_one: bool,
    /// What was left out, so that there is no limit; else whether only what the page cache holds was measured.
    unknown: Option<&'static str>,
    is_hot_alone: bool,
    /// The oldest of the measurements, RFC 3339.
    time: String,
    /// The settings that were the best here.
    pub tuned: Tuned,
}

/// What a copy moved, and what of it went over devices.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moved {
    /// Files whose bytes were moved, and how many bytes; not those whose extents are shared.
    pub files: u64,
    pub bytes: u64,
    /// Bytes that the device of the source was asked for.
    pub fetched_bytes: u64,
    /// Bytes that the device of the target has by now; `None` where nobody knows.
    pub written_bytes: Option<u64>,
    /// Bytes that were read back from it (`--verify`).
    pub read_back_bytes: u64,
    pub elapsed_ns: u64,
}

/// How close it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Time at the limit ÷ time taken; `None`: what takes most of it was left out.
    pub ratio: Option<f64>,
    /// Time at the limit.
    pub limit_s: f64,
    /// What takes that time.
    pub limiter: &'static str,
    /// When it was measured, RFC 3339.
    pub measured: String,
    /// What this copy did, too, and was not measured.
    pub left_out: Vec<&'static str>,
}

impl Limits {
    /// What is known of the filesystems of all operands; `None` where they lie on more than one
    /// pair, or no copy was measured for it.
    ///
    /// Cost: an open and a few looks at each operand, if there is a profile at all.
    pub fn of<'o>(
        profile: &MachineProfile,
        mut operands: impl Iterator<Item = &'o Operand>,
    ) -> Option<Self> {
        let (source, target) = pair(operands.next()?)?;
        let is_it =
            |operand| pair(operand).is_some_and(|(from, to)| from == source && to == target);
        operands.all(is_it).then(|| Self::of_pair(profile, &source, &target)).flatten()
    }

    fn of_pair(profile: &MachineProfile, source: &str, target: &str) -> Option<Self> {
        let copied = |size, cached| profile.find(Work::Copy, (size, cached), (source, target));
        let (large, tiny) = (copied(SizeClass::Large, true), copied(SizeClass::Tiny, true));
        large.or(tiny)?;
        let needed = [(large, "copying a large file"), (tiny, "copying small files")];
        let unknown = needed.iter().find(|(entry, _)| entry.is_none()).map(|(_, kind)| *kind);
        let large_cold = copied(SizeClass::Large, false);
        let tiny_cold = copied(SizeClass::Tiny, false);
        let written = profile.find(Work::Write, (SizeClass::Large, true), ("", target));
        let fetched = profile.find(Work::Read, (SizeClass::Large, false), (source, ""));
        let byte = |entry: &ProfileEntry| 1.0 / entry.limit_bytes_per_s;
        let byte_s = [large, large_cold.or(large)].map(|entry| entry.map_or(0.0, byte));
        let file_s = |tiny: Option<&ProfileEntry>, byte_s: f64| {
            let rest_s = |tiny: &ProfileEntry| {
                1.0 / tiny.limit_files_per_s() - tiny.file_bytes as f64 * byte_s
            };
            tiny.map_or(0.0, rest_s).max(0.0)
        };
        let used = [large, tiny, large_cold, tiny_cold, written, fetched].into_iter().flatten();
        Some(Self {
            byte_s,
            file_s: [file_s(tiny, byte_s[0]), file_s(tiny_cold.or(tiny), byte_s[1])],
            written_s: written.map(byte),
            fetched_s: fetched.map(byte),
            is_one: source == target,
            unknown,
            is_hot_alone: large_cold.is_none() || tiny_cold.is_none(),
            time: used.map(|entry| entry.evidence.time.clone()).min().unwrap_or_default(),
            tuned: Tuned {
                usual_threads: tiny.map(|tiny| tiny.tuning.threads),
                most_threads: tiny_cold.map(|tiny| tiny.tuning.threads),
                large: large.map(|large| large.tuning),
            },
        })
    }

    /// How close a copy came to the limit; `None` where it moved nothing, or was too short to tell.
    pub fn share(&self, moved: &Moved) -> Option<Share> {
        if moved.files == 0 || moved.elapsed_ns < LEAST_NS {
            return None;
        }
        let bounds = [self.taking_s(moved), self.device_s(moved)];
        let (limit_s, limiter) =
            bounds.into_iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
        let ratio = limit_s / (moved.elapsed_ns as f64 / 1e9);
        let ratio = self.unknown.is_none().then_some(ratio);
        let (measured, left_out) = (self.time.clone(), self.left_out(moved));
        let share = Share { ratio, limit_s, limiter, measured, left_out };
        (limit_s > 0.0 || ratio.is_none()).then_some(share)
    }

    /// What a copy did of more than a little of its bytes, and was not measured.
    fn left_out(&self, moved: &Moved) -> Vec<&'static str> {
        let counts = |bytes: u64| bytes > moved.bytes / LITTLE_PART;
        let is_cold = counts(moved.fetched_bytes);
        let is_read = counts(moved.read_back_bytes) || self.is_one && is_cold;
        let kinds = [
            ("copying what is not cached", self.is_hot_alone && is_cold),
            ("writing", self.written_s.is_none() && counts(moved.written_bytes.unwrap_or(0))),
            ("reading", self.fetched_s.is_none() && is_read),
        ];
        let kinds = kinds.into_iter().filter(|(_, is_missed)| *is_missed).map(|(kind, _)| kind);
        self.unknown.into_iter().chain(kinds).collect()
    }

    /// The time in which the kernel takes all, at the best rates, and what most of it is for.
    fn taking_s(&self, moved: &Moved) -> (f64, &'static str) {
        let bytes = moved.bytes as f64;
        let cold =
            if moved.bytes == 0 { 0.0 } else { (moved.fetched_bytes as f64 / bytes).min(1.0) };
        let mean = |[hot_s, cold_s]: [f64; 2]| hot_s * (1.0 - cold) + cold_s * cold;
        let files_s = moved.files as f64 * mean(self.file_s);
        let bytes_s = bytes * mean(self.byte_s);
        let back_s = moved.read_back_bytes as f64 * self.fetched_s.unwrap_or(0.0);
        let limiter = match files_s > bytes_s {
            true => "making files",
            false if cold > 0.5 => "reading from the device",
            false => "moving bytes",
        };
        (files_s + bytes_s + back_s, limiter)
    }

    /// The time in which the devices write and read what went over them.
    fn device_s(&self, moved: &Moved) -> (f64, &'static str) {
        let written_s = moved.written_bytes.unwrap_or(0) as f64 * self.written_s.unwrap_or(0.0);
        let mut fetched_bytes = moved.read_back_bytes;
        if self.is_one {
            // It cannot do both at a time.
            fetched_bytes += moved.fetched_bytes;
        }
        let fetched_s = fetched_bytes as f64 * self.fetched_s.unwrap_or(0.0);
        let limiter = match fetched_s > written_s {
            true => "reading from the device",
            false => "writing to the device",
        };
        (written_s + fetched_s, limiter)
    }
}

/// What tells the filesystems of an operand from others.
fn pair(operand: &Operand) -> Option<(String, String)> {
    // What is there already may be another filesystem than what it lies in.
    let target = identity(&operand.target, OFlags::NOFOLLOW)
        .or_else(|| identity(&parent(&operand.target), OFlags::empty()))?;
    Some((identity(&operand.source, OFlags::NOFOLLOW)?, target))
}

fn identity(path: &Path, more: OFlags) -> Option<String> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | more;
    let opened = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    filesystem::identity(opened.as_fd()).ok()
}

impl Share {
    /// The end of the last line.
    pub fn text(&self) -> String {
        let day = self.measured.get(..10).unwrap_or(&self.measured);
        let known = match self.ratio {
            None => "no limit is known".to_owned(),
            Some(ratio) if ratio > TOLERANCE => {
                format!("faster than the limit that flatout tune measured on {day}")
            }
            Some(ratio) => {
                let percent = (ratio * 100.0).min(100.0);
                format!("{percent:.0} % of the limit measured on {day} ({})", self.limiter)
            }
        };
        match &self.left_out[..] {
            [] => known,
            kinds => format!("{known}; flatout tune of {day} left out {}", kinds.join(" and ")),
        }
    }

    /// The same for programs.
    pub fn document(&self) -> Value {
        json!({
            "ratio": self.ratio,
            "limit_s": self.ratio.map(|_| self.limit_s),
            "limiter": self.ratio.map(|_| self.limiter),
            "measured": self.measured,
            "limit_low": self.ratio > Some(TOLERANCE),
            "left_out": self.left_out,
        })
    }
}

#[cfg(test)]
mod tests;
