//! BLAKE3 in parts: each segment is a subtree, and the fold is the top of the tree.
//!
//! Source: sections 2.4 and 5.1.2 of the BLAKE3 paper, for the shape of the tree and the stack.

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use flatout_sys::blake3::{CHUNK_BYTES, LEAST_CHUNKS, MAX_CHUNKS, is_supported};
use flatout_sys::view::ByteView;

pub(super) use flatout_sys::blake3::{ChainingValue as Value, Scratch};

use super::each_slice;

/// The chaining value of a segment, whatever its length.
pub(super) fn value(
    bytes: ByteView<'_>,
    offset_bytes: u64,
    scratch: &mut Scratch,
    copy: &mut Vec<u8>,
) -> Value {
    let chunks = bytes.len() / CHUNK_BYTES;
    // Below the kernel's reach, and without it, the library takes the bytes.
    if chunks < LEAST_CHUNKS || !is_supported() {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(offset_bytes);
        each_slice(bytes, copy, |slice| _ = hasher.update(slice));
        return hasher.finalize_non_root();
    }
    if chunks.is_power_of_two() && chunks <= MAX_CHUNKS && bytes.len().is_multiple_of(CHUNK_BYTES) {
        let first_chunk = offset_bytes / CHUNK_BYTES as u64;
        return bytes.blake3_subtree(first_chunk, scratch).expect("the kernel is supported");
    }
    // The left child holds the largest power of two of chunks that leaves the right one a byte.
    let left_bytes = 1 << (bytes.len() - 1).ilog2();
    let right = bytes.part(left_bytes, bytes.len() - left_bytes);
    let left = value(bytes.part(0, left_bytes), offset_bytes, scratch, copy);
    let right = value(right, offset_bytes + left_bytes as u64, scratch, copy);
    merge_subtrees_non_root(&left, &right, Mode::Hash)
}

/// The subtrees that still wait for the subtree to their right, the largest first.
#[derive(Default)]
pub(super) struct Stack {
    values: Vec<Value>,
    pushed: u64,
}

impl Stack {
    /// Takes in the next segment. Two subtrees of one size are joined only when a further one has
    /// come, since the last joining of all is that of the root.
    pub(super) fn push(&mut self, value: Value) {
        while self.values.len() > self.pushed.count_ones() as usize {
            self.join_last();
        }
        self.values.push(value);
        self.pushed += 1;
    }

    fn join_last(&mut self) {
        let right = self.values.pop().expect("there are two");
        let left = self.values.pop().expect("there are two");
        self.values.push(merge_subtrees_non_root(&left, &right, Mode::Hash));
    }

    /// The digest.
    ///
    /// Panics: below two segments.
    pub(super) fn root(mut self) -> [u8; 32] {
        while self.values.len() > 2 {
            self.join_last();
        }
        let [left, right] = self.values[..] else { panic!("a cut has two segments at least") };
        *merge_subtrees_root(&left, &right, Mode::Hash).as_bytes()
    }
}
