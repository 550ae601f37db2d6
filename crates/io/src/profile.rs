//! What was measured on this machine, as a table that the tools look their settings up in.

use serde::{Deserialize, Serialize};

use crate::tuning::Tuning;

/// The kind of work a setting is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Reading a file to its end.
    Read,
    /// Writing a new file.
    Write,
    /// Copying a file.
    Copy,
    /// Computing a digest.
    Sum,
}

/// Files of one class want the same settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeClass {
    /// Up to 64 KiB: one or two requests.
    Tiny,
    /// Up to 4 MiB: not worth a second thread.
    Small,
    /// Up to 256 MiB.
    Medium,
    /// Beyond.
    Large,
}

impl SizeClass {
    /// The class of a file.
    pub fn of(length_bytes: u64) -> Self {
        match length_bytes {
            0..=0x1_0000 => Self::Tiny,
            0x1_0001..=0x40_0000 => Self::Small,
            0x40_0001..=0x1000_0000 => Self::Medium,
            _ => Self::Large,
        }
    }
}

/// What a setting is looked up by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProfileKey {
    /// Kind of work.
    pub work: Work,
    /// Class of the file.
    pub size: SizeClass,
    /// Whether the source lies in the page cache.
    pub cached: bool,
    /// Device of the source, as `major:minor`.
    pub source_device: String,
    /// Device of the target; empty where there is none.
    pub target_device: String,
}

/// What a setting rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// When it was measured, RFC 3339.
    pub time: String,
    /// Number of trials.
    pub n: u64,
    /// 95 % interval of the rate in bytes/s.
    pub ci95: [f64; 2],
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileEntry {
    /// What it is for.
    pub key: ProfileKey,
    /// The settings that reach at least 95 % of the best.
    pub tuning: Tuning,
    /// The best rate found, in bytes/s.
    pub limit_bytes_per_s: f64,
    /// What that rests on.
    pub evidence: Evidence,
}

/// The table of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// All rows; keys are unique.
    pub entries: Vec<ProfileEntry>,
}

impl Profile {
    /// The row for a key, if it was measured. Cost: linear; a table has a few dozen rows.
    pub fn find(&self, key: &ProfileKey) -> Option<&ProfileEntry> {
        self.entries.iter().find(|entry| entry.key == *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::{Caching, Engine, Split};

    #[test]
    fn a_row_is_found_by_its_whole_key_only() {
        let key = ProfileKey {
            work: Work::Read,
            size: SizeClass::of(1 << 30),
            cached: true,
            source_device: "254:0".to_owned(),
            target_device: String::new(),
        };
        let tuning = Tuning {
            engine: Engine::Mmap,
            caching: Caching::Buffered,
            block_bytes: 1 << 20,
            depth: 1,
            threads: 2,
            split: Split::Contiguous,
        };
        let evidence = Evidence { time: "2026-11-21T20:00:00Z".to_owned(), n: 6, ci95: [1.0, 2.0] };
        let entry = ProfileEntry { key: key.clone(), tuning, limit_bytes_per_s: 2e10, evidence };
        let profile = Profile { entries: vec![entry] };
        assert_eq!(profile.find(&key).map(|entry| entry.tuning), Some(tuning));
        assert!(profile.find(&ProfileKey { cached: false, ..key }).is_none());
    }

    #[test]
    fn classes_end_where_they_say() {
        assert_eq!(SizeClass::of(64 << 10), SizeClass::Tiny);
        assert_eq!(SizeClass::of((64 << 10) + 1), SizeClass::Small);
        assert_eq!(SizeClass::of((256 << 20) + 1), SizeClass::Large);
    }
}
