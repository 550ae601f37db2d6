//! Messages as bytes, the same on all hosts: numbers take eight, the lowest first; what has no length of
//! its own stands behind its number.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use flatout_io::transfer::Method;

use crate::copy::directory::Closed;
use crate::spool::names::Batch;

/// What a message can have in it.
pub(super) trait Wire {
    /// Adds it to a message.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes it from the front of a message; `None`: it is not there.
    fn take(from: &mut &[u8]) -> Option<Self>
    where
        Self: Sized;
}

/// Adds several things to a message.
pub(super) fn put(out: &mut Vec<u8>, parts: &[&dyn Wire]) {
    parts.iter().for_each(|part| part.put(out));
}

/// A message with these parts.
pub(super) fn message(parts: &[&dyn Wire]) -> Vec<u8> {
    let mut message = Vec::new();
    put(&mut message, parts);
    message
}

/// Takes what is wanted from the front of a message.
pub(super) fn take<T: Wire>(from: &mut &[u8]) -> Option<T> {
    T::take(from)
}

impl Wire for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (&first, rest) = from.split_first()?;
        *from = rest;
        Some(first)
    }
}

impl Wire for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (first, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(Self::from_le_bytes(*first))
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|part| part.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let parts: Option<Vec<T>> = (0..N).map(|_| take(from)).collect();
        parts?.try_into().ok()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|part| part.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        (0..u64::take(from)?).map(|_| take(from)).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|part| part.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(if take(from)? { Some(take(from)?) } else { None })
    }
}

/// Has a type go as another one.
macro_rules! goes_as {
    ($type:ty, $form:ty, $to:expr, $from:expr) => {
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let to: fn(&Self) -> $form = $to;
                to(self).put(out);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let back: fn($form) -> Option<Self> = $from;
                back(take(from)?)
            }
        }
    };
}

goes_as!(bool, u8, |it| u8::from(*it), |byte| Some(byte != 0));
goes_as!(u32, u64, |it| u64::from(*it), |number| number.try_into().ok());
goes_as!(Method, u8, |it| it.index() as u8, |index| Self::ALL.get(usize::from(index)).copied());
goes_as!(OsString, Vec<u8>, |it| it.as_bytes().to_vec(), |bytes| Some(Self::from_vec(bytes)));
goes_as!(CString, Vec<u8>, |it| it.to_bytes().to_vec(), |bytes| Self::new(bytes).ok());
goes_as!(Closed, Vec<u8>, Self::packed, |bytes| Self::unpacked(&bytes));
goes_as!(Batch, Vec<u8>, |it| it.packed().to_vec(), |bytes| Self::unpacked(&bytes));
