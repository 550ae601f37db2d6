//! Lines of `--itemize`: those of `rsync -i`, with names below TARGET.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flatout_report::text::is_unsafe;
use flatout_tree::copy::event::{Lead, Letters};
use flatout_tree::copy::operand::Destination;

/// How names are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Below it.
    root: PathBuf,
}

impl Changes {
    /// Names below the directory into which is copied, or below the copy.
    pub fn new(destination: &Destination) -> Self {
        let (Destination::Named(root) | Destination::Into(root) | Destination::Exactly(root)) =
            destination;
        Self { root: root.clone() }
    }

    /// What is changed of one thing.
    pub fn line(
        &self,
        letters: &Letters,
        (source, target): (&OsStr, &OsStr),
        lead: Option<&Lead>,
    ) -> String {
        let is_directory = letters[1] == b'd';
        let mut name = self.name(target, is_directory);
        if name.is_empty() {
            name = escaped(Path::new(source).file_name().unwrap_or(source));
        }
        let lead = match lead {
            Some(Lead::Symlink(text)) => format!(" -> {}", escaped(text)),
            Some(Lead::Link(other)) => format!(" => {}", self.name(other, false)),
            None => String::new(),
        };
        format!("{} {name}{lead}", String::from_utf8_lossy(letters))
    }

    /// What is deleted.
    pub fn deleted(&self, target: &OsStr, is_directory: bool) -> String {
        format!("*deleting   {}", self.name(target, is_directory))
    }

    fn name(&self, target: &OsStr, is_directory: bool) -> String {
        let path = Path::new(target);
        let below = path.strip_prefix(&self.root).unwrap_or(path).as_os_str();
        match (is_directory, below.is_empty()) {
            (true, true) => "./".to_owned(),
            (true, false) => format!("{}/", escaped(below)),
            (false, _) => escaped(below),
        }
    }
}

/// As rsync has it: `\#` and three octal digits stand for a byte that is no text or a control
/// character, and for a backslash that could be taken for that.
fn escaped(name: &OsStr) -> String {
    let mut text = String::new();
    let octal = |text: &mut String, bytes: &[u8]| {
        bytes.iter().for_each(|byte| text.push_str(&format!("\\#{byte:03o}")));
    };
    for chunk in name.as_bytes().utf8_chunks() {
        let valid = chunk.valid();
        for (index, character) in valid.char_indices() {
            let rest = &valid.as_bytes()[index + character.len_utf8()..];
            let is_taken = character == '\\'
                && rest.first() == Some(&b'#')
                && rest.get(1..4).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
            match is_taken || is_unsafe(character) {
                true => octal(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes()),
                false => text.push(character),
            }
        }
        octal(&mut text, chunk.invalid());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_rsync() {
        let shown = |name: &[u8]| escaped(OsStr::from_bytes(name));
        assert_eq!(shown("größe b\\#x".as_bytes()), "größe b\\#x");
        assert_eq!(shown("\u{2028}".as_bytes()), "\\#342\\#200\\#250");
        assert_eq!(shown(b"a\n\t\xff\\#123"), "a\\#012\\#011\\#377\\#134#123");
        let changes = Changes::new(&Destination::Exactly("./t/".into()));
        let name = |path: &str, is_directory| changes.name(OsStr::new(path), is_directory);
        assert_eq!(name("./t", true), "./");
        assert_eq!(name("./t/a/b", true), "a/b/");
        assert_eq!(name("./t/a", false), "a");
        let line = changes.line(b">f+++++++++", (OsStr::new("x/f"), OsStr::new("./t")), None);
        assert_eq!(line, ">f+++++++++ f");
    }
}
