//! The file that rows work on, and what is known about it before the first trial.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use flatout_io::{Caching, Engine, Source, Tuning, scan};
use flatout_measure::units::percent;
use flatout_measure::{Warning, environment, size_text, warning};
use flatout_sys::extent::{self, Extents};
use flatout_sys::storage::{self, Chain, Disk, IoLimit, Layer};
use flatout_sys::{
    AlignedBuffer, CancelToken, Filesystem, Nature, descriptor, filesystem, memory, monotonic_ns,
    page_cache, ring, steal,
};

use super::Options;
use super::pattern::{IoType, Pattern};
use super::place::{Kind, Place};
use super::row::Row;
use crate::counted;
use crate::file_trial::page_cache::Pages;
use crate::{Error, IoError, Scratch, scratch};

/// Filesystems that write elsewhere what is written over.
const COPY_ON_WRITE: [&str; 3] = ["btrfs", "zfs", "bcachefs"];

/// Everything that the rows of a run share.
pub(super) struct TestFile {
    pub(super) place: Place,
    pub(super) path: PathBuf,
    source: Source,
    pub(super) length_bytes: u64,
    pub(super) filesystem: Filesystem,
    pub(super) chain: Chain,
    pub(super) limits: Vec<IoLimit>,
    pub(super) extents: Option<Extents>,
    /// Bytes that may yet be written.
    pub(super) left_bytes: AtomicU64,
    /// What speaks against every figure of this place.
    pub(super) warnings: Vec<Warning>,
    pub(super) began_ns: u64,
    /// CPUs over which the kernel sums what was stolen.
    pub(super) cpus: f64,
    /// Whether what the machine shows of its links may be made up by a hypervisor.
    pub(super) is_virtual: bool,
    pub(super) cancel: CancelToken,
}

impl TestFile {
    /// Looks at the file: the one made for this run, which its caller keeps, or the user's.
    ///
    /// Errors: it cannot be opened or examined.
    pub(super) fn new(
        place: &Place,
        scratch: Option<&Scratch>,
        left_bytes: u64,
        reduced_from: Option<(u64, String)>,
        options: &Options,
    ) -> Result<Self, Error> {
        let name = scratch.map_or_else(|| place.path.clone(), Scratch::path);
        let source = Source::open(&name)?;
        // From here on the file is what this descriptor means, whatever happens to its name.
        let itself = PathBuf::from(descriptor::itself(source.file()));
        let path = if itself.exists() { itself } else { name };
        let examine = || IoError::system("examine", &place.path);
        let filesystem = filesystem::of(source.file()).map_err(examine())?;
        let root = Path::new("/");
        let chain = storage::chain(root, source.file(), &place.path).map_err(examine())?;
        let limits = storage::limits(root, &chain.devices());
        let length_bytes = source.length_bytes().min(options.bytes.unwrap_or(u64::MAX));
        // Before the extents, asking for which writes back what is dirty.
        let dirty = dirty_pages(place, source.file(), length_bytes);
        let extents = match place.kind {
            Kind::Device => None,
            _ => extent::extents(source.file(), 0, length_bytes).map_err(examine())?,
        };
        let mut file = Self {
            place: place.clone(),
            path,
            source,
            length_bytes,
            filesystem,
            chain,
            limits,
            extents,
            left_bytes: left_bytes.into(),
            warnings: dirty.into_iter().collect(),
            began_ns: monotonic_ns(),
            cpus: steal::cpu_times(root).map_or(1.0, |times| f64::from(times.steal_cpus.max(1))),
            is_virtual: environment::capture(root).hypervisor != Some(false),
            cancel: options.run.cancel,
        };
        let wanted = options.bytes.filter(|_| place.kind != Kind::Directory);
        if let Some(wanted) = wanted.filter(|&wanted| wanted > length_bytes) {
            let [wanted, length] = [wanted, length_bytes].map(size_text);
            file.warn(warning::SHORT_FILE, format!("it has {length}, less than --size {wanted}"));
        }
        file.examine_file();
        file.examine_place(reduced_from);
        Ok(file)
    }

    /// What of the file may lie in the page cache.
    pub(super) fn pages(&self) -> Pages<'_> {
        Pages { file: self.source.file(), path: &self.place.path, length_bytes: self.length_bytes }
    }

    /// The disks at the end of the chain.
    pub(super) fn disks(&self) -> impl Iterator<Item = &Disk> {
        self.chain.layers.iter().filter_map(|layer| match layer {
            Layer::Disk(disk) => Some(disk),
            _ => None,
        })
    }

    /// Whether the page cache is all the storage that the file has.
    pub(super) fn is_in_memory(&self) -> bool {
        self.chain.ground() == Some(Nature::Memory) && self.chain.devices().is_empty()
    }

    /// The directory in which further files can be made.
    pub(super) fn directory(&self) -> Option<&Path> {
        (self.place.kind == Kind::Directory).then_some(self.place.path.as_path())
    }

    fn warn(&mut self, code: &str, text: impl Into<String>) {
        warning::add(&mut self.warnings, Warning::new(code, text));
    }

    fn examine_file(&mut self) {
        let Some(extents) = self.extents else { return };
        for (code, bytes, what) in [
            (
                warning::SPARSE_FILE,
                Some(extents.hole_bytes),
                "are holes: reading them touches no storage",
            ),
            (
                warning::UNWRITTEN_EXTENTS,
                extents.unwritten_bytes,
                "were allocated but never written: reading them touches no storage",
            ),
            (
                warning::COMPRESSED_FILE,
                extents.compressed_bytes,
                "are stored compressed: storage reads fewer bytes",
            ),
        ] {
            if let Some(bytes) = bytes.filter(|&bytes| bytes > 0) {
                let share = percent(bytes as f64 / self.length_bytes.max(1) as f64);
                self.warn(code, format!("{share} of the file {what}"));
            }
        }
    }

    fn examine_place(&mut self, reduced_from: Option<(u64, String)>) {
        let name = self.chain.filesystem.clone();
        self.warnings.extend(scratch::nature_warning(&name, self.chain.nature));
        let is_above_disks = matches!(self.chain.nature, Nature::Disk | Nature::Overlay);
        let ground = self.chain.ground();
        if is_above_disks && ground == Some(Nature::Memory) {
            let what = if self.place.kind == Kind::Device { "the device" } else { &*name };
            let text = format!("{what} lies in memory at the bottom: no storage is involved");
            self.warn(warning::MEMORY_FILESYSTEM, text);
        } else if is_above_disks && (ground.is_none() || self.chain.disks.is_empty()) {
            let text = "no block device is known behind this place: what a device moved cannot be \
                        shown";
            self.warn(warning::DEVICE_UNKNOWN, text);
        }
        let cached_loop = self.chain.layers.iter().find_map(|layer| match layer {
            Layer::Loop { name, direct_io, .. } if *direct_io != Some(true) => Some(name),
            _ => None,
        });
        if let Some(name) = cached_loop {
            let text = format!(
                "{name} is a loop device that goes through the page cache: around the cache for us \
                 is not around the cache for its file"
            );
            self.warn(warning::LOOP_CACHED, text);
        }
        let free_share = self.filesystem.free_share().unwrap_or(1.0);
        if free_share < warning::NEARLY_FULL_SHARE && is_above_disks {
            let free = format!("{} of the filesystem are free", percent(free_share));
            let text = format!("{free}: places for new blocks are hard to find");
            self.warn(warning::NEARLY_FULL, text);
        }
        if let Some((wanted, limit)) = reduced_from {
            let [length, wanted] = [self.length_bytes, wanted].map(size_text);
            let text = format!("the test file has {length} instead of {wanted} ({limit})");
            self.warn(warning::SIZE_REDUCED, text);
        }
    }

    /// Refuses a server that does answer short: what a ring makes of it would be the figure. What is read for
    /// that lies at the end, which the rows of cold blocks reach last.
    fn answers_whole(&self, tuning: &Tuning) -> Result<(), String> {
        let length_bytes = tuning.block_bytes.min(self.length_bytes) as usize;
        let last = self.length_bytes.saturating_sub(length_bytes as u64);
        // Direct requests begin with a block.
        let last = last / tuning.block_bytes.max(1) * tuning.block_bytes;
        let answer = || {
            let source = Source::open(&self.path).ok()?;
            let source = source.with_caching(tuning.caching, tuning.block_bytes).0;
            let mut buffer = AlignedBuffer::new(length_bytes).ok()?;
            rustix::io::pread(source.file(), buffer.as_mut_slice(), last).ok()
        };
        let answer = self.filesystem.may_answer_short().then(answer).flatten();
        let is_short = answer.is_some_and(|bytes| bytes < length_bytes);
        if is_short { Err(scan::SERVED.to_owned()) } else { Ok(()) }
    }

    /// Fits a row to what this machine and file can do; what it could not have is said.
    pub(super) fn fit(&self, mut row: Row) -> Row {
        let refuse = |row: &mut Row, code: &str, text: String| {
            warning::add(&mut row.warnings, Warning::new(code, text));
        };
        if row.tuning.engine == Engine::Uring
            && let Err(why) = ring::probe().and_then(|()| self.answers_whole(&row.tuning))
        {
            row.tuning.engine = Engine::Sync;
            row.tuning.depth = 1;
            let text =
                format!("io_uring was not possible: {why}; one request at a time by system calls");
            refuse(&mut row, warning::URING_REFUSED, text);
        }
        let caching = row.tuning.caching;
        if caching != Caching::Buffered
            && let Ok(source) = Source::open(&self.path)
            && let Some(fallback) = source.with_caching(caching, row.tuning.block_bytes).1
        {
            row.tuning.caching = Caching::Buffered;
            refuse(&mut row, fallback.code, fallback.text);
        }
        let blocks = self.length_bytes / row.tuning.block_bytes.max(1);
        let in_flight = u64::from(row.tuning.depth) * u64::from(row.tuning.threads);
        if blocks > 0 && in_flight > blocks {
            let text = format!(
                "the file has {}, fewer than the {in_flight} requests in flight: several ask for the \
                 same one",
                counted(blocks, "block")
            );
            refuse(&mut row, warning::DEPTH_UNUSED, text);
        }
        let memory = memory::available_bytes().unwrap_or(0);
        let is_cold = row.test != Pattern::Reread && !row.test.is_latency();
        if row.tuning.caching != Caching::Direct
            && is_cold
            && row.test.io_type() != IoType::Write
            && self.length_bytes < memory
            && !self.is_in_memory()
        {
            let text = "the file fits into the page cache: each block is cold the first time only";
            refuse(&mut row, warning::FITS_IN_CACHE, text.to_owned());
        }
        row
    }
}

/// Whether what is written over lies elsewhere afterwards: on one of these, below whatever overlay.
pub(super) fn copies_on_write(layers: &[Layer]) -> bool {
    layers.iter().any(|layer| match layer {
        Layer::Mount(mount) => COPY_ON_WRITE.contains(&mount.filesystem.as_str()),
        _ => false,
    })
}

/// A file of the user's may just have been written by somebody.
fn dirty_pages(place: &Place, file: BorrowedFd<'_>, length_bytes: u64) -> Option<Warning> {
    if place.kind != Kind::File {
        return None;
    }
    let dirty = page_cache::state(file, 0, length_bytes).ok()?.dirty_bytes.filter(|&b| b > 0)?;
    let text = format!(
        "{} of the file had not reached storage when the run began; they were written back first",
        size_text(dirty)
    );
    Some(Warning::new(warning::DIRTY_PAGES, text))
}

#[cfg(test)]
mod tests {
    use flatout_sys::storage::MountTable;

    use super::*;

    #[test]
    fn an_overlay_copies_on_write_where_the_filesystem_below_it_does() {
        let layers = |below: &str| -> Vec<Layer> {
            let table = format!(
                "1 0 0:9 / / rw - overlay overlay rw\n2 0 8:1 / /below rw - {below} /dev/sda1 rw"
            );
            MountTable::parse(table.as_bytes()).all().cloned().map(Layer::Mount).collect()
        };
        assert!(copies_on_write(&layers("btrfs")) && !copies_on_write(&layers("ext4")));
        assert_eq!(layers("ext4").len(), 2);
    }
}
