//! Files that were there already: only what differs is put right, and locks are named.

use rustix::fs::{AtFlags, CWD, IFlags, Timespec, Timestamps, UTIME_OMIT};

use super::*;

/// The folders, with a file that is the same on both sides.
fn twins(source_mode: u32, target_mode: u32) -> (Folders, PathBuf, PathBuf) {
    let folders = Folders::new();
    let source = folders.source_file("file", source_mode);
    let target = folders.target.join("file");
    fs::copy(&source, &target).unwrap();
    fs::set_permissions(&target, Permissions::from_mode(target_mode)).unwrap();
    for path in [&source, &target] {
        set_times(path, 1_000_000_000, 123_456_789);
    }
    (folders, source, target)
}

/// Gives a file this lock and no other; flags that the filesystem set stay.
fn flags_with(file: &File, lock: IFlags) -> rustix::io::Result<()> {
    let locks = IFlags::IMMUTABLE | IFlags::APPEND;
    let flags = rustix::fs::ioctl_getflags(file)?;
    rustix::fs::ioctl_setflags(file, flags.difference(locks) | lock)
}

#[test]
fn what_is_right_is_not_touched() {
    let (folders, source, target) = twins(0o640, 0o640);
    // It was read meanwhile.
    let time = |tv_nsec| Timespec { tv_sec: 1_700_000_000, tv_nsec };
    let times = Timestamps { last_access: time(5), last_modification: time(UTIME_OMIT) };
    rustix::fs::utimensat(CWD, &source, &times, AtFlags::empty()).unwrap();
    let before = target.metadata().unwrap();
    assert_eq!(folders.repair(c"file"), Ok(false));
    let after = target.metadata().unwrap();
    assert_eq!((before.ctime(), before.ctime_nsec()), (after.ctime(), after.ctime_nsec()));
}

#[test]
fn what_differs_is_put_right_once() {
    let (folders, source, target) = twins(0o640, 0o640);
    let has_attributes = set(&source, c"user.wanted", b"new").is_ok();
    if has_attributes {
        set(&target, c"user.wanted", b"old").unwrap();
        set(&target, c"user.surplus", b"x").unwrap();
    }
    let has_lists = set(&target, acl::ACCESS, &generous_list()).is_ok();
    set_times(&source, 1_000_000_001, 5);
    assert!(has_attributes || has_lists);
    assert_eq!(folders.repair(c"file"), Ok(true));
    assert_eq!(names(&target), names(&source));
    assert_eq!(get(&target, c"user.wanted"), get(&source, c"user.wanted"));
    let facts = target.metadata().unwrap();
    assert_eq!((mode(&facts), facts.mtime(), facts.mtime_nsec()), (0o640, 1_000_000_001, 5));
    assert_eq!(folders.repair(c"file"), Ok(false));
}

#[test]
fn owner_set_id_bits_and_capabilities_are_put_right_in_their_order() {
    needs!(is_root(), "only root gives files away");
    let (folders, source, target) = twins(0o755, 0o600);
    chown(&source, STRANGER, STRANGER);
    fs::set_permissions(&source, Permissions::from_mode(0o6755)).unwrap();
    for path in [&source, &target] {
        set(path, CAPABILITY, &CAPABILITY_VALUE).unwrap();
    }
    assert_eq!(folders.repair(c"file"), Ok(true));
    let facts = target.metadata().unwrap();
    assert_eq!((mode(&facts), facts.uid()), (0o6755, STRANGER));
    assert_eq!(get(&target, CAPABILITY).as_deref(), Some(&CAPABILITY_VALUE[..]));
    assert_eq!(folders.repair(c"file"), Ok(false));
    rustix::fs::removexattr(&source, CAPABILITY).unwrap();
    assert_eq!(folders.repair(c"file"), Ok(true));
    assert_eq!(get(&target, CAPABILITY), None);
}

#[test]
fn a_file_of_mode_0000_is_put_right_by_its_owner() {
    let (folders, source, target) = twins(0o444, 0o000);
    fs::set_permissions(&source, Permissions::from_mode(0o644)).unwrap();
    let has_attributes = set(&source, c"user.wanted", b"new").is_ok();
    fs::set_permissions(&source, Permissions::from_mode(0o444)).unwrap();
    if is_root() {
        for path in [&folders.target, &target, &source] {
            chown(path, NOBODY, NOBODY);
        }
    }
    as_nobody(|| {
        assert_eq!(folders.repair(c"file"), Ok(true));
        assert_eq!(mode(&target.metadata().unwrap()), 0o444);
        assert_eq!(get(&target, c"user.wanted").is_some(), has_attributes);
        assert_eq!(folders.repair(c"file"), Ok(false));
    });
    assert_eq!(folders.heard.codes(), [""; 0]);
}

#[test]
fn a_symlink_that_was_there_is_put_right() {
    needs!(is_root(), "only root gives files away");
    let folders = Folders::new();
    let [source, target] = [&folders.source, &folders.target].map(|folder| folder.join("link"));
    for path in [&source, &target] {
        std::os::unix::fs::symlink("nowhere", path).unwrap();
        set_times(path, 1_000_000_000, 5);
    }
    chown(&source, STRANGER, STRANGER);
    let [from, to] = [&folders.source, &folders.target].map(|path| File::open(path).unwrap());
    let [source, place] =
        [&from, &to].map(|folder| Place { directory: folder.as_fd(), name: c"link" });
    let facts = Node::Named(source).stat().unwrap();
    let found = Node::Named(place).stat().unwrap();
    let attributes = folders.attributes();
    assert_eq!(attributes.repair(Node::Named(source), place, &facts, &found), Ok(true));
    let now = Node::Named(place).stat().unwrap();
    assert_eq!(now.st_uid, STRANGER);
    assert_eq!(attributes.repair(Node::Named(source), place, &facts, &now), Ok(false));
    // Something else bears the name by now.
    fs::remove_file(&target).unwrap();
    std::os::unix::fs::symlink("elsewhere", &target).unwrap();
    assert!(attributes.repair(Node::Named(source), place, &facts, &found).is_err());
}

#[test]
fn a_locked_file_is_called_locked() {
    needs!(is_root(), "only root locks files");
    for lock in [IFlags::IMMUTABLE, IFlags::APPEND] {
        let (folders, source, target) = twins(0o640, 0o600);
        let file = File::open(&target).unwrap();
        needs!(flags_with(&file, lock).is_ok(), "no flags of files here");
        let refusal = folders.repair(c"file").unwrap_err();
        // What is right in all that matters is no failure.
        fs::set_permissions(&source, Permissions::from_mode(0o600)).unwrap();
        let times = Timestamps {
            last_access: Timespec { tv_sec: 1_500_000_000, tv_nsec: 0 },
            last_modification: Timespec { tv_sec: 1_000_000_000, tv_nsec: 123_456_789 },
        };
        rustix::fs::utimensat(CWD, &source, &times, AtFlags::empty()).unwrap();
        let only_access = folders.repair(c"file");
        flags_with(&file, IFlags::empty()).unwrap();
        assert!(refusal.cause.to_string().contains("immutable"), "{refusal:?}");
        assert_eq!(only_access, Ok(false));
        assert_eq!(folders.heard.codes(), [""; 0]);
    }
}

#[test]
fn a_source_directory_that_is_locked_is_mentioned() {
    needs!(is_root(), "only root locks files");
    let folders = Folders::new();
    let source = folders.source.join("directory");
    fs::create_dir(&source).unwrap();
    let directory = File::open(&source).unwrap();
    needs!(flags_with(&directory, IFlags::IMMUTABLE).is_ok(), "no flags of files here");
    let copied = folders.copy_directory("directory");
    flags_with(&directory, IFlags::empty()).unwrap();
    copied.unwrap();
    assert_eq!(folders.heard.codes(), ["flags_not_kept"]);
}

#[test]
fn a_file_that_is_written_again_loses_what_it_had_besides() {
    let (folders, source, target) = twins(0o640, 0o777);
    let has_attributes = set(&target, c"user.surplus", b"x").is_ok();
    let has_lists = set(&target, acl::ACCESS, &generous_list()).is_ok();
    needs!(has_attributes || has_lists, "no attributes here");
    let from = File::open(&source).unwrap();
    let to = File::options().write(true).open(&target).unwrap();
    let [facts, found] = [&from, &to].map(|file| rustix::fs::fstat(file).unwrap());
    let attributes = folders.attributes();
    attributes.file(from.as_fd(), to.as_fd(), &facts, Made::found(&found), None).unwrap();
    assert_eq!(names(&target), [""; 0]);
    assert_eq!(mode(&to.metadata().unwrap()), 0o640);
    // Where modes are not kept it gets its own back.
    let attributes = Attributes::new(Preserve::NOTHING, None, &folders.heard);
    to.set_permissions(Permissions::from_mode(0o600)).unwrap();
    let mut before = found;
    before.st_mode = 0o100_751;
    attributes.file(from.as_fd(), to.as_fd(), &facts, Made::found(&before), None).unwrap();
    assert_eq!(mode(&to.metadata().unwrap()), 0o751);
}
