//! BLAKE3 of many chunks at once, side by side in the widest registers there are: sixteen with
//! AVX-512, eight with AVX2, four with SSE4.1 and NEON.
//!
//! Reads through raw pointers, so that mapped files need no copy, which costs as much as half of
//! the hashing. It gives the chaining value of a subtree; roots, short inputs and other CPUs belong
//! to the library (`io::digest`).
//!
//! Source: O'Connor, Aumasson, Neves and Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere",
//! 2021, sections 2.1 to 2.4 and 5.3.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod sse41;

/// Bytes of a chunk, a leaf of the tree.
pub const CHUNK_BYTES: usize = 1024;
/// The least chunks of a subtree: as many as the widest kernel takes at a time.
pub const LEAST_CHUNKS: usize = 16;
/// Most chunks of a subtree.
pub const MAX_CHUNKS: usize = 4096;

/// A chaining value as the tree's parents take it in.
pub type ChainingValue = [u8; 32];

/// Room for the values of one level of a subtree. Cost: 128 KiB.
pub struct Scratch(Box<[ChainingValue; MAX_CHUNKS]>);

impl Default for Scratch {
    fn default() -> Self {
        let values = vec![[0; 32]; MAX_CHUNKS].into_boxed_slice();
        Self(values.try_into().expect("it has MAX_CHUNKS values"))
    }
}

/// What hashes a subtree of whole chunks: where they start, how many, the number of the first, and
/// room for a value of each.
///
/// Safety: the CPU must have the instructions, the chunks must be readable, a power of two and at
/// least [`LEAST_CHUNKS`].
type Kernel = unsafe fn(*const u8, usize, u64, &mut [ChainingValue]) -> ChainingValue;

/// The kernel for the widest registers that this CPU has.
fn kernel() -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::instruction_set::cpu_has;
        if cpu_has!("avx512f") {
            return Some(avx512::subtree);
        }
        if cpu_has!("avx2") {
            return Some(avx2::subtree);
        }
        if cpu_has!("sse4.1") {
            return Some(sse41::subtree);
        }
    }
    #[cfg(target_arch = "aarch64")]
    return Some(neon::subtree);
    #[cfg(not(target_arch = "aarch64"))]
    None
}

/// Whether this CPU has what a kernel needs.
pub fn is_supported() -> bool {
    kernel().is_some()
}

/// The chaining value of the subtree over the `chunks` whole chunks at `start`, the first of which
/// is number `first_chunk` of the file; `None` where [`is_supported`] is false.
///
/// Panics: when `chunks` is no power of two between [`LEAST_CHUNKS`] and [`MAX_CHUNKS`].
///
/// # Safety
///
/// `start` must be readable for `chunks` × [`CHUNK_BYTES`]. The bytes may change meanwhile (mapped
/// files): then the result is that of some mixture.
pub(crate) unsafe fn subtree_raw(
    start: *const u8,
    chunks: usize,
    first_chunk: u64,
    scratch: &mut Scratch,
) -> Option<ChainingValue> {
    assert!(chunks.is_power_of_two() && (LEAST_CHUNKS..=MAX_CHUNKS).contains(&chunks));
    let subtree = kernel()?;
    // SAFETY: the CPU has what the kernel needs, the range is the caller's promise, and `chunks` is
    // within the scratch.
    Some(unsafe { subtree(start, chunks, first_chunk, &mut scratch.0[..]) })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::instruction_set::cpu_has;

    #[test]
    fn kernels_of_all_widths_agree() {
        let bytes: Vec<u8> = (0..256 * CHUNK_BYTES as u32)
            .map(|at| (at.wrapping_mul(0x9E37_79B1) >> 24) as u8)
            .collect();
        let kernels: [(&str, bool, Kernel); 3] = [
            ("sse4.1", cpu_has!("sse4.1"), sse41::subtree),
            ("avx2", cpu_has!("avx2"), avx2::subtree),
            ("avx512f", cpu_has!("avx512f"), avx512::subtree),
        ];
        for chunks in [LEAST_CHUNKS, 32, 256] {
            for first_chunk in [0, 512, (1 << 32) - 256] {
                let values =
                    kernels.iter().filter(|(_, is_there, _)| *is_there).map(|(.., kernel)| {
                        let mut scratch = Scratch::default();
                        // SAFETY: the CPU has it, and the bytes are 256 chunks.
                        unsafe { kernel(bytes.as_ptr(), chunks, first_chunk, &mut scratch.0[..]) }
                    });
                let mut values: Vec<ChainingValue> = values.collect();
                values.dedup();
                assert!(values.len() <= 1, "{chunks} {first_chunk}: {values:?}");
            }
        }
    }
}
