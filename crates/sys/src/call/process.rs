//! Calls about processes and threads.

use std::io;
use std::os::raw::c_void;
use std::ptr;

use super::{raw, repeat};

/// A number behind every table of system calls, whatever the architecture.
const NO_SUCH_CALL: libc::c_long = 0x0fff_ffff;

/// Makes a system call that does not exist: the way into the kernel and out again, and nothing
/// else. No call that does something is cheaper.
///
/// # Errors
/// Never; whatever the kernel, or a seccomp filter, answers is what was asked for.
#[inline(never)]
pub fn no_such_call(calls: u64) -> io::Result<()> {
    // SAFETY: the kernel knows no such call, so that nothing is done.
    let call = || unsafe { raw::call0(NO_SUCH_CALL) };
    repeat("a call that does not exist", calls, call, |result| result < 0)
}

/// Asks for the parent's process id: the way into the kernel and out again, and little else.
///
/// # Errors
/// The kernel's error; none is known.
#[inline(never)]
pub fn getppid(calls: u64) -> io::Result<()> {
    // SAFETY: getppid takes nothing and touches no memory.
    let call = || unsafe { raw::call0(libc::SYS_getppid) };
    repeat("getppid", calls, call, |result| result >= 0)
}

/// Makes a child process that exits at once, and waits for it: clone, exit_group, wait4.
///
/// It is a plain fork: SIGCHLD as the exit signal, nothing shared, page tables copied, hence
/// dearer in a process with more memory. What libc adds (handlers at fork) is left out.
///
/// # Errors
/// The kernel's error at the first call that fails; `ECHILD` if somebody else reaps children.
#[inline(never)]
pub fn fork_exit(calls: u64) -> io::Result<()> {
    for _ in 0..calls {
        let flags = libc::SIGCHLD as usize;
        // SAFETY: with no stack and nothing shared this is a fork: the child goes on with its
        // own copy of all memory.
        let child = unsafe { raw::call5(libc::SYS_clone, flags, 0, 0, 0, 0) };
        if child == 0 {
            loop {
                // SAFETY: the child owns nothing to give back, and does nothing else than this,
                // so that locks which other threads held at the fork do not matter.
                unsafe { raw::call1(libc::SYS_exit_group, 0) };
            }
        }
        if child < 0 {
            return Err(super::surprise("fork", child));
        }
        wait_for(child)?;
    }
    Ok(())
}

/// Waits until `child` has exited, and wants its exit code to be zero.
fn wait_for(child: isize) -> io::Result<()> {
    let mut status = 0_i32;
    loop {
        let place = &raw mut status as usize;
        // SAFETY: the kernel writes one int into `status`; no resource usage is asked for.
        let waited = unsafe { raw::call4(libc::SYS_wait4, child as usize, place, 0, 0) };
        if waited == child && status == 0 {
            return Ok(());
        }
        if waited != -(libc::EINTR as isize) {
            return Err(super::surprise("wait4", waited));
        }
    }
}

/// Starts a thread that returns at once, and joins it, through libc's `pthread_create`.
///
/// libc keeps the stacks of ended threads for the next one, as in any program; a bare clone with
/// a stack of one's own would be cheaper and of no use to a Rust or C program.
///
/// # Errors
/// The error of `pthread_create` or `pthread_join`.
#[inline(never)]
pub fn thread_create_join(calls: u64) -> io::Result<()> {
    extern "C" fn body(argument: *mut c_void) -> *mut c_void {
        argument
    }
    for _ in 0..calls {
        let mut thread = std::mem::MaybeUninit::<libc::pthread_t>::uninit();
        // SAFETY: `thread` is written on success; the body takes no memory of ours.
        let refused = unsafe {
            libc::pthread_create(thread.as_mut_ptr(), ptr::null(), body, ptr::null_mut())
        };
        if refused != 0 {
            return Err(io::Error::from_raw_os_error(refused));
        }
        // SAFETY: the thread was created just above, and is joined this once.
        let refused = unsafe { libc::pthread_join(thread.assume_init(), ptr::null_mut()) };
        if refused != 0 {
            return Err(io::Error::from_raw_os_error(refused));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_over_processes_and_threads_end() {
        getppid(1000).unwrap();
        no_such_call(1000).unwrap();
        fork_exit(20).unwrap();
        thread_create_join(20).unwrap();
    }

    #[test]
    fn every_child_is_really_made() {
        // The kernel counts minor faults of reaped children; each child has at least one.
        fn faults_of_children() -> i64 {
            let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: the kernel writes one `struct rusage`, for which zeros are valid too.
            unsafe {
                libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
                usage.assume_init().ru_minflt
            }
        }
        let before = faults_of_children();
        fork_exit(50).unwrap();
        assert!(faults_of_children() - before >= 50);
    }
}
