//! What the room writes, from hand-made records.

#![forbid(unsafe_code)]
