//! How a thread stands behind others where CPUs and disks are busy.

use std::io;

use crate::cause::answered;

/// `IOPRIO_WHO_PROCESS` of ioprio_set(2).
const WHO_PROCESS: libc::c_int = 1;
/// `IOPRIO_CLASS_IDLE`, shifted to its place.
const IDLE: libc::c_int = 3 << 13;
/// The least favourable of nice(2).
const LEAST: libc::c_int = 19;

/// Has the calling thread, and those that it starts from now on, give way to all others: nice 19,
/// and I/O of the idle class, which the schedulers bfq and mq-deadline obey.
///
/// Errors: those of setpriority(2) and ioprio_set(2).
pub fn give_way() -> io::Result<()> {
    rustix::process::setpriority_process(None, LEAST)?;
    // SAFETY: plain numbers; 0 is the calling thread.
    answered(unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, IDLE) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_gives_way_has_the_least_priority() {
        let nice = || {
            // SAFETY: plain numbers; 0 is the calling thread.
            unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
        };
        let before = nice();
        let of_thread = std::thread::spawn(move || give_way().map(|()| nice())).join().unwrap();
        assert_eq!(of_thread.unwrap(), LEAST);
        assert_eq!(nice(), before, "the others keep theirs");
    }
}
