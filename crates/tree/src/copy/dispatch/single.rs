//! Work for one thread, in an order that a seed decides: the same seed, the same order.

use std::sync::{Arc, Mutex, PoisonError};

use super::ready::Ready;
use super::{Dispatch, Near, Work};
use crate::copy::directory::Identity;
use crate::copy::failure::Refusal;
use crate::copy::links::{Claim, Links};
use crate::copy::stop::Stop;

/// Pieces of work for a single thread.
pub(in crate::copy) struct Single {
    state: Mutex<State>,
    links: Links,
    stop: Arc<Stop>,
}

struct State {
    ready: Ready,
    random: u64,
}

impl Single {
    pub(in crate::copy) fn new(links: Links, stop: Arc<Stop>, seed: u64) -> Self {
        let state = State { ready: Ready::default(), random: seed };
        Self { state: Mutex::new(state), links, stop }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014), one step.
fn step(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

impl Dispatch for Single {
    fn next_batch(&self, _near: Near<'_>) -> Option<Work> {
        if self.stop.is_due() {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { ready, random } = &mut *state;
        ready.next(None, &mut |count| (step(random) % count as u64) as usize)
    }

    fn offer(&self, found: Vec<Work>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        found.into_iter().for_each(|work| state.ready.add(work));
    }

    fn finished(&self) {}

    fn claim_link(&self, identity: Identity, names: u64) -> Result<Claim<'_>, Refusal> {
        self.links.claim(identity, names)
    }
}
