//! Why the kernel said no, in its own words.

use std::io;

/// The kernel's words without Rust's "(os error 2)": the shape of every message.
pub fn cause_text(source: &io::Error) -> String {
    let text = source.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
