//! Tables as firmware writes them, put together here field by field, and udev's text of machines.

use super::*;

/// A structure of type 17 of 0x5c bytes (SMBIOS 3.3 and later).
struct Device<'a> {
    size: u16,
    data_width: u16,
    speed: u16,
    configured: u16,
    extended_configured: u32,
    texts: &'a [&'a str],
}

const DDR5: Device<'static> = Device {
    size: 0x7fff,
    data_width: 64,
    speed: 4800,
    configured: 4400,
    extended_configured: 0,
    texts: &["DIMM_A1", "P0 CHANNEL A"],
};

fn bytes(device: &Device<'_>) -> Vec<u8> {
    let mut formatted = vec![0; 0x5c];
    let mut put = |offset: usize, value: &[u8]| {
        formatted[offset..offset + value.len()].copy_from_slice(value);
    };
    put(0, &[17, 0x5c, 0x31, 0]);
    put(0x08, &80_u16.to_le_bytes());
    put(0x0a, &device.data_width.to_le_bytes());
    put(0x0c, &device.size.to_le_bytes());
    put(0x10, &[1, 2]);
    put(0x15, &device.speed.to_le_bytes());
    put(0x20, &device.configured.to_le_bytes());
    put(0x58, &device.extended_configured.to_le_bytes());
    for text in device.texts {
        formatted.extend(text.as_bytes());
        formatted.push(0);
    }
    formatted.push(0);
    formatted
}

/// A BIOS structure before and the end of the table behind.
fn table(devices: &[Device<'_>]) -> Vec<u8> {
    let mut all = vec![0, 6, 0, 0, 1, 2];
    all.extend(b"Vendor\x001.0\0\0");
    devices.iter().for_each(|device| all.extend(bytes(device)));
    all.extend([127, 4, 0xff, 0xfe, 0, 0]);
    all.extend(bytes(&DDR5));
    all
}

#[test]
fn modules_are_read_up_to_the_end_of_the_table() {
    let empty = Device { size: 0, ..DDR5 };
    let small = Device { size: 4096, configured: 0, texts: &["A", "B"], ..DDR5 };
    let fast = Device { configured: 0xffff, extended_configured: 70_000, ..DDR5 };
    let dimms = parse_smbios(&table(&[DDR5, empty, small, fast]));
    assert_eq!(dimms.len(), 3);
    assert_eq!(
        dimms[0],
        Dimm {
            locator: "DIMM_A1".to_owned(),
            bank: "P0 CHANNEL A".to_owned(),
            data_width_bits: Some(64),
            configured_transfers_per_s: Some(4_400_000_000),
            rated_transfers_per_s: Some(4_800_000_000),
        }
    );
    assert_eq!((dimms[1].bank.as_str(), dimms[1].configured_transfers_per_s), ("B", None));
    assert_eq!(dimms[2].configured_transfers_per_s, Some(70_000_000_000));
}

#[test]
fn broken_tables_end_where_they_break() {
    let whole = table(&[DDR5, DDR5]);
    for length in 0..whole.len() {
        assert!(parse_smbios(&whole[..length]).len() <= 2);
    }
    assert!(parse_smbios(&[17, 3, 0, 0, 0, 0]).is_empty(), "shorter than its header");
    assert!(parse_smbios(&[17, 0, 0, 0]).is_empty());
    let short = [&[17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0][..], &[0, 0]].concat();
    assert!(parse_smbios(&short).is_empty(), "an old structure without a size");
    let missing_text = Device { texts: &["only one"], ..DDR5 };
    assert_eq!(parse_smbios(&bytes(&missing_text))[0].bank, "");
}

#[test]
fn a_qemu_module_has_no_speed() {
    let qemu = Device { speed: 0, configured: 0, data_width: 0xffff, ..DDR5 };
    let dimms = parse_smbios(&table(&[qemu]));
    assert_eq!(dimms[0].data_width_bits, None);
    assert_eq!(dimms[0].configured_transfers_per_s.or(dimms[0].rated_transfers_per_s), None);
}

/// udev's text of a desktop with two of four slots in use, shortened.
const DESKTOP: &str = "\
I:1234567\n\
E:ID_VENDOR=Somebody\n\
E:MEMORY_ARRAY_LOCATION=System Board Or Motherboard\n\
E:MEMORY_ARRAY_NUM_DEVICES=4\n\
E:MEMORY_DEVICE_0_PRESENT=0\n\
E:MEMORY_DEVICE_0_LOCATOR=DIMM 0\n\
E:MEMORY_DEVICE_0_BANK_LOCATOR=P0 CHANNEL A\n\
E:MEMORY_DEVICE_0_SPEED_MTS=3000\n\
E:MEMORY_DEVICE_1_TOTAL_WIDTH=64\n\
E:MEMORY_DEVICE_1_DATA_WIDTH=64\n\
E:MEMORY_DEVICE_1_SIZE=17179869184\n\
E:MEMORY_DEVICE_1_LOCATOR=DIMM 1\n\
E:MEMORY_DEVICE_1_BANK_LOCATOR=P0 CHANNEL A\n\
E:MEMORY_DEVICE_1_TYPE=DDR4\n\
E:MEMORY_DEVICE_1_SPEED_MTS=3000\n\
E:MEMORY_DEVICE_1_CONFIGURED_SPEED_MTS=2666\n\
E:MEMORY_DEVICE_3_DATA_WIDTH=64\n\
E:MEMORY_DEVICE_3_SIZE=17179869184\n\
E:MEMORY_DEVICE_3_LOCATOR=DIMM 1\n\
E:MEMORY_DEVICE_3_BANK_LOCATOR=P0 CHANNEL B\n\
E:MEMORY_DEVICE_3_CONFIGURED_SPEED_MTS=2666\n";

#[test]
fn udev_tells_what_is_in_the_slots() {
    let dimms = parse_udev(DESKTOP);
    assert_eq!(dimms.len(), 2);
    assert_eq!(dimms[0].configured_transfers_per_s, Some(2_666_000_000));
    assert_eq!(dimms[0].rated_transfers_per_s, Some(3_000_000_000));
    assert_eq!((dimms[1].data_width_bits, dimms[1].rated_transfers_per_s), (Some(64), None));
    assert_eq!(channels(&dimms), Some(2));
    assert!(parse_udev("E:MEMORY_DEVICE_=\nE:MEMORY_DEVICE_0_SIZE=x\nrubbish").is_empty());
}

#[test]
fn either_source_will_do_and_the_table_is_preferred() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(dimms(root.path()), None);
    let udev = root.path().join("run/udev/data");
    fs::create_dir_all(&udev).unwrap();
    fs::write(udev.join("+dmi:id"), DESKTOP).unwrap();
    assert_eq!(dimms(root.path()).unwrap().0, Source::Udev);
    let tables = root.path().join("sys/firmware/dmi/tables");
    fs::create_dir_all(&tables).unwrap();
    fs::write(tables.join("DMI"), table(&[DDR5])).unwrap();
    let (source, found) = dimms(root.path()).unwrap();
    assert_eq!((source, found.len()), (Source::Smbios, 1));
}

fn named(names: &[(&str, &str)]) -> Vec<Dimm> {
    let dimm = |&(locator, bank): &(&str, &str)| Dimm {
        locator: locator.to_owned(),
        bank: bank.to_owned(),
        ..Dimm::default()
    };
    names.iter().map(dimm).collect()
}

/// Locator and bank of each module, and how many channels they name.
type Slots<'a> = (&'a [(&'a str, &'a str)], Option<usize>);

#[test]
fn channels_are_counted_where_all_modules_name_one() {
    let expectations: [Slots<'_>; 14] = [
        // As boards of Gigabyte call them.
        (&[("DIMM_P0_A0", "BANK 0"), ("DIMM_P0_A1", "BANK 1"), ("DIMM_P0_E0", "BANK 0")], Some(2)),
        (&[("DIMM_P0_A0", "BANK 0"), ("DIMM_P1_A0", "BANK 0")], Some(2)),
        // Words that are two slots', and a channel of four modules: they mean something else.
        (&[("DIMM_A1", "BANK 0"), ("DIMM_A1", "BANK 0"), ("DIMM_B1", "BANK 0")], None),
        (&[("DIMM_A1", ""), ("DIMM_A2", ""), ("DIMM_A3", ""), ("DIMM_A4", "")], None),
        (&[("DIMM_A1", "NODE 1"), ("DIMM_A2", "NODE 1"), ("DIMM_B1", "NODE 1")], Some(2)),
        (&[("ChannelA-DIMM0", "BANK 0"), ("ChannelB-DIMM0", "BANK 2")], Some(2)),
        (&[("Controller0-ChannelA-DIMM0", ""), ("Controller1-ChannelA-DIMM0", "")], Some(2)),
        (&[("DIMM 0", "P0 CHANNEL A"), ("DIMM 1", "P0 CHANNEL A")], Some(1)),
        (&[("DIMM 0", "P0 CHANNEL A"), ("DIMM 0", "P1 CHANNEL A")], Some(2)),
        (&[("CPU1_DIMM_A1", ""), ("CPU2_DIMM_A1", "")], Some(2)),
        (
            &[("P1-DIMMA1", "P0_Node0_Channel0_Dimm0"), ("P1-DIMMB1", "P0_Node0_Channel1_Dimm0")],
            Some(2),
        ),
        (&[("DIMM 0", "BANK 0"), ("DIMM 1", "BANK 1")], None),
        (&[("DIMM_A1", ""), ("Slot 3", "")], None),
        (&[], None),
    ];
    for (names, count) in expectations {
        assert_eq!(channels(&named(names)), count, "{names:?}");
    }
}
