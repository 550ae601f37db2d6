//! `flatout bench`: the options that several areas share. Those of one area alone are defined where
//! the area is, in `flatout_bench`; the areas: `bench/area.rs`.

mod area;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use flatout_bench::cache::Clearing;
use flatout_bench::option::{flag, size, time};

use super::shared::Output;
use area::{Areas, Own};

pub use area::Name;

const AFTER: &str = "\
Areas:
  cache     rate over block sizes 1 B … 4 MiB and over threads; engines sync, mmap, uring; hot and
            cold; the series first read, again, after clearing
  disk      throughput, operations per second, latency and metadata of the disk behind PLACE, with
            proof of what reached it, what limits it, and fio command lines to check it with
  syscall   nanoseconds per system call, with private and shared descriptors
  cpu       operations per second of the arithmetic units, for each data type and vector
            extension, held against clock × ports × lanes, all measured here; Linpack and DGEMM
  memory    bytes per second over working sets, block sizes and threads; nanoseconds per access;
            the cache levels that follow from them
  network   bytes per second and round trips over TCP and UDP, between this machine and one where
            `flatout serve` runs (--connect), or over loopback
  copy      the time of `flatout copy` by number of files of each size, by number of pieces of one
            total, by depth of the tree; large files, memory, spread; each copy is compared
Without an AREA a short set of all runs: at most 60 rows and 90 s. A named AREA runs its full
grid; --quick shortens it. A PLACE is for the disk and the copy area: a directory (flatout makes
its own files there); for the disk area also a file (only read, unless --overwrite) or a block
device (only read, always). A directory with the name of an area is written ./cache.

It needs no root and disturbs nobody: it writes temporary files, unnamed where they need no names,
says beforehand how many bytes and how long, and neither a file nor all that lies there of the copy
area takes more than 10 % of the free space. Bare `flatout bench` leaves flatout-DATE.json and
flatout-DATE.html in the current directory.

Disk: direct I/O (O_DIRECT) and io_uring by default. A write has two figures: until the device or
the cache has the bytes, and until they are durable. Latencies are of a closed loop (the next
request begins when one has ended); with --rate of an open one, counted from the intended start.
--matrix: copy file to file, sequential and random reads and writes at 8 KiB, 8 MiB and 80 MiB,
latency at 8 B, with 1, 2, 4 and 8 threads; rewrite, reread, backward and strided; over 5 GB.

Copy: the program is run as whoever types its name runs it, and its start is part of the time. Its
sources and copies lie in PLACE/.flatout-copy until the end. A copy counts when the program has
ended (until cache); with --durable there is a second figure. It is compared with its source, and
emptied before the next one. The grid is cut to what room, memory and time allow, and says so:
--max-write and --max-time allow more.

Cold rows: the file is written back (fsync), dropped from the page cache (POSIX_FADV_DONTNEED),
and that it is gone is proved (cachestat). --drop-caches also drops the caches of the whole system
by writing to /proc/sys/vm/drop_caches, which needs root and slows everybody down for a while:
  1  drops clean page-cache pages: file contents
  2  drops dentries and inodes: names and attributes, and the bitmaps that hang on them
  3  drops both. A cold read in real life finds neither the contents nor the block map that the
     inode holds; after 1 the map is still there, after 2 the contents are. Hence 3.
None of them drops dirty pages: those are synced first.

Examples:
  flatout bench                        the short set, with a report page
  flatout bench cache --quick          the page cache, a coarse grid
  flatout bench disk                   the disk behind the current directory
  flatout bench disk /dev/nvme0n1      a disk, only read
  flatout bench disk /data --pattern random-read --block-size 4K,16K,64K --depth 1,16,64
  flatout bench disk /data --pattern random-read --rate 5000 --runtime 10s
  flatout bench syscall --format json --output syscall.json
  flatout bench cpu --threads 1,2      the arithmetic units with one thread and with two
  flatout bench memory --quick         memory, a coarse grid
  flatout bench network                TCP and UDP over loopback
  flatout bench copy /data --files 1,10,100,900 --file-size 128K,1M --rounds 10
  flatout bench copy --corpus single --rounds 2 --max-write 120G   4, 8, 16 and 2 × 4 GiB
  flatout bench network --connect fast:7878 --token-file t   to a machine where flatout serves";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct Bench {
    #[command(flatten)]
    pub areas: Areas,
    /// What to measure [default: a short set of everything], and where the disk and the copy
    /// area do it [default: the current directory]
    #[arg(value_name = "AREA|PLACE", value_parser = word())]
    words: Vec<Word>,
    /// A coarser grid and fewer trials
    #[arg(long)]
    pub quick: bool,
    /// Where the temporary files are made [default: the current directory]
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub directory: PathBuf,
    /// Time for everything, from making test files to removing them; figures that are not precise
    /// by then say so, and rows for which there is none are left out, the last ones first
    /// [default: at most 90s in all; cache 240s, disk by its rows, syscall 120s, cpu and memory 55s each, network 26s, copy 240s; with --quick less]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<u64>,
    /// Run each row exactly so often, whatever time it takes unless --max-time is given [default: at
    /// least 6 times, with --quick 3, until its figure is precise; the copy area at most 10 times]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Never write more than this; of the copy area all copies count
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_write: Option<u64>,
    /// Bytes per request: of the disk area [default: 1M sequential, 4K random], several separated
    /// by commas make a sweep; of read, pread and write of the syscall area [default: 1]; of a
    /// call, or of a message, of the network area [default: 64K], several make rows
    #[arg(long, value_name = "SIZE,…", value_parser = size, value_delimiter = ',')]
    pub block_size: Vec<u64>,
    /// Threads of the disk, cpu and memory areas; several make a sweep [default: disk 1; cpu and
    /// memory 1, 2, 4, 8 and one per CPU]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// Disk: length of the test file; how much of a file or device is used [default: 1 GiB, less
    /// where that is more than a tenth of the free space; of the matrix 5 GB; all of a file or
    /// device]. Memory: how much a row of blocks moves [default: 1.28 GB]. Network: a trial moves
    /// so much instead of taking a time, all streams together
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bytes: Option<u64>,
    /// Drop the caches of the whole system before cold rows; needs root
    #[arg(long, action = ArgAction::SetTrue, value_parser = flag([Clearing::File, Clearing::System]))]
    drop_caches: Clearing,
    /// Seed of all random orders and data [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    pub output: Output,
    /// Say what is usual here: the range of the records of this machine in DIR, beside each figure
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub history: Option<PathBuf>,
}

/// A word that stands alone.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Area(Name),
    Place(PathBuf),
}

fn word() -> impl TypedValueParser<Value = Word> {
    OsStringValueParser::new().map(|text: OsString| {
        let area = text.to_str().and_then(|name| Name::from_str(name, false).ok());
        area.map_or_else(|| Word::Place(text.into()), Word::Area)
    })
}

impl Bench {
    /// The areas named, each once, in the order of a report.
    pub fn names(&self) -> Vec<Name> {
        let mut areas: Vec<Name> = self
            .words
            .iter()
            .filter_map(|word| match word {
                Word::Area(area) => Some(*area),
                Word::Place(_) => None,
            })
            .collect();
        areas.sort_unstable();
        areas.dedup();
        areas
    }

    fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.words.iter().filter_map(|word| match word {
            Word::Place(path) => Some(path),
            Word::Area(_) => None,
        })
    }

    /// What the disk area measures, and where the copy area works.
    pub fn place(&self) -> &PathBuf {
        self.places().next().unwrap_or(&self.directory)
    }

    /// The files that are worked on.
    pub fn files(&self) -> Vec<PathBuf> {
        self.places().cloned().collect()
    }

    /// The options given that only some areas know, and these areas.
    fn given(&self) -> impl Iterator<Item = (String, Vec<Name>)> {
        let definition = Self::augment_args(clap::Command::new("bench"));
        self.areas.given().filter_map(move |id| {
            let owners = Name::owners(id);
            let argument = definition.get_arguments().find(|argument| argument.get_id() == id)?;
            (!owners.is_empty())
                .then(|| (format!("--{}", argument.get_long().unwrap_or(id)), owners))
        })
    }

    /// Refuses words and options that belong to an area which is not measured.
    ///
    /// Errors: one line that says which, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let areas = self.names();
        let has_place = areas.contains(&Name::Disk) || areas.contains(&Name::Copy);
        let names: Vec<_> = Name::value_variants().iter().map(|area| area.word()).collect();
        if let Some(place) = self.places().next()
            && !has_place
        {
            return Err(format!(
                "{place:?} is no area (there are {}), and a place is for the disk or the copy area: flatout bench disk {}",
                names.join(", "),
                place.display()
            ));
        }
        if let Some(second) = self.places().nth(1) {
            return Err(format!("{second:?}: one place is measured at a time"));
        }
        for (option, owners) in self.given() {
            if !owners.iter().any(|owner| areas.contains(owner)) {
                let names: Vec<_> = owners.iter().map(|area| area.word()).collect();
                let plural = if names.len() > 1 { "areas" } else { "area" };
                return Err(format!(
                    "{option} is for the {plural} {}: flatout bench {} {option} …",
                    names.join(", "),
                    names[0]
                ));
            }
        }
        if self.block_size.len() > 1 && areas != [Name::Disk] && areas != [Name::Network] {
            let text = "--block-size with several values is for the disk or the network area alone";
            return Err(text.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command, Recorded};

    fn parsed(words: &[&str]) -> Bench {
        let argv = ["flatout", "bench"].iter().chain(words);
        let command = Arguments::try_parse_from(argv).unwrap().command;
        let Command::Recorded(command) = command else { panic!("{command:?}") };
        match *command {
            Recorded::Bench(bench) => bench,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn words_are_areas_or_a_place() {
        let bench = parsed(&["syscall", "disk", "/data", "disk"]);
        assert_eq!(bench.names(), [Name::Disk, Name::Syscall]);
        assert_eq!(bench.place(), &PathBuf::from("/data"));
        assert!(bench.check().is_ok());
        assert_eq!(parsed(&["disk", "./cache"]).place(), &PathBuf::from("./cache"));
        assert_eq!(parsed(&["disk"]).place(), &PathBuf::from("."));
        let copy = parsed(&["copy", "/data", "--files", "9,1,9", "--file-size", "0,1K"]);
        assert_eq!((copy.names(), copy.place()), (vec![Name::Copy], &PathBuf::from("/data")));
        assert!(copy.check().is_ok());
    }

    #[test]
    fn what_belongs_to_the_disk_area_is_refused_without_it() {
        for words in [
            &["cahce"][..],
            &["/data"],
            &["syscall", "--pattern", "random-read"],
            &["--matrix"],
            &["disk", "/a", "/b"],
            &["disk", "syscall", "--block-size", "1,2"],
            &["--threads", "2"],
            &["cpu", "--bytes", "1G"],
            &["memory", "--order", "100"],
            &["disk", "--cold"],
        ] {
            assert!(parsed(words).check().is_err(), "{words:?}");
        }
        assert!(
            parsed(&["cahce"])
                .check()
                .unwrap_err()
                .contains("cache, disk, syscall, cpu, memory, network, copy")
        );
    }
}
