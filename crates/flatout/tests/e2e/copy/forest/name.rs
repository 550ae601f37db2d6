//! Names as people and programs do not think of them.

use std::ffi::CString;

use crate::fixture::Random;

/// The longest text of a symlink that all filesystems here take (xfs: 1024 bytes).
const LONGEST_TEXT_BYTES: usize = 1000;

/// A name; now and then the same one again.
pub fn random(random: &mut Random) -> CString {
    let number = random.below(10_000);
    let mut name = match random.below(9) {
        0 => format!("-{number}").into_bytes(),
        1 => format!("line\nbreak {number}\n").into_bytes(),
        2 => [&[0xff, 0xfe, 0x80][..], number.to_string().as_bytes()].concat(),
        3 => [vec![b'n'; 250], format!("{number:05}").into_bytes()].concat(),
        4 => format!(" \t*?\"'\\${number} ").into_bytes(),
        5 => format!(".{number}").into_bytes(),
        6 => format!("ünïcode-日本-{number}").into_bytes(),
        7 => (0..1 + random.below(20)).map(|_| 1 + random.below(255) as u8).collect(),
        _ => format!("plain{number}").into_bytes(),
    };
    name.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'\\');
    if name == b"." || name == b".." {
        name.push(b'x');
    }
    CString::new(name).unwrap()
}

/// What a symlink says; it need not lead anywhere.
pub fn link_text(random: &mut Random) -> CString {
    let text = match random.below(8) {
        0 => b"/etc/passwd".to_vec(),
        1 => b"../../../../../../..".to_vec(),
        2 => b".".to_vec(),
        3 => b"no such \xff\n thing".to_vec(),
        4 => vec![b'/'; 1 + random.below(LONGEST_TEXT_BYTES)],
        5 => vec![b't'; LONGEST_TEXT_BYTES],
        // The lengths at which ext4 keeps the text no longer in the inode.
        6 => vec![b'i'; 58 + random.below(4)],
        _ => b"-rf".to_vec(),
    };
    CString::new(text).unwrap()
}
