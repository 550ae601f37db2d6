//! The link that a disk hangs on, and what it can carry: a ceiling for its throughput.
//!
//! PCI Express, SATA and USB say what they have agreed on. An emulated disk may hang on an emulated
//! link, whose figures mean nothing: for virtio it is left out; other emulations cannot be told.

use std::path::{Path, PathBuf};

use crate::attribute::{self, is_numbered};

/// A link as its two ends agreed on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// For example `PCIe 4.0 x4`.
    pub name: String,
    /// Bits of data per second, without those of the line code, over eight. The headers of
    /// packets are still in it, so this cannot be reached quite.
    ///
    /// Source: the line codes of the specifications. PCI Express: 8b/10b at 2.5 and 5 GT/s,
    /// 128b/130b from 8 to 32 GT/s, and 236 of 256 bytes of a flit at 64 GT/s. SATA: 8b/10b.
    /// USB: none up to 480 Mb/s, 8b/10b at 5 Gb/s, 128b/132b above.
    pub bytes_per_s: u64,
}

/// Generation, what the kernel shows in tenths of GT/s, and the share of bits that are data.
const PCI_GENERATIONS: &[(&str, u64, u64, u64)] = &[
    ("1.0", 25, 8, 10),
    ("2.0", 50, 8, 10),
    ("3.0", 80, 128, 130),
    ("4.0", 160, 128, 130),
    ("5.0", 320, 128, 130),
    ("6.0", 640, 236, 256),
];

/// The link of a disk, from its own folder in `/sys/devices`.
pub(super) fn of(folder: &Path, transport: Option<&str>) -> Option<Link> {
    match transport? {
        "sata" => sata(folder),
        "usb" => usb(folder),
        "nvme" => pci(folder).or_else(|| multipath(folder)),
        "sas" | "scsi" => pci(folder),
        _ => None,
    }
}

/// The narrowest PCI Express link between the disk and the CPU. None through Thunderbolt and USB4, whose ports
/// say `2.5 GT/s` whatever the tunnel carries (USB4 2.0, 11.2.1); what lies behind them is removable.
fn pci(folder: &Path) -> Option<Link> {
    let removable = |place: &Path| attribute::text(place, "removable");
    if folder.ancestors().any(|place| removable(place).as_deref() == Some("removable")) {
        return None;
    }
    folder
        .ancestors()
        .filter_map(|place| {
            let speed = attribute::text(place, "current_link_speed")?;
            parse_pci(&speed, attribute::number(place, "current_link_width")?)
        })
        .min_by_key(|link| link.bytes_per_s)
}

/// An NVMe disk with several paths hangs on a subsystem; its controllers hang on the bus. Two of them
/// may carry data at the same time: no one link is a ceiling then.
fn multipath(folder: &Path) -> Option<Link> {
    let controllers = controllers(&folder.join("device"));
    let mut links = controllers.iter().filter_map(|path| pci(&path.canonicalize().ok()?));
    links.next().filter(|_| links.next().is_none())
}

/// The controllers of an NVMe subsystem.
pub(crate) fn controllers(subsystem: &Path) -> Vec<PathBuf> {
    let names = attribute::names(subsystem).into_iter().filter(|name| is_numbered(name, "nvme"));
    names.map(|name| subsystem.join(name)).collect()
}

fn parse_pci(speed: &str, lanes: u64) -> Option<Link> {
    let tenths = parse_tenths(speed.split_once(" GT/s")?.0)?;
    let &(generation, _, data, coded) = PCI_GENERATIONS.iter().find(|known| known.1 == tenths)?;
    let bits = tenths.checked_mul(100_000_000)?.checked_mul(lanes)?;
    let bytes_per_s = bits.checked_mul(data)? / coded / 8;
    (bytes_per_s > 0).then(|| Link { name: format!("PCIe {generation} x{lanes}"), bytes_per_s })
}

/// `6.0` as 60.
fn parse_tenths(text: &str) -> Option<u64> {
    text.parse().ok().map(|number: f64| (number * 10.0) as u64)
}

/// The folder of an `ata3` in the disk's path holds `link3/ata_link/link3/sata_spd`.
fn sata(folder: &Path) -> Option<Link> {
    let port = folder.ancestors().find(|place| {
        place.file_name().is_some_and(|name| is_numbered(&name.to_string_lossy(), "ata"))
    })?;
    let link = port.file_name()?.to_string_lossy().replace("ata", "link");
    let speed = attribute::text(port, &format!("{link}/ata_link/{link}/sata_spd"))?;
    parse_sata(&speed)
}

fn parse_sata(speed: &str) -> Option<Link> {
    let tenths = parse_tenths(speed.strip_suffix(" Gbps")?)?;
    let bytes_per_s = tenths.checked_mul(100_000_000)? * 8 / 10 / 8;
    let name = format!("SATA {}.{} Gb/s", tenths / 10, tenths % 10);
    (bytes_per_s > 0).then_some(Link { name, bytes_per_s })
}

/// The device on the USB bus is the nearest place above the disk that has a speed.
fn usb(folder: &Path) -> Option<Link> {
    let mut above = folder.ancestors().filter(|place| place.join("bNumInterfaces").exists());
    parse_usb(&attribute::text(above.next()?, "speed")?)
}

fn parse_usb(speed: &str) -> Option<Link> {
    let megabits: u64 = speed.parse().ok()?;
    let (data, coded) = match megabits {
        0..=480 => (1, 1),
        481..=5_000 => (8, 10),
        _ => (128, 132),
    };
    let bytes_per_s = megabits.checked_mul(1_000_000)?.checked_mul(data)? / coded / 8;
    let name = match megabits {
        0..=999 => format!("USB {megabits} Mb/s"),
        _ => format!("USB {} Gb/s", megabits / 1_000),
    };
    (bytes_per_s > 0).then_some(Link { name, bytes_per_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Tree;

    #[test]
    fn of_several_paths_none_is_a_ceiling() {
        let tree = Tree::new(&[]);
        let (subsystem, disk) = ("virtual/nvme-subsystem/nvme-subsys0", "nvme0n1");
        tree.link(&format!("{subsystem}/{disk}/device"), "..");
        let links = [0, 1].map(|controller| {
            let port = format!("pci0000:00/0000:0{controller}:00.0");
            tree.file(&format!("{port}/nvme/nvme{controller}/transport"), b"pcie\n");
            tree.file(&format!("{port}/current_link_speed"), b"16.0 GT/s PCIe\n");
            tree.file(&format!("{port}/current_link_width"), b"2\n");
            let name = format!("nvme{controller}");
            tree.link(&format!("{subsystem}/{name}"), &format!("../../../{port}/nvme/{name}"));
            of(&tree.root().join(subsystem).join(disk), Some("nvme")).map(|link| link.name)
        });
        assert_eq!(links, [Some("PCIe 4.0 x2".to_owned()), None]);
    }

    /// As a TB3 enclosure is shown on a laptop: the root port looks outward, what is behind it can be taken away.
    #[test]
    fn what_a_tunnel_says_of_its_links_is_no_ceiling() {
        let tree = Tree::new(&[]);
        let ports = "devices/pci0000:00/0000:00:07.0/0000:04:00.0/0000:05:01.0/0000:06:00.0";
        let disk = tree.root().join(ports).join("nvme/nvme1/nvme1n1");
        let file = |place: &Path, name: &str, text: &str| {
            let place = place.strip_prefix(tree.root()).unwrap().join(name);
            tree.file(place.to_str().unwrap(), text.as_bytes());
        };
        file(&disk, "removable", "0\n");
        let places: Vec<_> =
            tree.root().join(ports).ancestors().take(4).map(Path::to_owned).collect();
        for place in &places {
            file(place, "current_link_speed", "2.5 GT/s PCIe\n");
            file(place, "current_link_width", "4\n");
        }
        assert_eq!(of(&disk, Some("nvme")).unwrap().name, "PCIe 1.0 x4");
        places[..3].iter().for_each(|place| file(place, "removable", "removable\n"));
        assert_eq!(of(&disk, Some("nvme")), None);
    }

    #[test]
    fn each_generation_of_pci_express_has_its_line_code() {
        for (speed, lanes, name, bytes_per_s) in [
            ("2.5 GT/s PCIe", 1, "PCIe 1.0 x1", 250_000_000),
            ("5.0 GT/s PCIe", 4, "PCIe 2.0 x4", 2_000_000_000),
            ("5 GT/s", 1, "PCIe 2.0 x1", 500_000_000),
            ("8.0 GT/s PCIe", 4, "PCIe 3.0 x4", 3_938_461_538),
            ("16.0 GT/s PCIe", 4, "PCIe 4.0 x4", 7_876_923_076),
            ("32.0 GT/s PCIe", 16, "PCIe 5.0 x16", 63_015_384_615),
            ("64.0 GT/s PCIe", 4, "PCIe 6.0 x4", 29_500_000_000),
        ] {
            assert_eq!(parse_pci(speed, lanes), Some(Link { name: name.into(), bytes_per_s }));
        }
        for (speed, lanes) in [("Unknown", 4), ("8.0 GT/s PCIe", 0), ("9.0 GT/s PCIe", 1), ("", 1)]
        {
            assert_eq!(parse_pci(speed, lanes), None, "{speed} x{lanes}");
        }
    }

    #[test]
    fn sata_and_usb() {
        let sata = parse_sata("6.0 Gbps").unwrap();
        assert_eq!((sata.name.as_str(), sata.bytes_per_s), ("SATA 6.0 Gb/s", 600_000_000));
        assert_eq!(parse_sata("1.5 Gbps").unwrap().bytes_per_s, 150_000_000);
        assert_eq!(parse_sata("<unknown>"), None);
        assert_eq!(parse_usb("480").unwrap().bytes_per_s, 60_000_000);
        assert_eq!(parse_usb("5000").unwrap().bytes_per_s, 500_000_000);
        let fast = parse_usb("10000").unwrap();
        assert_eq!((fast.name.as_str(), fast.bytes_per_s), ("USB 10 Gb/s", 1_212_121_212));
        assert_eq!(parse_usb("unknown"), None);
    }
}
