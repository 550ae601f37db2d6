//! Each kind of difference, one by one, on a tree that was copied faithfully.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType as Type, Mode};

use super::*;

impl Comparison {
    /// Whether nothing that was looked for was found.
    fn is_equal(&self) -> bool {
        self.is_complete && self.counts.is_empty()
    }
}

/// Two equal trees with a bit of everything.
struct Twins {
    _place: tempfile::TempDir,
    source: PathBuf,
    target: PathBuf,
}

impl Twins {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        fs::create_dir_all(source.join("folder/empty")).unwrap();
        fs::write(source.join("folder/file"), vec![7; 600_000]).unwrap();
        fs::write(source.join("odd \n name"), "x").unwrap();
        fs::hard_link(source.join("folder/file"), source.join("second")).unwrap();
        fs::write(source.join("alone"), "alone").unwrap();
        fs::write(source.join("other"), "alone").unwrap();
        symlink("folder/file", source.join("link")).unwrap();
        symlink("nowhere", source.join("dangling")).unwrap();
        rustix::fs::mknodat(CWD, source.join("fifo"), Type::Fifo, Mode::RWXU, 0).unwrap();
        let sparse = File::create(source.join("sparse")).unwrap();
        sparse.set_len(64 << 20).unwrap();
        sparse.write_all_at(b"in the middle", 33 << 20).unwrap();
        let target = place.path().join("target");
        let done = Command::new("cp").arg("-a").arg(&source).arg(&target).status().unwrap();
        assert!(done.success());
        Self { _place: place, source, target }
    }

    fn compare(&self, fidelity: Fidelity) -> Comparison {
        let asked = Asked { fidelity, most_named: 3, cancel: CancelToken::manual() };
        compare(&self.source, &self.target, asked).unwrap()
    }

    /// The one difference that `change` makes to the copy.
    fn after(&self, change: impl FnOnce(&Path)) -> (Kind, String, String) {
        let before = self.compare(Fidelity::ALL);
        assert!(before.is_equal(), "{before:?}");
        change(&self.target);
        // Names that come and go change the time of their directory.
        let asked = Fidelity::ALL.without(Kind::DirectoryTime).without(Kind::TimeFraction);
        let found = self.compare(asked);
        let total: u64 = found.counts.values().sum();
        assert_eq!((total, found.named.len()), (1, 1), "{found:?}");
        let Difference { path, kind, detail } = found.named[0].clone();
        (kind, path.into_string().unwrap(), detail)
    }
}

fn kind_of(change: impl FnOnce(&Path)) -> (Kind, String) {
    let (kind, path, _) = Twins::new().after(change);
    (kind, path)
}

fn keep_time(path: &Path, change: impl FnOnce()) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    change();
    File::open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn what_is_missing_or_too_much_is_named() {
    let file = kind_of(|target| fs::remove_file(target.join("odd \n name")).unwrap());
    assert_eq!(file, (Kind::Missing, "odd \n name".to_owned()));
    let folder = kind_of(|target| fs::remove_dir(target.join("folder/empty")).unwrap());
    assert_eq!(folder, (Kind::Missing, "folder/empty".to_owned()));
    let link = kind_of(|target| fs::remove_file(target.join("dangling")).unwrap());
    assert_eq!(link, (Kind::MissingSymlink, "dangling".to_owned()));
    let fifo = kind_of(|target| fs::remove_file(target.join("fifo")).unwrap());
    assert_eq!(fifo, (Kind::MissingSpecial, "fifo".to_owned()));
    let extra = kind_of(|target| fs::write(target.join("folder/empty/more"), "").unwrap());
    assert_eq!(extra, (Kind::Extra, "folder/empty/more".to_owned()));
}

#[test]
fn another_type_is_no_copy() {
    let kind = kind_of(|target| {
        fs::remove_dir(target.join("folder/empty")).unwrap();
        fs::write(target.join("folder/empty"), "").unwrap();
    });
    assert_eq!(kind, (Kind::Type, "folder/empty".to_owned()));
    let followed = kind_of(|target| {
        fs::remove_file(target.join("dangling")).unwrap();
        fs::write(target.join("dangling"), "").unwrap();
    });
    assert_eq!(followed, (Kind::MissingSymlink, "dangling".to_owned()));
}

#[test]
fn bytes_and_lengths_are_compared() {
    let twins = Twins::new();
    let (kind, path, detail) = twins.after(|target| {
        let file = target.join("alone");
        keep_time(&file, || fs::write(&file, "alOne").unwrap());
    });
    assert_eq!((kind, path.as_str(), detail.as_str()), (Kind::Content, "alone", "from byte 2 on"));
    let cut = kind_of(|target| {
        let file = target.join("alone");
        keep_time(&file, || fs::write(&file, "alon").unwrap());
    });
    assert_eq!(cut, (Kind::Size, "alone".to_owned()));
}

#[test]
fn a_byte_in_what_should_be_a_hole_is_found_and_so_is_lost_data() {
    for (offset, bytes) in [(5 << 20, &b"x"[..]), (33 << 20, b"IN"), ((64 << 20) - 1, b"e")] {
        let twins = Twins::new();
        let (kind, path, detail) = twins.after(|target| {
            let file = target.join("sparse");
            keep_time(&file, || {
                File::options()
                    .write(true)
                    .open(&file)
                    .unwrap()
                    .write_all_at(bytes, offset)
                    .unwrap()
            });
        });
        assert_eq!((kind, path.as_str()), (Kind::Content, "sparse"));
        assert_eq!(detail, format!("from byte {offset} on"));
    }
    let lost = kind_of(|target| {
        let file = target.join("sparse");
        keep_time(&file, || {
            let empty = File::create(&file).unwrap();
            empty.set_len(64 << 20).unwrap();
        });
    });
    assert_eq!(lost, (Kind::Content, "sparse".to_owned()));
}

#[test]
fn a_hole_that_was_filled_with_zeros_is_space_lost_but_not_content() {
    let kind = kind_of(|target| {
        let file = target.join("sparse");
        keep_time(&file, || {
            let open = File::options().write(true).open(&file).unwrap();
            open.write_all_at(&vec![0; 16 << 20], 0).unwrap();
        });
    });
    assert_eq!(kind, (Kind::Hole, "sparse".to_owned()));
}

#[test]
fn links_are_compared_as_links() {
    let kind = kind_of(|target| {
        fs::remove_file(target.join("dangling")).unwrap();
        symlink("elsewhere", target.join("dangling")).unwrap();
        let time = fs::symlink_metadata(target.with_file_name("source/dangling")).unwrap();
        let spec = rustix::fs::Timespec { tv_sec: time.mtime(), tv_nsec: time.mtime_nsec() };
        let times = rustix::fs::Timestamps { last_access: spec, last_modification: spec };
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(CWD, target.join("dangling"), &times, flags).unwrap();
    });
    assert_eq!(kind, (Kind::LinkTarget, "dangling".to_owned()));
    let torn = Twins::new();
    let second = torn.target.join("second");
    fs::remove_file(&second).unwrap();
    fs::copy(torn.target.join("folder/file"), &second).unwrap();
    let found = torn.compare(Fidelity::CONTENTS.with(Kind::HardLink));
    assert_eq!(found.counts, BTreeMap::from([(Kind::HardLink, 1)]), "{found:?}");
    let joined = Twins::new();
    fs::remove_file(joined.target.join("other")).unwrap();
    fs::hard_link(joined.target.join("alone"), joined.target.join("other")).unwrap();
    let found = joined.compare(Fidelity::CONTENTS.with(Kind::HardLink));
    assert_eq!(found.counts, BTreeMap::from([(Kind::HardLink, 2)]), "both names: {found:?}");
    assert!(joined.compare(Fidelity::CONTENTS).is_equal());
}

#[test]
fn modes_and_times_have_kinds_of_their_own() {
    let mode = |name: &'static str, mode: u32| {
        kind_of(|target| {
            fs::set_permissions(target.join(name), Permissions::from_mode(mode)).unwrap();
        })
    };
    assert_eq!(mode("alone", 0o777), (Kind::Mode, "alone".to_owned()));
    assert_eq!(mode("folder", 0o711), (Kind::DirectoryMode, "folder".to_owned()));
    let twins = Twins::new();
    let now = fs::metadata(twins.source.join("alone")).unwrap().mode() & 0o777;
    let (kind, ..) = twins.after(|target| {
        fs::set_permissions(target.join("alone"), Permissions::from_mode(now | 0o4000)).unwrap();
    });
    assert_eq!(kind, Kind::SpecialBits);
    let time = kind_of(|target| {
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
        File::open(target.join("alone")).unwrap().set_modified(old).unwrap();
    });
    assert_eq!(time, (Kind::FileTime, "alone".to_owned()));
    let twins = Twins::new();
    let file = File::open(twins.target.join("alone")).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    let whole = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(whole)).unwrap();
    let found = twins.compare(Fidelity::ALL);
    assert_eq!(found.counts, BTreeMap::from([(Kind::TimeFraction, 1)]), "{found:?}");
    let twins = Twins::new();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
    File::open(&twins.target).unwrap().set_modified(old).unwrap();
    let found = twins.compare(Fidelity::ALL);
    assert_eq!(found.counts, BTreeMap::from([(Kind::DirectoryTime, 1)]), "the root: {found:?}");
    assert_eq!(found.named[0].path, "");
}

#[test]
fn extended_attributes_are_compared_in_both_directions() {
    let twins = Twins::new();
    let set = |root: &Path, value: &[u8]| {
        let file = root.join("folder");
        rustix::fs::lsetxattr(file, "user.test", value, rustix::fs::XattrFlags::empty())
    };
    if set(&twins.target, b"1").is_err() {
        return;
    }
    let attributes = Fidelity::CONTENTS.with(Kind::Attribute);
    let found = twins.compare(attributes);
    assert_eq!(found.counts, BTreeMap::from([(Kind::Attribute, 1)]), "{found:?}");
    assert_eq!(found.named[0].to_string(), "attribute \"folder\" (user.test)");
    set(&twins.source, b"2").unwrap();
    assert_eq!(twins.compare(attributes).counts.len(), 1);
    set(&twins.target, b"2").unwrap();
    assert!(twins.compare(attributes).is_equal());
}

#[test]
fn few_are_named_and_all_are_counted() {
    let twins = Twins::new();
    for number in 0..10 {
        fs::write(twins.source.join(format!("folder/empty/{number}")), "x").unwrap();
        fs::write(twins.target.join(format!("folder/extra-{number}")), "x").unwrap();
    }
    let found = twins.compare(Fidelity::CONTENTS);
    assert_eq!(found.counts, BTreeMap::from([(Kind::Missing, 10), (Kind::Extra, 10)]));
    assert_eq!(found.named.len(), 6);
    assert!(found.first_of(Fidelity::CONTENTS.without(Kind::Extra)).is_some());
}

#[test]
fn a_symlink_in_place_of_a_directory_is_not_followed() {
    let twins = Twins::new();
    fs::remove_dir_all(twins.target.join("folder")).unwrap();
    symlink(twins.source.join("folder"), twins.target.join("folder")).unwrap();
    let found = twins.compare(Fidelity::CONTENTS);
    assert_eq!(found.counts, BTreeMap::from([(Kind::Type, 1)]), "{found:?}");
}

#[test]
fn trees_deeper_than_a_path_may_be_long_are_compared_to_the_bottom() {
    let twins = Twins::new();
    let name = CString::new("d".repeat(200)).unwrap();
    for (root, bottom) in [(&twins.source, c"bottom"), (&twins.target, c"bottoM")] {
        let mut stack = DirectoryStack::open(root).unwrap();
        for _ in 0..100 {
            rustix::fs::mkdirat(stack.here(), &name, Mode::RWXU).unwrap();
            stack.descend(&name).unwrap();
        }
        rustix::fs::mknodat(stack.here(), bottom, Type::RegularFile, Mode::RWXU, 0).unwrap();
    }
    let found = twins.compare(Fidelity::CONTENTS);
    assert_eq!(found.counts, BTreeMap::from([(Kind::Missing, 1), (Kind::Extra, 1)]));
    crate::remove::remove_tree(&twins.source).unwrap();
    crate::remove::remove_tree(&twins.target).unwrap();
}

#[test]
fn a_wish_to_stop_ends_it_without_a_verdict() {
    let twins = Twins::new();
    let cancel = CancelToken::manual();
    cancel.cancel();
    let asked = Asked { fidelity: Fidelity::ALL, most_named: 3, cancel };
    let found = compare(&twins.source, &twins.target, asked).unwrap();
    assert!(!found.is_complete && !found.is_equal());
}

#[test]
fn a_link_to_the_source_is_no_copy_of_it() {
    let twins = Twins::new();
    let target = twins.target.with_file_name("link");
    symlink(&twins.source, &target).unwrap();
    let asked = Asked { fidelity: Fidelity::ALL, most_named: 3, cancel: CancelToken::manual() };
    assert!(compare(&twins.source, &target, asked).is_err());
    let link = target.with_file_name("link-to-source");
    symlink(&twins.source, &link).unwrap();
    assert!(compare(&link, &twins.target, asked).unwrap().is_equal(), "a tree may be named so");
}

#[test]
fn two_files_are_the_same_in_all_their_bytes_or_differ() {
    let twins = Twins::new();
    let [file, copy] = [&twins.source, &twins.target].map(|root| root.join("folder/file"));
    assert!(is_same(&file, &copy).unwrap());
    for changed in [[vec![7; 599_999], vec![8]].concat(), vec![7; 600_001], Vec::new()] {
        fs::write(&copy, changed).unwrap();
        assert!(!is_same(&file, &copy).unwrap());
    }
    assert!(is_same(&file, &twins.source.join("gone")).is_err());
}
