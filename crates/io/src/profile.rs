//! What was measured on a machine, as a table that the tools look their settings up in.
//!
//! Data only: who measures it is `flatout tune`, where it lies is the program's business.

use serde::{Deserialize, Serialize};

use crate::tuning::Tuning;

/// The edition of the table; another one is not read.
pub const PROFILE_SCHEMA: &str = "flatout-profile/1";

flatout_sys::words! {
    /// The kind of work a setting is for. A digest is computed of what is read.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Work: name {
        /// Reading a file to its end.
        Read = "reading",
        /// Writing a new file until it is durable.
        Write = "writing",
        /// Copying files, by reading and writing.
        Copy = "copying",
    }

    /// Files of one class want the same settings.
    #[derive(Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SizeClass: name {
        /// Up to 64 KiB: one or two requests; names and attributes take the time.
        Tiny = "tiny",
        /// Up to 4 MiB: not worth a second thread.
        Small = "small",
        /// Beyond.
        Large = "large",
    }
}

impl SizeClass {
    /// The class of a file.
    pub fn of(length_bytes: u64) -> Self {
        match length_bytes {
            0..=0x1_0000 => Self::Tiny,
            0x1_0001..=0x40_0000 => Self::Small,
            _ => Self::Large,
        }
    }
}

/// What a setting is looked up by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProfileKey {
    /// The machine, by whatever tells it from others that see the same table.
    pub machine: String,
    /// The version of its kernel, whose page cache and filesystems decide what is fast. Tables of
    /// before 2026-11-26 have none.
    #[serde(default)]
    pub kernel: String,
    /// CPUs that it could use: with others, other numbers of threads are best. Tables of before 2026-11-29
    /// have none.
    #[serde(default)]
    pub cpus: u32,
    /// Kind of work.
    pub work: Work,
    /// Class of the file.
    pub size: SizeClass,
    /// Whether the source lies in the page cache.
    pub cached: bool,
    /// Filesystem that is read, as `sys::filesystem::identity` has it; empty where none is.
    pub source: String,
    /// Filesystem that is written to; empty where none is.
    pub target: String,
}

impl ProfileKey {
    /// What it is for, in words.
    fn words(&self) -> String {
        let work = self.work.name();
        let cached = if self.cached { " cached" } else { "" };
        let mut words = format!("its entry for {work}{cached} {} files", self.size.name());
        for (way, filesystem) in [("from", &self.source), ("to", &self.target)] {
            if !filesystem.is_empty() {
                words += &format!(" {way} {filesystem:?}");
            }
        }
        words + &format!(" on machine {:?}", self.machine)
    }
}

/// What a setting rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// When it was measured, RFC 3339.
    pub time: String,
    /// Number of trials of the best settings.
    pub n: u64,
    /// 95 % interval of their rate in bytes/s; from three trials on.
    pub ci95: Option<[f64; 2]>,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileEntry {
    /// What it is for.
    pub key: ProfileKey,
    /// The smallest settings that reach 95 % of the best.
    pub tuning: Tuning,
    /// The best rate found, in bytes/s: the median of its trials.
    pub limit_bytes_per_s: f64,
    /// Length of each file that was moved.
    pub file_bytes: u64,
    /// What that rests on.
    pub evidence: Evidence,
}

impl ProfileEntry {
    /// The day on which it was measured.
    pub fn day(&self) -> &str {
        let time = &self.evidence.time;
        time.get(..10).unwrap_or(time)
    }

    /// Files per second at the best rate.
    pub fn limit_files_per_s(&self) -> f64 {
        self.limit_bytes_per_s / self.file_bytes.max(1) as f64
    }

    /// Which value cannot be, if one cannot.
    fn fault(&self) -> Option<String> {
        let Tuning { block_bytes, depth, threads, .. } = self.tuning;
        let bounded = [
            ("block_bytes", block_bytes, MOST_BLOCK_BYTES),
            ("depth", depth.into(), MOST_DEPTH.into()),
            ("threads", threads.into(), MOST_THREADS.into()),
            ("file_bytes", self.file_bytes, u64::MAX),
        ];
        let fault = bounded.into_iter().find(|(_, value, most)| !(1..=*most).contains(value));
        if let Some((name, value, most)) = fault {
            return Some(format!("{name} is {value}, not from 1 to {most}"));
        }
        let rate = self.limit_bytes_per_s;
        let is_rate = rate.is_finite() && rate > 0.0;
        (!is_rate).then(|| format!("limit_bytes_per_s is {rate}, which is no rate"))
    }
}

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`PROFILE_SCHEMA`].
    pub schema: String,
    /// All rows; keys are unique.
    pub entries: Vec<ProfileEntry>,
}

impl Default for Profile {
    fn default() -> Self {
        Self { schema: PROFILE_SCHEMA.to_owned(), entries: Vec::new() }
    }
}

impl Profile {
    /// Reads a table.
    ///
    /// Errors: no JSON, another edition, or figures that are no rates: one line each.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Edition {
            schema: String,
        }
        let edition: Edition = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if edition.schema != PROFILE_SCHEMA {
            return Err(format!("its schema is {:?}, not {PROFILE_SCHEMA:?}", edition.schema));
        }
        let profile: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let fault =
            |entry: &ProfileEntry| Some(format!("{}: {}", entry.key.words(), entry.fault()?));
        profile.entries.iter().find_map(fault).map_or(Ok(profile), Err)
    }

    /// The row for a key, if it was measured. Cost: linear; a table has a few dozen rows.
    pub fn find(&self, key: &ProfileKey) -> Option<&ProfileEntry> {
        self.entries.iter().find(|entry| entry.key == *key)
    }

    /// Adds a row, in the place of the one that has its key.
    pub fn put(&mut self, entry: ProfileEntry) {
        self.entries.retain(|known| known.key != entry.key);
        self.entries.push(entry);
    }
}

/// A table as one machine sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineProfile {
    /// The table.
    pub profile: Profile,
    /// What tells the machine from others.
    pub machine: String,
    /// The version of its kernel.
    pub kernel: String,
    /// CPUs that this process may use.
    pub cpus: u32,
}

impl MachineProfile {
    /// The row for a kind of work on files of a class, if it was measured on this machine and kernel
    /// with as many CPUs.
    /// Filesystems are given by their identity, empty where there is none.
    pub fn find(
        &self,
        work: Work,
        (size, cached): (SizeClass, bool),
        (source, target): (&str, &str),
    ) -> Option<&ProfileEntry> {
        let key = ProfileKey {
            machine: self.machine.clone(),
            kernel: self.kernel.clone(),
            cpus: self.cpus,
            work,
            size,
            cached,
            source: source.to_owned(),
            target: target.to_owned(),
        };
        self.profile.find(&key)
    }
}

/// Bounds of what is taken from a table, which anybody may have written: those of the options.
const MOST_BLOCK_BYTES: u64 = 1 << 30;
const MOST_DEPTH: u32 = 1024;
const MOST_THREADS: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::{Caching, Engine, Split};

    fn entry(cached: bool, limit: f64) -> ProfileEntry {
        ProfileEntry {
            key: ProfileKey {
                machine: "m".to_owned(),
                kernel: "6.18".to_owned(),
                cpus: 2,
                work: Work::Read,
                size: SizeClass::of(1 << 30),
                cached,
                source: "ext4 1".to_owned(),
                target: String::new(),
            },
            tuning: Tuning {
                engine: Engine::Mmap,
                caching: Caching::Buffered,
                block_bytes: 1 << 20,
                depth: 1,
                threads: 2,
                split: Split::Contiguous,
            },
            limit_bytes_per_s: limit,
            file_bytes: 4096,
            evidence: Evidence {
                time: "2026-11-22T20:00:00Z".to_owned(),
                n: 6,
                ci95: Some([1.0, 2.0]),
            },
        }
    }

    #[test]
    fn a_row_is_found_by_its_whole_key_only_and_replaced_by_it() {
        let mut profile = Profile::default();
        profile.put(entry(true, 1.0));
        profile.put(entry(false, 2.0));
        profile.put(entry(true, 4096.0 * 3.0));
        assert_eq!(profile.entries.len(), 2);
        let key = entry(true, 0.0).key;
        assert_eq!(profile.find(&key).map(ProfileEntry::limit_files_per_s), Some(3.0));
        for other in [
            ProfileKey { machine: "other".to_owned(), ..key.clone() },
            ProfileKey { kernel: "6.19".to_owned(), ..key.clone() },
            ProfileKey { cpus: 1, ..key },
        ] {
            assert!(profile.find(&other).is_none());
        }
    }

    #[test]
    fn a_table_reads_back_and_a_foreign_one_is_refused_in_a_line() {
        let mut profile = Profile::default();
        profile.put(entry(true, 1.5));
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(Profile::parse(&text), Ok(profile));
        for (foreign, cause) in [
            ("", "EOF"),
            ("[]", "invalid"),
            (r#"{"schema":"flatout-profile/2","entries":7}"#, "flatout-profile/2"),
            (&text.replace("1.5", "-1.5"), "limit_bytes_per_s is -1.5, which is no rate"),
            (
                &text.replace("\"threads\":2", "\"threads\":0"),
                "its entry for reading cached large files from \"ext4 1\" on machine \"m\": \
                 threads is 0, not from 1 to 1024",
            ),
            (&text.replace("\"depth\":1", "\"depth\":99999"), "depth is 99999, not from 1"),
            (&text.replace("mmap", "magic"), "magic"),
        ] {
            let refused = Profile::parse(foreign).unwrap_err();
            assert!(refused.contains(cause) && !refused.contains('\n'), "{foreign}: {refused}");
        }
    }

    #[test]
    fn classes_end_where_they_say() {
        assert_eq!(SizeClass::of(64 << 10), SizeClass::Tiny);
        assert_eq!(SizeClass::of((64 << 10) + 1), SizeClass::Small);
        assert_eq!(SizeClass::of((4 << 20) + 1), SizeClass::Large);
    }
}
