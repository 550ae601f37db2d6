//! How the order of work depends on what it is.

use std::sync::Arc;

use super::Work;
use super::ready::{Kind, Piece};
use crate::copy::Directory;

impl Piece for Work {
    type Directory = Arc<Directory>;

    fn kind(&self) -> Kind {
        match self {
            Self::Operand(_) => Kind::Last,
            Self::Below(_) => Kind::Below,
            Self::Large(_) => Kind::Large,
            Self::Entries(directory, _) if directory.is_bound() => Kind::Bound,
            Self::Parcel(_, parcel) if parcel.is_bound => Kind::Bound,
            Self::Entries(..) => Kind::Names,
            Self::Listing(_) => Kind::Listing,
            Self::Visit(..) => Kind::Visit,
            Self::Part(..) | Self::Joined(_) | Self::Parcel(..) => Kind::Part,
            _ => Kind::Other,
        }
    }

    fn is_in(&self, near: &Arc<Directory>) -> bool {
        match self {
            Self::Entries(directory, _)
            | Self::Listing(directory)
            | Self::Surplus(directory, _)
            | Self::Looking(directory, _) => !directory.is_bound() && Arc::ptr_eq(directory, near),
            _ => false,
        }
    }

    fn parts(&self) -> u64 {
        match self {
            Self::Below(directory) => directory.count_below(),
            Self::Large(large) => large.remaining().into(),
            _ => 0,
        }
    }

    fn part(&self) -> Option<Self> {
        match self {
            Self::Large(large) => Some(Self::Large(Arc::clone(large))),
            Self::Below(directory) => match directory.take_below() {
                Ok(below) => {
                    let (name, origin) = below?;
                    Some(Self::Visit(Arc::clone(directory), name, origin))
                }
                Err(refusal) => {
                    let count = directory.count_below();
                    directory.forget_turns();
                    Some(Self::Lost(Arc::clone(directory), refusal, count))
                }
            },
            _ => None,
        }
    }
}
