//! The oracle on trial: what `cp -a` copies well is the same, and each difference is found.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Gid, Mode, Timespec, Timestamps, Uid, chownat,
    fallocate, linkat, lremovexattr, makedev, mknodat, utimensat,
};

use super::super::copier::cp;
use super::super::entry::{chmod, set};
use super::super::forest::{Acl, Plan, acl, capability, plant};
use super::{Aspect, Leeway, Portrait, assert_same, differences};
use crate::bin::Folder;
use crate::filesystem::{Kind, Mounted, is_root, needs_root};
use crate::fixture::{random_bytes, seed};
use crate::skip::needs;

/// A tree that cp copies whole: cp takes a path for each name, and so refuses long ones.
fn plain_tree(root: &Path) {
    fs::create_dir_all(root.join("dir/empty")).unwrap();
    fs::write(root.join("file"), random_bytes(100_000, 1)).unwrap();
    fs::write(root.join("dir/small"), "abc").unwrap();
    let sparse = OpenOptions::new().write(true).create_new(true).open(root.join("sparse")).unwrap();
    sparse.write_all_at(&random_bytes(70_000, 2), 1 << 20).unwrap();
    sparse.set_len(4 << 20).unwrap();
    symlink("dir/small", root.join("link")).unwrap();
    fs::hard_link(root.join("file"), root.join("dir/file-again")).unwrap();
    mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    mknodat(CWD, root.join("socket"), FileType::Socket, Mode::RUSR, 0).unwrap();
    if is_root() {
        mknodat(CWD, root.join("device"), FileType::BlockDevice, Mode::RUSR, makedev(7, 200))
            .unwrap();
        set(&root.join("dir/small"), "security.capability", &capability(1));
    }
    set(&root.join("file"), "user.note", b"value");
    set(&root.join("dir"), Acl::Default.attribute(), &acl([7, 5, 5, 5, 7, 0]));
    set(&root.join("dir/small"), Acl::Access.attribute(), &acl([6, 4, 4, 4, 6, 0]));
}

fn set_times(path: &Path, change: impl FnOnce(&mut Timestamps)) {
    let entry = &Portrait::of(path).entries[&b""[..]];
    let time = |(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec };
    let mut times =
        Timestamps { last_access: time(entry.accessed), last_modification: time(entry.modified) };
    change(&mut times);
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Replaces an entry by another one, without its directory being any younger for it.
fn replace(path: &Path, make: impl FnOnce()) {
    let parent = path.parent().unwrap();
    let before = Portrait::of(parent);
    fs::remove_file(path).unwrap();
    make();
    let entry = &before.entries[&b""[..]];
    set_times(parent, |times| {
        times.last_modification = Timespec { tv_sec: entry.modified.0, tv_nsec: entry.modified.1 };
    });
}

#[test]
fn what_cp_copies_is_the_same_to_the_oracle() {
    let folder = Folder::new();
    plain_tree(&folder.join("tree"));
    let source = Portrait::of(&folder.join("tree"));
    let again = Portrait::of(&folder.join("tree"));
    assert_same(&source, &again, Leeway::NONE, "looking changes nothing");
    cp(&folder.join("tree"), &folder.join("copy")).exits(0);
    assert_same(&source, &Portrait::of(&folder.join("copy")), Leeway::NONE, "cp -a");
}

/// Random trees, but for the paths that cp cannot take.
#[test]
fn what_cp_copies_of_a_random_tree_is_the_same_to_the_oracle() {
    let seed = seed();
    let mounted = needs!(Mounted::new(Kind::Ext4));
    for seed in seed..seed + 3 {
        let (tree, copy) = (format!("tree{seed}"), format!("copy{seed}"));
        let (tree, copy) = (mounted.path().join(tree), mounted.path().join(copy));
        plant(&tree, Plan::new(seed));
        let source = Portrait::of(&tree);
        cp(&tree, &copy);
        let found = differences(&source, &Portrait::of(&copy), Leeway::NONE);
        let unexplained: Vec<String> = found
            .iter()
            .filter(|difference| {
                // What lies too deep is missing, and with it other names of what is not.
                let is_deep = difference.path.windows(255).any(|part| part == [b'd'; 255]);
                let is_missing = found.iter().any(|other| other.aspect == Aspect::Missing);
                !(is_deep || is_missing && difference.aspect == Aspect::Links)
            })
            .map(ToString::to_string)
            .collect();
        assert!(unexplained.is_empty(), "seed {seed}\n{}", unexplained.join("\n"));
    }
    mounted.finish();
}

/// What is done to a copy, and what the oracle has to say then.
type Plant = (&'static str, Aspect, fn(&Path));

const PLANTS: [Plant; 24] = [
    ("mode", Aspect::Mode, |tree| chmod(&tree.join("dir/empty"), 0o2755)),
    ("sticky", Aspect::Mode, |tree| chmod(tree, 0o1755)),
    ("setuid", Aspect::Mode, |tree| chmod(&tree.join("file"), 0o4644)),
    ("mode of a pipe", Aspect::Mode, |tree| chmod(&tree.join("fifo"), 0o644)),
    ("nanosecond", Aspect::Modified, |tree| {
        set_times(&tree.join("sparse"), |times| times.last_modification.tv_nsec ^= 1);
    }),
    ("time of a symlink", Aspect::Modified, |tree| {
        set_times(&tree.join("link"), |times| times.last_modification.tv_sec -= 1);
    }),
    ("time of a directory", Aspect::Modified, |tree| {
        set_times(&tree.join("dir"), |times| times.last_modification.tv_sec = -5);
    }),
    ("time of access", Aspect::Accessed, |tree| {
        set_times(&tree.join("file"), |times| times.last_access.tv_sec = 5);
    }),
    ("byte", Aspect::Content, |tree| write_at(&tree.join("file"), b"!", 99_999)),
    ("length", Aspect::Length, |tree| write_at(&tree.join("dir/small"), b"d", 3)),
    ("zeros at the end", Aspect::Length, |tree| {
        OpenOptions::new().write(true).open(tree.join("sparse")).unwrap().set_len(1 << 23).unwrap();
    }),
    ("filled hole", Aspect::Holes, |tree| write_at(&tree.join("sparse"), &[0; 4096], 8192)),
    ("filled hole at the end", Aspect::Holes, |tree| {
        write_at(&tree.join("sparse"), &[0], (4 << 20) - 1);
    }),
    ("new hole", Aspect::Holes, |tree| {
        let file = OpenOptions::new().write(true).open(tree.join("file")).unwrap();
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, flags, 8192, 8192).unwrap();
    }),
    ("room reserved", Aspect::Room, |tree| {
        let file = OpenOptions::new().write(true).open(tree.join("sparse")).unwrap();
        fallocate(&file, FallocateFlags::empty(), 0, 4 << 20).unwrap();
    }),
    ("broken link", Aspect::Links, |tree| {
        replace(&tree.join("file"), || {
            fs::copy(tree.join("dir/file-again"), tree.join("file")).map(drop).unwrap();
        });
    }),
    ("name elsewhere", Aspect::Links, |tree| {
        fs::hard_link(tree.join("dir/small"), tree.parent().unwrap().join("outside")).unwrap();
    }),
    ("wrong link", Aspect::Links, |tree| {
        fs::remove_file(tree.join("dir/small")).unwrap();
        linkat(CWD, tree.join("file"), CWD, tree.join("dir/small"), AtFlags::empty()).unwrap();
    }),
    ("text", Aspect::Text, |tree| {
        replace(&tree.join("link"), || symlink("dir/smalL", tree.join("link")).unwrap());
    }),
    ("missing empty directory", Aspect::Missing, |tree| {
        fs::remove_dir(tree.join("dir/empty")).unwrap();
    }),
    ("extra", Aspect::Extra, |tree| fs::write(tree.join("dir/.flatout"), "").unwrap()),
    ("kind", Aspect::Kind, |tree| {
        fs::remove_file(tree.join("fifo")).unwrap();
        fs::write(tree.join("fifo"), "").unwrap();
    }),
    ("value", Aspect::Attributes, |tree| set(&tree.join("file"), "user.note", b"valuE")),
    ("default list", Aspect::Attributes, |tree| {
        lremovexattr(tree.join("dir"), Acl::Default.attribute()).unwrap();
    }),
];

/// Those that need root.
const PLANTS_OF_ROOT: [Plant; 4] = [
    ("owner", Aspect::Owner, |tree| chown(&tree.join("dir/small"))),
    ("owner of a symlink", Aspect::Owner, |tree| chown(&tree.join("link"))),
    ("device", Aspect::Device, |tree| {
        replace(&tree.join("device"), || {
            let device = makedev(7, 201);
            mknodat(CWD, tree.join("device"), FileType::BlockDevice, Mode::RUSR, device).unwrap();
        });
    }),
    ("capability", Aspect::Attributes, |tree| {
        lremovexattr(tree.join("dir/small"), "security.capability").unwrap();
    }),
];

fn chown(path: &Path) {
    let (user, group) = (Uid::from_raw(1), Gid::from_raw(2));
    chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn write_at(path: &Path, bytes: &[u8], offset: u64) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, offset).unwrap();
}

fn each_is_found(plants: &[Plant]) {
    let folder = Folder::new();
    plain_tree(&folder.join("tree"));
    let source = Portrait::of(&folder.join("tree"));
    for (what, aspect, plant) in plants {
        let copy = folder.join("copy");
        cp(&folder.join("tree"), &copy).exits(0);
        plant(&copy);
        let found = differences(&source, &Portrait::of(&copy), Leeway::NONE);
        let aspects: Vec<Aspect> = found.iter().map(|difference| difference.aspect).collect();
        assert!(aspects.contains(aspect), "{what}: {found:?}");
        let ignored = differences(&source, &Portrait::of(&copy), Leeway::but(&EVERYTHING));
        assert!(ignored.is_empty(), "{what}: {ignored:?}");
        fs::remove_dir_all(&copy).unwrap();
        let _ = fs::remove_file(folder.join("outside"));
    }
}

const EVERYTHING: [Aspect; 15] = [
    Aspect::Missing,
    Aspect::Extra,
    Aspect::Kind,
    Aspect::Mode,
    Aspect::Owner,
    Aspect::Modified,
    Aspect::Accessed,
    Aspect::Length,
    Aspect::Content,
    Aspect::Holes,
    Aspect::Room,
    Aspect::Links,
    Aspect::Text,
    Aspect::Device,
    Aspect::Attributes,
];

#[test]
fn every_planted_difference_is_found() {
    each_is_found(&PLANTS);
}

#[test]
fn every_planted_difference_of_owners_and_devices_is_found() {
    needs!(needs_root("changes owners"));
    each_is_found(&PLANTS_OF_ROOT);
}
