//! Too little of something: room, descriptors, system calls, privilege.

mod descriptors;
mod kernel;
mod privilege;
mod room;
