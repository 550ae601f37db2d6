//! Streams through memory: read, write, copy, and the four kernels of STREAM, with ordinary and
//! with non-temporal stores.
//!
//! A [`Stream`] is a kernel for an instruction set that this CPU has; it runs over [`Arrays`],
//! whole or block by block. The kernels of x86-64 and aarch64 are written in assembly, because
//! compilers turn copy loops into calls of memcpy, and drop passes whose results nobody reads.
//! Memory to run over: [`arena`]; accesses of eight bytes: [`access`]; instructions:
//! `stream/x86.rs`, `stream/neon.rs`.

/// Which function is which kernel, in a set of instructions: the six that all have, and these.
macro_rules! bodies {
    (and $($kernel:ident = $body:ident),*) => {
        pub(in crate::stream) fn body(kernel: Kernel) -> Option<Body> {
            match kernel {
                Kernel::Read => Some(read),
                Kernel::Write => Some(write),
                Kernel::Copy => Some(copy),
                Kernel::Scale => Some(scale),
                Kernel::Add => Some(add),
                Kernel::Triad => Some(triad),
                $(Kernel::$kernel => Some($body),)*
                _ => None,
            }
        }
    };
}

pub mod access;
pub mod arena;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod numbers;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Arrays must be a multiple of this long, and blocks too: a step of the longest kernel.
pub const GRANULE_BYTES: usize = 256;
/// The same in elements.
pub const GRANULE_ELEMENTS: usize = GRANULE_BYTES / size_of::<f64>();
/// Arrays must begin at a multiple of this: a cache line, which non-temporal stores fill at once.
pub const ALIGNMENT_BYTES: usize = 64;

crate::words! {
    /// What is done with each element. `t` is the target, `f` and `s` are the sources, `v` is a value.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Kernel: name, ALL {
        /// The sum of f, as 64-bit words.
        Read = "read",
        /// t = v.
        Write = "write",
        /// t = v, past the caches.
        NtWrite = "nt-write",
        /// t = f.
        Copy = "copy",
        /// t = f, past the caches.
        NtCopy = "nt-copy",
        /// t = v × f.
        Scale = "scale",
        /// t = f + s.
        Add = "add",
        /// t = f + v × s.
        Triad = "triad",
        /// t = f + v × s, past the caches.
        NtTriad = "nt-triad",
        /// t = f by one `rep movsb`, which the CPU's microcode carries out.
        RepMovsb = "rep-movsb",
        /// t = f by the C library's memcpy.
        Memcpy = "memcpy",
    }
}

/// Which of the arrays a kernel goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uses {
    /// Writes the target.
    pub target: bool,
    /// Reads the first source.
    pub first: bool,
    /// Reads the second source.
    pub second: bool,
}

impl Kernel {
    /// The arrays that it goes through.
    pub const fn uses(self) -> Uses {
        let (target, first, second) = match self {
            Self::Read => (false, true, false),
            Self::Write | Self::NtWrite => (true, false, false),
            Self::Copy | Self::NtCopy | Self::Scale | Self::RepMovsb | Self::Memcpy => {
                (true, true, false)
            }
            Self::Add | Self::Triad | Self::NtTriad => (true, true, true),
        };
        Uses { target, first, second }
    }

    /// Whether its stores go past the caches.
    pub const fn is_non_temporal(self) -> bool {
        matches!(self, Self::NtWrite | Self::NtCopy | Self::NtTriad)
    }
}

crate::words! {
    /// The instruction set of a kernel.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Level: name, ALL {
        /// What the compiler makes of a plain loop; every CPU.
        Portable = "portable",
        /// 32 bytes at a time, in pairs of registers; every aarch64 CPU.
        Neon = "NEON",
        /// 16 bytes at a time; every x86-64 CPU.
        Sse2 = "SSE2",
        /// 32 bytes at a time, with fused multiply-add.
        Avx2 = "AVX2+FMA",
        /// 64 bytes at a time.
        Avx512 = "AVX-512F",
    }
}

impl Level {
    /// Whether this CPU, and the kernel that saves its registers, have it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => crate::instruction_set::cpu_has!("avx2", "fma"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => crate::instruction_set::cpu_has!("avx512f"),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// The widest one that is available.
    pub fn best() -> Self {
        let wide = Self::ALL.into_iter().rev();
        wide.into_iter().find(|level| level.is_available()).unwrap_or(Self::Portable)
    }
}

/// What a kernel works on. Those that it uses (see [`Kernel::uses`]) must have one length.
pub struct Arrays<'a> {
    /// t.
    pub target: &'a mut [f64],
    /// f.
    pub first: &'a [f64],
    /// s.
    pub second: &'a [f64],
}

/// What the kernels are handed. Arrays that a kernel does not use may have any address: it never
/// follows it.
#[derive(Debug, Clone, Copy)]
struct Run {
    target: *mut u8,
    first: *const u8,
    second: *const u8,
    /// Above 0, a multiple of `GRANULE_BYTES`.
    length_bytes: usize,
    /// Above 0.
    passes: u64,
    value: f64,
    /// Where `Read` leaves its 32 partial sums.
    sums: *mut u64,
}

/// # Safety
///
/// The arrays that the kernel uses must be valid for `length_bytes`, the target exclusively, and
/// begin at a multiple of `ALIGNMENT_BYTES`; `sums` must take 32 words. The CPU must have the
/// instruction set.
type Body = unsafe fn(&Run);

crate::words! {
    /// In which order a kernel goes through its arrays.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Reach: name {
        /// From the first element to the last.
        Near = "first to last",
        /// Eight pages of 4 KiB side by side, lines asked for ahead: for arrays in memory.
        Far = "eight pages side by side",
    }
}

/// A kernel for an instruction set that this CPU has.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    kernel: Kernel,
    level: Level,
    reach: Reach,
    body: Body,
}

impl Stream {
    /// The kernel for this instruction set; `None` where the CPU lacks it or the kernel has no
    /// such form (non-temporal stores and `rep movsb` exist on x86-64 only).
    pub fn new(kernel: Kernel, level: Level) -> Option<Self> {
        let body = level.is_available().then(|| body(kernel, level))??;
        Some(Self { kernel, level, reach: Reach::Near, body })
    }

    /// The same kernel in the order for arrays in memory; in its only order where it has no other
    /// (`memcpy`, `rep movsb`, CPUs that are no x86-64).
    pub fn far(self) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(body) = x86::far::body(self.kernel, self.level) {
            return Self { reach: Reach::Far, body, ..self };
        }
        self
    }

    /// Whether it has a form of its own for each instruction set.
    pub fn has_widths(&self) -> bool {
        !matches!(self.kernel, Kernel::RepMovsb | Kernel::Memcpy)
    }

    /// In which order it goes.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The kernel for the widest instruction set; `None` where it has no form here.
    pub fn best(kernel: Kernel) -> Option<Self> {
        Self::new(kernel, Level::best())
    }

    /// What it does.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// How wide it is.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Goes `passes` times through the arrays from their first element on; returns the wrapping
    /// sum of all words read by `Read`, and 0 of others. All stores are visible to other threads
    /// when it returns.
    ///
    /// Panics: if the arrays used differ in length, are no multiple of [`GRANULE_BYTES`] long, or
    /// do not begin at a multiple of [`ALIGNMENT_BYTES`].
    pub fn run(&self, arrays: &mut Arrays<'_>, value: f64, passes: u64) -> u64 {
        let length_bytes = self.check(arrays);
        if length_bytes == 0 || passes == 0 {
            return 0;
        }
        let mut sums = [0; 32];
        let run = Run { length_bytes, passes, ..self.whole(arrays, value, &mut sums) };
        // SAFETY: `check` has looked at lengths and alignment, the slices are valid for them, and
        // `new` has asked the CPU.
        unsafe { (self.body)(&run) };
        fence();
        sums.into_iter().fold(0, u64::wrapping_add)
    }

    /// Goes once through the blocks of the arrays in the given order, each block from its first
    /// element on; returns the sum as [`Self::run`] does. The last block may be a short one.
    ///
    /// Panics: as [`Self::run`]; and if a block lies beyond the arrays, or `block_elements` is 0
    /// or no multiple of [`GRANULE_ELEMENTS`].
    pub fn run_blocks(
        &self,
        arrays: &mut Arrays<'_>,
        value: f64,
        block_elements: usize,
        order: &[u32],
    ) -> u64 {
        let length_bytes = self.check(arrays);
        assert!(
            block_elements > 0 && block_elements.is_multiple_of(GRANULE_ELEMENTS),
            "blocks of {block_elements} elements are no multiple of {GRANULE_ELEMENTS}"
        );
        let block_bytes = block_elements * size_of::<f64>();
        let mut sums = [0; 32];
        let whole = self.whole(arrays, value, &mut sums);
        let mut sum = 0_u64;
        for &block in order {
            let start = block as usize * block_bytes;
            assert!(start < length_bytes, "block {block} lies beyond the arrays");
            let run = Run {
                target: whole.target.wrapping_add(start),
                first: whole.first.wrapping_add(start),
                second: whole.second.wrapping_add(start),
                length_bytes: block_bytes.min(length_bytes - start),
                ..whole
            };
            // SAFETY: as in `run`; the block lies within the arrays, and its start is a multiple
            // of GRANULE_BYTES from theirs.
            unsafe { (self.body)(&run) };
            if self.kernel == Kernel::Read {
                sum = sums.iter().fold(sum, |sum, &part| sum.wrapping_add(part));
            }
        }
        fence();
        sum
    }

    /// One pass over all of the arrays; the length is left to the caller.
    fn whole(&self, arrays: &mut Arrays<'_>, value: f64, sums: &mut [u64; 32]) -> Run {
        let uses = self.kernel.uses();
        let first = if uses.first { arrays.first.as_ptr() } else { arrays.target.as_ptr() };
        // The kernels count along the target, also where they do not touch it.
        let target = if uses.target { arrays.target.as_mut_ptr() } else { first.cast_mut() };
        let second = if uses.second { arrays.second.as_ptr() } else { first };
        Run {
            target: target.cast(),
            first: first.cast(),
            second: second.cast(),
            length_bytes: 0,
            passes: 1,
            value,
            sums: sums.as_mut_ptr(),
        }
    }

    /// The common length of the arrays that are used, in bytes.
    fn check(&self, arrays: &Arrays<'_>) -> usize {
        let Uses { target, first, second } = self.kernel.uses();
        let used = [(target, &*arrays.target), (first, arrays.first), (second, arrays.second)];
        let mut used = used.into_iter().filter(|(is_used, _)| *is_used).map(|(_, array)| array);
        let length = used.clone().next().map_or(0, <[f64]>::len);
        assert!(used.clone().all(|array| array.len() == length), "arrays of different lengths");
        assert!(length.is_multiple_of(GRANULE_ELEMENTS), "{length} elements are no whole steps");
        assert!(
            length == 0 || used.all(|array| array.as_ptr().addr().is_multiple_of(ALIGNMENT_BYTES)),
            "an array does not begin at a multiple of {ALIGNMENT_BYTES} bytes"
        );
        length * size_of::<f64>()
    }
}

fn body(kernel: Kernel, level: Level) -> Option<Body> {
    match (kernel, level) {
        #[cfg(target_arch = "x86_64")]
        (Kernel::RepMovsb, _) => Some(x86::rep_movsb),
        (Kernel::Memcpy, _) | (_, Level::Portable) => portable::body(kernel),
        #[cfg(target_arch = "aarch64")]
        (_, Level::Neon) => neon::body(kernel),
        #[cfg(target_arch = "x86_64")]
        (_, Level::Sse2) => x86::sse2::body(kernel),
        #[cfg(target_arch = "x86_64")]
        (_, Level::Avx2) => x86::avx2::body(kernel),
        #[cfg(target_arch = "x86_64")]
        (_, Level::Avx512) => x86::avx512::body(kernel),
        _ => None,
    }
}

/// Non-temporal stores are ordered by nothing else: neither by a lock nor by the end of a thread.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has it, and it touches no memory of ours.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests;
