//! LU factorisation with partial pivoting of a whole matrix, in several threads.
//!
//! The matrix is cut into blocks of columns. Each goes through the elimination of all panels left
//! of it and is then factored as a panel itself. Threads take whatever block can go on: the next
//! panel first, since everybody will wait for it, then the block that is furthest behind. So one
//! thread factors a panel while the others still eliminate with those before ("lookahead"), and
//! there is no barrier. What a panel hands on is a packed copy; a block of columns belongs to
//! whoever works on it. Result and exchanges of rows are those of LAPACK's `dgetrf`.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use flatout_measure::TrialError;
use flatout_sys::dgemm::{BlockMut, Kernels, Room, Step};

use super::super::meeting::{self, Meeting, Timed, spin_until};
use super::super::order::Shape;
use super::panel;
use crate::workers::lock;

/// Panels that may be in use at a time: the memory of as many packed copies.
const STEPS_MOST: usize = 3;
/// Columns of a block below which small matrices are not cut.
const COLUMNS_LEAST: usize = 32;

/// What all threads know.
struct State {
    blocks: Vec<Progress>,
    /// Panels that are factored.
    factored: usize,
    /// Their packed copies, while somebody may need them.
    steps: Vec<Option<Arc<RwLock<Step>>>>,
    /// Copies that nobody needs any more, to be used again.
    spare: Vec<Arc<RwLock<Step>>>,
    singular: bool,
}

/// How far a block of columns is.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Panels that it went through.
    through: usize,
    /// Somebody works on it.
    busy: bool,
}

/// What a thread does next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Factor(usize),
    /// Take a block of columns through a panel: (panel, block).
    Eliminate(usize, usize),
    /// Wait until somebody is done.
    Wait,
    /// Nothing will come any more.
    Home,
}

impl State {
    fn next(&self) -> Next {
        let all = self.blocks.len();
        if self.singular || self.factored == all {
            return Next::Home;
        }
        let panel = self.factored;
        let head = self.blocks[panel];
        if !head.busy && head.through == panel && !self.spare.is_empty() {
            return Next::Factor(panel);
        }
        // The next panel's block first; of the others the one that is furthest behind.
        let open = |block: &usize| !self.blocks[*block].busy && self.blocks[*block].through < panel;
        let furthest = (panel..all).filter(open).min_by_key(|&block| {
            let behind = if block == panel { 0 } else { self.blocks[block].through + 1 };
            (behind, block)
        });
        match furthest {
            Some(block) => Next::Eliminate(self.blocks[block].through, block),
            None => Next::Wait,
        }
    }

    /// Gives back the copies that every block has gone through.
    fn release(&mut self) {
        let behind = self.blocks.iter().enumerate().skip(self.factored);
        let least = behind.map(|(_, block)| block.through).min().unwrap_or(self.factored);
        for step in &mut self.steps[..least.min(self.factored)] {
            self.spare.extend(step.take());
        }
    }
}

struct Work<'m> {
    shape: Shape,
    width: usize,
    kernels: Kernels,
    columns: Vec<Mutex<&'m mut [f64]>>,
    /// The rows exchanged by each panel, counted from its first row.
    pivots: Vec<Mutex<Vec<usize>>>,
    state: Mutex<State>,
    changed: Condvar,
    /// Changes of the state so far.
    changes: AtomicU64,
    /// Blocks whose rows were exchanged at the end.
    exchanged: AtomicUsize,
    meeting: Meeting,
}

/// Columns of a block: see docs/performance.md for the figures. Small matrices are cut so
/// that there are some blocks for each thread.
pub(super) fn block_columns(order: usize, threads: u32) -> usize {
    let blocks = 4 * threads as usize;
    let columns = (order / blocks).next_multiple_of(8);
    columns.clamp(COLUMNS_LEAST, PANEL_COLUMNS)
}

/// Widest block of columns.
const PANEL_COLUMNS: usize = 256;

/// Factors the matrix in place into L and U, in `threads` threads, this one included. Returns for
/// each row the one that it was exchanged with, in order, and how long it took, with memory and
/// threads there.
///
/// Source: GFLOPS of LINPACK count 2/3 n³ operations for it.
///
/// # Errors
/// No memory, no threads, or a singular matrix.
pub(in super::super) fn timed(
    kernels: Kernels,
    values: &mut [f64],
    shape: Shape,
    threads: u32,
) -> Result<(Vec<usize>, Timed), TrialError> {
    let Shape { order, stride } = shape;
    let width = block_columns(order, threads);
    let columns: Vec<_> =
        values.chunks_mut(stride * width).take(order.div_ceil(width)).map(Mutex::new).collect();
    let all = columns.len();
    // One thread has nothing else to do while it factors.
    let steps = if threads == 1 { 1 } else { STEPS_MOST.min(all) };
    let spare: io::Result<Vec<_>> =
        (0..steps).map(|_| Ok(Arc::new(RwLock::new(Step::new(order, width)?)))).collect();
    let state = State {
        blocks: vec![Progress::default(); all],
        factored: 0,
        steps: vec![None; all],
        spare: spare?,
        singular: false,
    };
    let rooms: io::Result<Vec<Room>> = (0..threads).map(|_| Room::new(width)).collect();
    let mut rooms = rooms?;
    let pivots = (0..all).map(|_| Mutex::new(Vec::new())).collect();
    let work = Work {
        shape,
        width,
        kernels,
        columns,
        pivots,
        state: Mutex::new(state),
        changed: Condvar::new(),
        changes: AtomicU64::new(0),
        exchanged: AtomicUsize::new(0),
        meeting: Meeting::of(threads),
    };
    let timed = meeting::timed(&mut rooms, |_, room| work.run(room))?;
    if lock(&work.state).singular {
        return Err(singular());
    }
    Ok((work.pivots(), timed))
}

/// A column has no usable pivot.
pub(in super::super) fn singular() -> TrialError {
    TrialError::Failed("the matrix is singular".to_owned())
}

impl Work<'_> {
    /// The whole work of one thread.
    fn run(&self, room: &mut Room) {
        self.eliminate_all(room);
        self.meeting.wait(1);
        if !lock(&self.state).singular {
            self.exchange_left(&self.pivots());
        }
    }

    /// The row that each row was exchanged with.
    fn pivots(&self) -> Vec<usize> {
        let panels = self.pivots.iter().enumerate();
        let rows = panels.map(|(panel, rows)| (panel * self.width, lock(rows)));
        rows.flat_map(|(first, rows)| rows.iter().map(|row| row + first).collect::<Vec<_>>())
            .collect()
    }

    /// Says that the state has changed.
    fn announce(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    /// Waits for a change: awake at first, since it comes soon.
    fn wait<'s>(&'s self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let seen = self.changes.load(Ordering::Acquire);
        drop(state);
        let is_new = || self.changes.load(Ordering::Acquire) != seen;
        spin_until(is_new, || true);
        let state = lock(&self.state);
        if is_new() {
            return state;
        }
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn eliminate_all(&self, room: &mut Room) {
        let mut state = lock(&self.state);
        loop {
            match state.next() {
                Next::Home => return,
                Next::Wait => state = self.wait(state),
                Next::Factor(panel) => {
                    state.blocks[panel].busy = true;
                    let Some(step) = state.spare.pop() else { continue };
                    drop(state);
                    let usable = self.factor_panel(panel, &step, room);
                    state = lock(&self.state);
                    state.steps[panel] = Some(step);
                    state.factored += 1;
                    state.singular |= !usable;
                    state.release();
                    self.announce();
                }
                Next::Eliminate(panel, block) => {
                    state.blocks[block].busy = true;
                    let step = state.steps[panel].clone();
                    drop(state);
                    if let Some(step) = step {
                        self.eliminate(panel, block, &step, room);
                    }
                    state = lock(&self.state);
                    state.blocks[block].through += 1;
                    state.blocks[block].busy = false;
                    state.release();
                    self.announce();
                }
            }
        }
    }

    /// The columns of a block, from row `row` on.
    fn rows_from<'v>(&self, values: &'v mut [f64], row: usize) -> BlockMut<'v> {
        let Shape { order, stride } = self.shape;
        let columns = values.len().div_ceil(stride).min(self.width);
        BlockMut::new(values, order, columns, stride).split_rows(row).1
    }

    fn factor_panel(&self, panel: usize, step: &RwLock<Step>, room: &mut Room) -> bool {
        let row = panel * self.width;
        let mut values = lock(&self.columns[panel]);
        let mut block = self.rows_from(&mut values, row);
        let mut pivots = vec![0; block.columns()];
        if !panel::factor(self.kernels, block.again(), &mut pivots, room) {
            return false;
        }
        if panel + 1 < self.columns.len() {
            let mut step = step.write().unwrap_or_else(PoisonError::into_inner);
            step.take(self.kernels, block.as_block());
        }
        *lock(&self.pivots[panel]) = pivots;
        true
    }

    fn eliminate(&self, panel: usize, block: usize, step: &RwLock<Step>, room: &mut Room) {
        let mut values = lock(&self.columns[block]);
        let mut columns = self.rows_from(&mut values, panel * self.width);
        columns.exchange_rows(&lock(&self.pivots[panel]));
        let step = step.read().unwrap_or_else(PoisonError::into_inner);
        self.kernels.eliminate(columns, &step, room);
    }

    /// Makes the exchanges of later panels in the columns of L, as `dgetrf` does, together with the
    /// other threads.
    fn exchange_left(&self, pivots: &[usize]) {
        loop {
            let block = self.exchanged.fetch_add(1, Ordering::Relaxed);
            let Some(values) = self.columns.get(block) else { return };
            // All exchanges in one column, which stays in the cache, and then the next column.
            let first = pivots.len().min((block + 1) * self.width);
            let later: Vec<usize> = pivots[first..].iter().map(|row| row - first).collect();
            self.rows_from(&mut lock(values), first).exchange_rows(&later);
        }
    }
}

#[cfg(test)]
mod tests;
