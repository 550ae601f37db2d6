//! Who runs this program: what the kernel says, and what the C library says in its place.

use rustix::process::{getegid, geteuid};

/// Whether the C library gives this process another user or group than the kernel does: a library
/// was put before it (`LD_PRELOAD`) that answers calls in the kernel's place. System calls of this
/// program do not go through the C library, so that it never sees what such a library makes up.
///
/// Cost: four system calls.
pub fn is_disguised() -> bool {
    // SAFETY: geteuid(2) and getegid(2) take nothing and always succeed.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    (user, group) != (geteuid().as_raw(), getegid().as_raw())
}

/// Sets the umask, and says what it was; `None`: the call was refused (seccomp(2)), which no other way to make
/// it can tell.
pub fn set_umask(mask: u32) -> Option<u32> {
    // SAFETY: umask(2) takes a number, any of which it masks.
    let found = unsafe { libc::umask(mask) };
    (found <= 0o777).then_some(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_and_the_library_agree_where_nothing_is_between_them() {
        assert!(!super::is_disguised());
    }
}
