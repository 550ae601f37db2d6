//! What a thread of this process waits for in the kernel, as its current system call tells.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::FileType;

use crate::attribute::{self, whole};

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Occupation {
    /// It has a CPU, or waits for one.
    Running,
    /// It reads bytes, or lets the kernel move some.
    Reading,
    /// It writes bytes, or has room made for them.
    Writing,
    /// It asks for names and attributes, or sets them.
    Metadata,
    /// It waits until storage has something.
    Device,
    /// It sleeps, so as not to be faster than it may be.
    Resting,
    /// It waits for another thread.
    Idle,
}

/// The number of the calling thread, for [`of_thread`].
pub fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// What a thread of this process is doing now. `None`: it is gone, or the kernel does not tell
/// (proc_pid_syscall(5) needs `CONFIG_HAVE_ARCH_TRACEHOOK`).
///
/// Cost: one small file of /proc.
pub fn of_thread(thread: i32) -> Option<Occupation> {
    let text = whole(format!("/proc/self/task/{thread}/syscall").as_ref())?;
    Some(occupation(&text))
}

fn occupation(text: &str) -> Occupation {
    let word = text.split_whitespace().next().unwrap_or_default();
    match word.parse() {
        // `running`, and -1: in the kernel, but in no system call.
        Err(_) | Ok(-1) => Occupation::Running,
        Ok(
            libc::SYS_read
            | libc::SYS_pread64
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_copy_file_range
            | libc::SYS_io_uring_enter,
        ) => Occupation::Reading,
        Ok(
            libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_splice
            | libc::SYS_fallocate
            | libc::SYS_ftruncate,
        ) => Occupation::Writing,
        Ok(
            libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs | libc::SYS_sync_file_range,
        ) => Occupation::Device,
        Ok(libc::SYS_clock_nanosleep | libc::SYS_nanosleep) => Occupation::Resting,
        Ok(libc::SYS_futex) => Occupation::Idle,
        Ok(_) => Occupation::Metadata,
    }
}

/// Threads of this process that sleep, each with how often it had lost its CPU before: with the same
/// count it is in the same sleep.
///
/// Cost: one file of /proc per thread.
pub fn sleepers() -> Vec<(i32, u64)> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads
        .filter_map(|thread| {
            let number = thread.file_name().to_str()?.parse().ok()?;
            let status = whole(&thread.path().join("status"))?;
            let count = |key| attribute::number_after(&status, key);
            // Threads of the kernel's for io_uring are in no system call of ours; who waits for them is.
            let is_ours = !status.starts_with("Name:\tiou-");
            let is_asleep = ["State:\tS", "State:\tD"].iter().any(|state| status.contains(state));
            let lost = count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?;
            (is_asleep && is_ours).then_some((number, lost))
        })
        .collect()
}

/// What a thread that sleeps waits for, if that is storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What was asked for, as a verb.
    pub verb: &'static str,
    /// Of which file; `None` where the kernel does not tell.
    pub path: Option<PathBuf>,
}

/// Calls that name what they ask for by the descriptor of a directory and the address of a text.
const CALLS_WITH_NAMES: [libc::c_long; 10] = [
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat2,
    libc::SYS_utimensat,
    libc::SYS_fchmodat,
];
/// Makes what is written durable.
pub const SYNC: &str = "sync";
/// Leaves it to the kernel, or a server, to copy: one call may take long.
pub const HAND_OVER: &str = "copy";

/// What a thread waits for, if that is storage. A pipe, a socket, a terminal and another thread are none.
/// It asks no storage itself.
pub fn wait_of(thread: i32) -> Option<Wait> {
    let of_thread = |name| whole(format!("/proc/self/task/{thread}/{name}").as_ref());
    let (call, state) = (of_thread("syscall")?, of_thread("stat")?);
    let mut words = call.split_whitespace();
    let number = words.next()?.parse::<libc::c_long>().ok()?;
    let argument = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let arguments = [words.next().and_then(argument)?, words.next().and_then(argument)?];
    // The name before it may hold anything.
    let is_uninterruptible = state.rsplit_once(") ")?.1.starts_with('D');
    let (verb, path) = match (number, occupation(&call)) {
        (-1, _) => ("read a page of a mapped file", None),
        (libc::SYS_io_uring_enter, _) => return Some(Wait { verb: "read or write", path: None }),
        (libc::SYS_copy_file_range, _) => (HAND_OVER, file_of(arguments[0])),
        (_, Occupation::Reading) => ("read", file_of(arguments[0])),
        (_, Occupation::Writing) => ("write", file_of(arguments[0])),
        (_, Occupation::Device) => (SYNC, file_of(arguments[0])),
        (_, Occupation::Metadata) if CALLS_WITH_NAMES.contains(&number) => {
            ("find or change", name_at(arguments))
        }
        (_, Occupation::Metadata) => ("find or change", file_of(arguments[0])),
        (_, Occupation::Running | Occupation::Resting | Occupation::Idle) => return None,
    };
    let is_of_file = verb != "find or change" && path.is_some();
    (is_uninterruptible || is_of_file).then_some(Wait { verb, path })
}

/// The name of what is open as this descriptor, if that is on storage.
fn file_of(descriptor: u64) -> Option<PathBuf> {
    // A server that does not answer is not asked, nor is its name looked up.
    let how = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let mut facts = std::mem::MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the name is a C string, and `facts` may be written for the call; a number that is no open
    // descriptor is an error.
    let answer = unsafe {
        libc::statx(descriptor as i32, c"".as_ptr(), how, libc::STATX_TYPE, facts.as_mut_ptr())
    };
    if answer != 0 {
        return None;
    }
    // SAFETY: all bytes are initialised, by us or the kernel, and any are a valid value.
    let mode = unsafe { facts.assume_init() }.stx_mode;
    let is_stored = matches!(
        FileType::from_raw_mode(mode.into()),
        FileType::RegularFile | FileType::Directory | FileType::BlockDevice
    );
    fs::read_link(format!("/proc/self/fd/{}", descriptor as i32)).ok().filter(|_| is_stored)
}

/// The name that a call gives by the descriptor of a directory and the address of a text.
fn name_at([directory, address]: [u64; 2]) -> Option<PathBuf> {
    let mut bytes = vec![0; 4096];
    let read = File::open("/proc/self/mem").ok()?.read_at(&mut bytes, address).ok()?;
    bytes.truncate(bytes[..read].iter().position(|byte| *byte == 0)?);
    let name = PathBuf::from(OsString::from_vec(bytes));
    let folder = fs::read_link(format!("/proc/self/fd/{}", directory as i32));
    Some(folder.unwrap_or_default().join(name)).filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_at_a_pipe_or_for_a_thread_waits_for_no_storage() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            sender.send(this_thread()).unwrap();
            rustix::io::read(reader, &mut [0_u8]).unwrap();
        });
        let number = receiver.recv().unwrap();
        while !sleepers().iter().any(|(sleeper, _)| *sleeper == number) {
            std::thread::yield_now();
        }
        assert_eq!(wait_of(number), None);
        assert!(!sleepers().iter().any(|(sleeper, _)| *sleeper == this_thread()));
        drop(writer);
        thread.join().unwrap();
    }

    #[test]
    fn a_file_is_named_and_a_pipe_is_no_storage() {
        use std::os::fd::AsRawFd;
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let of = |descriptor: i32| file_of(descriptor as u64);
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(of(file.as_raw_fd()), std::env::current_exe().ok());
        assert_eq!(of(reader.as_raw_fd()), None);
        let name = c"name/of it";
        let at = name_at([libc::AT_FDCWD as u64, name.as_ptr() as u64]);
        assert_eq!(at, Some("name/of it".into()));
    }

    #[test]
    fn the_call_says_what_is_waited_for() {
        let line = |call: libc::c_long| format!("{call} 0x3 0x7f 0x1000 0x0 0x0 0x0 0x7ff 0x7f\n");
        for (call, expected) in [
            (libc::SYS_pread64, Occupation::Reading),
            (libc::SYS_pwrite64, Occupation::Writing),
            (libc::SYS_openat, Occupation::Metadata),
            (libc::SYS_syncfs, Occupation::Device),
            (libc::SYS_clock_nanosleep, Occupation::Resting),
            (libc::SYS_futex, Occupation::Idle),
        ] {
            assert_eq!(occupation(&line(call)), expected);
        }
        assert_eq!(occupation("running\n"), Occupation::Running);
        assert_eq!(occupation("-1 0x7ff 0x7f\n"), Occupation::Running);
    }

    #[test]
    fn a_thread_that_reads_a_pipe_reads() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            sender.send(this_thread()).unwrap();
            rustix::io::read(reader, &mut [0_u8]).unwrap();
        });
        let number = receiver.recv().unwrap();
        let mut seen = of_thread(number);
        // Where the kernel does not tell, there is nothing to see.
        while seen.is_some() && seen != Some(Occupation::Reading) {
            std::thread::yield_now();
            seen = of_thread(number);
        }
        drop(writer);
        thread.join().unwrap();
        // The kernel wakes who joins a little before the thread is gone.
        while of_thread(number).is_some() {
            std::thread::yield_now();
        }
    }
}
