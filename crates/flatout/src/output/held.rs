//! Lines for standard error that wait until a view that has the whole screen gives it back.

use std::sync::{Mutex, MutexGuard};

use flatout_sys::lock::lock;

static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    lock(&HELD)
}

/// From now on lines wait.
pub fn begin() {
    *held() = Some(Vec::new());
}

/// Takes a line where lines wait.
pub fn keeps(line: &str) -> bool {
    let mut held = held();
    held.as_mut().map(|held| held.push(line.to_owned())).is_some()
}

/// The last line that waits.
pub fn last() -> Option<String> {
    held().as_ref()?.last().cloned()
}

/// Writes the lines that waited; from now on none waits.
pub fn end() {
    let waited = held().take();
    waited.unwrap_or_default().iter().for_each(|line| super::complain(line));
}
