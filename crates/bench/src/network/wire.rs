//! Numbers, short texts and structs as bytes, in network order, and back. Whoever reads trusts
//! nothing: each read says whether it was there.

/// Longest text in a frame.
pub const MAX_TEXT_BYTES: usize = 200;
/// Most points of a list, which is always the last part of its frame.
pub const MAX_POINTS: usize = 10;

/// What has a form of bytes.
pub trait Wire: Sized {
    /// Appends its bytes.
    fn write(&self, to: &mut Vec<u8>);

    /// Takes its bytes from the front; `None` where they are none of it.
    fn read(from: &mut &[u8]) -> Option<Self>;
}

/// A struct whose bytes are those of its fields, in their order.
macro_rules! wire_struct {
    ($(#[$attribute:meta])* pub struct $name:ident {
        $($(#[$field_attribute:meta])* pub $field:ident: $type:ty,)+
    }) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[$field_attribute])* pub $field: $type,)+
        }

        impl $crate::network::wire::Wire for $name {
            fn write(&self, to: &mut Vec<u8>) {
                $($crate::network::wire::Wire::write(&self.$field, to);)+
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::network::wire::Wire::read(from)?,)+ })
            }
        }
    };
}
pub(super) use wire_struct;

fn array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*head)
}

macro_rules! wire_number {
    ($($number:ty),+) => {
        $(impl Wire for $number {
            fn write(&self, to: &mut Vec<u8>) {
                to.extend(self.to_be_bytes());
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                array(from).map(Self::from_be_bytes)
            }
        })+
    };
}
wire_number!(u8, u16, u32, u64);

impl Wire for [u8; 32] {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        array(from)
    }
}

impl Wire for [u64; 2] {
    fn write(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|long| long.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some([Wire::read(from)?, Wire::read(from)?])
    }
}

/// A text, cut at the longest length, and read as it may be shown: control characters and what is
/// not UTF-8 are escaped.
impl Wire for String {
    fn write(&self, to: &mut Vec<u8>) {
        let mut end = self.len().min(MAX_TEXT_BYTES);
        while !self.is_char_boundary(end) {
            end -= 1;
        }
        to.push(end as u8);
        to.extend(&self.as_bytes()[..end]);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let length = usize::from(u8::read(from)?);
        if length > MAX_TEXT_BYTES {
            return None;
        }
        let (head, rest) = from.split_at_checked(length)?;
        *from = rest;
        Some(shown(&Self::from_utf8_lossy(head)))
    }
}

/// Points up to the end of the frame, within bounds.
impl<T: Wire> Wire for Vec<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.iter().take(MAX_POINTS).for_each(|point| point.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let mut points = Self::new();
        while !from.is_empty() {
            if points.len() == MAX_POINTS {
                return None;
            }
            points.push(T::read(from)?);
        }
        Some(points)
    }
}

/// Text of a peer without what a terminal would obey.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for char in text.chars() {
        if char.is_control() || is_invisible(char) {
            shown.extend(char.escape_unicode());
        } else {
            shown.push(char);
        }
    }
    shown
}

/// Characters that reorder or hide others.
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> Option<String> {
        String::read(&mut bytes)
    }

    fn sent(text: &str) -> String {
        let mut bytes = Vec::new();
        text.to_owned().write(&mut bytes);
        read(&bytes).unwrap()
    }

    #[test]
    fn text_of_a_peer_cannot_steer_a_terminal() {
        let text = sent("red \u{1b}[31m\r\n\u{202e}x ä");
        assert_eq!(text, "red \\u{1b}[31m\\u{d}\\u{a}\\u{202e}x ä");
        assert_eq!(read(&[2, 0xff, b'a']).unwrap(), "\u{fffd}a");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(sent(&"ä".repeat(150)), "ä".repeat(100));
        assert_eq!(sent(&format!("a{}", "ä".repeat(150))), format!("a{}", "ä".repeat(99)));
        assert_eq!(read(&[201; 250]), None);
        assert_eq!(read(&[5, 1, 2]), None);
    }
}
