//! Masked: Rust source with comments and the insides of literals blanked out.
//!
//! Lines stay where they are, so that a rule can search the masked text for code and report the
//! line of the original. It is no parser: it knows just enough to tell code from prose.

/// Blanks comments, strings and character literals; every line break is kept.
pub fn masked(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < characters.len() {
        let end = prose_end(&characters, at);
        if end > at {
            out.extend(characters[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            out.push(characters[at]);
            at += 1;
        }
    }
    out
}

/// The end of the comment or literal that begins here; `at` itself when code begins here.
fn prose_end(text: &[char], at: usize) -> usize {
    match (text[at], text.get(at + 1)) {
        ('/', Some('/')) => find(text, at, |c| c == '\n'),
        ('/', Some('*')) => comment_end(text, at),
        ('"', _) => string_end(text, at + 1),
        ('r', Some('"' | '#')) if begins_word(text, at) => raw_string_end(text, at),
        ('\'', Some('\\')) => find(text, at + 3, |c| c == '\'') + 1,
        ('\'', Some(_)) if text.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
    .min(text.len())
}

fn find(text: &[char], from: usize, wanted: impl Fn(char) -> bool) -> usize {
    (from..text.len()).find(|&index| wanted(text[index])).unwrap_or(text.len())
}

fn comment_end(text: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at + 1 < text.len() {
        match (text[at], text[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string_end(text: &[char], start: usize) -> usize {
    let mut at = start;
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// An `r` begins a raw string also behind the `b` or `c` of its kind, but not inside a name.
fn begins_word(text: &[char], at: usize) -> bool {
    let is_name = |index: usize| text[index].is_alphanumeric() || text[index] == '_';
    match at {
        0 => true,
        _ if !is_name(at - 1) => true,
        1 => matches!(text[0], 'b' | 'c'),
        _ => matches!(text[at - 1], 'b' | 'c') && !is_name(at - 2),
    }
}

/// `at` itself for a raw name such as `r#type`.
fn raw_string_end(text: &[char], at: usize) -> usize {
    let quote = find(text, at + 1, |c| c != '#');
    if text.get(quote) != Some(&'"') {
        return at;
    }
    let hashes = quote - at - 1;
    let mut end = quote + 1;
    loop {
        end = find(text, end, |c| c == '"') + 1;
        if end > text.len() || text[end..].iter().take_while(|&&c| c == '#').count() >= hashes {
            return end + hashes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_blanked() {
        assert_eq!(masked("a // unsafe\nb"), "a          \nb");
        assert_eq!(masked("a /* x /* y */ z */ b"), "a                   b");
        assert_eq!(masked("/* open"), "       ");
    }

    #[test]
    fn literals_are_blanked() {
        assert_eq!(masked(r#"f("a \" // b") + 1"#), r"f(           ) + 1");
        assert_eq!(masked(r##"r#"a " b"# + r"c\" + br"d""##).trim_start(), "+       + b    ");
        assert_eq!(masked("['\"', '\\'', 'x'] // z"), "[   ,     ,    ]     ");
        assert_eq!(masked("\"open"), "     ");
    }

    #[test]
    fn code_is_kept() {
        for code in ["fn f<'a>(x: &'a str) -> r#type", "for x in y {}", "a / b * c", "bar#b"] {
            assert_eq!(masked(code), code);
        }
    }

    #[test]
    fn lines_stay_where_they_are() {
        let source = "a\n\"x\ny\"\n/* p\nq */ b\nr#\"\n\"#\nc";
        assert_eq!(masked(source).lines().count(), source.lines().count());
        assert!(masked(source).ends_with("\nc"));
    }
}
