//! Against b3sum, xxhsum, sha256sum and openssl: one large file, and many small ones.
//!
//! What is printed is held against digests that are computed here, so that a wrong one is found
//! whoever prints it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flatout_io::digest::{Algorithm, Hasher};
use flatout_measure::{Facts, Parameters};
use flatout_sys::process::Account;
use flatout_tree::visit::visit;

use crate::versus::printed::wrong;
use crate::versus::race::{Argv, Checked, Made, Race, Run, Workload};
use crate::versus::rival::{Discipline, Found};
use crate::versus::run::quoted;
use crate::versus::source::Source;
use crate::versus::{Extent, Ground, State, fact};
use crate::{Error, IoError, MIB};

const SMALL_BYTES: u64 = 4096;
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes per second and files per second with which the plan of the time counts; the slowest
/// rival on the reference machine, 2026-11-22.
const PLANNED_RATE: f64 = 1e9;
const PLANNED_FILES_PER_S: f64 = 30_000.0;

/// A rival, its digest, and what it is told besides the file.
struct Entry {
    rival: &'static str,
    algorithm: Algorithm,
    arguments: &'static [&'static str],
    /// Whether it is raced over many small files, too.
    has_small: bool,
}

const ENTRIES: [Entry; 4] = [
    Entry { rival: "b3sum", algorithm: Algorithm::Blake3, arguments: &[], has_small: true },
    Entry { rival: "xxhsum", algorithm: Algorithm::Xxh3, arguments: &["-H2"], has_small: false },
    Entry { rival: "sha256sum", algorithm: Algorithm::Sha256, arguments: &[], has_small: false },
    Entry {
        rival: "openssl",
        algorithm: Algorithm::Sha256,
        // -r: lines as those of sha256sum.
        arguments: &["dgst", "-sha256", "-r"],
        has_small: false,
    },
];

/// Length of the large file, number of the small ones.
fn sizes(extent: Extent) -> (u64, u64) {
    match extent {
        Extent::Full => (1024 * MIB, 20_000),
        _ => (32 * MIB, 1000),
    }
}

fn raced(ground: &Ground) -> impl Iterator<Item = (&'static Entry, &Found)> {
    ground.of(Discipline::Digest).filter_map(|found| {
        let entry = ENTRIES.iter().find(|entry| entry.rival == found.rival.name)?;
        Some((entry, found))
    })
}

/// Bytes that lie in the directory at once.
pub fn room_bytes(ground: &Ground) -> u64 {
    let (large_bytes, small_files) = sizes(ground.extent);
    let mut bytes = raced(ground).next().map_or(0, |_| large_bytes);
    if raced(ground).any(|(entry, _)| entry.has_small) {
        bytes += small_files * SMALL_BYTES;
    }
    bytes
}

/// The races against each rival that is there.
pub fn races(ground: &Ground) -> Vec<Race<'static>> {
    let mut races = Vec::new();
    let (large_bytes, small_files) = sizes(ground.extent);
    for (entry, found) in raced(ground) {
        for &state in ground.states.iter().filter(|state| matches!(state, State::Hot | State::Cold))
        {
            // A large file that is cold measures the disk.
            if state == State::Hot {
                let large = Source::new(ground, 1, large_bytes);
                races.push(race(ground, (entry, found), large, state));
            }
            if entry.has_small {
                let small = Source::new(ground, small_files, SMALL_BYTES);
                races.push(race(ground, (entry, found), small, state));
            }
        }
    }
    races
}

fn race(
    ground: &Ground,
    (entry, found): (&'static Entry, &Found),
    source: Source,
    state: State,
) -> Race<'static> {
    let (bytes, files) = (source.corpus.bytes, source.files());
    let mut parameters =
        Parameters::default().with("digest", entry.algorithm.name()).with("bytes", bytes);
    parameters.set_known("files", files);
    parameters.set("cache_state", state.name());
    let expected_s = bytes as f64 / PLANNED_RATE + files.unwrap_or(0) as f64 / PLANNED_FILES_PER_S;
    let test = if files.is_some() { "sum-files" } else { "sum-file" };
    let made = Some(Made::of(&source.corpus, ground));
    let workload = SumWorkload { source, state, entry, expected: BTreeMap::new() };
    Race { bytes, made, ..Race::against(ground, found, (test, parameters), expected_s, workload) }
}

struct SumWorkload {
    source: Source,
    state: State,
    entry: &'static Entry,
    /// Digests by file name; empty until they are known.
    expected: BTreeMap<Vec<u8>, String>,
}

impl SumWorkload {
    fn flatout_argv(&self, program: &Path) -> Argv {
        let mut words = format!("sum --digest {}", self.entry.algorithm.name());
        if self.source.files().is_some() {
            words += " -r";
        }
        let words = words.split(' ').map(OsString::from);
        std::iter::once(program.into()).chain(words).chain([self.source.path().into()]).collect()
    }

    fn rival_argv(&self, program: &Path) -> Argv {
        let arguments = self.entry.arguments.iter().map(OsString::from);
        if self.source.files().is_none() {
            let program = std::iter::once(program.into());
            return program.chain(arguments).chain([self.source.path().into()]).collect();
        }
        // The shell makes the names: find looks at each file, and xargs would call the program ten times.
        let [root, program] = [&*self.source.root(), program].map(|path| quoted(path.as_os_str()));
        let words = ["cd".into(), root, "&& exec".into(), program].into_iter().chain(arguments);
        let words: Argv = words.chain(["*/*".into()]).collect();
        vec!["sh".into(), "-c".into(), words.join(OsStr::new(" "))]
    }
}

impl Workload for SumWorkload {
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error> {
        self.source.make(run.ends_ns)?;
        // Before the state is made, because it reads all files.
        if self.expected.is_empty() {
            let root = self.source.root();
            self.expected =
                digests(self.entry.algorithm, &root).map_err(IoError::system("digest", &root))?;
        }
        self.source.prepare(self.state, run.ends_ns)
    }

    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        let program = &run.contestant.program;
        Ok(if run.index == 0 { self.flatout_argv(program) } else { self.rival_argv(program) })
    }

    fn check(&mut self, _: &Run<'_>, account: &Account) -> Result<Checked, Error> {
        let mut printed = BTreeMap::new();
        for line in account.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let (name, digest) = parts(line).ok_or_else(|| {
                wrong(format!("{:?} is no digest with its file", String::from_utf8_lossy(line)))
            })?;
            printed.insert(name, digest);
        }
        compare(&self.expected, &printed)?;
        let facts = Facts::default().with(fact::DIGESTS_CHECKED, printed.len());
        Ok(Checked { facts, ..Checked::default() })
    }
}

/// Digest and name of a line; the name without its folders but the last, which tells the files of
/// a corpus apart. The names of corpora need no escapes.
fn parts(line: &[u8]) -> Option<(Vec<u8>, String)> {
    // GNU and BLAKE3 mark a line with escapes so.
    let line = line.strip_prefix(b"\\").unwrap_or(line);
    let end = line.windows(2).position(|two| two == b"  " || two == b" *")?;
    let digest = std::str::from_utf8(&line[..end]).ok()?;
    let is_digest = !digest.is_empty() && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| (name_of(&line[end + 2..]), digest.to_ascii_lowercase()))
}

/// The last two members of a path.
fn name_of(path: &[u8]) -> Vec<u8> {
    let members: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    members[members.len().saturating_sub(2)..].join(&b'/')
}

fn compare(
    expected: &BTreeMap<Vec<u8>, String>,
    printed: &BTreeMap<Vec<u8>, String>,
) -> Result<(), Error> {
    for name in expected.keys().chain(printed.keys()) {
        let shown = String::from_utf8_lossy(name);
        return Err(wrong(match (expected.get(name), printed.get(name)) {
            (Some(digest), Some(other)) if digest == other => continue,
            (Some(digest), Some(other)) => {
                format!("the digest of {shown:?} is {digest}, not {other}")
            }
            (Some(_), None) => format!("no digest of {shown:?}"),
            (None, _) => format!("a digest of {shown:?}, which is no file"),
        }));
    }
    Ok(())
}

/// The digests of all files of a tree, by the names that [`parts`] gives them.
fn digests(algorithm: Algorithm, root: &Path) -> io::Result<BTreeMap<Vec<u8>, String>> {
    let mut known = BTreeMap::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    visit(root, |entry| {
        if !entry.is_file() {
            return Ok(());
        }
        let path = root.join(OsStr::from_bytes(entry.above));
        let path = path.join(OsStr::from_bytes(entry.name.to_bytes()));
        let (mut file, mut hasher) = (File::from(entry.open()?), Hasher::new(algorithm));
        while let got @ 1.. = file.read(&mut chunk)? {
            hasher.update(&chunk[..got]);
        }
        known.insert(name_of(path.as_os_str().as_bytes()), hasher.finish().to_string());
        Ok(())
    })?;
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_rivals_are_read() {
        let expected = Some((b"000/00001.dat".to_vec(), "00ff".to_owned()));
        for line in ["00ff  /a/b/000/00001.dat", "00FF  ./000/00001.dat", "00ff *000/00001.dat"] {
            assert_eq!(parts(line.as_bytes()), expected, "{line}");
        }
        for line in ["", "nonsense", "zz  name", "  name", "00ff name"] {
            assert_eq!(parts(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn what_differs_is_named() {
        let set = |entries: &[(&str, &str)]| -> BTreeMap<Vec<u8>, String> {
            entries.iter().map(|(n, d)| (n.as_bytes().to_vec(), (*d).to_owned())).collect()
        };
        let expected = set(&[("a", "00"), ("b", "01")]);
        assert!(compare(&expected, &expected).is_ok());
        for (printed, text) in [
            (set(&[("a", "00")]), "no digest of \"b\""),
            (set(&[("a", "00"), ("b", "02")]), "the digest of \"b\" is 01, not 02"),
            (set(&[("a", "00"), ("b", "01"), ("c", "03")]), "a digest of \"c\", which is no file"),
        ] {
            assert_eq!(compare(&expected, &printed).unwrap_err().to_string(), text);
        }
    }
}
