//! Chains of real files of this machine; as root also of loop mounts and overlays.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;

use super::*;
use crate::block_account::BlockAccount;
use crate::fixture::{Mounted, run};

const ROOT: &str = "/";

fn chain_at(place: &Path) -> Chain {
    let file = tempfile::tempfile_in(place).unwrap();
    chain(Path::new(ROOT), file.as_fd(), place).unwrap()
}

fn loop_of(chain: &Chain) -> (&Path, Option<bool>) {
    let found = chain.layers.iter().find_map(|layer| match layer {
        Layer::Loop { backing, direct_io, .. } => Some((backing.as_path(), *direct_io)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no loop device in {chain:?}"))
}

#[test]
fn a_temporary_file_lies_in_a_mount_that_statfs_knows_too() {
    let place = std::env::temp_dir();
    let found = chain_at(&place);
    let file = File::open(&place).unwrap();
    let told = filesystem::of(file.as_fd()).unwrap();
    eprintln!("{found:#?}");
    assert_eq!(found.nature == Nature::Memory, told.in_memory);
    assert!(matches!(found.layers.first(), Some(Layer::Mount(_))), "{found:?}");
    for device in found.disks {
        assert!(Path::new(&format!("/sys/dev/block/{device}")).exists());
    }
}

#[test]
fn proc_has_no_disk() {
    let file = File::open("/proc/self/status").unwrap();
    let found = chain(Path::new(ROOT), file.as_fd(), Path::new("/proc")).unwrap();
    assert_eq!((found.nature, found.filesystem.as_str()), (Nature::Memory, "proc"));
    assert_eq!(found.disks, []);
}

#[test]
fn loop_mounts_lead_to_the_disk_of_their_image() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(mounted) = Mounted::new(kind) else { continue };
        let found = chain_at(mounted.path());
        assert_eq!((found.nature, found.filesystem.as_str()), (Nature::Disk, kind));
        let Layer::Mount(Mount { mount_point, .. }) = &found.layers[0] else { panic!("{found:?}") };
        assert_eq!(mount_point, mounted.path(), "the blank in the name was decoded");
        assert_eq!(loop_of(&found), (mounted.image().as_path(), Some(false)));
        let below = chain_at(mounted.image().parent().unwrap());
        assert_eq!(found.layers[2..], below.layers, "the image's own chain");
        if !below.disks.is_empty() {
            assert_eq!(found.disks, below.disks);
        }
    }
}

#[test]
fn a_subvolume_with_a_device_number_of_its_own_is_found() {
    let Some(mounted) = Mounted::new("btrfs") else { return };
    let inner = mounted.path().join("inner");
    if run("btrfs", &["subvolume", "create", inner.to_str().unwrap()]).is_none() {
        return;
    }
    assert_eq!(chain_at(&inner).layers, chain_at(mounted.path()).layers);
    // As on kernels before 5.8, which do not tell the mount.
    let file = tempfile::tempfile_in(&inner).unwrap();
    let known = origin(file.as_fd(), Path::new(""), AtFlags::EMPTY_PATH).unwrap();
    let told = Origin { mount_id: None, ..known };
    let mounts = MountTable::read(Path::new(ROOT));
    let found = build(Path::new(ROOT), &mounts, LOOK, told, &inner, "btrfs");
    assert_eq!(found.layers, chain_at(mounted.path()).layers);
}

#[test]
fn the_node_of_a_loop_device_begins_at_itself_and_its_image_may_be_gone() {
    let Some(mounted) = Mounted::new("ext4") else { return };
    let named = chain_at(mounted.path());
    let Layer::Loop { name, .. } = &named.layers[1] else { panic!("{named:?}") };
    let node = File::open(Path::new("/dev").join(name)).unwrap();
    let found = chain(Path::new(ROOT), node.as_fd(), Path::new("/dev")).unwrap();
    assert_eq!(found.layers, named.layers[1..]);
    fs::remove_file(mounted.image()).unwrap();
    let found = chain(Path::new(ROOT), node.as_fd(), Path::new("/dev")).unwrap();
    assert!(loop_of(&found).0.to_string_lossy().ends_with(" (deleted)"));
    assert_eq!(found.layers[1..], named.layers[2..]);
}

#[test]
fn an_overlay_leads_to_its_upper_directory() {
    let Some(below) = Mounted::new("ext4") else { return };
    let Some(mounted) = Mounted::overlay(below.path()) else { return };
    let found = chain_at(mounted.path());
    assert_eq!((found.nature, found.filesystem.as_str()), (Nature::Overlay, "overlay"));
    let upper = below.path().join("upper,with comma");
    assert_eq!(found.layers[1], Layer::Overlay { upper: Some(upper), lower: None, by_size: false });
    assert_eq!(found.layers[2..], chain_at(below.path()).layers);
}

#[test]
fn an_image_in_memory_ends_at_its_loop_device() {
    let Some(memory) = Mounted::new("tmpfs") else { return };
    let image = memory.path().join("image");
    File::create_new(&image).unwrap().set_len(1 << 20).unwrap();
    let image = image.to_str().unwrap();
    let Some(node) = run("losetup", &["--find", "--show", image]) else { return };
    let file = File::open(&node).unwrap();
    let found = chain(Path::new(ROOT), file.as_fd(), Path::new("/dev")).unwrap();
    drop(file);
    run("losetup", &["--detach", &node]);
    assert!(matches!(&found.layers[1], Layer::Mount(mount) if mount.filesystem == "tmpfs"));
    assert_eq!(found.disks, [found.devices()[0]]);
    assert_eq!(found.ground(), Some(Nature::Memory));
}

#[test]
fn a_file_that_only_the_lower_directory_of_an_overlay_has_lies_there() {
    let Some(below) = Mounted::new("ext4") else { return };
    let Some(mounted) = Mounted::overlay(below.path()) else { return };
    fs::write(below.path().join("lower/file"), "old").unwrap();
    let path = mounted.path().join("file");
    let found = || chain(Path::new(ROOT), File::open(&path).unwrap().as_fd(), &path).unwrap();
    let lower_of = |chain: &Chain| match &chain.layers[1] {
        Layer::Overlay { lower, .. } => lower.clone(),
        other => panic!("{other:?}"),
    };
    let lower = lower_of(&found());
    assert!(lower.is_some_and(|lower| lower.ends_with("lower")));
    File::options().append(true).open(&path).unwrap();
    assert_eq!(lower_of(&found()), None, "it was copied up");
}

#[test]
fn a_partition_leads_to_its_disk_and_has_an_account() {
    let Some(memory) = Mounted::new("tmpfs") else { return };
    let path = memory.path().join("image");
    File::create_new(&path).unwrap().set_len(4 << 20).unwrap();
    let path = path.to_str().unwrap();
    let Some(node) = run("losetup", &["--find", "--show", path]) else { return };
    // Told to the kernel, which need not know any format of partition tables.
    let added = run("addpart", &[&node, "1", "2048", "2048"]);
    let found = File::open(format!("{node}p1")).and_then(|file| {
        let found = chain(Path::new(ROOT), file.as_fd(), Path::new("/dev"))?;
        let mut bytes = [1; 4096];
        (&file).read_exact(&mut bytes)?;
        Ok((BlockAccount::read(Path::new(ROOT), found.devices()[0]), found))
    });
    added.and_then(|_| run("delpart", &[&node, "1"]));
    run("losetup", &["--detach", &node]);
    let (account, found) = match found {
        Ok(found) => found,
        Err(error) => return eprintln!("skipped: no partition of a loop device: {error}"),
    };
    let name = node.trim_start_matches("/dev/");
    let Layer::Partition { name: part, .. } = &found.layers[0] else { panic!("{found:?}") };
    assert_eq!(*part, format!("{name}p1"));
    assert!(matches!(&found.layers[1], Layer::Loop { name: disk, .. } if disk == name));
    assert_eq!(found.disks, [found.layers[1].device().unwrap()]);
    assert!(account.unwrap().read.bytes >= 4096);
}

#[test]
fn the_account_of_a_loop_device_sees_what_is_written_through_it() {
    const LENGTH: u64 = 4 << 20;
    let Some(mounted) = Mounted::new("ext4") else { return };
    let device = chain_at(mounted.path()).devices()[0];
    let before = BlockAccount::read(Path::new(ROOT), device).unwrap();
    let mut file = tempfile::tempfile_in(mounted.path()).unwrap();
    file.write_all(&vec![7; LENGTH as usize]).unwrap();
    file.sync_all().unwrap();
    let after = BlockAccount::read(Path::new(ROOT), device).unwrap();
    assert!(after.write.bytes - before.write.bytes >= LENGTH, "{before:?} {after:?}");
    assert!(after.write.requests > before.write.requests, "{before:?} {after:?}");
}

#[test]
fn a_limit_that_the_kernel_was_given_is_read_back() {
    let Some(mounted) = Mounted::new("ext4") else { return };
    let found = chain_at(mounted.path());
    let device = found.devices()[0];
    // A group of its own, in which no process is: nobody is slowed down.
    let name = format!("flatout-limit-{}", std::process::id());
    let tree = Tree::new(&[
        ("proc/self/cgroup", &format!("7:blkio:/{name}\n0::/{name}\n")),
        ("proc/self/mountinfo", &fs::read_to_string("/proc/self/mountinfo").unwrap()),
    ]);
    tree.link("sys", "/sys");
    let (folder, rules) = if Path::new("/sys/fs/cgroup/blkio").exists() {
        let rule = format!("{device} 1048576");
        let files = ["blkio.throttle.read_bps_device", "blkio.throttle.write_iops_device"];
        (Path::new("/sys/fs/cgroup/blkio"), files.map(|file| (file, rule.clone())).to_vec())
    } else {
        let rule = format!("{device} rbps=1048576 wiops=1048576");
        (Path::new("/sys/fs/cgroup"), vec![("io.max", rule)])
    };
    let group = folder.join(&name);
    if let Err(error) = fs::create_dir(&group) {
        eprintln!("skipped: no control group can be made: {error}");
        return;
    }
    let set: io::Result<()> =
        rules.iter().try_for_each(|(file, rule)| fs::write(group.join(file), rule));
    let limits = limits(tree.root(), &found.devices());
    fs::remove_dir(&group).unwrap();
    if let Err(error) = set {
        eprintln!("skipped: no limit can be set: {error}");
        return;
    }
    let expected = IoLimit {
        group: format!("/{name}"),
        device,
        read_bytes_per_s: Some(1 << 20),
        write_bytes_per_s: None,
        read_operations_per_s: None,
        write_operations_per_s: Some(1 << 20),
    };
    assert_eq!(limits, [expected]);
}
