//! The pieces that can be begun with now, and which of them comes first.
//!
//! A thread stays in the directory in which it is, and else begins with another: creating names in
//! one directory holds its lock, so threads that share one wait for each other. Only when there is
//! no other, or so many pieces wait that they would be a burden, does it help elsewhere. So what
//! waits is never much more than what a few listings yield, and the tree is gone through in depth.
//!
//! What a piece is does not matter here: [`crate::copy::dispatch::Work`] is one kind, another is that
//! of a simulation (`shared/tests/simulation.rs`).

use std::collections::VecDeque;

/// Pieces that may wait while another directory is begun with. Each holds some 32 names.
const MOST_WAITING: usize = 64;
/// Listings among them, which hold descriptors.
const MOST_LISTINGS: usize = 2;

/// A piece of work, as far as its order depends on it.
pub(in crate::copy) trait Piece: Sized {
    type Directory;

    fn kind(&self) -> Kind;
    /// Whether it is done in this directory, in which other pieces wait, too.
    fn is_in(&self, directory: &Self::Directory) -> bool;
    /// Directories below one that nobody has begun with, or such ranges of a large file.
    fn parts(&self) -> u64;
    /// One of them, or the news that they are lost: then there is none any more.
    fn part(&self) -> Option<Self>;
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::copy) enum Kind {
    /// It comes after all others.
    Last,
    /// Directories that wait below one.
    Below,
    /// A large file that several may copy.
    Large,
    /// Names of a directory.
    Names,
    /// A listing that goes on.
    Listing,
    /// A directory to begin with.
    Visit,
    /// What belongs to a large file of another process.
    Part,
    /// Names that another process waits for, and nobody else may have.
    Bound,
    Other,
}

/// Pieces that nobody has begun with.
pub(in crate::copy) struct Ready<P> {
    pieces: VecDeque<P>,
    last: VecDeque<P>,
    below: Vec<P>,
    large: Vec<P>,
}

impl<P> Default for Ready<P> {
    fn default() -> Self {
        let (pieces, last) = (VecDeque::new(), VecDeque::new());
        Self { pieces, last, below: Vec::new(), large: Vec::new() }
    }
}

impl<P: Piece> Ready<P> {
    /// One piece more.
    pub(in crate::copy) fn add(&mut self, work: P) {
        match work.kind() {
            Kind::Last => self.last.push_back(work),
            Kind::Below => self.below.push(work),
            Kind::Large => self.large.push(work),
            _ => self.pieces.push_back(work),
        }
    }

    /// The next piece for a thread that was in the directory `near`.
    pub(in crate::copy) fn next(&mut self, near: Option<&P::Directory>) -> Option<P> {
        let is_near = |work: &P| near.is_some_and(|near| work.is_in(near));
        if let Some(index) = self.pieces.iter().position(is_near) {
            return self.pieces.remove(index);
        }
        let listings = self.pieces.iter().filter(|work| work.kind() == Kind::Listing).count();
        if self.pieces.len() < MOST_WAITING
            && listings < MOST_LISTINGS
            && let Some(work) = self.directory()
        {
            return Some(work);
        }
        if !self.pieces.is_empty() {
            return self.pieces.pop_front();
        }
        self.directory().or_else(|| self.last.pop_front()).or_else(|| self.help())
    }

    /// Pieces that somebody could begin with; all directories that wait below one count as one.
    pub(in crate::copy) fn count(&self) -> usize {
        let large = self.large.iter().filter(|large| large.parts() > 0).count();
        self.pieces.len() + self.below.len() + self.last.len() + large
    }

    /// Pieces that could be given away one by one.
    pub(in crate::copy) fn divisible(&self) -> usize {
        let below: u64 = self.below.iter().map(Piece::parts).sum();
        self.pieces.len() + below as usize
    }

    /// So many pieces, or fewer, for others: directories first, and of these the ones that were found
    /// first, which have the most below them. Names only where they may go.
    pub(in crate::copy) fn give(&mut self, most: usize, may_go: &dyn Fn(&P) -> bool) -> Vec<P> {
        let mut given = Vec::new();
        while given.len() < most && !self.below.is_empty() {
            given.extend(self.part_below(0));
        }
        let goes = |work: &P| matches!(work.kind(), Kind::Names | Kind::Visit) && may_go(work);
        while given.len() < most
            && let Some(index) = self.pieces.iter().rposition(goes)
        {
            given.extend(self.pieces.remove(index));
        }
        given
    }

    /// Names that another process waits for.
    pub(in crate::copy) fn bound(&mut self) -> Option<P> {
        self.first(Kind::Bound)
    }

    /// What of a large file there is to do.
    pub(in crate::copy) fn part(&mut self) -> Option<P> {
        self.first(Kind::Part).or_else(|| self.help())
    }

    /// The large file of which the most is left, among those that may be given away.
    pub(in crate::copy) fn largest(&self, may_go: impl Fn(&P) -> bool) -> Option<&P> {
        self.large.iter().filter(|large| may_go(large)).max_by_key(|large| large.parts())
    }

    fn first(&mut self, kind: Kind) -> Option<P> {
        let index = self.pieces.iter().position(|work| work.kind() == kind)?;
        self.pieces.remove(index)
    }

    /// A directory to begin with, those found deeper first.
    fn directory(&mut self) -> Option<P> {
        (0..self.below.len()).rev().find_map(|index| self.part_below(index))
    }

    fn part_below(&mut self, index: usize) -> Option<P> {
        let work = self.below[index].part();
        if self.below[index].parts() == 0 {
            self.below.remove(index);
        }
        work
    }

    /// A large file that wants help.
    fn help(&mut self) -> Option<P> {
        self.large.retain(|large| large.parts() > 0);
        self.large.first().and_then(Piece::part)
    }
}
