//! Messages and records as bytes, the same on all hosts: the lowest byte of a number first; what has no
//! length of its own stands behind it, and what a variant holds behind the number of that.

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Mutex;

use flatout_io::digest::{Algorithm, Digest};
use flatout_io::transfer::Method;
use rustix::io::Errno;

use crate::lock::lock;
use crate::spool::names::Batch;

/// Numbers of errors that the kernel knows.
const ERRNOS: std::ops::Range<i32> = 1..4096;

/// What a message can have in it.
pub trait Wire {
    /// Adds it to a message.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes it from the front of a message; `None`: it is not there.
    fn take(from: &mut &[u8]) -> Option<Self>
    where
        Self: Sized;
}

/// Adds several things to a message.
pub fn put(out: &mut Vec<u8>, parts: &[&dyn Wire]) {
    parts.iter().for_each(|part| part.put(out));
}

/// A message with these parts.
pub fn message(parts: &[&dyn Wire]) -> Vec<u8> {
    let mut message = Vec::new();
    put(&mut message, parts);
    message
}

/// Takes what is wanted from the front of a message.
pub fn take<T: Wire>(from: &mut &[u8]) -> Option<T> {
    T::take(from)
}

macro_rules! numbers {
    ($($type:ty),+) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let (first, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*first))
            }
        }
    )+};
}
numbers!(u8, u32, u64, u128, i32, i64);

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

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(value) => value.put(out),
            Err(error) => error.put(out),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(if take(from)? { Ok(take(from)?) } else { Err(take(from)?) })
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        put(out, &[&self.0, &self.1]);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some((take(from)?, take(from)?))
    }
}

/// A word of a message lives as long as the program, as ours do: there are some hundred.
impl Wire for &'static str {
    fn put(&self, out: &mut Vec<u8>) {
        (*self).to_owned().put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let text: String = take(from)?;
        let mut known = lock(&KNOWN);
        if let Some(word) = known.get(text.as_str()) {
            return Some(word);
        }
        let word: &'static str = Box::leak(text.into_boxed_str());
        known.insert(word);
        Some(word)
    }
}

/// Has a type go as another one.
macro_rules! goes_as {
    ($type:ty, $form:ty, $to:expr, $from:expr) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let to: fn(&Self) -> $form = $to;
                $crate::wire::Wire::put(&to(self), out);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let back: fn($form) -> Option<Self> = $from;
                back($crate::wire::take(from)?)
            }
        }
    };
}
pub(crate) use goes_as;

/// Has a struct go field by field.
#[macro_export]
macro_rules! goes_by_fields {
    ($type:ty { $($field:ident),+ }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $crate::wire::put(out, &[$($field),+]);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                $(let $field = $crate::wire::take(from)?;)+
                Some(Self { $($field),+ })
            }
        }
    };
}
pub use goes_by_fields;

/// Has an enum go as the number of its variant and what that holds.
macro_rules! goes_by_variants {
    ($type:ty { $($number:literal => $variant:ident
        $(($($part:ident),+))? $({ $($field:ident),+ })?),+ $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {$(
                    Self::$variant $(($($part),+))? $({ $($field),+ })? => {
                        <u8 as $crate::wire::Wire>::put(&$number, out);
                        $crate::wire::put(out, &[$($($part),+)? $($($field),+)?]);
                    }
                )+}
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(match $crate::wire::take::<u8>(from)? {
                    $($number => {
                        $($(let $part = $crate::wire::take(from)?;)+)?
                        $($(let $field = $crate::wire::take(from)?;)+)?
                        Self::$variant $(($($part),+))? $({ $($field),+ })?
                    })+
                    _ => return None,
                })
            }
        }
    };
}
pub(crate) use goes_by_variants;

goes_as!(bool, u8, |it| u8::from(*it), |byte| Some(byte != 0));
goes_as!(Method, u8, |it| it.index() as u8, |index| Self::ALL.get(usize::from(index)).copied());
goes_as!(OsString, Vec<u8>, |it| it.as_bytes().to_vec(), |bytes| Some(Self::from_vec(bytes)));
goes_as!(CString, Vec<u8>, |it| it.to_bytes().to_vec(), |bytes| Self::new(bytes).ok());
goes_as!(String, Vec<u8>, |it| it.as_bytes().to_vec(), |bytes| Self::from_utf8(bytes).ok());
goes_as!(Batch, Vec<u8>, |it| it.bytes.clone(), |bytes| Self::unpacked(&bytes));
goes_as!(Errno, i32, |it| it.raw_os_error(), |number| {
    ERRNOS.contains(&number).then(|| Self::from_raw_os_error(number))
});
goes_as!(io::Error, Errno, crate::file_data::errno_of, |errno| Some(errno.into()));
goes_as!(Algorithm, u8, |it| *it as u8, |index| Self::ALL.get(usize::from(index)).copied());
goes_as!(Digest, (Algorithm, Vec<u8>), |it| (it.algorithm(), it.as_bytes().to_vec()), |(
    of,
    bytes,
)| {
    (bytes.len() == of.length_bytes()).then(|| Self::new(of, &bytes))
});
