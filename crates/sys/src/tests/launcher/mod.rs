//! For tests only: starts a program from which chosen system calls are taken away.
//!
//! A seccomp filter answers them with an errno, as a container runtime does. This is how a test
//! on a new kernel sees what an old or a locked-down one would see. Instead of being taken away a
//! call can be held up, so that a test changes the world in this very moment (`supervisor`).

pub mod calls;
pub mod supervisor;
#[cfg(test)]
mod tests;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Makes an executable script. A process of its own writes it: a program that somebody has open for
/// writing cannot be started (ETXTBSY), and each child that another thread starts has, for a moment,
/// what this process has open.
///
/// Panics: it cannot be made.
pub fn write_program(path: &Path, text: &str) {
    let script = r#"printf %s "$1" > "$2" && chmod 755 "$2""#;
    let made = Command::new("sh").args(["-c", script, "sh", text]).arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "cannot write {path:?}");
}

/// A system call and the errno that it shall fail with.
pub type Denied = (libc::c_long, i32);

/// io_uring_setup(2), the call that containers deny.
pub const IO_URING_SETUP: libc::c_long = libc::SYS_io_uring_setup;
/// io_uring_register(2), without which buffers are mapped for each request.
pub const IO_URING_REGISTER: libc::c_long = libc::SYS_io_uring_register;
/// setxattrat(2), getxattrat(2), listxattrat(2) and removexattrat(2), new in Linux 6.13.
pub const XATTRAT: [libc::c_long; 4] = [463, 464, 465, 466];
/// cachestat(2), new in Linux 6.5.
pub const CACHESTAT: libc::c_long = 451;
/// umask(2).
pub const UMASK: libc::c_long = libc::SYS_umask;
/// statx(2), denied by old container runtimes.
pub const STATX: libc::c_long = libc::SYS_statx;
/// preadv2(2), which carries RWF_DONTCACHE.
pub const PREADV2: libc::c_long = libc::SYS_preadv2;
/// copy_file_range(2), which some filters do not know.
pub const COPY_FILE_RANGE: libc::c_long = libc::SYS_copy_file_range;
/// splice(2).
pub const SPLICE: libc::c_long = libc::SYS_splice;
/// fallocate(2), which gives a file its room.
pub const FALLOCATE: libc::c_long = libc::SYS_fallocate;
/// fsync(2), which makes a directory durable.
pub const FSYNC: libc::c_long = libc::SYS_fsync;
/// fdatasync(2), which makes the data of a file durable.
pub const FDATASYNC: libc::c_long = libc::SYS_fdatasync;
/// pwrite(2), as the kernel knows it.
pub const PWRITE: libc::c_long = libc::SYS_pwrite64;
/// openat2(2), new in Linux 5.6, denied by old container runtimes.
pub const OPENAT2: libc::c_long = libc::SYS_openat2;
/// renameat2(2), new in Linux 3.15.
pub const RENAMEAT2: libc::c_long = libc::SYS_renameat2;
/// sched_setaffinity(2), which services are denied with other calls on resources.
pub const SCHED_SETAFFINITY: libc::c_long = libc::SYS_sched_setaffinity;
/// sched_getaffinity(2).
pub const SCHED_GETAFFINITY: libc::c_long = libc::SYS_sched_getaffinity;
/// statfs(2), which tells the filesystem of a path.
pub const STATFS: libc::c_long = libc::SYS_statfs;
/// fstatfs(2), which tells that of a file.
pub const FSTATFS: libc::c_long = libc::SYS_fstatfs;
/// prlimit64(2) and getrlimit(2), of which filters on resources refuse the first, or both.
pub const PRLIMIT64: libc::c_long = libc::SYS_prlimit64;
/// See [`PRLIMIT64`].
pub const GETRLIMIT: libc::c_long = libc::SYS_getrlimit;
/// ioctl(2), which policies allow by its command.
pub const IOCTL: libc::c_long = libc::SYS_ioctl;
/// ptrace(2), which containers and Yama deny.
pub const PTRACE: libc::c_long = libc::SYS_ptrace;
/// getrusage(2), which tells what this process has used.
pub const GETRUSAGE: libc::c_long = libc::SYS_getrusage;
/// eventfd2(2), which wakes who waits.
pub const EVENTFD2: libc::c_long = libc::SYS_eventfd2;
/// clock_nanosleep(2), by which the standard library sleeps.
pub const CLOCK_NANOSLEEP: libc::c_long = libc::SYS_clock_nanosleep;
/// getrandom(2), without which the standard library makes no hash table.
pub const GETRANDOM: libc::c_long = libc::SYS_getrandom;
/// The calls by which C libraries, old and new ones, start threads, as a limit of processes answers them.
pub const NO_THREADS: [Denied; 2] =
    [(libc::SYS_clone, libc::EAGAIN), (libc::SYS_clone3, libc::EAGAIN)];
/// prctl(2), which tells what the kernel gave the process since Linux 6.4 only.
pub const PRCTL: libc::c_long = libc::SYS_prctl;
/// EIO: what a broken device answers.
pub const EIO: i32 = libc::EIO;
/// EPERM: what a container runtime answers.
pub const EPERM: i32 = libc::EPERM;
/// ENOSYS: what a kernel without the call answers.
pub const ENOSYS: i32 = libc::ENOSYS;

/// Has the allocator give larger pieces of memory back when they are freed (mallopt(3)), once and
/// for all. Else it keeps hundreds of megabytes for tests that run side by side, and each start of a
/// program that has something to do between fork and exec copies the page tables of them.
pub fn give_freed_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: plain numbers; the allocator takes its own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

/// Makes `command` start with the given calls denied.
pub fn deny<'a>(command: &'a mut Command, calls: &[Denied]) -> &'a mut Command {
    let answer = |errno: i32| libc::SECCOMP_RET_ERRNO | (errno as u32 & libc::SECCOMP_RET_DATA);
    let program = filter(calls.iter().map(|&(call, errno)| (call, answer(errno))));
    // SAFETY: between fork and exec the closure makes only two system calls on memory that it
    // owns; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(move || install(&program)) }
}

/// Limits what `command` may have (setrlimit(2)), as its descriptors or the size of its files. It inherits
/// none but the first three: what other tests have open at that moment would count.
pub fn limit(command: &mut Command, resource: Resource, most: u64) -> &mut Command {
    let resource = match resource {
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::Descriptors => libc::RLIMIT_NOFILE,
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
        Resource::Stack => libc::RLIMIT_STACK,
    };
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: between fork and exec the closure makes two system calls, one with plain numbers and
    // one on memory that it owns.
    unsafe {
        command.pre_exec(move || {
            // Before Linux 5.11 it is refused, and what is inherited counts.
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            match libc::setrlimit(resource, &limit) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        })
    }
}

/// Makes `command` start without transparent huge pages, as some databases have it.
pub fn without_huge_pages(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one system call with plain numbers.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// A limited resource.
#[derive(Debug, Clone, Copy)]
pub enum Resource {
    /// Size of files in bytes.
    FileSize,
    /// Number of descriptors.
    Descriptors,
    /// Locked memory in bytes.
    LockedMemory,
    /// The stack of the first thread in bytes.
    Stack,
}

/// An instruction that does not jump.
fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// The BPF program: load the call's number, compare with each of these and answer it, else allow.
fn filter(calls: impl IntoIterator<Item = (libc::c_long, u32)>) -> Vec<libc::sock_filter> {
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for (call, answer) in calls {
        let equal = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32);
        program.push(libc::sock_filter { jf: 1, ..equal });
        program.push(statement(libc::BPF_RET | libc::BPF_K, answer));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    program
}

fn install(program: &[libc::sock_filter]) -> io::Result<()> {
    let header =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: both calls only read their arguments; `header` points at `program`, which outlives
    // them. NO_NEW_PRIVS is what lets a process without privilege install a filter.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const header) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
