//! System calls by what they do to the names and contents of files, for tests that hold them up.
//!
//! Numbers only; what is done at such a call is the test's business.

use libc::c_long;

/// A call that takes a path, and which of its arguments are the path and its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathCall {
    /// As its manual page is called.
    pub name: &'static str,
    /// As the kernel knows it.
    pub number: c_long,
    /// The argument that points to the path.
    pub path: usize,
    /// The argument that is the descriptor where the path begins; none: the working directory.
    pub directory: Option<usize>,
}

const fn at(name: &'static str, number: c_long) -> PathCall {
    PathCall { name, number, path: 1, directory: Some(0) }
}

const fn from_here(name: &'static str, number: c_long) -> PathCall {
    PathCall { name, number, path: 0, directory: None }
}

/// fchmodat2(2), new in Linux 6.6.
const FCHMODAT2: c_long = 452;

/// All that look a name up. Of two paths the one that comes into being is named, or goes.
pub const OF_PATHS: &[PathCall] = &[
    at("openat", libc::SYS_openat),
    at("openat2", libc::SYS_openat2),
    at("mkdirat", libc::SYS_mkdirat),
    at("mknodat", libc::SYS_mknodat),
    PathCall { name: "symlinkat", number: libc::SYS_symlinkat, path: 2, directory: Some(1) },
    PathCall { name: "linkat", number: libc::SYS_linkat, path: 3, directory: Some(2) },
    PathCall { name: "renameat", number: libc::SYS_renameat, path: 3, directory: Some(2) },
    PathCall { name: "renameat2", number: libc::SYS_renameat2, path: 3, directory: Some(2) },
    at("unlinkat", libc::SYS_unlinkat),
    at("newfstatat", libc::SYS_newfstatat),
    at("statx", libc::SYS_statx),
    at("readlinkat", libc::SYS_readlinkat),
    at("fchmodat", libc::SYS_fchmodat),
    at("fchmodat2", FCHMODAT2),
    at("fchownat", libc::SYS_fchownat),
    at("utimensat", libc::SYS_utimensat),
    at("faccessat", libc::SYS_faccessat),
    at("faccessat2", libc::SYS_faccessat2),
    from_here("statfs", libc::SYS_statfs),
    from_here("truncate", libc::SYS_truncate),
    from_here("setxattr", libc::SYS_setxattr),
    from_here("lsetxattr", libc::SYS_lsetxattr),
    from_here("getxattr", libc::SYS_getxattr),
    from_here("lgetxattr", libc::SYS_lgetxattr),
    from_here("listxattr", libc::SYS_listxattr),
    from_here("llistxattr", libc::SYS_llistxattr),
    from_here("removexattr", libc::SYS_removexattr),
    from_here("lremovexattr", libc::SYS_lremovexattr),
    #[cfg(target_arch = "x86_64")]
    from_here("open", libc::SYS_open),
    #[cfg(target_arch = "x86_64")]
    from_here("stat", libc::SYS_stat),
    #[cfg(target_arch = "x86_64")]
    from_here("lstat", libc::SYS_lstat),
    #[cfg(target_arch = "x86_64")]
    from_here("chmod", libc::SYS_chmod),
    #[cfg(target_arch = "x86_64")]
    from_here("readlink", libc::SYS_readlink),
    #[cfg(target_arch = "x86_64")]
    from_here("rename", libc::SYS_rename),
    #[cfg(target_arch = "x86_64")]
    from_here("unlink", libc::SYS_unlink),
];

/// Those that work on what is open already: they move bytes, set attributes, lock, list, close.
pub const OF_DESCRIPTORS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_copy_file_range,
    libc::SYS_splice,
    libc::SYS_ioctl,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    libc::SYS_fsetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_fremovexattr,
    libc::SYS_flock,
    libc::SYS_getdents64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
    libc::SYS_io_uring_enter,
    libc::SYS_close,
];
