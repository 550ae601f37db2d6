//! What the kernel tells about a disk and its queue. See `Documentation/ABI/stable/sysfs-block`.

use std::path::{Path, PathBuf};

use super::{DeviceNumber, Link, link};
use crate::attribute::{self, is_numbered};

/// A sector of `/sys/block/*/size`, whatever the disk's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// A block device with nothing below it, as far as the kernel shows. What cannot be read, and
/// what the kernel only invents, is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name, or the device number where the kernel shows no name.
    pub name: String,
    /// Its number.
    pub device: DeviceNumber,
    /// The maker's name for it.
    pub model: Option<String>,
    /// How it is reached: `nvme`, `sata`, `usb`, `virtio`, …
    pub transport: Option<String>,
    /// Whether it seeks. The virtio driver always says so, whatever the host has, which is `None`.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `write back` when the disk has a volatile cache that needs flushes, else `write through`.
    pub write_cache: Option<String>,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// The smallest unit that it takes.
    pub logical_block_bytes: Option<u64>,
    /// The smallest unit that it writes without reading first.
    pub physical_block_bytes: Option<u64>,
    /// The largest request; longer ones are split.
    pub max_request_bytes: Option<u64>,
    /// Requests that its queue holds.
    pub queue_requests: Option<u64>,
    /// How far the kernel reads ahead.
    pub read_ahead_bytes: Option<u64>,
    /// What connects it.
    pub link: Option<Link>,
}

impl Disk {
    /// A disk of which only the number is known.
    pub(super) fn unknown(device: DeviceNumber) -> Self {
        Self { name: device.to_string(), device, ..Self::default() }
    }

    /// Reads the facts in a disk's own folder of `/sys/devices`.
    pub(super) fn read(folder: &Path, name: String, device: DeviceNumber) -> Self {
        let queue = folder.join("queue");
        let transport = transport(folder, &name);
        let is_virtio = transport.as_deref() == Some("virtio");
        let text = |name| attribute::text(folder, name);
        let kib = |name| attribute::number(&queue, name)?.checked_mul(1024);
        Self {
            model: text("device/model").or_else(|| text("device/name")),
            rotational: attribute::flag(&queue, "rotational")
                .filter(|turns| !(is_virtio && *turns)),
            scheduler: attribute::text(&queue, "scheduler").map(|list| chosen(&list)),
            write_cache: attribute::text(&queue, "write_cache"),
            size_bytes: attribute::number(folder, "size")
                .and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)),
            logical_block_bytes: attribute::number(&queue, "logical_block_size"),
            physical_block_bytes: attribute::number(&queue, "physical_block_size"),
            max_request_bytes: kib("max_sectors_kb"),
            queue_requests: attribute::number(&queue, "nr_requests"),
            read_ahead_bytes: kib("read_ahead_kb"),
            link: link::of(folder, transport.as_deref()),
            name,
            device,
            transport,
        }
    }
}

/// The scheduler in brackets; a queue that has no choice shows a single name without them.
fn chosen(list: &str) -> String {
    let inside = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(list, |(name, _)| name).to_owned()
}

/// Drivers that name their disks in a way of their own.
const BY_NAME: &[(&str, &str)] = &[
    ("vd", "virtio"),
    ("mmcblk", "mmc"),
    ("zram", "zram"),
    ("xvd", "xen"),
    ("nbd", "nbd"),
    ("rbd", "rbd"),
    ("drbd", "drbd"),
    ("ublkb", "ublk"),
    ("pmem", "pmem"),
    ("nullb", "null"),
    ("ram", "ram"),
    ("loop", "loop"),
    ("dasd", "dasd"),
    ("mtdblock", "mtd"),
    ("fd", "floppy"),
];

/// How a disk is reached, from its name and from the buses in its path.
fn transport(folder: &Path, name: &str) -> Option<String> {
    if name.starts_with("nvme") {
        // A disk with several paths belongs to a subsystem, which names no transport of its own.
        let device = folder.join("device");
        let of_path = |path: &PathBuf| attribute::text(path, "transport");
        let named =
            of_path(&device).or_else(|| link::controllers(&device).iter().find_map(of_path));
        return Some(match named.as_deref() {
            None | Some("pcie") => "nvme".to_owned(),
            Some(fabric) => format!("nvme-{fabric}"),
        });
    }
    if let Some((_, transport)) = BY_NAME.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        return Some((*transport).to_owned());
    }
    let is_scsi = name.starts_with("sd") || name.starts_with("sr");
    is_scsi.then(|| scsi_transport(folder).to_owned())
}

/// Buses of SCSI disks, by the folders in their paths.
const BUSES: &[(&str, &str)] = &[
    ("usb", "usb"),
    ("ata", "sata"),
    ("session", "iscsi"),
    ("rport-", "fibre channel"),
    ("end_device-", "sas"),
    ("virtio", "virtio-scsi"),
];

fn scsi_transport(folder: &Path) -> &'static str {
    let passes = |bus: &str| {
        folder.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            is_numbered(&part, bus) || bus.ends_with('-') && part.starts_with(bus)
        })
    };
    BUSES.iter().find(|(bus, _)| passes(bus)).map_or("scsi", |(_, transport)| transport)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Tree;

    #[test]
    fn the_scheduler_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn transports_by_name_and_by_path() {
        let host = "/sys/devices/pci0000:00/0000:00:1f.2";
        for (path, name, expected) in [
            ("/virtio1/block/vda", "vda", "virtio"),
            ("/nvme/nvme0/nvme0n1", "nvme0n1", "nvme"),
            ("/ata1/host0/target0:0:0/0:0:0:0/block/sda", "sda", "sata"),
            ("/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb", "sdb", "usb"),
            ("/virtio2/host7/target7:0:0/7:0:0:0/block/sdc", "sdc", "virtio-scsi"),
            ("/host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0/block/sdd", "sdd", "sas"),
            ("/host1/target1:0:0/1:0:0:0/block/sde", "sde", "scsi"),
        ] {
            let folder = format!("{host}{path}");
            assert_eq!(transport(Path::new(&folder), name).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(transport(Path::new("/sys/devices/virtual/block/odd"), "odd"), None);
    }

    #[test]
    fn a_disk_with_several_paths_is_reached_as_these_are() {
        let tree = Tree::new(&[("fabrics/nvme0/transport", "tcp\n"), ("subsys0/model", "A\n")]);
        tree.link("subsys0/nvme0", "../fabrics/nvme0");
        tree.link("subsys0/nvme0n1/device", "..");
        let disk = tree.root().join("subsys0/nvme0n1");
        assert_eq!(transport(&disk, "nvme0n1").as_deref(), Some("nvme-tcp"));
    }
}
