//! The mount table, `/proc/self/mountinfo`. See proc(5).
//!
//! Blanks, line feeds and backslashes in a field are written as a backslash and three octal
//! digits. Names need not be UTF-8: the table is bytes from end to end.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{DeviceNumber, Origin};
use crate::attribute;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number.
    pub id: u64,
    /// The device of its filesystem.
    pub device: DeviceNumber,
    /// The directory, or file, of the filesystem that is shown at the mount point.
    pub root: PathBuf,
    /// Where.
    pub mount_point: PathBuf,
    /// Options of this mount.
    pub options: OsString,
    /// The kernel's name of its filesystem.
    pub filesystem: String,
    /// What was mounted: a device node, an export, a name.
    pub source: OsString,
    /// Options of the filesystem, which all its mounts have. As they stand in the table, not decoded: a comma inside a value is `\054` here.
    pub filesystem_options: Vec<u8>,
}

/// All mounts that this process sees, in the order of the table: later ones lie above.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable {
    mounts: Vec<Mount>,
}

impl MountTable {
    /// Reads the table below `root`; empty when it cannot be read.
    pub fn read(root: &Path) -> Self {
        Self::parse(&attribute::bytes(&root.join("proc/self/mountinfo")).unwrap_or_default())
    }

    /// Reads the text of the table. Lines that cannot be understood are left out.
    pub fn parse(text: &[u8]) -> Self {
        Self { mounts: text.split(|&byte| byte == b'\n').filter_map(parse_line).collect() }
    }

    /// The mount that a file lies in: by its number, else by its device and path, else, because
    /// btrfs gives each subvolume a device number that the table does not show, by path alone.
    pub(super) fn of(&self, origin: &Origin, path: &Path) -> Option<&Mount> {
        if let Some(id) = origin.mount_id {
            return self.mounts.iter().find(|mount| mount.id == id);
        }
        self.above(path, |mount| mount.device == origin.filesystem_device)
            .or_else(|| self.above(path, |_| true))
    }

    /// Every mount.
    pub fn all(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    /// The mounts at places below a path, not at the path itself.
    pub fn below(&self, path: &Path) -> impl Iterator<Item = &Mount> {
        let is_below =
            move |mount: &&Mount| mount.mount_point != path && mount.mount_point.starts_with(path);
        self.mounts.iter().filter(is_below)
    }

    /// The mount that holds a path, of those that `fits` accepts: the deepest mount point above
    /// the path, and of several at the same place the last.
    pub fn above(&self, path: &Path, fits: impl Fn(&Mount) -> bool) -> Option<&Mount> {
        self.mounts
            .iter()
            .filter(|mount| fits(mount) && path.starts_with(&mount.mount_point))
            .max_by_key(|mount| mount.mount_point.components().count())
    }
}

impl Mount {
    /// The options of this mount, and those of its filesystem that name no place.
    pub fn all_options(&self) -> OsString {
        let own: Vec<&[u8]> = self.options.as_bytes().split(|&byte| byte == b',').collect();
        let mut all = self.options.clone();
        for option in self.filesystem_options.split(|&byte| byte == b',') {
            let is_directory = option.windows(4).any(|part| part == b"dir=" || part == b"dir+");
            if !own.contains(&option) && !is_directory && !option.contains(&b'/') {
                all.push(",");
                all.push(decode(option));
            }
        }
        all
    }

    /// Whether the filesystem was mounted with an option that is a word alone.
    pub fn has_option(&self, name: &str) -> bool {
        self.filesystem_options.split(|&byte| byte == b',').any(|option| option == name.as_bytes())
    }

    /// The decoded value of a `name=value` option of the filesystem.
    pub fn filesystem_option(&self, name: &str) -> Option<OsString> {
        self.values(name).next()
    }

    /// The decoded values of an option that may stand several times.
    fn values(&self, name: &str) -> impl Iterator<Item = OsString> {
        self.filesystem_options.split(|&byte| byte == b',').filter_map(move |option| {
            let value = option.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(decode(value))
        })
    }

    /// The lower directories of an overlay, topmost first: one option with colons between them, or
    /// since Linux 6.8 one option each. A colon in a name has a backslash before it.
    pub fn lower_directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> = self.values("lowerdir+").map(PathBuf::from).collect();
        for listed in self.values("lowerdir") {
            let mut directory = Vec::new();
            let mut bytes = listed.into_vec().into_iter();
            while let Some(byte) = bytes.next() {
                match byte {
                    b'\\' => directory.extend(bytes.next()),
                    b':' => directories.push(path_of(std::mem::take(&mut directory))),
                    _ => directory.push(byte),
                }
            }
            directories.push(path_of(directory));
        }
        directories.retain(|directory| !directory.as_os_str().is_empty());
        directories
    }

    /// The sources that are paths. A bcachefs on several devices lists them with colons.
    pub fn source_paths(&self) -> Vec<PathBuf> {
        let source = self.source.as_bytes();
        let listed = self.filesystem == "bcachefs";
        let parts = source.split(|&byte| listed && byte == b':');
        parts.filter(|part| part.starts_with(b"/")).map(|part| path_of(part.to_vec())).collect()
    }
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device = std::str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
    let root = decode(fields.next()?).into();
    let mount_point = decode(fields.next()?).into();
    let options = decode(fields.next()?);
    // Then come any number of tags, and a lone dash behind them.
    fields.find(|field| *field == b"-")?;
    Some(Mount {
        id,
        device,
        root,
        mount_point,
        options,
        filesystem: decode(fields.next()?).to_string_lossy().into_owned(),
        source: decode(fields.next()?),
        filesystem_options: fields.next().unwrap_or_default().to_vec(),
    })
}

/// The places that /etc/fstab below `root` has filesystems for, be they mounted or not; none where it cannot be read.
pub fn fstab_places(root: &Path) -> Vec<PathBuf> {
    let text = std::fs::read(root.join("etc/fstab")).unwrap_or_default();
    let place = |line: &[u8]| {
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let is_comment = fields.next()?.starts_with(b"#");
        let place = fields.next().filter(|place| !is_comment && place.starts_with(b"/"))?;
        Some(PathBuf::from(decode(place)))
    };
    text.split(|&byte| byte == b'\n').filter_map(place).collect()
}

/// Turns `\040` and its like back into bytes.
pub fn decode(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, behind @ ..] = rest {
        match (first, octal(behind)) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    let digits = digits.get(..3).filter(|digits| digits[0] != b'+')?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 8:1 / /mnt/with\\040blank\\134 rw shared:9 master:2 - xfs /dev/disk\\011one rw
41 27 0:40 / /mnt/\xff\xfe rw - btrfs /dev/loop0 rw,subvolid=5,subvol=/
42 27 0:41 / /mnt ro,noatime unbindable - overlay overlay rw,lowerdir=/a:/b,upperdir=/up\\054per,workdir=/w
43 27 0:42 / /mnt rw - tmpfs  rw
not a line
";

    fn origin(mount_id: Option<u64>, major: u32, minor: u32) -> Origin {
        Origin { mount_id, filesystem_device: DeviceNumber { major, minor }, node: None }
    }

    #[test]
    fn fields_are_decoded_and_tags_are_passed() {
        let table = MountTable::parse(TABLE);
        assert_eq!(table.mounts.len(), 5);
        let blank = &table.mounts[1];
        assert_eq!(blank.mount_point, Path::new("/mnt/with blank\\"));
        assert_eq!(blank.source, "/dev/disk\tone");
        assert_eq!((blank.filesystem.as_str(), &*blank.root), ("xfs", Path::new("/")));
        assert_eq!(blank.device, DeviceNumber { major: 8, minor: 1 });
        assert_eq!(table.mounts[2].mount_point.as_os_str().as_bytes(), b"/mnt/\xff\xfe");
        assert_eq!(table.mounts[4].source, "", "an empty source is allowed");
    }

    #[test]
    fn a_comma_inside_an_option_does_not_end_it() {
        let table = MountTable::parse(TABLE);
        assert_eq!(table.mounts[3].filesystem_option("upperdir"), Some("/up,per".into()));
        assert_eq!(table.mounts[3].filesystem_option("upper"), None);
    }

    #[test]
    fn options_of_the_filesystem_are_told_but_for_places() {
        let table = MountTable::parse(TABLE);
        let all = table.all().map(|mount| mount.all_options().into_string().unwrap());
        let expected = ["rw,relatime,discard", "rw", "rw,subvolid=5", "ro,noatime,rw", "rw"];
        assert_eq!(all.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lower_directories_are_listed_or_stand_alone() {
        let lower = |options: &str| {
            let line = format!("1 0 0:9 / /a rw - overlay overlay ro,{options}\n");
            MountTable::parse(line.as_bytes()).mounts[0].lower_directories()
        };
        assert_eq!(lower("lowerdir=/a:/b\\134:c::/d"), ["/a", "/b:c", "/d"].map(PathBuf::from));
        assert_eq!(lower("lowerdir+=/a:b,lowerdir+=/c"), ["/a:b", "/c"].map(PathBuf::from));
        assert_eq!(lower("upperdir=/u"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_mount_is_found_by_number_then_device_then_path() {
        let table = MountTable::parse(TABLE);
        let found = |origin, path: &str| table.of(&origin, Path::new(path)).map(|mount| mount.id);
        assert_eq!(found(origin(Some(40), 0, 0), "/"), Some(40));
        assert_eq!(found(origin(Some(99), 254, 0), "/"), None, "of another namespace");
        assert_eq!(found(origin(None, 254, 0), "/mnt/x"), Some(27));
        assert_eq!(found(origin(None, 0, 77), "/mnt/x"), Some(43), "the last of two");
        assert_eq!(found(origin(None, 0, 77), "/mntx"), Some(27), "whole components only");
    }

    #[test]
    fn only_whole_octal_numbers_are_decoded() {
        for (text, bytes) in
            [("a\\040b", "a b"), ("\\04", "\\04"), ("\\999", "\\999"), ("\\400", "\\400"), ("", "")]
        {
            assert_eq!(decode(text.as_bytes()), bytes);
        }
    }

    #[test]
    fn only_bcachefs_lists_its_devices() {
        let one = MountTable::parse(b"1 0 0:9 / /a rw - bcachefs /dev/a:/dev/b rw\n");
        assert_eq!(one.mounts[0].source_paths(), [Path::new("/dev/a"), Path::new("/dev/b")]);
        let two = MountTable::parse(b"1 0 0:9 / /a rw - nfs server:/export rw\n");
        assert_eq!(two.mounts[0].source_paths(), Vec::<PathBuf>::new());
    }
}
