//! The table of SMBIOS structures, of which those of type 17 are read.

use super::Dimm;

/// A structure that describes a memory device.
const MEMORY_DEVICE: u8 = 17;
/// The last structure of a table.
const END_OF_TABLE: u8 = 127;
/// Type, length and handle.
const HEADER_BYTES: usize = 4;

/// The modules in the bytes of a table; slots that are empty are left out, and what is cut short
/// or makes no sense ends the reading.
pub fn parse_smbios(table: &[u8]) -> Vec<Dimm> {
    let mut dimms = Vec::new();
    let mut rest = table;
    while let Some((structure, behind)) = split_structure(rest) {
        match structure.formatted[0] {
            MEMORY_DEVICE => dimms.extend(structure.dimm()),
            END_OF_TABLE => break,
            _ => {}
        }
        rest = behind;
    }
    dimms
}

/// One structure: the formatted part and the texts behind it.
struct Structure<'a> {
    formatted: &'a [u8],
    texts: &'a [u8],
}

/// The first structure and what follows it; its texts end with two zero bytes.
fn split_structure(table: &[u8]) -> Option<(Structure<'_>, &[u8])> {
    let length = usize::from(*table.get(1)?);
    if length < HEADER_BYTES || table.len() < length {
        return None;
    }
    let (formatted, behind) = table.split_at(length);
    let end = behind.windows(2).position(|pair| pair == [0, 0])?;
    Some((Structure { formatted, texts: &behind[..end] }, &behind[end + 2..]))
}

impl Structure<'_> {
    fn word(&self, offset: usize) -> Option<u16> {
        let bytes = self.formatted.get(offset..offset + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn double_word(&self, offset: usize) -> Option<u32> {
        Some(u32::from(self.word(offset)?) | u32::from(self.word(offset + 2)?) << 16)
    }

    /// The text whose number, from 1 on, stands at `offset`.
    fn text(&self, offset: usize) -> String {
        let number = self.formatted.get(offset).copied().unwrap_or(0);
        let index = usize::from(number).checked_sub(1);
        let text = index.and_then(|index| self.texts.split(|&byte| byte == 0).nth(index));
        String::from_utf8_lossy(text.unwrap_or_default()).trim().to_owned()
    }

    /// Megatransfers per second at `offset`, or at `extended` where they do not fit.
    fn transfers_per_s(&self, offset: usize, extended: usize) -> Option<u64> {
        let mega = match self.word(offset)? {
            0 => return None,
            u16::MAX => u64::from(self.double_word(extended)? & 0x7fff_ffff),
            mega => u64::from(mega),
        };
        (mega > 0).then_some(mega * 1_000_000)
    }

    /// The module; none for an empty slot.
    fn dimm(&self) -> Option<Dimm> {
        // Nothing in it; or of a size that the firmware does not know.
        if matches!(self.word(0x0c)?, 0 | u16::MAX) {
            return None;
        }
        let width = self.word(0x0a).filter(|&bits| bits != 0 && bits != u16::MAX);
        Some(Dimm {
            locator: self.text(0x10),
            bank: self.text(0x11),
            data_width_bits: width.map(u32::from),
            configured_transfers_per_s: self.transfers_per_s(0x20, 0x58),
            rated_transfers_per_s: self.transfers_per_s(0x15, 0x54),
        })
    }
}
