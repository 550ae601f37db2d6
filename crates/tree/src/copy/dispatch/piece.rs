//! How the order of work depends on what it is.

use std::sync::Arc;

use super::Work;
use super::ready::{Above, Divisible, Kind, Piece, Sorted};
use crate::copy::Directory;
use crate::copy::content::Large;

impl Piece for Work {
    type Directory = Arc<Directory>;
    type Large = Arc<Large>;

    fn sorted(self) -> Sorted<Self> {
        match self {
            Self::Operand(_) => Sorted::Last(self),
            Self::Below(directory) => Sorted::Below(directory),
            Self::Large(large) => Sorted::Large(large),
            piece => Sorted::Other(piece),
        }
    }

    fn kind(&self) -> Kind<'_, Self> {
        match self {
            Self::Entries(directory, _) if directory.is_bound() => Kind::Bound,
            Self::Parcel(_, parcel) if parcel.is_bound => Kind::Bound,
            Self::Entries(directory, _) => Kind::Names(directory),
            Self::Listing(directory) => Kind::Listing(directory),
            Self::Surplus(directory, _) | Self::Looking(directory, _) => Kind::Inside(directory),
            Self::Visit(..) => Kind::Visit,
            Self::Part(..) | Self::Joined(_) | Self::Parcel(..) => Kind::Part,
            _ => Kind::Other,
        }
    }
}

impl Above for Arc<Directory> {
    type Piece = Work;

    fn count_below(&self) -> u64 {
        Directory::count_below(self)
    }

    fn take_below(&self) -> Option<Work> {
        match Directory::take_below(self) {
            Ok(below) => {
                let (name, origin) = below?;
                Some(Work::Visit(Self::clone(self), name, origin))
            }
            Err(refusal) => {
                let count = Directory::count_below(self);
                self.forget_turns();
                Some(Work::Lost(Self::clone(self), refusal, count))
            }
        }
    }

    fn is(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }
}

impl Divisible for Arc<Large> {
    type Piece = Work;

    fn remaining(&self) -> u32 {
        Large::remaining(self)
    }

    fn may_go(&self) -> bool {
        self.abroad().is_some()
    }

    fn help(&self) -> Work {
        Work::Large(Self::clone(self))
    }
}
