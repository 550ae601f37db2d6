//! `flatout sum`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use flatout_bench::option::{Wish, Words, count_to, words};
use flatout_bench::workers::MAX_THREADS;
use flatout_io::digest::Algorithm;
use flatout_report::Format;
use flatout_tree::manifest::{LineEnd, Manifest};

use super::shared::{file, meant, path, repeated};
use super::wrong::first_wrong;

#[derive(Debug, Clone, Args)]
#[command(after_help = include_str!("help/sum.txt").trim_ascii_end())]
pub struct Sum {
    /// Files to read, or manifests to check; none or `-` is standard input
    #[arg(value_name = "FILE", value_parser = path())]
    pub files: Vec<PathBuf>,
    /// What is computed of the bytes: blake3, xxh3, crc32c, sha256, xor32 [default: blake3]
    #[arg(long, value_name = "DIGEST", value_parser = words(DIGESTS), hide_possible_values = true)]
    pub digest: Option<Algorithm>,
    /// Read directories with all that is below them
    #[arg(short, long)]
    pub recursive: bool,
    /// Threads that read [default: as many as are useful]
    #[arg(short = 'j', long, value_name = "N", value_parser = count_to(MAX_THREADS))]
    pub threads: Option<u32>,
    /// Read manifests and check the files that they list
    #[arg(short, long, help_heading = "Check")]
    pub check: bool,
    /// Do not print OK for each file that is
    #[arg(short, long, help_heading = "Check", overrides_with_all = ["status", "warn"])]
    pub quiet: bool,
    /// Print nothing about files; the exit code tells
    #[arg(long, help_heading = "Check", overrides_with_all = ["quiet", "warn"])]
    pub status: bool,
    /// Complain about each line that is no digest
    #[arg(short, long, help_heading = "Check", overrides_with_all = ["quiet", "status"])]
    pub warn: bool,
    /// Pass over files that are not there
    #[arg(long, help_heading = "Check")]
    pub ignore_missing: bool,
    /// Fail when a line is no digest; of a manifest that flatout copy wrote: also when modes, owners,
    /// times, extended attributes or sizes differ, or something is there that is not listed
    #[arg(long, help_heading = "Check")]
    pub strict: bool,
    /// Write lines with a tag: TAG (NAME) = DIGEST
    #[arg(long, help_heading = "Output")]
    pub tag: bool,
    /// End lines with a zero byte, and escape nothing; with --check, read such lines
    #[arg(short, long, help_heading = "Output")]
    pub zero: bool,
    /// Form of the results: manifest, json [default: json into a FILE.json, else manifest]
    #[arg(
        long = "format",
        value_name = "FORMAT",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub wanted: Option<SumFormat>,
    /// Write the results into FILE (replaced if it exists); - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true,
        value_parser = file(), value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Wish<PathBuf>,
}

/// `--digest`.
const DIGESTS: &Words<Algorithm> = &[
    ("blake3", Algorithm::Blake3, "BLAKE3, 256 bits"),
    ("xxh3", Algorithm::Xxh3, "XXH3, 128 bits"),
    ("crc32c", Algorithm::Crc32c, "CRC-32C"),
    ("sha256", Algorithm::Sha256, "SHA-256"),
    ("xor32", Algorithm::Xor32, "XOR of all 32-bit words"),
];

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SumFormat {
    /// Lines that other programs read
    Manifest,
    /// A document of the schema flatout/1
    Json,
}

impl Sum {
    /// Whether it reads trees, which several processes find alike.
    pub fn is_of_trees(&self) -> bool {
        let is_stream = |path: &PathBuf| path.as_os_str() == "-";
        self.recursive && !self.check && !self.operands().iter().any(is_stream)
    }

    /// The form that was asked for, else the one that the file's name ends in.
    pub fn format(&self) -> SumFormat {
        let is_meant = meant(self.output.as_deref()) == Some(Format::Json);
        let usual = if is_meant { SumFormat::Json } else { SumFormat::Manifest };
        self.wanted.unwrap_or(usual)
    }

    /// What to read.
    pub fn operands(&self) -> Vec<PathBuf> {
        if self.files.is_empty() { vec![PathBuf::from("-")] } else { self.files.clone() }
    }

    /// How the lines of the manifest look.
    pub fn manifest(&self) -> Manifest {
        Manifest { is_tagged: self.tag, end: if self.zero { LineEnd::Zero } else { LineEnd::Feed } }
    }

    /// Says which options make no sense together.
    pub fn contradiction(&self) -> Option<String> {
        let is_json = self.format() == SumFormat::Json;
        let wrong = first_wrong! {
            self.check && self.tag => "--tag means nothing with --check";
            self.check && self.recursive => "--recursive means nothing with --check";
            !self.check && self.quiet => "--quiet means something only with --check";
            !self.check && self.status => "--status means something only with --check";
            !self.check && self.warn => "--warn means something only with --check";
            !self.check && self.ignore_missing =>
                "--ignore-missing means something only with --check";
            !self.check && self.strict => "--strict means something only with --check";
            is_json && self.tag => "--tag means nothing in JSON";
            is_json && self.zero && !self.check => "--zero means nothing in JSON";
        };
        wrong.or_else(|| repeated(&self.files))
    }
}
