//! Paths as bytes: for people, tables and rules. None is ever opened.

/// Appends a name, or a path.
pub(crate) fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
