//! The instruction that enters the kernel, one function per number of arguments.
//!
//! x86-64 uses `syscall`, aarch64 `svc 0` (written, not verified on such a machine). Results follow
//! the kernel's convention: a negative errno on failure.

use std::ffi::c_long;

/// Defines one entry function for x86-64: the kernel keeps all registers but rax, rcx and r11.
#[cfg(target_arch = "x86_64")]
macro_rules! entry {
    ($name:ident $(, $argument:ident in $register:tt)*) => {
        /// Enters the kernel and returns its result, a negative errno on failure.
        ///
        /// # Safety
        /// Number and arguments must form a call that keeps to this program's memory: each
        /// pointer valid for what the kernel does with it, no memory in use unmapped.
        #[inline(always)]
        pub(in super::super) unsafe fn $name(number: c_long $(, $argument: usize)*) -> isize {
            let result: isize;
            // SAFETY: the caller vouches for the call; the registers are those of the Linux
            // calling convention, and memory counts as clobbered.
            unsafe {
                std::arch::asm!(
                    "syscall",
                    inlateout("rax") number as isize => result,
                    $(in($register) $argument,)*
                    lateout("rcx") _,
                    lateout("r11") _,
                    options(nostack),
                );
            }
            result
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod native {
    use super::c_long;

    entry!(call0);
    entry!(call1, a in "rdi");
    entry!(call2, a in "rdi", b in "rsi");
    entry!(call3, a in "rdi", b in "rsi", c in "rdx");
    entry!(call4, a in "rdi", b in "rsi", c in "rdx", d in "r10");
    entry!(call5, a in "rdi", b in "rsi", c in "rdx", d in "r10", e in "r8");
    entry!(call6, a in "rdi", b in "rsi", c in "rdx", d in "r10", e in "r8", f in "r9");

    /// What `call0` does but for the instruction: the same registers, the same clobbers.
    #[inline(always)]
    pub(in super::super) fn nothing(value: isize) -> isize {
        let result: isize;
        // SAFETY: no instruction at all; the result is the register that came in.
        unsafe {
            std::arch::asm!(
                "",
                inlateout("rax") value => result,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        result
    }
}

/// Defines one entry function for aarch64: the first argument and the result share x0.
#[cfg(target_arch = "aarch64")]
macro_rules! entry {
    ($name:ident $(, $first:ident $(, $argument:ident in $register:tt)*)?) => {
        /// Enters the kernel and returns its result, a negative errno on failure.
        ///
        /// # Safety
        /// Number and arguments must form a call that keeps to this program's memory: each
        /// pointer valid for what the kernel does with it, no memory in use unmapped.
        #[inline(always)]
        pub(in super::super) unsafe fn $name(number: c_long $(, $first: usize $(, $argument: usize)*)?) -> isize {
            let mut x0: usize = 0 $(+ $first)?;
            // SAFETY: the caller vouches for the call; the registers are those of the Linux
            // calling convention, and memory counts as clobbered.
            unsafe {
                std::arch::asm!(
                    "svc 0",
                    in("x8") number,
                    inlateout("x0") x0,
                    $($(in($register) $argument,)*)?
                    options(nostack),
                );
            }
            x0 as isize
        }
    };
}

#[cfg(target_arch = "aarch64")]
mod native {
    use super::c_long;

    entry!(call0);
    entry!(call1, a);
    entry!(call2, a, b in "x1");
    entry!(call3, a, b in "x1", c in "x2");
    entry!(call4, a, b in "x1", c in "x2", d in "x3");
    entry!(call5, a, b in "x1", c in "x2", d in "x3", e in "x4");
    entry!(call6, a, b in "x1", c in "x2", d in "x3", e in "x4", f in "x5");

    /// What `call0` does but for the instruction: the same registers.
    #[inline(always)]
    pub(in super::super) fn nothing(value: isize) -> isize {
        let mut result = value;
        // SAFETY: no instruction at all; the result is the register that came in.
        unsafe { std::arch::asm!("", inlateout("x0") result, options(nostack)) };
        result
    }
}

pub(super) use native::{call0, call1, call2, call3, call4, call5, call6, nothing};
