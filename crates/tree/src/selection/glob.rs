//! Patterns of names, as rsync(1) and gitignore(5) have them: bytes against bytes, so that names need
//! not be UTF-8. Time is bounded by the product of pattern and path, however many stars there are.

/// A pattern that cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// `[` without `]`.
    #[error("a [ has no ]")]
    Unclosed,
    /// A backslash at the end.
    #[error("it ends with a backslash")]
    Escape,
    /// Nothing to match.
    #[error("it is empty")]
    Empty,
}

/// What `**` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Anything, slashes too, wherever it stands.
    Rsync,
    /// Directories, between slashes; elsewhere it is `*`.
    Git,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`: any byte but a slash.
    Any,
    /// `[…]`: one of the bytes that are set; never a slash.
    Class(Box<Class>),
    /// `*`: bytes other than slashes.
    Star,
    /// `**`: any bytes.
    Deep,
    /// `**/`: no directory, one, or several.
    Directories,
}

/// A pattern, ready to be held against paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<Token>);

/// Whether each byte is meant.
type Class = [bool; 256];

/// A place to go on from when the rest does not match: token, byte.
type Place = Option<(usize, usize)>;

impl Glob {
    /// Understands a pattern.
    ///
    /// Errors: it is none.
    pub fn new(pattern: &[u8], dialect: Dialect) -> Result<Self, Malformed> {
        let mut tokens = Vec::with_capacity(pattern.len());
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            at += 1;
            tokens.push(match byte {
                b'?' => Token::Any,
                b'*' => {
                    let begins = at - 1;
                    while pattern.get(at) == Some(&b'*') {
                        at += 1;
                    }
                    star(pattern, (begins, &mut at), dialect)
                }
                b'[' => {
                    let (class, length) = class(&pattern[at..])?;
                    at += length;
                    Token::Class(Box::new(class))
                }
                b'\\' => {
                    let &escaped = pattern.get(at).ok_or(Malformed::Escape)?;
                    at += 1;
                    Token::Byte(escaped)
                }
                byte => Token::Byte(byte),
            });
        }
        if tokens.is_empty() { Err(Malformed::Empty) } else { Ok(Self(tokens)) }
    }

    /// These very bytes.
    pub fn literal(text: &[u8]) -> Result<Self, Malformed> {
        match text {
            [] => Err(Malformed::Empty),
            text => Ok(Self(text.iter().copied().map(Token::Byte).collect())),
        }
    }

    /// Whether all of `text` is meant.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut token, mut byte) = (0, 0);
        // Where the last `*` may take one byte more, and the last of the others.
        let (mut star, mut deep): (Place, Place) = (None, None);
        loop {
            match self.0.get(token) {
                None if byte == text.len() => return true,
                Some(Token::Star) => {
                    token += 1;
                    star = Some((token, byte));
                    continue;
                }
                Some(Token::Deep | Token::Directories) => {
                    token += 1;
                    (star, deep) = (None, Some((token, byte)));
                    continue;
                }
                Some(single) if text.get(byte).is_some_and(|&byte| single.takes(byte)) => {
                    (token, byte) = (token + 1, byte + 1);
                    continue;
                }
                _ => {}
            }
            star = star.and_then(|(after, from)| self.further(after, from, text));
            if star.is_none() {
                deep = deep.and_then(|(after, from)| self.further(after, from, text));
            }
            match star.or(deep) {
                Some(place) => (token, byte) = place,
                None => return false,
            }
        }
    }

    /// The next place from which the rest may match, where the token before `after` takes more.
    fn further(&self, after: usize, from: usize, text: &[u8]) -> Place {
        let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
        let taken = match self.0[after - 1] {
            Token::Directories => rest.iter().position(|&byte| byte == b'/')? + 1,
            Token::Star if rest[0] == b'/' => return None,
            _ => 1,
        };
        Some((after, from + taken))
    }
}

impl Token {
    /// Whether it means this one byte.
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => byte != b'/',
            Self::Class(class) => class[usize::from(byte)],
            Self::Star | Self::Deep | Self::Directories => false,
        }
    }
}

/// What a run of stars means that begins there; takes the slash that belongs to it.
fn star(pattern: &[u8], (begins, ends): (usize, &mut usize), dialect: Dialect) -> Token {
    if *ends - begins < 2 {
        return Token::Star;
    }
    if dialect == Dialect::Rsync {
        return Token::Deep;
    }
    let is_begin = begins == 0 || pattern[begins - 1] == b'/';
    match pattern.get(*ends) {
        Some(b'/') if is_begin => {
            *ends += 1;
            Token::Directories
        }
        None if is_begin => Token::Deep,
        _ => Token::Star,
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

/// What stands in brackets, and how long it is up to the closing one.
fn class(text: &[u8]) -> Result<(Class, usize), Malformed> {
    let mut class = [false; 256];
    let is_negated = matches!(text.first(), Some(b'!' | b'^'));
    let begin = usize::from(is_negated);
    let mut at = begin;
    loop {
        let &first = text.get(at).ok_or(Malformed::Unclosed)?;
        if first == b']' && at > begin {
            break;
        }
        if first == b'['
            && let Some((name, length)) = named(&text[at..])
        {
            let kind = CLASSES.iter().find(|(known, _)| *known == name);
            let (_, is_in) = kind.ok_or(Malformed::Unclosed)?;
            (0..=u8::MAX).filter(is_in).for_each(|byte| class[usize::from(byte)] = true);
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
        class[usize::from(low)..=usize::from(high.max(low))].fill(true);
    }
    if is_negated {
        class = class.map(|is_in| !is_in);
    }
    class[usize::from(b'/')] = false;
    Ok((class, at + 1))
}

/// One byte in brackets, which may be escaped.
fn member(text: &[u8], at: &mut usize) -> Result<u8, Malformed> {
    *at += usize::from(text.get(*at) == Some(&b'\\'));
    let &byte = text.get(*at).ok_or(Malformed::Unclosed)?;
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
            ("[a", Malformed::Unclosed),
            ("[", Malformed::Unclosed),
            ("[[:nothing:]]", Malformed::Unclosed),
            ("a\\", Malformed::Escape),
            ("", Malformed::Empty),
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
    fn is_meant(tokens: &[Token], text: &[u8]) -> bool {
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
            let expected = is_meant(&glob.0, text.as_bytes());
            prop_assert_eq!(glob.matches(text.as_bytes()), expected, "{} {}", pattern, text);
        }
    }
}
