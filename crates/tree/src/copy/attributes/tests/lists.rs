//! Access control lists: carried, and never wider than the source.

use super::*;

/// What a directory hands on in these tests: everything, to a stranger and to all.
fn handed_on() -> Vec<u8> {
    list(&[(1, 7, !0), (2, 7, STRANGER), (4, 7, !0), (0x10, 7, !0), (0x20, 7, !0)])
}

#[test]
fn a_list_is_carried_with_its_mode() {
    let folders = Folders::new();
    let source = folders.source_file("file", 0o600);
    needs!(set(&source, acl::ACCESS, &generous_list()).is_ok(), "no lists here");
    let facts = folders.copy("file").unwrap();
    assert_eq!(get(&folders.target.join("file"), acl::ACCESS), Some(generous_list()));
    assert_eq!(mode(&facts), 0o670);
    assert_eq!(folders.heard.codes(), [""; 0]);
}

#[test]
fn what_a_directory_hands_on_does_not_widen_what_is_new() {
    let folders = Folders::new();
    needs!(set(&folders.target, acl::DEFAULT, &handed_on()).is_ok(), "no lists here");
    folders.source_file("file", 0o640);
    fs::create_dir(folders.source.join("directory")).unwrap();
    fs::set_permissions(folders.source.join("directory"), Permissions::from_mode(0o750)).unwrap();
    assert_eq!(mode(&folders.copy("file").unwrap()), 0o640);
    assert_eq!(mode(&folders.copy_directory("directory").unwrap()), 0o750);
    let fifo = folders.source.join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, PRIVATE, 0).unwrap();
    assert_eq!(folders.copy_entry(c"fifo", None).unwrap().st_mode & MODE_BITS, 0o600);
    for name in ["file", "directory", "fifo"] {
        assert_eq!(names(&folders.target.join(name)), [""; 0], "{name}");
    }
}

#[test]
fn a_list_takes_the_place_of_what_was_handed_on() {
    let folders = Folders::new();
    needs!(set(&folders.target, acl::DEFAULT, &handed_on()).is_ok(), "no lists here");
    let source = folders.source_file("file", 0o600);
    set(&source, acl::ACCESS, &generous_list()).unwrap();
    folders.copy("file").unwrap();
    assert_eq!(get(&folders.target.join("file"), acl::ACCESS), Some(generous_list()));
}

#[test]
fn a_new_directory_can_be_bared_before_it_is_filled() {
    let folders = Folders::new();
    needs!(set(&folders.target, acl::DEFAULT, &handed_on()).is_ok(), "no lists here");
    let parent = File::open(&folders.target).unwrap();
    let inheritance = Inheritance::of(parent.as_fd());
    assert!(inheritance.has_default_acl() && !inheritance.inside_new().has_default_acl());
    let path = folders.target.join("directory");
    rustix::fs::mkdirat(&parent, "directory", Mode::RWXU).unwrap();
    assert_eq!(names(&path).len(), 2);
    let directory = File::open(&path).unwrap();
    folders.attributes().bare(directory.as_fd(), inheritance).unwrap();
    assert_eq!(names(&path), [""; 0]);
    assert_eq!(mode(&directory.metadata().unwrap()), 0o700);
    let asked = Inheritance::of(directory.as_fd());
    assert_eq!(asked, inheritance.inside_new());
}

#[test]
fn what_a_directory_hands_on_is_carried() {
    let folders = Folders::new();
    let source = folders.source.join("directory");
    fs::create_dir(&source).unwrap();
    needs!(set(&source, acl::DEFAULT, &handed_on()).is_ok(), "no lists here");
    folders.copy_directory("directory").unwrap();
    let target = folders.target.join("directory");
    assert_eq!(names(&target), ["system.posix_acl_default"]);
    assert_eq!(get(&target, acl::DEFAULT), Some(handed_on()));
}

#[test]
fn a_directory_that_was_there_loses_its_lists_and_nothing_else() {
    let folders = Folders::new();
    let (source, target) = (folders.source.as_path(), folders.target.as_path());
    needs!(set(target, acl::DEFAULT, &handed_on()).is_ok(), "no lists here");
    set(target, acl::ACCESS, &generous_list()).unwrap();
    let has_attribute = set(target, c"user.own", b"x").is_ok();
    let [from, to] = [source, target].map(|path| File::open(path).unwrap());
    let [facts, found] = [&from, &to].map(|file| rustix::fs::fstat(file).unwrap());
    let attributes = folders.attributes();
    attributes.directory(from.as_fd(), to.as_fd(), &facts, Made::found(&found)).unwrap();
    let left = if has_attribute { vec!["user.own"] } else { vec![] };
    assert_eq!(names(target), left);
    assert_eq!(mode(&to.metadata().unwrap()), facts.st_mode & MODE_BITS);
}

#[test]
fn without_modes_what_a_directory_hands_on_decides() {
    let folders = Folders::new();
    let strict = list(&[(1, 7, !0), (2, 4, STRANGER), (4, 0, !0), (0x10, 4, !0), (0x20, 0, !0)]);
    needs!(set(&folders.target, acl::DEFAULT, &strict).is_ok(), "no lists here");
    folders.source_file("file", 0o777);
    let plain = Preserve::ALL.without(Preserve::MODE).with(Preserve::PLAIN_MODE);
    let attributes = Attributes::new(plain, None, &folders.heard);
    let facts = folders.copy_with(&attributes, "file").unwrap();
    assert_eq!(mode(&facts), 0o640);
    assert_eq!(names(&folders.target.join("file")), ["system.posix_acl_access"]);
}

/// Gives it more names than the kernel lists; whether that can be had.
fn crowd(path: &Path) -> bool {
    let name = |number: u32| CString::new(format!("user.{number:0>240}")).unwrap();
    (0..300).all(|number| set(path, &name(number), b"x").is_ok())
}

#[test]
fn a_list_and_a_mode_are_kept_beside_more_attributes_than_can_be_listed() {
    let shared = Path::new("/dev/shm");
    needs!(shared.is_dir(), "no tmpfs");
    let folders = Folders::below(shared);
    let path = folders.source_file("file", 0o600);
    needs!(set(&path, acl::ACCESS, &generous_list()).is_ok(), "no lists here");
    needs!(crowd(&path), "no room for many attributes here");
    let refusal = folders.copy("file").unwrap_err();
    assert!(matches!(refusal.cause, Cause::Reason(_)), "{refusal:?}");
    let target = folders.target.join("file");
    assert_eq!(get(&target, acl::ACCESS), get(&path, acl::ACCESS));
    let [wanted, found] = [&path, &target].map(|path| path.metadata().unwrap());
    assert_eq!((mode(&wanted), wanted.mtime_nsec()), (mode(&found), found.mtime_nsec()));
}

#[test]
fn a_list_goes_that_lies_among_more_attributes_than_can_be_listed() {
    let shared = Path::new("/dev/shm");
    needs!(shared.is_dir(), "no tmpfs");
    let folders = Folders::below(shared);
    folders.source_file("file", 0o660);
    let target = folders.target.join("file");
    fs::write(&target, "file").unwrap();
    needs!(set(&target, acl::ACCESS, &generous_list()).is_ok(), "no lists here");
    needs!(crowd(&target), "no room for many attributes here");
    let refusal = folders.repair(c"file").unwrap_err();
    assert!(matches!(refusal.cause, Cause::Reason(_)), "others stay, which is said: {refusal:?}");
    assert_eq!((get(&target, acl::ACCESS), mode(&target.metadata().unwrap())), (None, 0o660));
}
