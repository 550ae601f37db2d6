//! The way down: from a filesystem or a block device through each layer to the disks.
//!
//! Every device is looked at once, and the number of layers has a limit, so the walk ends whatever
//! `/sys` shows. See the kernel's `Documentation/ABI` on `/sys/block` and `/sys/dev/block`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::mount::{Mount, MountTable};
use super::{DeviceNumber, Disk, Layer, Origin};
use crate::attribute;
use crate::filesystem::Nature;

/// More layers than any sane machine stacks, disks of a large array included.
const MAX_LAYERS: usize = 256;

/// Filesystems inside filesystems, overlays and loop devices both.
const MAX_NESTED: usize = 8;

/// What is asked about a path besides what stands in files below the root.
#[derive(Clone, Copy)]
pub struct Look {
    /// Where it lies: the backing file of a loop device, the upper directory of an overlay.
    pub locate: fn(&Path, &MountTable, &Path) -> Option<Origin>,
    /// The size of its filesystem.
    pub size_bytes: fn(&Path, &Path) -> Option<u64>,
}

/// Drivers whose disks are memory, by the word for how they are reached.
const IN_MEMORY: [&str; 3] = ["ram", "zram", "null"];

/// A walk under way, and what it has found.
pub struct Walk<'a> {
    root: &'a Path,
    mounts: &'a MountTable,
    look: Look,
    nested: usize,
    seen: Vec<DeviceNumber>,
    pub layers: Vec<Layer>,
    pub disks: Vec<DeviceNumber>,
    /// What kind of place each branch ends in; `None` where that cannot be seen.
    pub grounds: Vec<Option<Nature>>,
}

impl<'a> Walk<'a> {
    pub fn new(root: &'a Path, mounts: &'a MountTable, look: Look) -> Self {
        Self {
            root,
            mounts,
            look,
            nested: 0,
            seen: Vec::new(),
            layers: Vec::new(),
            disks: Vec::new(),
            grounds: Vec::new(),
        }
    }

    /// Walks down from the filesystem that a file lies in; its name, if it is in the table.
    pub fn filesystem(&mut self, origin: &Origin, path: &Path) -> Option<String> {
        self.place(origin, path);
        self.mounts.of(origin, path).map(|mount| mount.filesystem.clone())
    }

    /// Goes on in the filesystem that a place lies in, or in the device that it is.
    fn place(&mut self, origin: &Origin, path: &Path) -> bool {
        if let Some(device) = origin.node {
            return self.device(device);
        }
        let mounts = self.mounts;
        match mounts.of(origin, path) {
            Some(mount) => self.mount(mount, path),
            // A mount of another namespace: its device number may still lead on.
            None => self.rest_on(&[origin.filesystem_device], None),
        }
    }

    /// Adds a mount and what lies below it, of which `path` is a place. Like all that follow, it
    /// answers whether a block device lies below.
    fn mount(&mut self, mount: &Mount, path: &Path) -> bool {
        self.layers.push(Layer::Mount(mount.clone()));
        match Nature::named(&mount.filesystem) {
            Nature::Overlay => self.overlay(mount, path),
            Nature::Disk => self.rest_on(&self.devices_of(mount), None),
            Nature::Userspace => self.rest_on(&self.devices_of(mount), Some(Nature::Userspace)),
            nature => self.ends_in(Some(nature)),
        }
    }

    /// Notes what a branch ends in where it is no block device.
    fn ends_in(&mut self, ground: Option<Nature>) -> bool {
        self.grounds.push(ground);
        false
    }

    /// Goes on in the directory of an overlay that has the bytes of the file, the upper one for new
    /// files. A container does not see these: there the filesystem below is known by its size.
    fn overlay(&mut self, mount: &Mount, path: &Path) -> bool {
        let upper = mount.filesystem_option("upperdir").map(|shown| self.as_it_is(shown.into()));
        // Of that name there may be another directory here.
        let size_bytes = |path: &Path| (self.look.size_bytes)(self.root, path);
        let is_it = |path: &Path| size_bytes(path) == size_bytes(&mount.mount_point);
        let visible = upper.clone().filter(|upper| self.is_there(upper) && is_it(upper));
        let inside = path.strip_prefix(&mount.mount_point).unwrap_or(Path::new(""));
        let inside = mount.root.strip_prefix("/").unwrap_or(Path::new("")).join(inside);
        let is_split = mount.filesystem_option("metacopy").is_some_and(|value| value == "on");
        let has = |layer: &Path| {
            let place = layer.join(&inside);
            self.is_there(&place) && !(is_split && has_no_blocks(&self.below_root(&place)))
        };
        let lower = match visible.as_deref().is_some_and(has) {
            true => None,
            false => mount.lower_directories().into_iter().find(|lower| {
                has(lower) && (upper.is_none() || self.below_root(&lower.join(&inside)).is_file())
            }),
        };
        let below = lower.clone().or(visible);
        let twin = if below.is_none() { self.twin(mount) } else { None };
        self.layers.push(Layer::Overlay { upper, lower, by_size: twin.is_some() });
        match (below, twin) {
            (Some(below), _) => self.nested(&below),
            (None, Some(twin)) => self.nested(&twin.mount_point),
            (None, None) => self.ends_in(None),
        }
    }

    /// The options are shown as they were given, where a backslash may stand before a comma.
    fn as_it_is(&self, shown: PathBuf) -> PathBuf {
        let plain = without_escapes(&shown);
        let is_escaped = plain != shown && !self.is_there(&shown) && self.is_there(&plain);
        if is_escaped { plain } else { shown }
    }

    /// The mount of the filesystem below an overlay whose directories cannot be seen: statfs(2) of
    /// an overlay tells the size of the filesystem with the upper directory, and containers are
    /// shown single files of it (`/etc/hosts`). None where several devices have that size.
    fn twin(&self, overlay: &Mount) -> Option<&'a Mount> {
        let mounts = self.mounts;
        let size_bytes = |mount: &Mount| (self.look.size_bytes)(self.root, &mount.mount_point);
        let wanted = size_bytes(overlay).filter(|&bytes| bytes > 0)?;
        let is_twin = |mount: &&Mount| {
            let is_seen = || {
                let origin = (self.look.locate)(self.root, mounts, &mount.mount_point);
                origin.is_some_and(|origin| origin.mount_id.is_none_or(|id| id == mount.id))
            };
            // A mount whose server is dead does not answer: only those of disks are asked.
            Nature::named(&mount.filesystem) == Nature::Disk
                && !self.devices_of(mount).is_empty()
                && is_seen()
                && size_bytes(mount) == Some(wanted)
        };
        let twins: Vec<&Mount> = mounts.all().filter(is_twin).collect();
        let first = *twins.first()?;
        twins.iter().all(|twin| twin.device == first.device).then_some(first)
    }

    fn below_root(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn is_there(&self, path: &Path) -> bool {
        (self.look.locate)(self.root, self.mounts, path).is_some()
    }

    /// Goes on below a path of this namespace. Relative paths name nothing that can be found.
    fn nested(&mut self, path: &Path) -> bool {
        if self.nested == MAX_NESTED || !path.is_absolute() {
            return self.ends_in(None);
        }
        let Some(origin) = (self.look.locate)(self.root, self.mounts, path) else {
            return self.ends_in(None);
        };
        self.nested += 1;
        self.place(&origin, path)
    }

    /// Goes on in these devices; where none is known, the branch ends in `ground`.
    fn rest_on(&mut self, devices: &[DeviceNumber], ground: Option<Nature>) -> bool {
        let is_known = |device: &DeviceNumber| device.major != 0 && self.folder(*device).is_some();
        let known: Vec<_> = devices.iter().copied().filter(is_known).collect();
        self.all(&known) || self.ends_in(ground)
    }

    fn all(&mut self, devices: &[DeviceNumber]) -> bool {
        devices.iter().filter(|device| self.device(**device)).count() > 0
    }

    /// The block devices of a mount. Filesystems that manage their devices themselves have an
    /// invented device number, and the source names one of their devices.
    fn devices_of(&self, mount: &Mount) -> Vec<DeviceNumber> {
        if mount.device.major != 0 {
            return vec![mount.device];
        }
        let paths = mount.source_paths();
        let named: Vec<_> = paths.iter().filter_map(|path| self.node(path)).collect();
        match named.first() {
            Some(&first) if mount.filesystem == "btrfs" => self.btrfs_devices(first),
            _ => named,
        }
    }

    /// The number of a device node: from the node, else from `/sys`, where a container has none.
    fn node(&self, path: &Path) -> Option<DeviceNumber> {
        if let Ok(facts) = fs::metadata(self.below_root(path))
            && facts.file_type().is_block_device()
        {
            return Some(DeviceNumber::of(facts.rdev()));
        }
        let name = path.strip_prefix("/dev").ok()?;
        // A slash in a device's name is an exclamation mark in `/sys`.
        let name = name.as_os_str().as_bytes().iter();
        let name: Vec<u8> = name.map(|&byte| if byte == b'/' { b'!' } else { byte }).collect();
        number(&self.root.join("sys/class/block").join(OsStr::from_bytes(&name)))
    }

    /// All devices of the btrfs that the given one belongs to, that one first.
    fn btrfs_devices(&self, first: DeviceNumber) -> Vec<DeviceNumber> {
        let all = self.root.join("sys/fs/btrfs");
        for filesystem in attribute::names(&all) {
            let folder = all.join(filesystem).join("devices");
            let devices: Vec<DeviceNumber> = attribute::names(&folder)
                .iter()
                .filter_map(|name| number(&folder.join(name)))
                .collect();
            if devices.contains(&first) {
                let others = devices.into_iter().filter(|device| *device != first);
                return std::iter::once(first).chain(others).collect();
            }
        }
        vec![first]
    }

    /// The device's own folder in `/sys/devices`, every link followed.
    fn folder(&self, device: DeviceNumber) -> Option<PathBuf> {
        self.root.join(format!("sys/dev/block/{device}")).canonicalize().ok()
    }

    /// Adds a block device and what lies below it.
    pub fn device(&mut self, device: DeviceNumber) -> bool {
        if self.seen.contains(&device) {
            return true;
        }
        if self.layers.len() >= MAX_LAYERS {
            return self.ends_in(None);
        }
        self.seen.push(device);
        let goes_on = match self.folder(device) {
            Some(folder) => self.known_device(&folder, device),
            None => {
                self.layers.push(Layer::Disk(Disk::unknown(device)));
                self.ends_in(None)
            }
        };
        if !goes_on {
            self.disks.push(device);
        }
        true
    }

    fn known_device(&mut self, folder: &Path, device: DeviceNumber) -> bool {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if folder.join("partition").exists() {
            self.layers.push(Layer::Partition { name, device });
            let disk: Vec<_> = folder.parent().and_then(number).into_iter().collect();
            return self.all(&disk);
        }
        if let Some(backing) = attribute::path(folder, "loop/backing_file") {
            let direct_io = attribute::flag(folder, "loop/dio");
            self.layers.push(Layer::Loop { name, device, backing: backing.clone(), direct_io });
            return self.backing(&backing);
        }
        let below = slaves(folder);
        self.layers.push(if folder.join("dm").is_dir() {
            let shown = attribute::text(folder, "dm/name").unwrap_or(name);
            let kind = mapper_kind(attribute::text(folder, "dm/uuid").as_deref());
            Layer::Mapper { name: shown, device, kind }
        } else if folder.join("md").is_dir() {
            let level = attribute::text(folder, "md/level");
            Layer::Raid { name, device, level, members: attribute::names(&folder.join("slaves")) }
        } else if !below.is_empty() {
            Layer::Stacked { name, device }
        } else {
            let disk = Disk::read(folder, name, device);
            let in_memory = disk.transport.as_deref().is_some_and(|word| IN_MEMORY.contains(&word));
            self.grounds.push(Some(if in_memory { Nature::Memory } else { Nature::Disk }));
            Layer::Disk(disk)
        });
        let below: Vec<_> = below.iter().filter_map(|folder| number(folder)).collect();
        self.all(&below)
    }

    /// Goes on below the file of a loop device. One that was removed is shown with a word behind
    /// its name; its directory still tells where it lies.
    fn backing(&mut self, shown: &Path) -> bool {
        let removed = shown.as_os_str().as_bytes().strip_suffix(b" (deleted)");
        let directory = removed.and_then(|path| Path::new(OsStr::from_bytes(path)).parent());
        match directory {
            Some(directory) if !self.is_there(shown) => self.nested(directory),
            _ => self.nested(shown),
        }
    }
}

/// The path without the backslashes that only protect the byte behind them.
fn without_escapes(path: &Path) -> PathBuf {
    let mut bytes = path.as_os_str().as_bytes().iter().copied();
    let plain = std::iter::from_fn(|| match bytes.next()? {
        b'\\' => bytes.next().or(Some(b'\\')),
        byte => Some(byte),
    });
    std::ffi::OsString::from_vec(plain.collect()).into()
}

/// Whether a file has a length and no bytes of its own. With `metacopy=on` an overlay copies owner,
/// mode and length of a file into its upper directory, and reads its bytes below.
fn has_no_blocks(file: &Path) -> bool {
    let is_it = |file: fs::Metadata| file.is_file() && file.len() > 0 && file.blocks() == 0;
    fs::symlink_metadata(file).is_ok_and(is_it)
}

fn number(folder: &Path) -> Option<DeviceNumber> {
    attribute::text(folder, "dev")?.parse().ok()
}

/// The folders of the devices that this one is built on. The kernel lists a bcache's cache there,
/// but its backing device only by a link into that device's folder.
fn slaves(folder: &Path) -> Vec<PathBuf> {
    let links = folder.join("slaves");
    let mut below: Vec<_> = attribute::names(&links)
        .iter()
        .filter_map(|name| links.join(name).canonicalize().ok())
        .collect();
    let backing = folder.join("bcache").canonicalize().ok();
    let backing = backing.as_deref().and_then(Path::parent).map(Path::to_owned);
    if let Some(backing) = backing.filter(|backing| backing != folder && !below.contains(backing)) {
        below.insert(0, backing);
    }
    below
}

/// What made a mapped device. By convention its UUID begins with the maker's name and a dash.
fn mapper_kind(uuid: Option<&str>) -> String {
    // A partition table on a mapped device: `part1-mpath-…`.
    let maker = uuid.and_then(|uuid| uuid.split_once('-')).map(|(maker, _)| maker);
    let maker = maker.filter(|maker| !maker.is_empty()).unwrap_or("unknown").to_ascii_lowercase();
    if attribute::is_numbered(&maker, "part") { "partition".to_owned() } else { maker }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_protect_the_byte_behind_them() {
        for (given, plain) in
            [("/a\\,b", "/a,b"), ("/a\\\\b", "/a\\b"), ("/a\\", "/a\\"), ("/a", "/a")]
        {
            assert_eq!(without_escapes(Path::new(given)), Path::new(plain));
        }
    }

    #[test]
    fn the_maker_of_a_mapped_device() {
        for (uuid, kind) in [
            (Some("CRYPT-LUKS2-1f-root"), "crypt"),
            (Some("LVM-aBc"), "lvm"),
            (Some("mpath-3600"), "mpath"),
            (Some("part12-mpath-3600"), "partition"),
            (Some("noDash"), "unknown"),
            (None, "unknown"),
        ] {
            assert_eq!(mapper_kind(uuid), kind);
        }
    }
}
