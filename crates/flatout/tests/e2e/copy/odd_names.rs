//! Names for which the target has others.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::bin::Folder;
use crate::faulty::{Faults, Faulty};
use crate::skip::needs;

/// As on udf, which has other names for what is no UTF-8.
#[test]
fn a_name_for_which_the_target_has_another_one_is_a_failure() {
    let folder = Folder::new();
    for name in [&b"n\xff"[..], b"n\xfe", b"d\xff", b"plain"].map(OsStr::from_bytes) {
        fs::create_dir_all(folder.join("S")).unwrap();
        fs::write(folder.join("S").join(name), "bytes").unwrap();
    }
    for words in ["copy -T S", "copy --in-place -T S", "cp -rT S"] {
        for (cuts, failures) in [(true, 3), (false, 0)] {
            let faulty = needs!(Faulty::new(Faults { cuts, ..Faults::default() }));
            let target = faulty.path().join("there");
            for _ in 0..2 {
                let words = words.split(' ').chain([target.to_str().unwrap()]);
                let ran = folder.flatout(words.collect::<Vec<_>>()).run();
                ran.exits(i32::from(failures > 0));
                let refused = ran.stderr.lines().filter(|line| line.contains("another name"));
                assert_eq!(refused.count(), failures, "{ran}");
                assert_eq!(fs::read_to_string(target.join("plain")).unwrap(), "bytes", "{ran}");
            }
            faulty.finish();
        }
    }
}
