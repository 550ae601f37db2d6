//! What somebody who is not root makes and writes, by the rules of cp.

use std::fs;

use rustix::fs::{XattrFlags, setxattr};

use super::{NOBODY, Pair};
use crate::copy::entry::chmod;
use crate::copy::forest::acl;

/// The kernel takes set-id bits from what somebody writes to who is not root.
#[test]
fn set_id_bits_of_what_is_written_go_as_with_cp() {
    let mut pair = Pair::new(|_| {});
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        pair.as_nobody();
    }
    for mode in [0o6711, 0o6644, 0o2755, 0o2640, 0o4755] {
        for options in ["-a", "-p", "-r"] {
            pair.plant(|folder| {
                for (name, mode) in [("a", 0o644), ("b", mode)] {
                    let path = folder.join(name);
                    fs::write(&path, name).unwrap();
                    if is_root {
                        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
                    }
                    chmod(&path, mode);
                }
            });
            pair.same(&format!("{options} a b"));
        }
    }
}

/// cp opens them to their owner, too.
#[test]
fn directories_above_can_be_entered_whatever_list_they_inherit() {
    let mut pair = Pair::new(|_| {});
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        pair.as_nobody();
    }
    pair.plant(|folder| {
        fs::create_dir_all(folder.join("s")).unwrap();
        fs::write(folder.join("s/a"), "a").unwrap();
        fs::create_dir(folder.join("t")).unwrap();
        let list = acl([6, 4, 4, 4, 6, 0]);
        let name = "system.posix_acl_default";
        let _where_there_are_lists = setxattr(folder.join("t"), name, &list, XattrFlags::empty());
        for name in if is_root { &["s", "s/a", "t"][..] } else { &[] } {
            std::os::unix::fs::chown(folder.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    });
    let words = ["--parents", "s/a", "t"].map(str::to_owned);
    let compared = pair.run(&words);
    for (side, output) in [("cp", &compared.cp), ("flatout", &compared.flatout)] {
        assert_eq!(output.status.code(), Some(0), "{compared}");
        // Whoever made it may have closed it afterwards.
        chmod(&pair.folder(side).join("t/s"), 0o755);
        assert_eq!(fs::read(pair.folder(side).join("t/s/a")).unwrap(), b"a", "{side}");
    }
}
