//! What udev's helper `dmi_memory_id` has written down: lines `E:MEMORY_DEVICE_0_SIZE=…`.

use std::collections::BTreeMap;

use super::Dimm;

/// The modules in the text of `/run/udev/data/+dmi:id`; slots that are empty are left out.
pub fn parse_udev(text: &str) -> Vec<Dimm> {
    let mut devices: BTreeMap<u32, BTreeMap<&str, &str>> = BTreeMap::new();
    for line in text.lines() {
        let property = line.strip_prefix("E:").unwrap_or(line).trim_start();
        let Some(rest) = property.strip_prefix("MEMORY_DEVICE_") else { continue };
        let Some((number, rest)) = rest.split_once('_') else { continue };
        let (Ok(number), Some((name, value))) = (number.parse(), rest.split_once('=')) else {
            continue;
        };
        devices.entry(number).or_default().insert(name, value);
    }
    devices.values().filter_map(dimm).collect()
}

fn dimm(fields: &BTreeMap<&str, &str>) -> Option<Dimm> {
    let number = |name: &str| fields.get(name)?.parse().ok().filter(|&number: &u64| number > 0);
    let text = |name: &str| fields.get(name).map_or("", |text| text.trim()).to_owned();
    let transfers = |name: &str| number(name)?.checked_mul(1_000_000);
    number("SIZE").filter(|_| fields.get("PRESENT") != Some(&"0"))?;
    Some(Dimm {
        locator: text("LOCATOR"),
        bank: text("BANK_LOCATOR"),
        data_width_bits: number("DATA_WIDTH").and_then(|bits| u32::try_from(bits).ok()),
        configured_transfers_per_s: transfers("CONFIGURED_SPEED_MTS"),
        rated_transfers_per_s: transfers("SPEED_MTS"),
    })
}
