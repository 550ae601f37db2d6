//! A range of a file, moved by one method after the other, not faster than it may be.

use std::time::Duration;

use flatout_io::transfer::{End, Method, Moved, Route};
use flatout_sys::clock::monotonic_ns;

use super::difference::Amending;
use super::methods::Pair;
use super::{Content, Tally, around, unless_stopped};
use crate::copy::Refusal;

/// How often one who waits asks whether the copy was stopped.
const ASK_AGAIN_NS: u64 = 100_000_000;

/// What is done with each range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::copy) enum Task {
    /// It is moved by a method.
    Move(Method),
    /// What differs is written, and holes are made where the source has them.
    Amend(Amending),
}

impl Content<'_> {
    /// Does it with one range.
    pub(super) fn task(
        &mut self,
        task: Task,
        route: Route<'_>,
        pair: &Pair,
        tally: &mut Tally,
    ) -> Result<Moved, Refusal> {
        match task {
            Task::Move(method) => self.range(route, method, pair, tally),
            Task::Amend(amending) => self.amend_range(route, amending, tally),
        }
    }

    /// Moves a range, piece by piece where there is a limit.
    pub(super) fn range(
        &mut self,
        route: Route<'_>,
        wanted: Method,
        pair: &Pair,
        tally: &mut Tally,
    ) -> Result<Moved, Refusal> {
        self.in_pieces(route, |content, piece| content.at_once(piece, wanted, pair, tally))
    }

    /// Has a range moved in pieces as long as the limits allow; at once where there are none.
    pub(super) fn in_pieces(
        &mut self,
        route: Route<'_>,
        mut move_piece: impl FnMut(&mut Self, Route<'_>) -> Result<Moved, Refusal>,
    ) -> Result<Moved, Refusal> {
        let Some(piece_bytes) = self.methods.limits.piece_bytes() else {
            return move_piece(self, route);
        };
        let mut bytes = 0;
        while bytes < route.length_bytes {
            let length_bytes = piece_bytes.min(route.length_bytes - bytes);
            self.wait_for(length_bytes)?;
            let moved = move_piece(self, Route { length_bytes, ..route.behind(bytes) })?;
            bytes += moved.bytes;
            if moved.end != End::Whole {
                return Ok(Moved { bytes, ..moved });
            }
        }
        Ok(Moved { bytes, end: End::Whole })
    }

    /// Waits until so many bytes may be moved.
    pub(super) fn wait_for(&self, bytes: u64) -> Result<(), Refusal> {
        let mut now_ns = monotonic_ns();
        let begin_ns = self.methods.limits.admit(bytes, now_ns);
        while now_ns < begin_ns {
            self.look()?;
            std::thread::sleep(Duration::from_nanos((begin_ns - now_ns).min(ASK_AGAIN_NS)));
            now_ns = monotonic_ns();
        }
        Ok(())
    }

    /// Moves a range: by the method that is wanted, and by read and write what it cannot.
    fn at_once(
        &mut self,
        route: Route<'_>,
        wanted: Method,
        pair: &Pair,
        tally: &mut Tally,
    ) -> Result<Moved, Refusal> {
        let mut method = if pair.may(wanted) { wanted } else { Method::Sync };
        let mut bytes = 0;
        loop {
            let rest = route.behind(bytes);
            let moved = match method {
                Method::Sync if around::is_direct(&rest, self.is_limited()) => {
                    self.range_around(rest)
                }
                method => self.transfer.run(method, rest, &mut self.stop),
            };
            let moved = unless_stopped(moved)?;
            tally.add(method, moved.bytes);
            bytes += moved.bytes;
            match moved.end {
                End::Unclear => {}
                End::Cannot(errno) => pair.refuse(method, errno),
                end => return Ok(Moved { bytes, end }),
            }
            method = Method::Sync;
        }
    }
}
