//! What the firmware says of the memory modules: SMBIOS structures of type 17, or what udev has
//! written down of them.
//!
//! The table is readable by root alone; udev's data, where systemd is recent enough (248), by
//! everybody. Nothing here is measured, and firmware makes mistakes. In a virtual machine the
//! modules are invented. Source: DMTF DSP0134 "SMBIOS Reference Specification" 3.7, 7.18.

mod smbios;
mod udev;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

pub use smbios::parse_smbios;
pub use udev::parse_udev;

use crate::attribute::{is_numbered, text};

/// One memory module that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dimm {
    /// The slot in the words of the firmware, for example `DIMM_A1`.
    pub locator: String,
    /// The bank in the words of the firmware, for example `P0 CHANNEL A`.
    pub bank: String,
    /// Width of its data without check bits; none if not given.
    pub data_width_bits: Option<u32>,
    /// Transfers per second that it runs at now; none if not given.
    pub configured_transfers_per_s: Option<u64>,
    /// Transfers per second that it is made for; none if not given.
    pub rated_transfers_per_s: Option<u64>,
}

/// Where modules were read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The firmware's table.
    Smbios,
    /// What udev read out of it.
    Udev,
}

/// The modules below `root` (`/` for the real one) and where they are from; none where neither
/// source can be read or has any.
///
/// Cost: one or two files are read, a few KiB.
pub fn dimms(root: &Path) -> Option<(Source, Vec<Dimm>)> {
    let table = fs::read(root.join("sys/firmware/dmi/tables/DMI"));
    let from_table = table.map(|bytes| parse_smbios(&bytes)).unwrap_or_default();
    if !from_table.is_empty() {
        return Some((Source::Smbios, from_table));
    }
    let from_udev = parse_udev(&text(root, "run/udev/data/+dmi:id")?);
    (!from_udev.is_empty()).then_some((Source::Udev, from_udev))
}

/// Modules that a channel has at most.
const MOST_ON_CHANNEL: usize = 3;

/// Number of different channels that the modules name; none unless every module names one, in words that
/// can be: those of a slot are no other's, and a channel has few of them.
///
/// Firmware has no field for the channel, only words. These are understood, in bank or locator:
/// `CHANNEL A`, `Channel0`, `ChannelA-DIMM0`, `DIMM_A1`, `DIMMB2`, `CPU0_DIMM_C1`, `DIMM_P0_A0`, and the same
/// after a socket or controller (`P0 CHANNEL A` is another channel than `P1 CHANNEL A`).
pub fn channels(dimms: &[Dimm]) -> Option<usize> {
    let names: BTreeSet<String> = dimms.iter().map(channel).collect::<Option<_>>()?;
    let slots: BTreeSet<_> = dimms.iter().map(|dimm| (&dimm.locator, &dimm.bank)).collect();
    let can_be = slots.len() == dimms.len() && dimms.len() <= MOST_ON_CHANNEL * names.len();
    (!names.is_empty() && can_be).then_some(names.len())
}

/// What tells the channel of a module from the others: the words up to and with the channel.
fn channel(dimm: &Dimm) -> Option<String> {
    let (bank, locator) = (dimm.bank.to_ascii_uppercase(), dimm.locator.to_ascii_uppercase());
    let named = [&locator, &bank].into_iter().find_map(|text| after_channel_word(text));
    named.map(|(text, end)| format!("{} {}", socket(&bank, &locator), &text[..end])).or_else(|| {
        // `DIMM_A1`, `DIMMA1`: the letter is the channel, the digit the slot on it.
        let (head, tail) = locator.split_once("DIMM")?;
        let tail = tail.trim_start_matches(SEPARATORS);
        // `DIMM_P0_A0`: between them is the socket.
        let behind = tail.split_once(SEPARATORS).filter(|(word, _)| is_socket(word));
        let tail = behind.map_or(tail, |(_, tail)| tail);
        let mut letters = tail.chars();
        let (letter, slot) = (letters.next()?, letters.next());
        let is_channel =
            letter.is_ascii_alphabetic() && slot.is_none_or(|slot| slot.is_ascii_digit());
        is_channel.then(|| format!("{} {head}{letter}", socket(&bank, &locator)))
    })
}

/// The text, and where in it the name of the channel ends, if it has the word.
fn after_channel_word(text: &str) -> Option<(&str, usize)> {
    const WORD: &str = "CHANNEL";
    let after = text.find(WORD)? + WORD.len();
    let skipped = text[after..].len() - text[after..].trim_start_matches(SEPARATORS).len();
    let start = after + skipped;
    let length = text[start..].find(|c: char| !c.is_ascii_alphanumeric());
    let end = length.map_or(text.len(), |length| start + length);
    (end > start).then_some((text, end))
}

/// What stands between words.
const SEPARATORS: [char; 3] = ['_', '-', ' '];

fn is_socket(word: &str) -> bool {
    ["P", "CPU", "NODE", "PROC", "SOCKET"].iter().any(|head| is_numbered(word, head))
}

/// Socket or node in the texts, so that equal channels of two sockets are two.
fn socket(bank: &str, locator: &str) -> String {
    let all = bank.split(SEPARATORS).chain(locator.split(SEPARATORS));
    all.filter(|word| is_socket(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
