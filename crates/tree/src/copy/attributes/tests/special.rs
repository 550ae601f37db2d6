//! What cannot be opened: symlinks, FIFOs, sockets, devices; and what takes their place.

use super::*;

#[test]
fn devices_keep_their_numbers() {
    needs!(is_root(), "only root makes devices");
    let folders = Folders::new();
    let devices = [
        (c"null", FileType::CharacterDevice, (1, 3)),
        (c"loop", FileType::BlockDevice, (7, 200)),
        (c"large", FileType::CharacterDevice, (300, 70_000)),
    ];
    for (name, kind, (major, minor)) in devices {
        let number = rustix::fs::makedev(major, minor);
        let path = folders.source.join(name.to_str().unwrap());
        needs!(rustix::fs::mknodat(CWD, &path, kind, PRIVATE, number).is_ok(), "no devices here");
        fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        chown(&path, STRANGER, STRANGER + 1);
        let facts = folders.copy_entry(name, None).unwrap();
        assert_eq!((FileType::from_raw_mode(facts.st_mode), facts.st_rdev), (kind, number));
        assert_eq!((facts.st_uid, facts.st_gid), (STRANGER, STRANGER + 1));
        assert_eq!(facts.st_mode & MODE_BITS, 0o664);
    }
}

#[test]
fn fifos_and_sockets_keep_modes_and_lists() {
    let folders = Folders::new();
    for (name, kind) in [(c"fifo", FileType::Fifo), (c"socket", FileType::Socket)] {
        let path = folders.source.join(name.to_str().unwrap());
        rustix::fs::mknodat(CWD, &path, kind, PRIVATE, 0).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o624)).unwrap();
        let has_list = set(&path, acl::ACCESS, &generous_list()).is_ok();
        let facts = folders.copy_entry(name, None).unwrap();
        assert_eq!(FileType::from_raw_mode(facts.st_mode), kind);
        assert_eq!(facts.st_mode & MODE_BITS, if has_list { 0o670 } else { 0o624 });
        let target = folders.target.join(name.to_str().unwrap());
        assert_eq!(names(&target), names(&path));
    }
}

#[test]
fn symlinks_keep_owner_and_attributes() {
    needs!(is_root(), "only root gives files away");
    let folders = Folders::new();
    // It points at a file that must stay as it is.
    let outside = folders.source_file("outside", 0o600);
    let before = outside.metadata().unwrap();
    let path = folders.source.join("link");
    std::os::unix::fs::symlink(&outside, &path).unwrap();
    chown(&path, STRANGER, STRANGER + 1);
    let has_attribute = set(&path, c"trusted.link", b"l").is_ok();
    let text = CString::new(outside.as_os_str().as_bytes()).unwrap();
    let facts = folders.copy_entry(c"link", Some(&text)).unwrap();
    assert_eq!((facts.st_uid, facts.st_gid), (STRANGER, STRANGER + 1));
    let target = folders.target.join("link");
    assert_eq!(fs::read_link(&target).unwrap(), outside);
    assert_eq!(get(&target, c"trusted.link").is_some(), has_attribute);
    let after = outside.metadata().unwrap();
    assert_eq!((after.uid(), after.ctime_nsec()), (before.uid(), before.ctime_nsec()));
    assert_eq!(folders.heard.codes(), [""; 0]);
}

#[test]
fn symlinks_where_nobody_else_may_look_keep_what_they_have_too() {
    let folders = Folders::new();
    let [from, to] = [&folders.source, &folders.target].map(|path| File::open(path).unwrap());
    let (attributes, inherited) = (folders.attributes(), Inheritance::of(to.as_fd()));
    for (name, seconds) in [(c"first", 9e8 as i64), (c"second", 1e9 as i64), (c"third", 1_000)] {
        let path = folders.source.join(name.to_str().unwrap());
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        set_times(&path, seconds, 5);
        let is_rich = name == c"third" && is_root();
        let has_attribute = is_rich && set(&path, c"trusted.link", b"l").is_ok();
        if is_rich {
            chown(&path, STRANGER, STRANGER + 1);
        }
        let [source, target] = [&from, &to].map(|folder| Place { directory: folder.as_fd(), name });
        let facts = Node::Named(source).stat().unwrap();
        let source =
            Special { place: source, facts: &facts, text: Some(c"nowhere"), called: target.name };
        attributes.make(&source, target).unwrap();
        attributes.entry(&source, target, Some(inherited), |_| true).unwrap();
        let found = Node::Named(target).stat().unwrap();
        assert_eq!((found.st_atime, found.st_atime_nsec), (seconds - 60, 5), "{name:?}");
        assert_eq!((found.st_mtime, found.st_mtime_nsec), (seconds, 5), "{name:?}");
        assert_eq!((found.st_uid, found.st_gid), (facts.st_uid, facts.st_gid));
        let target = folders.target.join(name.to_str().unwrap());
        assert_eq!(get(&target, c"trusted.link").is_some(), has_attribute);
    }
    assert!(attributes.is_predictable(inherited));
    assert_eq!(folders.heard.codes(), [""; 0]);
}

#[test]
fn a_name_that_is_taken_is_said_as_it_is() {
    let folders = Folders::new();
    let folder = File::open(&folders.target).unwrap();
    let target = Place { directory: folder.as_fd(), name: c"fifo" };
    let fifo = folders.source.join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, PRIVATE, 0).unwrap();
    let facts = rustix::fs::stat(&fifo).unwrap();
    let attributes = folders.attributes();
    let source = Special { place: target, facts: &facts, text: None, called: target.name };
    attributes.make(&source, target).unwrap();
    let refusal = attributes.make(&source, target).unwrap_err();
    assert_eq!(refusal.cause, Cause::System(Errno::EXIST));
    let file = rustix::fs::stat(folders.source_file("file", 0o600)).unwrap();
    assert!(attributes.make(&Special { facts: &file, ..source }, target).is_err());
}

/// What happens when `swap` takes the place of a FIFO that was just made.
fn swapped(swap: impl FnOnce(&Path, &Path)) {
    let folders = Folders::new();
    let outside = folders.source_file("outside", 0o600);
    let fifo = folders.source.join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, PRIVATE, 0).unwrap();
    fs::set_permissions(&fifo, Permissions::from_mode(0o666)).unwrap();
    let [from, to] = [&folders.source, &folders.target].map(|path| File::open(path).unwrap());
    let [source, target] =
        [&from, &to].map(|folder| Place { directory: folder.as_fd(), name: c"fifo" });
    let facts = Node::Named(source).stat().unwrap();
    let attributes = folders.attributes();
    let source = Special { place: source, facts: &facts, text: None, called: target.name };
    attributes.make(&source, target).unwrap();
    let path = folders.target.join("fifo");
    fs::remove_file(&path).unwrap();
    swap(&outside, &path);
    let before = fs::symlink_metadata(&path).unwrap();
    let refusal = attributes.entry(&source, target, None, |made| made.st_nlink == 1).unwrap_err();
    assert!(matches!(refusal.cause, Cause::Reason(_)), "{refusal:?}");
    let after = fs::symlink_metadata(&path).unwrap();
    assert_eq!((before.ctime_nsec(), before.mode()), (after.ctime_nsec(), after.mode()));
    assert_eq!(mode(&outside.metadata().unwrap()), 0o600);
}

#[test]
fn what_took_the_place_of_an_entry_is_left_alone() {
    swapped(|outside, path| std::os::unix::fs::symlink(outside, path).unwrap());
    swapped(|outside, path| fs::hard_link(outside, path).unwrap());
    swapped(|outside, path| {
        let other = outside.with_file_name("other");
        rustix::fs::mknodat(CWD, &other, FileType::Fifo, PRIVATE, 0).unwrap();
        fs::hard_link(&other, path).unwrap();
    });
    swapped(|_, path| fs::create_dir(path).unwrap());
}

#[test]
fn a_symlink_that_leads_elsewhere_by_now_is_said_to_be_another() {
    let folders = Folders::new();
    let link = folders.source.join("link");
    std::os::unix::fs::symlink("here", &link).unwrap();
    set_times(&link, 1_000_000_000, 5);
    let [from, to] = [&folders.source, &folders.target].map(|path| File::open(path).unwrap());
    let [source, target] =
        [&from, &to].map(|folder| Place { directory: folder.as_fd(), name: c"link" });
    let facts = Node::Named(source).stat().unwrap();
    let source = Special { place: source, facts: &facts, text: Some(c"here"), called: target.name };
    let (attributes, inherited) = (folders.attributes(), Inheritance::of(to.as_fd()));
    // It is opened, as owners have not proved to be as expected.
    assert!(!attributes.is_predictable(inherited));
    std::os::unix::fs::symlink("there", folders.target.join("link")).unwrap();
    let set = attributes.entry(&source, target, Some(inherited), |_| true);
    assert!(matches!(set.unwrap_err().cause, Cause::Reason(_)));
    assert_ne!(Node::Named(target).stat().unwrap().st_mtime, 1_000_000_000);
}
