//! Runs the copier under test, or `cp -a` in its place when the tests themselves are to be tried.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::bin::{Flatout, Folder, Ran, executable};

/// Says which copier is run: `cp`, or the program under test when it is not set.
const CHOICE: &str = "FLATOUT_TEST_COPIER";

/// Whether `cp -a` stands in for the program under test.
pub fn is_control() -> bool {
    std::env::var_os(CHOICE).is_some_and(|choice| choice == "cp")
}

/// A reason to skip where `cp` stands in: some tests are about more than it does.
pub fn under_test() -> Result<(), String> {
    if is_control() { Err("cp stands in for the copier".into()) } else { Ok(()) }
}

/// A copy that has not begun. `folder` is where it runs; source and target lie anywhere.
pub fn copier<'a, A: AsRef<OsStr>>(
    folder: &'a Folder,
    options: &[A],
    (source, target): (&Path, &Path),
) -> Flatout<'a> {
    let options = options.iter().map(|option| option.as_ref().to_owned());
    let operands = [OsString::from("--"), source.into(), target.into()];
    let words = |first: &str| std::iter::once(OsString::from(first));
    if is_control() {
        let known = options.filter(|option| {
            let option = option.to_string_lossy();
            let shared = ["--sparse=", "--reflink=", "-T"];
            shared.iter().any(|known| option.starts_with(known))
        });
        return folder.program("cp".as_ref(), words("-a").chain(known).chain(operands).collect());
    }
    let words = words("copy").chain(options).chain(operands).collect();
    folder.program(executable().as_os_str(), words)
}

/// Copies and comes back when it is done.
pub fn copy<A: AsRef<OsStr>>(options: &[A], source: &Path, target: &Path) -> Ran {
    copier(&Folder::new(), options, (source, target)).run()
}

/// `cp -a` itself, against which the oracle is tried.
pub fn cp(source: &Path, target: &Path) -> Ran {
    let words = ["-a".into(), "--".into(), source.into(), target.into()];
    Folder::new().program("cp".as_ref(), words.to_vec()).run()
}
