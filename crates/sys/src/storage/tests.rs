//! Chains through recorded trees of /proc and /sys of machines that are not this one.

mod mounted;

use super::*;
use crate::fixture::Tree;

const SDA1: DeviceNumber = DeviceNumber { major: 8, minor: 1 };

fn number(major: u32, minor: u32) -> DeviceNumber {
    DeviceNumber { major, minor }
}

/// In place of statx, which would look at this machine.
fn locate_by_table(_: &Path, mounts: &MountTable, path: &Path) -> Option<Origin> {
    assert!(!path.starts_with("/dead"), "who looks at {path:?} waits for ever");
    if path.starts_with("/hidden") || path.to_string_lossy().ends_with("(deleted)") {
        return None;
    }
    let mount = mounts.above(path, |_| true)?;
    let node = (path == "/dev/sdb").then_some(number(8, 16));
    Some(Origin { mount_id: Some(mount.id), filesystem_device: mount.device, node })
}

/// In place of statfs: what the table of these tests says of containers.
fn size_by_table(_: &Path, path: &Path) -> Option<u64> {
    assert!(!path.starts_with("/dead"), "who asks for {path:?} waits for ever");
    match path.to_str()? {
        "/container" | "/container/etc/hosts" => Some(4096),
        "/alike" | "/container/secret" | "/cached" => Some(8192),
        _ => None,
    }
}

const TABLE: stack::Look = stack::Look { locate: locate_by_table, size_bytes: size_by_table };

fn chain_of(tree: &Tree, path: &str) -> Chain {
    let mounts = MountTable::read(tree.root());
    let path = Path::new(path);
    let origin = locate_by_table(tree.root(), &mounts, path).unwrap();
    build(tree.root(), &mounts, TABLE, origin, path, "fallback")
}

/// Each layer in a few words.
fn words(chain: &Chain) -> Vec<String> {
    chain.layers.iter().map(word).collect()
}

fn word(layer: &Layer) -> String {
    match layer {
        Layer::Mount(Mount { filesystem, source, .. }) => {
            format!("{filesystem} of {}", source.to_string_lossy())
        }
        Layer::Overlay { upper, lower: None, .. } => format!("overlay {upper:?}"),
        Layer::Overlay { lower, .. } => format!("overlay above {lower:?}"),
        Layer::Loop { name, backing, direct_io, .. } => {
            format!("{name} in {} direct {direct_io:?}", backing.display())
        }
        Layer::Partition { name, .. } => format!("partition {name}"),
        Layer::Mapper { name, kind, .. } => format!("{kind} {name}"),
        Layer::Raid { name, level, members, .. } => format!("{name} {level:?} {members:?}"),
        Layer::Stacked { name, .. } => format!("stacked {name}"),
        Layer::Disk(disk) => format!("disk {}", disk.name),
    }
}

/// A laptop: ext4 on LVM on LUKS on a partition of an NVMe disk, and a FAT partition beside it.
fn laptop() -> Tree {
    let nvme = "pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
    let tree = Tree::new(&[(
        "proc/self/mountinfo",
        "20 1 254:2 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw,errors=remount-ro\n\
         21 20 259:1 / /boot/efi rw - vfat /dev/nvme0n1p1 rw\n\
         22 20 0:30 / /tmp rw - tmpfs tmpfs rw\n\
         23 20 0:31 / /srv rw - nfs4 server:/srv rw,vers=4.2\n\
         24 20 7:0 / /image rw - xfs /dev/loop0 rw\n\
         25 20 7:1 / /in-memory rw - xfs /dev/loop1 rw\n\
         26 20 7:2 / /removed rw - xfs /dev/loop2 rw\n",
    )]);
    let file = |path: &str, text: &str| tree.file(&format!("sys/devices/{path}"), text.as_bytes());
    tree.device(nvme, "259:0");
    tree.link(&format!("sys/devices/{nvme}/device"), "..");
    file("pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/model", "Some Disk 2000\n");
    file("pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/transport", "pcie\n");
    file("pci0000:00/0000:00:1d.0/0000:03:00.0/current_link_speed", "16.0 GT/s PCIe\n");
    file("pci0000:00/0000:00:1d.0/0000:03:00.0/current_link_width", "4\n");
    file("pci0000:00/0000:00:1d.0/current_link_speed", "8.0 GT/s PCIe\n");
    file("pci0000:00/0000:00:1d.0/current_link_width", "4\n");
    for (name, text) in [
        ("size", "4000797360\n"),
        ("queue/rotational", "0\n"),
        ("queue/scheduler", "[none] mq-deadline\n"),
        ("queue/write_cache", "write back\n"),
        ("queue/logical_block_size", "512\n"),
        ("queue/physical_block_size", "4096\n"),
        ("queue/max_sectors_kb", "128\n"),
        ("queue/nr_requests", "1023\n"),
        ("queue/read_ahead_kb", "128\n"),
    ] {
        file(&format!("{nvme}/{name}"), text);
    }
    for (part, number) in [("nvme0n1p1", "259:1"), ("nvme0n1p2", "259:2")] {
        tree.device(&format!("{nvme}/{part}"), number);
        file(&format!("{nvme}/{part}/partition"), "1\n");
    }
    for (dm, number, name, uuid) in [
        ("dm-0", "254:0", "cryptroot", "CRYPT-LUKS2-0a1b-cryptroot\n"),
        ("dm-2", "254:2", "vg-root", "LVM-aBcD\n"),
    ] {
        tree.device(&format!("virtual/block/{dm}"), number);
        file(&format!("virtual/block/{dm}/dm/name"), &format!("{name}\n"));
        file(&format!("virtual/block/{dm}/dm/uuid"), uuid);
    }
    tree.slave("virtual/block/dm-2", "virtual/block/dm-0");
    tree.slave("virtual/block/dm-0", &format!("{nvme}/nvme0n1p2"));
    for (name, number, backing) in [
        ("loop0", "7:0", "/home/an image"),
        ("loop1", "7:1", "/tmp/image"),
        ("loop2", "7:2", "/home/gone (deleted)"),
    ] {
        tree.device(&format!("virtual/block/{name}"), number);
        file(&format!("virtual/block/{name}/loop/backing_file"), &format!("{backing}\n"));
        file(&format!("virtual/block/{name}/loop/dio"), "1\n");
    }
    tree
}

const LAPTOP_ROOT: [&str; 5] = [
    "ext4 of /dev/mapper/vg-root",
    "lvm vg-root",
    "crypt cryptroot",
    "partition nvme0n1p2",
    "disk nvme0n1",
];

#[test]
fn through_lvm_and_luks_to_an_nvme_disk() {
    let chain = chain_of(&laptop(), "/home/file");
    assert_eq!(words(&chain), LAPTOP_ROOT);
    assert_eq!((chain.nature, chain.filesystem.as_str()), (Nature::Disk, "ext4"));
    assert_eq!(chain.devices()[0], number(254, 2));
    assert_eq!(chain.disks, [number(259, 0)]);
    assert_eq!(chain.ground(), Some(Nature::Disk));
    assert_eq!(chain.devices(), [number(254, 2), number(254, 0), number(259, 2), number(259, 0)]);
    let Some(Layer::Disk(disk)) = chain.layers.last() else { panic!("{chain:?}") };
    let expected = Disk {
        name: "nvme0n1".into(),
        device: number(259, 0),
        model: Some("Some Disk 2000".into()),
        transport: Some("nvme".into()),
        rotational: Some(false),
        scheduler: Some("none".into()),
        write_cache: Some("write back".into()),
        size_bytes: Some(2_048_408_248_320),
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4096),
        max_request_bytes: Some(128 << 10),
        queue_requests: Some(1023),
        read_ahead_bytes: Some(128 << 10),
        // The bridge above the disk is slower than the disk's own link.
        link: Some(Link { name: "PCIe 3.0 x4".into(), bytes_per_s: 3_938_461_538 }),
    };
    assert_eq!(*disk, expected);
}

#[test]
fn a_loop_device_leads_into_the_filesystem_of_its_file() {
    let tree = laptop();
    let chain = chain_of(&tree, "/image/file");
    let mut expected = vec!["xfs of /dev/loop0", "loop0 in /home/an image direct Some(true)"];
    expected.extend(LAPTOP_ROOT);
    assert_eq!(words(&chain), expected);
    assert_eq!(chain.devices()[0], number(7, 0));
    assert_eq!(chain.disks, [number(259, 0)]);
    let removed = chain_of(&tree, "/removed/file");
    assert_eq!(words(&removed)[2..], LAPTOP_ROOT, "found by the directory of the removed file");
}

#[test]
fn a_loop_device_in_memory_is_the_bottom_itself() {
    let chain = chain_of(&laptop(), "/in-memory/file");
    assert_eq!(words(&chain)[2..], ["tmpfs of tmpfs"]);
    assert_eq!(chain.disks, [number(7, 1)]);
    assert_eq!(chain.ground(), Some(Nature::Memory), "whatever the loop device counts");
}

#[test]
fn no_disk_below_memory_and_network() {
    let tree = laptop();
    for (path, nature) in [("/tmp/x", Nature::Memory), ("/srv/x", Nature::Network)] {
        let chain = chain_of(&tree, path);
        assert_eq!((chain.nature, chain.layers.len()), (nature, 1));
        assert_eq!(chain.ground(), Some(nature));
        assert_eq!((&chain.disks, chain.devices()), (&vec![], vec![]));
    }
}

#[test]
fn a_block_device_begins_at_itself() {
    let tree = laptop();
    let node = Some(number(259, 1));
    let origin = Origin { mount_id: Some(20), filesystem_device: number(0, 6), node };
    let mounts = MountTable::read(tree.root());
    let chain = build(tree.root(), &mounts, TABLE, origin, Path::new("/"), "tmpfs");
    assert_eq!(words(&chain), ["partition nvme0n1p1", "disk nvme0n1"]);
    assert_eq!((chain.nature, chain.filesystem.as_str()), (Nature::Disk, "none"));
    assert_eq!(chain.devices()[0], number(259, 1));
}

#[test]
fn an_unknown_mount_goes_by_its_device_number() {
    let tree = laptop();
    let mounts = MountTable::read(tree.root());
    let origin = Origin { mount_id: Some(999), filesystem_device: number(259, 1), node: None };
    let chain = build(tree.root(), &mounts, TABLE, origin, Path::new("/"), "vfat");
    assert_eq!(words(&chain), ["partition nvme0n1p1", "disk nvme0n1"]);
    assert_eq!(chain.filesystem, "vfat");
    let origin = Origin { filesystem_device: number(0, 9), ..origin };
    let chain = build(tree.root(), &mounts, TABLE, origin, Path::new("/"), "btrfs");
    assert_eq!((chain.layers.len(), chain.ground()), (0, None));
}

/// A server: two disks, an array over a partition of each, btrfs over two whole partitions, a
/// bcache, and overlays.
fn server() -> Tree {
    let tree = Tree::new(&[
        (
            "proc/self/mountinfo",
            "20 1 9:0 / / rw - ext4 /dev/md0 rw\n\
             21 20 0:40 / /data rw - btrfs /dev/sdb2 rw,subvolid=5,subvol=/\n\
             22 20 0:41 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/data/up\\054per,workdir=/w\n\
             23 20 0:42 / /container rw - overlay overlay rw,lowerdir=/l,upperdir=/hidden/diff,workdir=/w\n\
             24 20 0:43 / /read-only ro - overlay overlay ro,lowerdir=/l:/m\n\
             25 20 252:0 / /cached rw - xfs /dev/bcache0 rw\n\
             26 20 0:44 / /loop rw - overlay overlay rw,lowerdir=/l,upperdir=/loop/up,workdir=/w\n\
             27 20 8:3 / /container/etc/hosts rw - ext4 /dev/sda3 rw\n\
             28 20 0:45 / /alike rw - overlay overlay rw,lowerdir=/l,upperdir=/hidden/x,workdir=/w\n\
             29 20 8:19 / /container/secret rw - ext4 /dev/sdb3 rw\n\
             32 20 0:48 / /dead/ssh rw - fuse.sshfs host:/ rw\n\
             33 20 0:49 / /dead/nfs rw - nfs4 host:/ rw\n\
             31 20 0:47 / /split rw - overlay overlay rw,metacopy=on,lowerdir=/l,upperdir=/data/split,workdir=/w\n\
             30 20 0:46 / /nowhere rw - overlay overlay rw,lowerdir=/l,upperdir=/hidden/y,workdir=/w\n",
        ),
        ("sys/devices/virtual/block/md0/md/level", "raid1\n"),
    ]);
    tree.device("virtual/block/md0", "9:0");
    for (disk, minor, port) in [("sda", 0, 1), ("sdb", 16, 2)] {
        let ata = format!("pci0000:00/0000:00:1f.2/ata{port}");
        let spd = format!("sys/devices/{ata}/link{port}/ata_link/link{port}/sata_spd");
        tree.file(&spd, b"6.0 Gbps\n");
        let folder = format!("{ata}/host0/target0:0:0/0:0:0:0/block/{disk}");
        tree.device(&folder, &format!("8:{minor}"));
        for part in 1..=3 {
            tree.device(&format!("{folder}/{disk}{part}"), &format!("8:{}", minor + part));
            tree.file(&format!("sys/devices/{folder}/{disk}{part}/partition"), b"1\n");
        }
        tree.slave("virtual/block/md0", &format!("{folder}/{disk}1"));
        tree.link(
            &format!("sys/fs/btrfs/0a1b/devices/{disk}2"),
            &format!("../../../../devices/{folder}/{disk}2"),
        );
    }
    let sda3 = "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda3";
    tree.device("virtual/block/bcache0", "252:0");
    tree.file(&format!("sys/devices/{sda3}/bcache/state"), b"clean\n");
    tree.link("sys/devices/virtual/block/bcache0/bcache", &format!("../../../{sda3}/bcache"));
    tree
}

#[test]
fn an_array_is_followed_by_all_its_disks() {
    let chain = chain_of(&server(), "/file");
    let expected = [
        "ext4 of /dev/md0",
        "md0 Some(\"raid1\") [\"sda1\", \"sdb1\"]",
        "partition sda1",
        "disk sda",
        "partition sdb1",
        "disk sdb",
    ];
    assert_eq!(words(&chain), expected);
    assert_eq!(chain.disks, [number(8, 0), number(8, 16)]);
    let Some(Layer::Disk(disk)) = chain.layers.last() else { panic!("{chain:?}") };
    assert_eq!(disk.transport.as_deref(), Some("sata"));
    assert_eq!(disk.link.as_ref().map(|link| link.bytes_per_s), Some(600_000_000));
    assert_eq!(disk.model, None, "nothing is made up");
}

/// As `losetup --sector-size 4096 /dev/sdb` makes it: the node lies in memory, its bytes do not.
#[test]
fn a_loop_device_over_a_device_lies_on_its_disk() {
    let tree = server();
    tree.device("virtual/block/loop7", "7:7");
    tree.file("sys/devices/virtual/block/loop7/loop/backing_file", b"/dev/sdb\n");
    let (mounts, node) = (MountTable::read(tree.root()), Some(number(7, 7)));
    let origin = Origin { mount_id: None, filesystem_device: number(0, 6), node };
    let chain = build(tree.root(), &mounts, TABLE, origin, Path::new("/dev/loop7"), "devtmpfs");
    assert_eq!(words(&chain), ["loop7 in /dev/sdb direct None", "disk sdb"]);
    assert_eq!((chain.ground(), &*chain.disks), (Some(Nature::Disk), &[number(8, 16)][..]));
}

#[test]
fn btrfs_names_one_device_and_has_two() {
    let chain = chain_of(&server(), "/data/file");
    assert_eq!(chain.disks, [number(8, 16), number(8, 0)], "that of the one it names first");
}

#[test]
fn an_overlay_leads_to_its_upper_directory_where_that_can_be_seen() {
    let tree = server();
    let chain = chain_of(&tree, "/merged/file");
    assert_eq!((chain.nature, chain.filesystem.as_str()), (Nature::Overlay, "overlay"));
    assert_eq!(words(&chain)[1], "overlay Some(\"/data/up,per\")");
    assert_eq!(words(&chain)[2], "btrfs of /dev/sdb2");
    assert_eq!(chain.devices()[0], number(8, 18));
    assert_eq!(words(&chain_of(&tree, "/nowhere/file"))[1..], ["overlay Some(\"/hidden/y\")"]);
    assert_eq!(words(&chain_of(&tree, "/read-only/file"))[1], "overlay above Some(\"/l\")");
}

#[test]
fn the_bytes_of_a_file_whose_owner_alone_was_copied_up_are_below() {
    let tree = server();
    tree.file("l/file", b"bytes");
    tree.file("data/split/file", b"");
    let upper = std::fs::File::options().write(true).open(tree.root().join("data/split/file"));
    upper.unwrap().set_len(5).unwrap();
    let chain = chain_of(&tree, "/split/file");
    assert_eq!(words(&chain)[1..3], ["overlay above Some(\"/l\")", "ext4 of /dev/md0"]);
    tree.file("data/split/file", b"bytes of its own");
    let chain = chain_of(&tree, "/split/file");
    assert_eq!(words(&chain)[1], "overlay Some(\"/data/split\")");
}

#[test]
fn an_overlay_in_a_container_is_found_by_the_size_of_its_filesystem() {
    let tree = server();
    let found = chain_of(&tree, "/container/file");
    assert_eq!(words(&found)[2..], ["ext4 of /dev/sda3", "partition sda3", "disk sda"]);
    assert!(matches!(&found.layers[1], Layer::Overlay { by_size: true, .. }), "{found:?}");
    assert_eq!((&found.disks, found.ground()), (&vec![number(8, 0)], Some(Nature::Disk)));
    let ambiguous = chain_of(&tree, "/alike/file");
    assert_eq!((&ambiguous.disks, ambiguous.ground()), (&vec![], None), "two of that size");
    assert_eq!(chain_of(&tree, "/nowhere/file").ground(), None);
}

#[test]
fn the_disk_below_an_overlay_is_looked_for_without_asking_a_server_that_may_be_dead() {
    let found = chain_of(&server(), "/container/file");
    assert_eq!(found.disks, [number(8, 0)], "and none of the mounts below /dead was asked");
}

#[test]
fn an_overlay_upon_itself_ends() {
    let chain = chain_of(&server(), "/loop/file");
    assert!(chain.layers.len() <= 20, "{chain:?}");
    assert_eq!(chain.disks, []);
}

#[test]
fn bcache_rests_on_its_backing_device() {
    let chain = chain_of(&server(), "/cached/file");
    assert_eq!(words(&chain)[1..], ["stacked bcache0", "partition sda3", "disk sda"]);
}

#[test]
fn devices_that_rest_on_each_other_end() {
    let tree = Tree::new(&[("proc/self/mountinfo", "20 1 254:0 / / rw - ext4 /dev/dm-0 rw\n")]);
    for (name, number, below) in [("dm-0", "254:0", "dm-1"), ("dm-1", "254:1", "dm-0")] {
        tree.device(&format!("virtual/block/{name}"), number);
        tree.file(&format!("sys/devices/virtual/block/{name}/dm/name"), b"a\n");
        tree.slave(&format!("virtual/block/{name}"), &format!("virtual/block/{below}"));
    }
    assert_eq!(chain_of(&tree, "/x").layers.len(), 3);
}

#[test]
fn disks_of_memory_are_memory() {
    for (name, number, nature) in [
        ("zram0", "253:0", Nature::Memory),
        ("ram0", "1:0", Nature::Memory),
        ("nullb0", "252:0", Nature::Memory),
        ("vda", "254:0", Nature::Disk),
    ] {
        let table = format!("20 1 {number} / / rw - ext4 /dev/x rw\n");
        let tree = Tree::new(&[("proc/self/mountinfo", &table)]);
        tree.device(&format!("virtual/block/{name}"), number);
        assert_eq!(chain_of(&tree, "/file").ground(), Some(nature), "{name}");
    }
}

#[test]
fn a_disk_of_which_nothing_is_known_but_its_number() {
    let mounts = MountTable::default();
    let origin = Origin { mount_id: None, filesystem_device: number(0, 6), node: Some(SDA1) };
    let root = Path::new("/nonexistent");
    let chain = build(root, &mounts, TABLE, origin, root, "tmpfs");
    assert_eq!(chain.layers, [Layer::Disk(Disk::unknown(SDA1))]);
    assert_eq!(chain.disks, [SDA1]);
}

#[test]
fn mounts_that_make_all_durable_are_told() {
    let with = |options: &str| {
        let line = format!("20 1 8:1 / / rw,noatime - ext4 /dev/sda1 {options}\n");
        chain_of(&Tree::new(&[("proc/self/mountinfo", &line)]), "/place").is_synchronous()
    };
    assert_eq!(["rw", "rw,sync", "rw,fsync=posix"].map(with), [false, true, false]);
}

#[test]
fn mounts_that_make_nothing_durable_are_told() {
    let with = |options: &str| {
        let line = format!("20 1 0:30 / / rw - overlay overlay rw,{options}\n");
        chain_of(&Tree::new(&[("proc/self/mountinfo", &line)]), "/place").unsynced()
    };
    let told = ["upperdir=/volatile", "volatile", "fsync=volatile", "nobarrier"].map(with);
    assert_eq!(told, [None, Some("volatile"), Some("fsync=volatile"), Some("nobarrier")]);
}
