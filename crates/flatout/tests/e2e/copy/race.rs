//! Somebody swaps parts of the trees while they are copied: nothing outside is read or written.
//!
//! `each_call` stops the copier before each call that looks a name up and swaps one part there;
//! `free` swaps as fast as it can. What is swapped for what stands in `attack`, the place and what
//! must be true of it afterwards in `arena`, and how a program is stopped in `held`.

pub mod arena;
mod attack;
mod each_call;
mod free;
pub mod held;
