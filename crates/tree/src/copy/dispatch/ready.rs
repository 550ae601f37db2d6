//! The pieces that can be begun with now, and which of them comes first.
//!
//! A thread stays in the directory in which it is, and else begins with another: creating names in
//! one directory holds its lock, so threads that share one wait for each other. Only when there is
//! no other, or so many pieces wait that they would be a burden, does it help elsewhere. So what
//! waits is never much more than what a few listings yield, and the tree is gone through in depth.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::copy::content::Large;
use crate::copy::directory::Directory;

use super::Work;

/// Pieces that may wait while another directory is begun with. Each holds some 32 names.
const MOST_WAITING: usize = 64;
/// Listings among them, which hold descriptors.
const MOST_LISTINGS: usize = 2;

/// Pieces that nobody has begun with.
#[derive(Default)]
pub(super) struct Ready {
    pieces: VecDeque<Work>,
    operands: VecDeque<Work>,
    below: Vec<Arc<Directory>>,
    large: Vec<Arc<Large>>,
}

/// Chooses one of so many; at least one.
type Choose<'a> = &'a mut dyn FnMut(usize) -> usize;

impl Ready {
    /// One piece more.
    pub(super) fn add(&mut self, work: Work) {
        match work {
            Work::Operand(_) => self.operands.push_back(work),
            Work::Below(directory) => self.below.push(directory),
            Work::Large(large) => self.large.push(large),
            piece => self.pieces.push_back(piece),
        }
    }

    /// The next piece for a thread that was in the directory `near`; `choose` says which of those
    /// that could be next.
    pub(super) fn next(
        &mut self,
        near: Option<&Arc<Directory>>,
        choose: Choose<'_>,
    ) -> Option<Work> {
        let in_it = |work: &Work| match work {
            Work::Entries(directory, _)
            | Work::Listing(directory)
            | Work::Surplus(directory, _) => near.is_some_and(|near| Arc::ptr_eq(near, directory)),
            _ => false,
        };
        if let Some(index) = self.pieces.iter().position(in_it) {
            return self.pieces.remove(index);
        }
        if self.pieces.len() < MOST_WAITING
            && self.listings() < MOST_LISTINGS
            && let Some(work) = self.directory(choose)
        {
            return Some(work);
        }
        if !self.pieces.is_empty() {
            return self.pieces.remove(choose(self.pieces.len()));
        }
        self.directory(choose).or_else(|| self.operands.pop_front()).or_else(|| self.help())
    }

    /// Pieces that somebody could begin with; all directories that wait below one count as one.
    pub(super) fn count(&self) -> usize {
        let large = self.large.iter().filter(|large| large.has_more()).count();
        self.pieces.len() + self.below.len() + self.operands.len() + large
    }

    /// Pieces that could be given away one by one.
    pub(super) fn divisible(&self) -> usize {
        let below: u64 = self.below.iter().map(|directory| directory.count_below()).sum();
        self.pieces.len() + below as usize
    }

    /// So many pieces, or fewer, for others: directories first, and of these the ones that were found
    /// first, which have the most below them. Names only of directories that may go.
    pub(super) fn give(&mut self, most: usize, may_go: &dyn Fn(&Directory) -> bool) -> Vec<Work> {
        let mut given = Vec::new();
        while given.len() < most && !self.below.is_empty() {
            match self.below[0].take_below() {
                Ok(Some((name, origin))) => {
                    given.push(Work::Visit(Arc::clone(&self.below[0]), name, origin));
                    if !self.below[0].has_below() {
                        self.below.remove(0);
                    }
                }
                Ok(None) => drop(self.below.remove(0)),
                Err(refusal) => given.push(Work::Lost(self.below.remove(0), refusal)),
            }
        }
        let goes = |work: &Work| match work {
            Work::Entries(directory, _) => may_go(directory),
            Work::Visit(..) => true,
            _ => false,
        };
        while given.len() < most
            && let Some(index) = self.pieces.iter().rposition(goes)
        {
            given.extend(self.pieces.remove(index));
        }
        given
    }

    fn listings(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, Work::Listing(_))).count()
    }

    /// A directory to begin with: from the chosen one on, those found deeper first.
    fn directory(&mut self, choose: Choose<'_>) -> Option<Work> {
        let mut left = self.below.len();
        let mut index = match left {
            0 => return None,
            count => count - 1 - choose(count),
        };
        while left > 0 {
            left -= 1;
            match self.below[index].take_below() {
                Ok(Some((name, origin))) => {
                    let directory = match self.below[index].has_below() {
                        true => Arc::clone(&self.below[index]),
                        false => self.below.remove(index),
                    };
                    return Some(Work::Visit(directory, name, origin));
                }
                Ok(None) => drop(self.below.remove(index)),
                Err(refusal) => return Some(Work::Lost(self.below.remove(index), refusal)),
            }
            index = index.checked_sub(1).unwrap_or(self.below.len().saturating_sub(1));
        }
        None
    }

    /// A large file that wants help.
    fn help(&mut self) -> Option<Work> {
        self.large.retain(|large| large.has_more());
        self.large.first().map(|large| Work::Large(Arc::clone(large)))
    }
}
