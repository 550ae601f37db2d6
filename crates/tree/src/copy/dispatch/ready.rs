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
    type Directory: Above<Piece = Self>;
    type Large: Divisible<Piece = Self>;

    /// Where it waits.
    fn sorted(self) -> Sorted<Self>;
    fn kind(&self) -> Kind<'_, Self>;
}

/// A directory with others below it.
pub(in crate::copy) trait Above {
    type Piece;

    /// Directories below it that nobody has begun with.
    fn count_below(&self) -> u64;
    /// One of them, or the news that they are lost. Then there is none any more.
    fn take_below(&self) -> Option<Self::Piece>;
    fn is(&self, other: &Self) -> bool;
}

/// A large file that several may copy.
pub(in crate::copy) trait Divisible: Clone {
    type Piece;

    /// Ranges that nobody has begun with.
    fn remaining(&self) -> u32;
    /// Whether other processes may have some.
    fn may_go(&self) -> bool;
    fn help(&self) -> Self::Piece;
}

/// Where a piece waits.
pub(in crate::copy) enum Sorted<P: Piece> {
    /// After all others.
    Last(P),
    Below(P::Directory),
    Large(P::Large),
    Other(P),
}

/// What a piece is.
pub(in crate::copy) enum Kind<'p, P: Piece> {
    /// Names of this directory.
    Names(&'p P::Directory),
    /// A listing that goes on.
    Listing(&'p P::Directory),
    /// Something else in this directory.
    Inside(&'p P::Directory),
    /// A directory to begin with.
    Visit,
    /// What belongs to a large file of another process.
    Part,
    /// Names that another process waits for, and nobody else may have.
    Bound,
    Other,
}

/// Pieces that nobody has begun with.
pub(in crate::copy) struct Ready<P: Piece> {
    pieces: VecDeque<P>,
    last: VecDeque<P>,
    below: Vec<P::Directory>,
    large: Vec<P::Large>,
}

impl<P: Piece> Default for Ready<P> {
    fn default() -> Self {
        let (pieces, last) = (VecDeque::new(), VecDeque::new());
        Self { pieces, last, below: Vec::new(), large: Vec::new() }
    }
}

impl<P: Piece> Ready<P> {
    /// One piece more.
    pub(in crate::copy) fn add(&mut self, work: P) {
        match work.sorted() {
            Sorted::Last(work) => self.last.push_back(work),
            Sorted::Below(directory) => self.below.push(directory),
            Sorted::Large(large) => self.large.push(large),
            Sorted::Other(piece) => self.pieces.push_back(piece),
        }
    }

    /// The next piece for a thread that was in the directory `near`.
    pub(in crate::copy) fn next(&mut self, near: Option<&P::Directory>) -> Option<P> {
        let in_it = |work: &P| match work.kind() {
            Kind::Names(directory) | Kind::Listing(directory) | Kind::Inside(directory) => {
                near.is_some_and(|near| near.is(directory))
            }
            _ => false,
        };
        if let Some(index) = self.pieces.iter().position(in_it) {
            return self.pieces.remove(index);
        }
        if self.pieces.len() < MOST_WAITING
            && self.listings() < MOST_LISTINGS
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
        let large = self.large.iter().filter(|large| large.remaining() > 0).count();
        self.pieces.len() + self.below.len() + self.last.len() + large
    }

    /// Pieces that could be given away one by one.
    pub(in crate::copy) fn divisible(&self) -> usize {
        let below: u64 = self.below.iter().map(Above::count_below).sum();
        self.pieces.len() + below as usize
    }

    /// So many pieces, or fewer, for others: directories first, and of these the ones that were found
    /// first, which have the most below them. Names only of directories that may go.
    pub(in crate::copy) fn give(
        &mut self,
        most: usize,
        may_go: &dyn Fn(&P::Directory) -> bool,
    ) -> Vec<P> {
        let mut given = Vec::new();
        while given.len() < most && !self.below.is_empty() {
            given.extend(self.below[0].take_below());
            if self.below[0].count_below() == 0 {
                self.below.remove(0);
            }
        }
        let goes = |work: &P| match work.kind() {
            Kind::Names(directory) => may_go(directory),
            Kind::Visit => true,
            _ => false,
        };
        while given.len() < most
            && let Some(index) = self.pieces.iter().rposition(goes)
        {
            given.extend(self.pieces.remove(index));
        }
        given
    }

    /// Names that another process waits for.
    pub(in crate::copy) fn bound(&mut self) -> Option<P> {
        let index = self.pieces.iter().position(|work| matches!(work.kind(), Kind::Bound));
        index.and_then(|index| self.pieces.remove(index))
    }

    /// What of a large file there is to do.
    pub(in crate::copy) fn part(&mut self) -> Option<P> {
        match self.pieces.iter().position(|work| matches!(work.kind(), Kind::Part)) {
            Some(index) => self.pieces.remove(index),
            None => self.help(),
        }
    }

    /// The large file of which the most is left, among those that may be given away.
    pub(in crate::copy) fn largest(&self) -> Option<P::Large> {
        let may_go = self.large.iter().filter(|large| large.may_go());
        may_go.max_by_key(|large| large.remaining()).cloned()
    }

    fn listings(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece.kind(), Kind::Listing(_))).count()
    }

    /// A directory to begin with, those found deeper first.
    fn directory(&mut self) -> Option<P> {
        for index in (0..self.below.len()).rev() {
            let work = self.below[index].take_below();
            if self.below[index].count_below() == 0 {
                self.below.remove(index);
            }
            if work.is_some() {
                return work;
            }
        }
        None
    }

    /// A large file that wants help.
    fn help(&mut self) -> Option<P> {
        self.large.retain(|large| large.remaining() > 0);
        self.large.first().map(Divisible::help)
    }
}
