//! What a thread of this process waits for in the kernel, as its current system call tells.

use crate::attribute::whole;

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

#[cfg(test)]
mod tests {
    use super::*;

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
