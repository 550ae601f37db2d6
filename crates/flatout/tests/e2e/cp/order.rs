//! Directories in which something lies: the order of cp where that matters.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::Pair;
use super::property::order;

/// All files are copied by any thread, what may meet another name in its turn.
#[test]
fn a_filled_directory_is_filled_in_the_order_of_cp_where_that_matters() {
    let plant = |folder: &Path| {
        for tree in ["s", "t"] {
            fs::create_dir_all(folder.join(tree).join("sub")).unwrap();
            for number in 0..200 {
                fs::write(folder.join(format!("{tree}/{number}")), tree.repeat(number)).unwrap();
            }
        }
        for number in (0..200).step_by(7) {
            let name = |tree: &str, number: usize| folder.join(format!("{tree}/{number}"));
            fs::remove_file(name("t", number)).unwrap();
            symlink((199 - number).to_string(), name("t", number)).unwrap();
            symlink(format!("../{number}"), folder.join(format!("t/sub/{number}"))).unwrap();
            fs::write(folder.join(format!("s/sub/{number}")), "sub").unwrap();
            // Not of a name that a symlink bears in the target: cp would make a link to that.
            if number + 4 < 200 {
                fs::remove_file(name("s", number + 4)).unwrap();
                fs::hard_link(name("s", number + 3), name("s", number + 4)).unwrap();
            }
            fs::remove_file(name("t", number + 2)).unwrap();
            fs::hard_link(name("t", number + 1), name("t", number + 2)).unwrap();
        }
        // By the clock all of a tree may be made in one tick, which -u would see: a tick lasts as long as
        // the hypervisor keeps the CPU that counts them.
        for (tree, second) in [("s", 1), ("s/sub", 2)] {
            for entry in fs::read_dir(folder.join(tree)).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    let time = UNIX_EPOCH + Duration::from_secs(second);
                    fs::File::open(entry.path()).unwrap().set_modified(time).unwrap();
                }
            }
        }
    };
    // Elsewhere on the disk inodes come and go, and those of two trees may be in two orders.
    let pair = Pair::new(plant);
    let same_order = || order(&pair.folder("cp")) == order(&pair.folder("flatout"));
    if !same_order() {
        pair.plant(plant);
    }
    if !same_order() {
        return eprintln!("skipped: two trees have their inodes in two orders");
    }
    for line in ["-r s/. t", "-a s/. t", "-ru s/. t", "-r --remove-destination s/. t"] {
        pair.same(line);
    }
    let files: Vec<String> = (0..200).map(|number| format!("s/{number}")).collect();
    pair.same(&format!("{} t", files.join(" ")));
}
