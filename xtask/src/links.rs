//! Links: a document leads only to files and headings that exist.

use crate::sources::Source;

/// The links of all documents that lead nowhere. `exists` says whether there is such a path.
pub fn complaints(documents: &[Source], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for Source { path: name, text } in documents {
        for target in targets(text).filter(|target| !target.contains("://")) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = resolved(name, path);
            let found = match documents.iter().find(|other| other.path == path) {
                Some(other) => {
                    anchor.is_empty() || anchors(&other.text).any(|known| known == anchor)
                }
                None => exists(&path),
            };
            if !found {
                complaints.push(format!("{name}: the link to {target} leads nowhere"));
            }
        }
    }
    complaints
}

/// What stands in the parentheses of `[text](target)`, code left out.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    prose(text).flat_map(|line| line.split('`').step_by(2)).flat_map(|piece| {
        piece.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
    })
}

/// The anchors that GitHub gives to headings.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = prose(text).filter_map(|line| {
        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
    });
    headings.map(|heading| {
        let kept =
            heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        let lower = kept.flat_map(char::to_lowercase);
        lower.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    })
}

/// The lines that are in no fenced block.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// A path beside a document as one from the top of the repository; an empty one is the document.
fn resolved(name: &str, path: &str) -> String {
    if path.is_empty() {
        return name.to_string();
    }
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let read = "# A `tool`: why?\n[up](../README.md) [no](gone.md) [here](#a-tool-why) [not](#what)\n\
                    `[code](x.md)` [out](https://example.org/#x) [dir](probes)\n```\n# What\n[y](y.md)\n```\n";
        let documents =
            [("docs/a.md", read), ("README.md", "[a](docs/a.md#a-tool-how) [a](docs/a.md)")]
                .map(|(path, text)| Source { path: path.into(), text: text.into() });
        let complaints = complaints(&documents, |path| path == "docs/probes");
        let missing = [
            "docs/a.md: the link to gone.md",
            "docs/a.md: the link to #what",
            "README.md: the link to docs/a.md#a-tool-how",
        ];
        assert_eq!(complaints, missing.map(|link| format!("{link} leads nowhere")));
    }
}
