//! Who has threads for a copy, and starts them when there is work.

/// Whoever has threads for a copy.
pub trait Hiring {
    /// Starts a thread that calls [`crate::copy::Copy::work`], with its number; `false`: none can be started.
    fn hire(&self, number: u32) -> bool;
    /// It will take a while: bytes are about to be moved, and not just extents to be shared.
    fn takes_time(&self) {}
}

impl<F: Fn(u32) -> bool> Hiring for F {
    fn hire(&self, number: u32) -> bool {
        self(number)
    }
}

/// Who has them.
pub type Hire<'h> = &'h dyn Hiring;
