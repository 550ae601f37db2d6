//! The size of a terminal.

use std::os::fd::AsFd;

/// Columns of the terminal behind a descriptor; `None` when there is none or it does not say.
pub fn width_columns(terminal: &impl AsFd) -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
