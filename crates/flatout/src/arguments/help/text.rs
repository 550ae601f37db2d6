//! The text below the options, taken apart: paragraphs, which are filled, and terms with what they
//! mean. Help wraps it to the terminal; manual pages make sections of it.

use flatout_report::text::Joined;

/// Spaces before a term.
const INDENT: usize = 2;
/// Columns that what a term means has at least, else it stands below.
const LEAST_COLUMNS: usize = 24;
/// Where it stands then, and where a term goes on.
const BELOW: usize = 6;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// An empty line.
    Gap,
    /// Words that are filled.
    Prose(String),
    /// A term and what it means, which may be nothing; where that begins.
    Term { term: String, meaning: String, column: usize },
}

/// Takes a text apart: lines with two spaces before them are terms, with what they mean behind two
/// spaces more or in lines further in. A line of words ends where a sentence does.
pub fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in text.lines() {
        let words = line.trim();
        let indent = line.len() - line.trim_start().len();
        match (parts.last_mut(), indent) {
            _ if words.is_empty() => parts.push(Part::Gap),
            (Some(Part::Term { meaning, column, .. }), 3..) => {
                if meaning.is_empty() {
                    *column = indent;
                } else {
                    meaning.push(' ');
                }
                meaning.push_str(words);
            }
            (_, 1..) => {
                let (term, rest) = words.split_once("  ").unwrap_or((words, ""));
                let meaning = rest.trim_start();
                let column = line.chars().count() - meaning.chars().count();
                parts.push(Part::Term { term: term.into(), meaning: meaning.into(), column });
            }
            (Some(Part::Prose(before)), 0) if !before.ends_with(['.', ':']) => {
                before.push(' ');
                before.push_str(words);
            }
            _ => parts.push(Part::Prose(words.to_owned())),
        }
    }
    parts
}

/// The text in lines of at most so many columns, where no word is longer.
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut lines = Vec::new();
    for part in parts(text) {
        match part {
            Part::Gap => lines.push(String::new()),
            Part::Prose(words) => lines.extend(fill(&words, "", 0, columns)),
            Part::Term { term, meaning, column } => {
                let term_length = INDENT + term.chars().count();
                let whole = format!("  {term:0$}{meaning}", column - INDENT);
                let is_apart = meaning.is_empty() || term_length < column;
                let has_room = column + LEAST_COLUMNS <= columns;
                if is_apart && whole.trim_end().chars().count() <= columns {
                    lines.push(whole.trim_end().to_owned());
                } else if is_apart && has_room && !meaning.is_empty() {
                    let term = format!("  {term:0$}", column - INDENT);
                    lines.extend(fill(&meaning, &term, column, columns));
                } else {
                    lines.extend(fill(&term, "  ", BELOW, columns));
                    let indent = if has_room { column } else { BELOW };
                    let meaning = fill(&meaning, &" ".repeat(indent), indent, columns);
                    lines.extend(meaning.into_iter().filter(|line| !line.trim().is_empty()));
                }
            }
        }
    }
    lines.join("\n")
}

/// Each line cut where a part of it ends, so that it has at most so many columns; filled where there
/// is no such place.
pub fn shortened(text: &str, columns: usize) -> String {
    // The first kind of which one fits.
    const ENDS: [&[&str]; 4] = [&[" [", "; ", ". "], &[": "], &[" ("], &[", "]];
    let length = |text: &str| text.chars().count();
    let lines = text.lines().flat_map(|line| {
        if length(line) <= columns {
            return vec![line.to_owned()];
        }
        let meaning = line.rfind("  ").map_or(0, |at| at + 2);
        let is_whole = |cut: &str| {
            let count = |sign| cut[meaning..].matches(sign).count();
            length(cut) <= columns && count('(') == count(')') && count('[') == count(']')
        };
        let last = |ends: &[&str]| {
            let found = ends.iter().flat_map(|end| line.match_indices(end));
            let cuts = found.filter(|(at, _)| *at > meaning).map(|(at, _)| &line[..at]);
            cuts.filter(|cut| is_whole(cut)).max_by_key(|cut| cut.len())
        };
        match ENDS.into_iter().find_map(last) {
            Some(cut) => vec![cut.to_owned()],
            None => fill(&line[meaning..], &line[..meaning], length(&line[..meaning]), columns),
        }
    });
    lines.joined("\n")
}

/// Words in lines, the first one behind what stands there, the others behind so many spaces.
fn fill(words: &str, first: &str, indent: usize, columns: usize) -> Vec<String> {
    let (mut lines, mut line, mut is_begun) = (Vec::new(), first.to_owned(), false);
    for word in words.split_whitespace() {
        let length = line.chars().count() + word.chars().count() + usize::from(is_begun);
        if is_begun && length > columns {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        } else if is_begun {
            line.push(' ');
        }
        line.push_str(word);
        is_begun = true;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Words that are broken
somewhere. Others.
Next.
  one two   what it means, in many words
            and more
  command alone
  longer than all  x

Last";

    #[test]
    fn terms_are_told_from_words() {
        let term = |term: &str, meaning: &str, column| {
            let [term, meaning] = [term, meaning].map(str::to_owned);
            Part::Term { term, meaning, column }
        };
        let prose = |words: &str| Part::Prose(words.to_owned());
        let wanted = [
            prose("Words that are broken somewhere. Others."),
            prose("Next."),
            term("one two", "what it means, in many words and more", 12),
            term("command alone", "", 15),
            term("longer than all", "x", 19),
            Part::Gap,
            prose("Last"),
        ];
        assert_eq!(parts(TEXT), wanted);
    }

    #[test]
    fn a_term_that_reaches_what_it_means_stands_above_it() {
        let text = "  one two three\n        four";
        assert_eq!(wrapped(text, 40), text);
    }

    #[test]
    fn no_line_is_wider_and_what_belongs_to_a_term_stays_beside_it() {
        let wanted = "\
Words that are broken somewhere. Others.
Next.
  one two   what it means, in many words
            and more
  command alone
  longer than all  x

Last";
        assert_eq!(wrapped(TEXT, 40), wanted);
        let narrow = wrapped(TEXT, 30);
        assert!(narrow.lines().all(|line| line.chars().count() <= 30), "{narrow}");
        assert!(
            narrow.contains("  one two\n      what it means, in many\n      words"),
            "{narrow}"
        );
    }
}
