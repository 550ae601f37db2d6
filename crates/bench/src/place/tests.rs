//! Who may use the folder of a race, and what is removed there.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn directory() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let targets = place.path().join(RACE.folder).join(TARGETS);
    (place, targets)
}

#[test]
fn what_races_left_goes_and_nothing_else() {
    let (place, targets) = directory();
    fs::create_dir_all(targets.join("1/copy-0")).unwrap();
    fs::create_dir_all(targets.join(format!("{}/x", std::process::id()))).unwrap();
    let kept = ["notes", "12a", "-3", "٣"];
    for name in kept {
        fs::create_dir_all(targets.join(name)).unwrap();
    }
    let outside = place.path().join("outside");
    fs::create_dir_all(outside.join("stays")).unwrap();
    symlink(&outside, targets.join("77")).unwrap();
    let taken = Place::take(place.path(), RACE).unwrap();
    assert_eq!(taken.remove_leftovers().unwrap(), Vec::<String>::new());
    assert_eq!(fs::read_dir(&targets).unwrap().count(), kept.len());
    assert!(outside.join("stays").exists());
    taken.leave().unwrap();
    assert!(targets.join("notes").exists());
}

#[test]
fn a_symlink_is_refused_and_nothing_behind_it_is_touched() {
    for name in ["", TARGETS, CORPORA] {
        let (place, _) = directory();
        let outside = place.path().join("outside");
        fs::create_dir_all(outside.join("1/file")).unwrap();
        fs::create_dir_all(outside.join("targets/1")).unwrap();
        let folder = place.path().join(RACE.folder);
        let link = if name.is_empty() { folder } else { folder.join(name) };
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&outside, &link).unwrap();
        let refusal = Place::take(place.path(), RACE).unwrap_err().to_string();
        assert!(refusal.contains("is a symlink"), "{refusal}");
        let cleaned = remove_all(place.path());
        assert_eq!(cleaned.is_err(), name.is_empty(), "{link:?}");
        assert!(outside.join("1/file").exists() && outside.join("targets/1").exists());
    }
}

#[test]
fn what_was_made_to_be_read_stays_or_goes() {
    let (place, _) = directory();
    let folder = place.path().join(RACE.folder);
    let take = || {
        let taken = Place::take(place.path(), RACE).unwrap();
        fs::create_dir_all(folder.join(CORPORA).join("dd/1")).unwrap();
        taken
    };
    take().leave().unwrap();
    assert!(folder.join(CORPORA).join("dd/1").exists());
    take().leave_nothing().unwrap();
    assert!(!folder.exists());
}

#[test]
fn one_race_at_a_time_and_no_cleaning_meanwhile() {
    let (place, targets) = directory();
    let first = Place::take(place.path(), RACE).unwrap();
    fs::create_dir_all(targets.join("1")).unwrap();
    for refused in [Place::take(place.path(), RACE).map(drop), remove_all(place.path())] {
        assert!(refused.unwrap_err().to_string().contains("another race runs in"));
    }
    assert!(targets.join("1").exists());
    first.leave().unwrap();
    let second = Place::take(place.path(), RACE).unwrap();
    assert!(second.remove_leftovers().unwrap().is_empty());
    second.leave().unwrap();
    assert!(!place.path().join(RACE.folder).exists(), "nothing is left of an empty one");
    fs::create_dir_all(targets.join("1")).unwrap();
    remove_all(place.path()).unwrap();
    assert!(!place.path().join(RACE.folder).exists());
}

#[test]
fn a_tree_that_holds_the_race_or_lies_in_its_folder_is_refused() {
    let (place, targets) = directory();
    let data = place.path().join("data");
    let (race, beside) = (data.join("race"), data.join("beside"));
    fs::create_dir_all(race.join("mine")).unwrap();
    fs::create_dir_all(&beside).unwrap();
    symlink(&data, place.path().join("link")).unwrap();
    let link = place.path().join("link");
    for tree in [&race, &data, &link, &link.join("race/../race"), &PathBuf::from("/")] {
        let refused = refuse_overlap(&race, tree).unwrap_err();
        assert!(matches!(&refused, Error::Usage(text) if text.contains("--tree")), "{tree:?}");
    }
    for tree in [&beside, &race.join("mine"), &link.join("beside"), &race.join("none")] {
        refuse_overlap(&race, tree).unwrap();
    }
    assert!(!race.join(RACE.folder).exists(), "nothing was made");
    let corpora = targets.with_file_name(CORPORA);
    fs::create_dir_all(corpora.join("large")).unwrap();
    for tree in [corpora.parent().unwrap(), &corpora, &corpora.join("large")] {
        assert!(refuse_overlap(place.path(), tree).is_err(), "{tree:?}");
    }
}

#[test]
fn directories_of_a_spread_one_have_groups_of_their_own_and_new_names() {
    let (place, _) = directory();
    spread_directories_of(place.path());
    assert_ne!(unused_name("set"), unused_name("set"));
    let flags = rustix::fs::ioctl_getflags(File::open(place.path()).unwrap());
    let is_spread = flags.is_ok_and(|flags| flags.contains(TOP_OF_TREES));
    let filesystem = flatout_sys::filesystem::of(File::open(place.path()).unwrap().as_fd());
    if filesystem.unwrap().name == "ext4" {
        assert!(is_spread);
    }
}

#[test]
fn what_is_emptied_keeps_its_files_and_nothing_outside_is_touched() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    fs::write(tree.join("a/b/file"), vec![1; 100_000]).unwrap();
    fs::write(tree.join("locked"), "x").unwrap();
    fs::set_permissions(tree.join("locked"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::write(place.path().join("outside"), "stays").unwrap();
    symlink(place.path().join("outside"), tree.join("link")).unwrap();
    fs::hard_link(place.path().join("outside"), tree.join("name")).unwrap();
    let inode = fs::metadata(tree.join("a/b/file")).unwrap().ino();
    empty(&tree).unwrap();
    let facts = fs::metadata(tree.join("a/b/file")).unwrap();
    assert_eq!((facts.ino(), facts.len()), (inode, 0));
    assert_eq!(fs::read(place.path().join("outside")).unwrap(), b"stays");
}
