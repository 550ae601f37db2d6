//! Where a directory lies: paths for messages, tables and rules. None is ever opened.

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use super::{Directory, Identity, Pair, Side};
use crate::copy::Refusal;

impl Directory {
    /// The path below what the user named, for messages; from the operand on.
    pub(in crate::copy) fn path(&self, side: Side, name: Option<&CStr>) -> OsString {
        let mut parts: Vec<Vec<u8>> =
            name.map(|name| name.to_bytes().to_vec()).into_iter().collect();
        // An operand such as `a/` is the name `.` in itself.
        parts.retain(|part| part != b".");
        parts.extend(self.upwards().map(|directory| {
            let named = directory.known().map(|known| known.named.on(side).to_bytes().to_vec());
            named.unwrap_or_else(|_| b"?".to_vec())
        }));
        let mut path = Vec::new();
        let mut is_operand = false;
        for part in parts.iter().rev().filter(|part| !part.is_empty()) {
            if part == b"." && !path.is_empty() {
                is_operand = true;
                continue;
            }
            // What lies in `a//` is `a/b`, as to cp.
            while std::mem::take(&mut is_operand) && path.ends_with(b"//") {
                is_operand = path.pop().is_some();
            }
            crate::path::push(&mut path, part);
        }
        OsString::from_vec(path)
    }

    /// Whether it lies below this base, in the target.
    pub(in crate::copy) fn is_below(&self, base: Identity) -> bool {
        self.base_above().pair().is_some_and(|pair| pair.found.target == base)
    }

    /// Whether it is what the user named, as the name `.` in itself.
    pub(in crate::copy) fn is_target_itself(&self) -> bool {
        let is_top = self.parent.as_ref().is_some_and(|above| above.parent.is_none());
        is_top && self.known().is_ok_and(|known| known.named.target.as_c_str() == c".")
    }

    /// Whether it is this directory of the source, or lies in it.
    pub(in crate::copy) fn is_within(&self, source: Identity) -> bool {
        let is_it = |directory: &Self| directory.known().is_ok_and(|it| it.source == source);
        self.upwards_below_base().any(is_it)
    }

    /// The path in the target below its base, for the table of links.
    ///
    /// Errors: a name on the way cannot be read.
    pub(in crate::copy) fn path_below_base(&self, name: &CStr) -> Result<Vec<u8>, Refusal> {
        let mut path = self.names()?;
        path.push(name.to_bytes().to_vec());
        Ok(path.join(&b'/'))
    }

    /// The path below the operand in which it lies: empty for that itself.
    ///
    /// Errors: a name on the way cannot be read.
    pub(in crate::copy) fn path_below_operand(&self) -> Result<Vec<u8>, Refusal> {
        Ok(self.names()?.get(1..).unwrap_or_default().join(&b'/'))
    }

    /// The directory of the target in which all of its operand is, if it is open, and where a path below
    /// the base lies in that.
    pub(in crate::copy) fn within_operand(&self, path: &[u8]) -> Option<(Arc<Pair>, Vec<u8>)> {
        let top = self.upwards_below_base().last()?;
        let pair = top.pair()?;
        let name = top.known().ok()?.named.on(Side::Target).to_bytes().to_vec();
        let path = path.strip_prefix(&name[..])?.strip_prefix(b"/")?.to_vec();
        Some((pair, path))
    }

    /// The names from its base on, in the target.
    fn names(&self) -> Result<Vec<Vec<u8>>, Refusal> {
        let name = |here: &Self| Ok(here.known()?.named.on(Side::Target).to_bytes().to_vec());
        let mut names = self.upwards_below_base().map(name).collect::<Result<Vec<_>, _>>()?;
        names.reverse();
        Ok(names)
    }
}
