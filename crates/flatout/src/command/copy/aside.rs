//! Results lie aside: neither among what is copied nor where the copies go. A log in a source would
//! take the place of what it is to tell of.

use std::path::{Path, PathBuf};

use flatout_tree::copy::Operand;

/// Says why results cannot be written to `path` while these are copied.
///
/// Cost: a few calls for each operand.
pub fn obstacle(path: &Path, operands: &[Operand]) -> Option<String> {
    let results = resolved(path)?;
    operands.iter().find_map(|operand| {
        let is_in = |place: Option<PathBuf>| place.is_some_and(|place| results.starts_with(place));
        // What a symlink given as a source points at is not copied.
        let is_source =
            is_in(resolved(&operand.source)) || is_in(operand.source.canonicalize().ok());
        let shown = path.display();
        if is_source {
            let source = operand.source.display();
            return Some(format!("cannot write results to {shown}: it lies in {source}"));
        }
        let is_target =
            is_in(resolved(&operand.target)) || is_in(operand.target.canonicalize().ok());
        let target = operand.target.display();
        is_target.then(|| format!("cannot write results to {shown}: copies go to {target}"))
    })
}

/// The path without symlinks above its last name, which need not be there.
fn resolved(path: &Path) -> Option<PathBuf> {
    let Some(name) = path.file_name() else { return path.canonicalize().ok() };
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    Some(above.canonicalize().ok()?.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_lie_neither_in_a_source_nor_where_a_copy_goes() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("source/sub")).unwrap();
        std::fs::create_dir(at("target")).unwrap();
        std::os::unix::fs::symlink("source", at("link")).unwrap();
        let operand = Operand { source: at("source"), target: at("target/source") };
        let is_refused = |name: &str| obstacle(&at(name), std::slice::from_ref(&operand)).is_some();
        for bad in ["source/log", "source/sub/log", "link/log", "target/source", "target/source/x"]
        {
            assert_eq!(is_refused(bad), bad != "target/source/x", "{bad}");
        }
        for good in ["log", "target/log", "target/source.log", "source.log"] {
            assert!(!is_refused(good), "{good}");
        }
        let merged = Operand { source: at("source"), target: at("target") };
        assert!(obstacle(&at("target/log"), &[merged]).is_some());
    }
}
