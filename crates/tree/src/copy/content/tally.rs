//! How many bytes each method moved.

use flatout_io::transfer::Method;

/// Bytes of each of [`Method::ALL`].
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::copy) struct Tally(pub(in crate::copy) [u64; Method::ALL.len()]);

impl Tally {
    pub(super) fn add(&mut self, method: Method, bytes: u64) {
        self.0[method.index()] += bytes;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn most(&self) -> Option<Method> {
        let most = Method::ALL.into_iter().max_by_key(|method| self.0[method.index()])?;
        (self.0[most.index()] > 0).then_some(most)
    }
}
