//! Patterns of names, as rsync(1) and gitignore(5) have them: bytes against bytes, so that names need
//! not be UTF-8. Time is bounded by the product of pattern and path, however many stars there are.

/// A pattern whose `[` has no `]`.
const UNCLOSED: &str = "a [ has no ]";

/// What the bytes of a pattern mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `**` is anything, slashes too, wherever it stands.
    Rsync,
    /// It is directories, between slashes; elsewhere it is `*`.
    Git,
    /// Each is itself.
    Literal,
}

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'p> {
    Byte(u8),
    /// `?`: any byte but a slash.
    Any,
    /// `[…]`: one of those that stand there, and behind it; never a slash.
    Class(&'p [u8]),
    /// `*`: bytes other than slashes.
    Star,
    /// `**`: any bytes.
    Deep,
    /// `**/`: no directory, one, or several.
    Directories,
}

/// A pattern that makes sense, to be held against paths. It is kept as it was written: a list of rules may be
/// as long as memory allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    pattern: Box<[u8]>,
    dialect: Dialect,
}

/// Where to go on when the rest does not match: the stars, what follows them, and how far they have gone.
type Place<'p> = Option<(Token<'p>, usize, usize)>;

impl Glob {
    /// Understands a pattern.
    ///
    /// Errors: it is none.
    pub fn new(pattern: &[u8], dialect: Dialect) -> Result<Self, &'static str> {
        let glob = Self { pattern: pattern.into(), dialect };
        let mut at = 0;
        while let Some((_, behind)) = glob.token(at)? {
            at = behind;
        }
        if at == 0 { Err("it is empty") } else { Ok(glob) }
    }

    /// What begins there, and where the next one does; `None`: it is the end.
    fn token(&self, at: usize) -> Result<Option<(Token<'_>, usize)>, &'static str> {
        let Some((&byte, rest)) = self.pattern[at..].split_first() else { return Ok(None) };
        Ok(Some(match byte {
            _ if self.dialect == Dialect::Literal => (Token::Byte(byte), at + 1),
            b'?' => (Token::Any, at + 1),
            b'*' => self.star(at),
            b'[' => (Token::Class(rest), at + 1 + class(rest, 0)?.1),
            b'\\' => (Token::Byte(*rest.first().ok_or("it ends with a backslash")?), at + 2),
            byte => (Token::Byte(byte), at + 1),
        }))
    }

    /// What a run of stars means that begins there, with the slash that belongs to it.
    fn star(&self, begin: usize) -> (Token<'_>, usize) {
        let stars = self.pattern[begin..].iter().take_while(|&&byte| byte == b'*').count();
        let end = begin + stars;
        let before = &self.pattern[..begin];
        // git compares what stands before the first star as it is, and takes what follows for a pattern of its own.
        let is_begin = before.ends_with(b"/") || !before.iter().any(|byte| b"*?[\\".contains(byte));
        match self.pattern.get(end) {
            _ if stars < 2 => (Token::Star, end),
            _ if self.dialect == Dialect::Rsync => (Token::Deep, end),
            Some(b'/') if is_begin => (Token::Directories, end + 1),
            None if is_begin => (Token::Deep, end),
            _ => (Token::Star, end),
        }
    }

    /// Whether all of `text` is meant.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut token, mut byte) = (0, 0);
        // Where the last `*` may take one byte more, and the last of the others.
        let (mut star, mut deep): (Place<'_>, Place<'_>) = (None, None);
        loop {
            // It made sense as a whole.
            match self.token(token).ok().flatten() {
                None if byte == text.len() => return true,
                Some((Token::Star, behind)) => {
                    token = behind;
                    star = Some((Token::Star, token, byte));
                    continue;
                }
                Some((stars @ (Token::Deep | Token::Directories), behind)) => {
                    token = behind;
                    (star, deep) = (None, Some((stars, token, byte)));
                    continue;
                }
                Some((single, behind))
                    if text.get(byte).is_some_and(|&byte| single.takes(byte)) =>
                {
                    (token, byte) = (behind, byte + 1);
                    continue;
                }
                _ => {}
            }
            star = further(star, text);
            if star.is_none() {
                deep = further(deep, text);
            }
            match star.or(deep) {
                Some((_, after, from)) => (token, byte) = (after, from),
                None => return false,
            }
        }
    }
}

/// The next place from which the rest may match, where the stars take more.
fn further<'p>(place: Place<'p>, text: &[u8]) -> Place<'p> {
    let (stars, after, from) = place?;
    let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
    let taken = match stars {
        Token::Directories => rest.iter().position(|&byte| byte == b'/')? + 1,
        Token::Star if rest[0] == b'/' => return None,
        _ => 1,
    };
    Some((stars, after, from + taken))
}

impl Token<'_> {
    /// Whether it means this one byte.
    fn takes(self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => own == byte,
            Self::Any => byte != b'/',
            Self::Class(text) => class(text, byte).is_ok_and(|(is_in, _)| is_in),
            Self::Star | Self::Deep | Self::Directories => false,
        }
    }
}

/// Tells whether a byte is of a kind.
type IsOfKind = fn(&u8) -> bool;

/// `[:name:]` in brackets (POSIX), in the C locale.
const CLASSES: [(&[u8], IsOfKind); 12] = [
    (b"alnum", u8::is_ascii_alphanumeric),
    (b"alpha", u8::is_ascii_alphabetic),
    (b"blank", |byte| matches!(byte, b' ' | b'\t')),
    (b"cntrl", u8::is_ascii_control),
    (b"digit", u8::is_ascii_digit),
    (b"graph", u8::is_ascii_graphic),
    (b"lower", u8::is_ascii_lowercase),
    (b"print", |byte| matches!(byte, b' '..=b'~')),
    (b"punct", u8::is_ascii_punctuation),
    (b"space", |byte| matches!(byte, b' ' | b'\t'..=b'\r')),
    (b"upper", u8::is_ascii_uppercase),
    (b"xdigit", u8::is_ascii_hexdigit),
];

/// Whether a byte is meant by what stands in brackets, and how long that is up to the closing one.
fn class(text: &[u8], byte: u8) -> Result<(bool, usize), &'static str> {
    let is_negated = matches!(text.first(), Some(b'!' | b'^'));
    let begin = usize::from(is_negated);
    let (mut at, mut is_in) = (begin, false);
    loop {
        let &first = text.get(at).ok_or(UNCLOSED)?;
        if first == b']' && at > begin {
            break;
        }
        if first == b'['
            && let Some((name, length)) = named(&text[at..])
        {
            let kind = CLASSES.iter().find(|(known, _)| *known == name);
            let (_, is_of_kind) = kind.ok_or(UNCLOSED)?;
            is_in |= is_of_kind(&byte);
            at += length;
            continue;
        }
        let low = member(text, &mut at)?;
        let is_range = text.get(at) == Some(&b'-') && text.get(at + 1).is_some_and(|&b| b != b']');
        let high = if is_range {
            at += 1;
            member(text, &mut at)?
        } else {
            low
        };
        // The first one is meant wherever the range ends, as rsync and git have it.
        is_in |= (low..=high.max(low)).contains(&byte);
    }
    Ok((is_in != is_negated && byte != b'/', at + 1))
}

/// One byte in brackets, which may be escaped.
fn member(text: &[u8], at: &mut usize) -> Result<u8, &'static str> {
    *at += usize::from(text.get(*at) == Some(&b'\\'));
    let &byte = text.get(*at).ok_or(UNCLOSED)?;
    *at += 1;
    Ok(byte)
}

/// The name in `[:name:]`, and the length of all of it.
fn named(text: &[u8]) -> Option<(&[u8], usize)> {
    let name = text.strip_prefix(b"[:")?;
    let end = name.windows(2).position(|two| two == b":]")?;
    Some((&name[..end], end + 4))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: &str, dialect: Dialect) -> bool {
        Glob::new(pattern.as_bytes(), dialect).unwrap().matches(text.as_bytes())
    }

    #[test]
    fn stars_classes_and_escapes_mean_what_they_mean_to_a_shell() {
        for (pattern, yes, no) in [
            ("*.o", &["a.o", ".o", "a.b.o"][..], &["a.c", "a/b.o", "a.o/"][..]),
            ("a?c", &["abc", "a\u{7f}c"], &["ac", "a/c", "abbc"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x", "-x"]),
            ("[c-a]x", &["cx"], &["ax", "bx", "-x"]),
            ("[!a-c]x", &["dx", "-x"], &["ax", "/x"]),
            ("[^]]x", &["ax"], &["]x"]),
            ("[]a]x", &["]x", "ax"], &["bx"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[[:digit:]_]", &["7", "_"], &["a", ":"]),
            ("[\\]]", &["]"], &["\\"]),
            ("\\*", &["*"], &["a", "\\*"]),
            ("a*b*c", &["abc", "axxbxxc", "abbc"], &["ab", "acb"]),
            ("*", &["", "a"], &["a/b"]),
        ] {
            for dialect in [Dialect::Rsync, Dialect::Git] {
                let met = |text: &&&str| !matches(pattern, text, dialect);
                assert_eq!(yes.iter().find(met), None, "{pattern} {dialect:?}");
                let met = |text: &&&str| matches(pattern, text, dialect);
                assert_eq!(no.iter().find(met), None, "{pattern} {dialect:?}");
            }
        }
        for (pattern, why) in [
            ("[a", UNCLOSED),
            ("[", UNCLOSED),
            ("[[:nothing:]]", UNCLOSED),
            ("a\\", "it ends with a backslash"),
            ("", "it is empty"),
        ] {
            assert_eq!(Glob::new(pattern.as_bytes(), Dialect::Git), Err(why), "{pattern}");
        }
    }

    #[test]
    fn two_stars_cross_slashes() {
        use Dialect::{Git, Rsync};
        for (pattern, text, rsync, git) in [
            ("a**b", "a/x/b", true, false),
            ("a**b", "axb", true, true),
            ("**/b", "b", false, true),
            ("**/b", "x/y/b", true, true),
            ("**/b", "x/yb", false, false),
            ("a/**/b", "a/b", false, true),
            ("a/**/b", "a/x/y/b", true, true),
            ("a/**", "a/x/y", true, true),
            ("a/**", "a", false, false),
            ("**", "a/b", true, true),
            ("a**/b", "ab", false, true),
            ("a**/b", "ax/y/b", true, true),
            ("?**/b", "ax/y/b", true, false),
            ("a/**/*.c", "a/b/d/x.c", true, true),
            ("a/**/*.c", "a/b/d/x.h", false, false),
        ] {
            assert_eq!(matches(pattern, text, Rsync), rsync, "{pattern} {text}");
            assert_eq!(matches(pattern, text, Git), git, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "*a".repeat(40) + "b";
        assert!(!matches(&pattern, &"a".repeat(4000), Dialect::Rsync));
        let pattern = "**a".repeat(40) + "b";
        assert!(!matches(&pattern, &"a/".repeat(2000), Dialect::Rsync));
    }

    /// The definition, which tries everything.
    fn is_meant(tokens: &[Token<'_>], text: &[u8]) -> bool {
        let Some((first, rest)) = tokens.split_first() else { return text.is_empty() };
        let mut ends = 0..=text.len();
        match first {
            Token::Deep => ends.any(|end| is_meant(rest, &text[end..])),
            Token::Star => {
                let end = text.iter().position(|&byte| byte == b'/').unwrap_or(text.len());
                (0..=end).any(|end| is_meant(rest, &text[end..]))
            }
            Token::Directories => {
                ends.any(|end| (end == 0 || text[end - 1] == b'/') && is_meant(rest, &text[end..]))
            }
            single => text
                .split_first()
                .is_some_and(|(&byte, text)| single.takes(byte) && is_meant(rest, text)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]
        #[test]
        fn what_matches_is_what_the_definition_says(
            pattern in "[ab/*?]{1,12}", text in "[ab/]{0,12}", is_git in any::<bool>()
        ) {
            let dialect = if is_git { Dialect::Git } else { Dialect::Rsync };
            let glob = Glob::new(pattern.as_bytes(), dialect).unwrap();
            let (mut tokens, mut at) = (Vec::new(), 0);
            while let Some((token, behind)) = glob.token(at).unwrap() {
                tokens.push(token);
                at = behind;
            }
            let expected = is_meant(&tokens, text.as_bytes());
            prop_assert_eq!(glob.matches(text.as_bytes()), expected, "{} {}", pattern, text);
        }
    }
}
