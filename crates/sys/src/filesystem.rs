//! Which filesystem a file lies on, as far as that changes what its figures mean.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::LazyLock;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, StatVfsMountFlags, StatxFlags, fstatfs, fstatvfs, statx,
};
use rustix::io::Errno;

use crate::descriptor::itself;
use crate::storage::{DeviceNumber, MountTable};

crate::words! {
    /// What kind of place a filesystem keeps its files in.
    pub enum Nature: name {
        /// Block devices of this machine.
        Disk = "disk",
        /// Memory and nowhere else.
        Memory = "memory",
        /// Another machine, or the host of this virtual one.
        Network = "network",
        /// A program of this machine decides (FUSE).
        Userspace = "userspace",
        /// Directories of other filesystems, laid one over another.
        Overlay = "overlay",
    }
}

impl Nature {
    /// The nature of the filesystem that the kernel calls by this name; disk for unknown names.
    pub fn named(filesystem: &str) -> Self {
        if filesystem.starts_with("fuse.") {
            return Self::Userspace;
        }
        let is_it = |name| name == filesystem;
        let known = NATURES.iter().find(|(_, names)| names.split(' ').any(is_it));
        known.map_or(Self::Disk, |(nature, _)| *nature)
    }
}

/// Names as in /proc/filesystems and mountinfo of filesystems that are not on disks.
const NATURES: &[(Nature, &str)] = &[
    (
        Nature::Memory,
        "tmpfs ramfs hugetlbfs devtmpfs proc sysfs cgroup cgroup2 rootfs devpts debugfs \
         tracefs securityfs configfs pstore bpf mqueue efivarfs binfmt_misc fusectl nsfs pipefs",
    ),
    (
        Nature::Network,
        "nfs nfs4 cifs smb3 smbfs 9p virtiofs ceph lustre gpfs beegfs afs coda orangefs pvfs2 \
         panfs wekafs vboxsf vmhgfs prl_fs",
    ),
    (Nature::Userspace, "fuse fuseblk"),
    (Nature::Overlay, "overlay overlayfs aufs unionfs"),
];

/// Name and nature of a filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filesystem {
    /// The kernel's name for it, or `unknown`. One name stands for ext2 to ext4, and one for all
    /// of FUSE with virtiofs: their answers to statfs are the same.
    pub name: &'static str,
    /// Where it keeps its files.
    pub nature: Nature,
    /// Its files live in memory and nowhere else.
    pub in_memory: bool,
    /// Bytes that an unprivileged process can still write.
    pub free_bytes: u64,
    /// Bytes in all, used, free and reserved.
    pub size_bytes: u64,
    /// Bytes that are in use. Those reserved for root are neither used nor free.
    pub used_bytes: u64,
}

impl Filesystem {
    /// The share of what this process may use that is still free, as df(1) counts; none where
    /// sizes are not told.
    pub fn free_share(&self) -> Option<f64> {
        let usable_bytes = self.used_bytes.saturating_add(self.free_bytes);
        (usable_bytes > 0).then(|| self.free_bytes as f64 / usable_bytes as f64)
    }

    /// Whether somebody else than this kernel says what there is: a server, or a program. What is not
    /// known is taken for that.
    pub fn is_served(&self) -> bool {
        matches!(self.nature, Nature::Network | Nature::Userspace) || self.name == "unknown"
    }

    /// Whether a program in user space answers, or the host by virtiofs, which may come short at any time. Where
    /// it has files read around the page cache, a ring asks for the rest at the place where it began, and calls
    /// the read whole: seen with Linux 6.18.
    pub fn may_answer_short(&self) -> bool {
        self.nature == Nature::Userspace
    }

    /// Whether each change of a file has a time of its own once somebody has looked at the one before it
    /// (`FS_MGTIME`); elsewhere all changes within a tick of the kernel's clock have the same.
    pub fn times_each_change(&self) -> bool {
        static KERNEL: LazyLock<bool> = LazyLock::new(|| {
            has_fine_times(rustix::system::uname().release().to_str().unwrap_or_default())
        });
        *KERNEL && matches!(self.name, "ext4" | "xfs" | "btrfs" | "tmpfs")
    }
}

/// Magic numbers of statfs(2) and `linux/magic.h`, names as in /proc/filesystems.
const KNOWN: &[(u64, &str)] = &[
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x9584_58f6, "hugetlbfs"),
    (0x794c_7630, "overlay"),
    (0x6969, "nfs"),
    (0x6573_5546, "fuse"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "cifs"),
    (0xca45_1a4e, "bcachefs"),
    (0x0bd0_0bd0, "lustre"),
    (0x0102_1997, "9p"),
    (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"),
    (0x00c3_6400, "ceph"),
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x2003_0528, "orangefs"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
    (0x7366_746e, "ntfs3"),
    (0x5265_4973, "reiserfs"),
    (0x3153_464a, "jfs"),
    (0x3434, "nilfs2"),
    (0x7371_7368, "squashfs"),
    (0xe0f5_e1e2, "erofs"),
    (0x9660, "iso9660"),
    (0x1501_3346, "udf"),
    (0x5a4f_4653, "zonefs"),
    (0x786f_4256, "vboxsf"),
    (0x6367_7270, "cgroup2"),
    (0x5049_5045, "pipefs"),
    (0x0027_e0eb, "cgroup"),
];

static MOUNTS: LazyLock<MountTable> = LazyLock::new(|| MountTable::read(Path::new("/")));

fn has_fine_times(release: &str) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (6_u32, 13_u32),
        _ => false,
    }
}

/// The filesystem of an open file. Where the program that serves it has no answer (`ENOSYS`), or a filter
/// refuses the call, there are no sizes, and the name is that of the mount table, if it has one.
///
/// Errors: those of the kernel. Cost: one fstatfs; perhaps an fstat, and the mount table once.
pub fn of(descriptor: BorrowedFd<'_>) -> io::Result<Filesystem> {
    let facts = match fstatfs(descriptor) {
        Err(Errno::NOSYS | Errno::PERM) => return Ok(untold(&MOUNTS, device_of(descriptor)?)),
        facts => facts?,
    };
    let magic = facts.f_type as u64 & 0xffff_ffff;
    let known = KNOWN.iter().find(|known| known.0 == magic);
    let name = known.map_or("unknown", |known| known.1);
    let nature = Nature::named(name);
    // Blocks are counted in fragments, which some network filesystems have smaller than the
    // block that they like best.
    let unit_bytes = if facts.f_frsize > 0 { facts.f_frsize } else { facts.f_bsize } as u64;
    Ok(Filesystem {
        name,
        nature,
        in_memory: nature == Nature::Memory,
        free_bytes: facts.f_bavail.saturating_mul(unit_bytes),
        size_bytes: facts.f_blocks.saturating_mul(unit_bytes),
        used_bytes: facts.f_blocks.saturating_sub(facts.f_bfree).saturating_mul(unit_bytes),
    })
}

/// Whether only this machine can have the filesystem of an open file: what another one finds at the same place,
/// with the same inode number, is something else. A disk that is only read may belong to several machines.
///
/// Errors: those of the kernel. Cost: an fstatfs, an fstatvfs; perhaps an fstat, and the mount table once.
pub fn is_of_one_machine(descriptor: BorrowedFd<'_>) -> io::Result<bool> {
    let found = of(descriptor)?;
    let is_shared = found.is_served() || matches!(found.name, "gfs2" | "ocfs2");
    Ok(!is_shared && !fstatvfs(descriptor)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether what is set of a symlink, its owner and times, is set of what it leads to: SFTP has no call for a
/// symlink's, and sshfs 3.7 makes those of its file.
///
/// Cost: the mount table, once.
pub fn follows_symlinks(device: u64) -> bool {
    let device = DeviceNumber::of(device);
    MOUNTS.all().any(|mount| mount.device == device && mount.filesystem == "fuse.sshfs")
}

/// What is assumed of the filesystem of a device that says nothing itself.
fn untold(mounts: &MountTable, device: DeviceNumber) -> Filesystem {
    let mount = mounts.all().find(|mount| mount.device == device);
    let known = mount.and_then(|mount| KNOWN.iter().find(|known| known.1 == mount.filesystem));
    let name = known.map_or("unknown", |known| known.1);
    let nature = known.map_or(Nature::Userspace, |_| Nature::named(name));
    let [free_bytes, size_bytes, used_bytes] = [0; 3];
    let in_memory = nature == Nature::Memory;
    Filesystem { name, nature, in_memory, free_bytes, size_bytes, used_bytes }
}

/// The device of the filesystem of an open file.
fn device_of(descriptor: BorrowedFd<'_>) -> io::Result<DeviceNumber> {
    Ok(DeviceNumber::of(rustix::fs::fstat(descriptor)?.st_dev))
}

/// What tells the filesystem of an open file from others of this machine, today and after it was
/// mounted again: its kind and its number, which ext4, btrfs and tmpfs have from their UUID; xfs has it from its
/// device, so that its UUID is asked for, too. Where it has none (NFS, FUSE), what was mounted, or its device,
/// which may be another tomorrow.
///
/// Errors: those of the kernel. Cost: an fstatfs, an fstatvfs; perhaps an fstat, and the mount table once.
pub fn identity(descriptor: BorrowedFd<'_>) -> io::Result<String> {
    let name = of(descriptor)?.name;
    if let Some(uuid) = Some(name).filter(|name| *name == "xfs").and_then(|_| uuid(descriptor)) {
        return Ok(format!("{name} {uuid}"));
    }
    let number = match fstatvfs(descriptor) {
        Err(Errno::NOSYS | Errno::PERM) => 0,
        facts => facts?.f_fsid,
    };
    if number != 0 {
        return Ok(format!("{name} {number:016x}"));
    }
    let device @ DeviceNumber { major, minor } = device_of(descriptor)?;
    Ok(mounted(&MOUNTS, device).unwrap_or_else(|| format!("{name} {major}:{minor}")))
}

/// The UUID of the filesystem of a file or directory, where the kernel tells it (`FS_IOC_GETFSUUID`, new in
/// Linux 6.9) and it may be read. What was opened as a mere place (`O_PATH`) is opened once more.
fn uuid(descriptor: BorrowedFd<'_>) -> Option<String> {
    const FS_IOC_GETFSUUID: u32 = 0x8011_1500;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(descriptor).ok()?.st_mode);
    if !(kind.is_file() || kind.is_dir()) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(itself(descriptor), flags, Mode::empty()).ok()?;
    // A length, and as many bytes.
    let mut answer = [0_u8; 17];
    // SAFETY: the kernel writes a `struct fsuuid2`, 17 bytes, through the pointer to as many live ones.
    let told = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETFSUUID as _, answer.as_mut_ptr()) };
    let uuid = answer[1..].get(..answer[0].into()).filter(|uuid| told == 0 && !uuid.is_empty())?;
    Some(uuid.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What was mounted where no block device was: such a device number goes to another mount as soon as
/// it is free.
fn mounted(mounts: &MountTable, device: DeviceNumber) -> Option<String> {
    let mount = mounts.all().find(|mount| device.major == 0 && mount.device == device)?;
    Some(format!("{} {}", mount.filesystem, mount.source.to_string_lossy()))
}

/// What offset and length of direct I/O on this file must be multiples of; 0: it takes none. `None`: the
/// kernel does not say (before 6.1, or a filesystem without the answer). Cost: one statx.
pub fn direct_alignment(descriptor: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    let wanted = StatxFlags::from_bits_retain(libc::STATX_DIOALIGN);
    let facts = statx(descriptor, "", AtFlags::EMPTY_PATH, wanted)?;
    let is_told = facts.stx_mask & libc::STATX_DIOALIGN != 0;
    Ok(is_told.then_some(facts.stx_dio_offset_align))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn fine_times_came_with_a_kernel() {
        let has =
            ["5.15.0-91-generic", "6.12.9", "6.13-rc1", "6.18.44", "7.0", ""].map(has_fine_times);
        assert_eq!(has, [false, false, true, true, true, false]);
    }

    #[test]
    fn proc_is_known_and_lives_in_memory() {
        let file = File::open("/proc/self/status").unwrap();
        let filesystem = of(file.as_fd()).unwrap();
        assert_eq!((filesystem.name, filesystem.in_memory), ("proc", true));
        assert_eq!(filesystem.nature, Nature::Memory);
    }

    #[test]
    fn files_of_one_filesystem_share_its_identity_and_others_have_their_own() {
        let of_file = |path: &str| identity(File::open(path).unwrap().as_fd()).unwrap();
        assert_eq!(of_file("/proc/self/status"), of_file("/proc/version"));
        assert_ne!(of_file("/proc/version"), of_file("/sys"));
        assert!(of_file("/proc/version").starts_with("proc "));
    }

    #[test]
    fn what_lies_on_no_block_device_is_known_by_what_was_mounted() {
        let mounts = MountTable::parse(
            b"40 1 0:45 / /a rw - nfs4 server:/one rw\n41 1 8:1 / /b rw - vfat /dev/sda1 rw\n",
        );
        let of = |major, minor| mounted(&mounts, DeviceNumber { major, minor });
        assert_eq!(of(0, 45).as_deref(), Some("nfs4 server:/one"));
        assert_eq!([of(8, 1), of(0, 46)], [None, None]);
    }

    #[test]
    fn what_says_nothing_itself_is_what_the_mount_table_says_or_served() {
        let mounts = MountTable::parse(
            b"40 1 0:45 / /a rw - fuse.ssh host: rw\n41 1 8:1 / /b rw - ext4 /dev/sda1 rw\n\
              42 1 0:46 / /c rw - tmpfs tmpfs rw\n",
        );
        let of = |major, minor| {
            let found = untold(&mounts, DeviceNumber { major, minor });
            (found.name, found.nature, found.in_memory, found.size_bytes)
        };
        assert_eq!(of(8, 1), ("ext4", Nature::Disk, false, 0));
        assert_eq!(of(0, 46), ("tmpfs", Nature::Memory, true, 0));
        assert_eq!([of(0, 45), of(8, 2)], [("unknown", Nature::Userspace, false, 0); 2]);
    }

    #[test]
    fn natures_by_the_kernels_names() {
        for (name, nature) in [
            ("ext4", Nature::Disk),
            ("unheard-of", Nature::Disk),
            ("tmpfs", Nature::Memory),
            ("nfs4", Nature::Network),
            ("virtiofs", Nature::Network),
            ("fuse", Nature::Userspace),
            ("fuse.sshfs", Nature::Userspace),
            ("fuseblk", Nature::Userspace),
            ("overlay", Nature::Overlay),
        ] {
            assert_eq!(Nature::named(name), nature, "{name}");
        }
    }

    #[test]
    fn no_magic_number_stands_for_two_names() {
        for (index, (magic, _)) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..index].iter().all(|other| other.0 != *magic), "{magic:x}");
        }
    }

    #[test]
    fn what_is_free_is_not_more_than_all() {
        let file = tempfile::tempfile().unwrap();
        let filesystem = of(file.as_fd()).unwrap();
        let Filesystem { free_bytes, size_bytes, used_bytes, .. } = filesystem;
        assert!(size_bytes > 0 && free_bytes.saturating_add(used_bytes) <= size_bytes);
    }

    #[test]
    fn what_is_reserved_is_neither_used_nor_free() {
        let filesystem = |free_bytes, used_bytes| Filesystem {
            name: "ext4",
            nature: Nature::Disk,
            in_memory: false,
            free_bytes,
            size_bytes: 100,
            used_bytes,
        };
        assert_eq!(filesystem(19, 76).free_share(), Some(0.2));
        assert_eq!(filesystem(0, 95).free_share(), Some(0.0));
        assert_eq!(filesystem(0, 0).free_share(), None);
    }
}
