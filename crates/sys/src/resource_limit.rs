//! Limits on what this process may have (getrlimit(2)). A sandbox may refuse to tell them: then nothing is
//! known, and it is not 0.

use std::mem::MaybeUninit;

pub use rustix::process::Resource;

/// The limit that counts now; `None` without one, or where it is not told.
///
/// Cost: a system call.
pub fn soft_limit(resource: Resource) -> Option<u64> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // The C library asks with prlimit64(2), which also sets: filters refuse it and allow the older call.
    // SAFETY: either call writes a whole `rlimit`, which on 64 bits is the kernel's, or fails and writes nothing.
    let is_told = unsafe {
        libc::getrlimit(resource as _, limit.as_mut_ptr()) == 0
            || libc::syscall(libc::SYS_getrlimit, resource as libc::c_long, limit.as_mut_ptr()) == 0
    };
    // SAFETY: a call that returned 0 has written it.
    let bytes = is_told.then(|| unsafe { limit.assume_init() }.rlim_cur)?;
    (bytes != libc::RLIM_INFINITY).then_some(bytes)
}
