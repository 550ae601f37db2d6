//! Files that are made with the mode that they are to have.

use super::*;

/// What a directory with this mode hands on that the copy has made.
fn inside(folders: &Folders, mode: u32) -> Inheritance {
    fs::set_permissions(&folders.target, Permissions::from_mode(mode)).unwrap();
    let directory = File::open(&folders.target).unwrap();
    let facts = rustix::fs::fstat(&directory).unwrap();
    Inheritance::of(directory.as_fd()).of_made(&facts)
}

#[test]
fn only_where_nobody_else_comes_in_a_file_has_its_mode_at_once() {
    let folders = Folders::new();
    let attributes = folders.attributes();
    let at_birth = |mode: u32, of: &Inheritance| {
        let facts = rustix::fs::stat(&folders.source_file("file", mode)).unwrap();
        attributes.mode_at_birth(&facts, *of)
    };
    let closed = inside(&folders, 0o1700);
    assert_eq!(at_birth(0o600, &closed), Some(0o600));
    assert_eq!(at_birth(0o700, &closed), Some(0o700));
    for mode in [0o400, 0o200, 0o4700, 0o2700, 0o1600] {
        assert_eq!(at_birth(mode, &closed), None, "{mode:o}");
    }
    for mode in [0o701, 0o710, 0o755] {
        assert_eq!(at_birth(0o600, &inside(&folders, mode)), None, "{mode:o}");
    }
    let directory = File::open(&folders.target).unwrap();
    assert_eq!(at_birth(0o600, &Inheritance::of(directory.as_fd())), None, "it was there");
    // The umask of whoever runs this decides about the others.
    let allowed = 0o777 & attributes.unmasked;
    assert_eq!(at_birth(0o777, &closed), (allowed == 0o777).then_some(0o777));
}

#[test]
fn a_mode_that_the_filesystem_does_not_keep_is_set() {
    let folders = Folders::new();
    folders.source_file("file", 0o640);
    let attributes = folders.attributes();
    let inheritance = inside(&folders, 0o1700);
    // As if the mode had been 0640 at openat(2), which made 0600 of it.
    let finish = |path: &Path| {
        let source = File::open(folders.source.join("file")).unwrap();
        let target = File::options().write(true).create_new(true).mode(0o600).open(path).unwrap();
        let facts = rustix::fs::fstat(&source).unwrap();
        let made = Made::born(inheritance, Some(0o640));
        attributes.file(source.as_fd(), target.as_fd(), &facts, made).unwrap();
        target.metadata().unwrap().mode() & 0o7777
    };
    assert_eq!(finish(&folders.target.join("first")), 0o640);
    let facts = rustix::fs::stat(&folders.source.join("file")).unwrap();
    assert_eq!(attributes.mode_at_birth(&facts, inheritance), None, "it is not relied on again");
    assert_eq!(finish(&folders.target.join("second")), 0o640);
}

#[test]
fn a_file_that_fails_before_its_mode_is_private_again() {
    let folders = Folders::new();
    let path = folders.source_file("file", 0o644);
    // Attributes of what is opened so cannot be read.
    let source = rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
    let facts = rustix::fs::fstat(&source).unwrap();
    let target = File::create_new(folders.target.join("file")).unwrap();
    target.set_permissions(Permissions::from_mode(0o644)).unwrap();
    let made = Made::born(inside(&folders, 0o1700), Some(0o644));
    let attributes = folders.attributes();
    attributes.file(source.as_fd(), target.as_fd(), &facts, made).unwrap_err();
    assert_eq!(target.metadata().unwrap().mode() & 0o7777, 0o600);
}
