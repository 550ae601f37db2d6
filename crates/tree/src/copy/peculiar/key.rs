//! A number that names have in common which a filesystem may take for one.

use std::ffi::CStr;

use crate::copy::temporary::fnv1a;

/// A number that names have in common if a filesystem may take them for one: without case, without dots and
/// spaces at the end, and without letters that may be written as a letter and a mark, or were (Unicode's normal
/// forms, in the scripts of Europe, the Near East and India). Of those of Japan and Korea the marks are left out, and syllables taken
/// apart: in their directories most names would be alike.
pub(in crate::copy) fn key(name: &CStr) -> u64 {
    let bytes = name.to_bytes();
    let end =
        bytes.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |last| last + 1);
    let bytes = &bytes[..end];
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_ascii() => {
            let mut folded = String::new();
            let mut has_letter = false;
            // There is a capital ß, which is none of ss.
            for letter in text.to_lowercase().to_uppercase().chars().flat_map(char::to_lowercase) {
                if matches!(letter, '\u{3099}' | '\u{309a}') || is_ignored(letter) {
                    // What it stands on is written without it, too.
                } else if is_mark(letter) {
                    // The letter that it stands on goes with the first one.
                    let _letter = has_letter.then(|| folded.pop());
                    has_letter = false;
                } else {
                    has_letter = !is_composed(letter);
                    folded.extend(parts(letter).into_iter().flatten().filter(|_| has_letter));
                }
            }
            fnv1a(folded.bytes())
        }
        _ => fnv1a(bytes.iter().map(u8::to_ascii_lowercase)),
    }
}

/// What a letter of Japan or Korea is written with, without marks; any other is that itself.
fn parts(letter: char) -> [Option<char>; 3] {
    let code = u32::from(letter);
    let hiragana = if code >= 0x30a0 { code - 0x60 } else { code };
    let marked = match hiragana {
        // One with a mark follows each.
        0x304b..=0x3062 => (code + 1) % 2,
        0x3064..=0x3069 => code % 2,
        // Two do.
        0x306f..=0x307d => (hiragana - 0x306f) % 3,
        0x3094 => 0x4e,
        0x3097..=0x309a if code > hiragana => 8,
        0x309e => 1,
        _ => 0,
    };
    let [first, second, third] = match code {
        0xac00..=0xd7a3 => {
            let (syllable, end) = ((code - 0xac00) / 28, (code - 0xac00) % 28);
            [0x1100 + syllable / 21, 0x1161 + syllable % 21, if end > 0 { 0x11a7 + end } else { 0 }]
        }
        _ => [code - marked, 0, 0],
    };
    [first, second, third].map(|code| char::from_u32(code).filter(|_| code > 0))
}

/// Whether it may be written in parts, or is a part itself; of small letters, for that is asked of no others.
fn is_composed(letter: char) -> bool {
    matches!(letter,
        '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1fff}' | '\u{2190}'..='\u{22ff}'
        | '\u{390}' | '\u{3ac}'..='\u{3b0}' | '\u{3ca}'..='\u{3ce}'
        | 'й' | 'ѐ' | 'ё' | 'ѓ' | 'ї' | 'ќ'..='ў' | 'ѷ' | '\u{4c1}'..='\u{4f9}'
        | '\u{622}'..='\u{626}' | '\u{6c0}' | '\u{6c2}' | '\u{6d3}' | '\u{fb1d}'..='\u{fb4e}')
        || in_script_of_india(letter).is_some_and(
            |place| matches!(place, 5..=0x14 | 0x29 | 0x31 | 0x33 | 0x34 | 0x36 | 0x3e..=0x5f),
        )
}

/// Whether it stands on the letter before it, and both may be written as one.
fn is_mark(letter: char) -> bool {
    matches!(letter,
        '\u{300}'..='\u{36f}' | '\u{5b0}'..='\u{5c2}' | '\u{653}'..='\u{655}')
        || in_script_of_india(letter) == Some(0x3c)
}

/// The place of a letter in its script, which is the same in all scripts of India.
fn in_script_of_india(letter: char) -> Option<u32> {
    matches!(letter, '\u{900}'..='\u{dff}').then_some(u32::from(letter) % 0x80)
}

/// Whether ext4 and f2fs, where they fold, compare names without it (Unicode's Default_Ignorable_Code_Point):
/// soft hyphens, what joins or parts letters, variants of emojis.
fn is_ignored(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}
