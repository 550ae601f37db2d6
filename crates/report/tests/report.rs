//! What the room writes, from hand-made records.
