//! What manual pages say that no help has: exit status, files, environment, further pages. The text
//! is `pages.txt`, whose first lines say how it is written.

const PAGES: &str = include_str!("pages.txt");

/// What pages have that are not in the text: those of areas, and the others.
const OTHERS: [&str; 2] = ["area", "usual"];

/// A section of a page, by the page's name (`flatout-bench-disk`) and the section's head; empty where it
/// has none.
pub fn of(page: &str, head: &str) -> String {
    let blocks = || PAGES.split("\n\n").filter_map(|block| block.strip_prefix("= "));
    let names = |block: &str| block.lines().next().unwrap_or_default().to_owned();
    let is_it = |block: &&str| {
        names(block).split(" < ").next().is_some_and(|own| own.split(' ').any(|name| name == page))
    };
    let Some(block) = blocks().find(is_it) else {
        return of(OTHERS[usize::from(!page.starts_with("flatout-bench-"))], head);
    };
    let section = block.split("\n# ").skip(1).find_map(|section| section.strip_prefix(head));
    match (section, names(block).split_once(" < ")) {
        (None, Some((_, parent))) => of(parent, head),
        (section, _) => section.unwrap_or_default().lines().skip(1).map(line).collect(),
    }
}

/// A line, or the term for which it stands.
fn line(text: &str) -> String {
    let is_it = |term: &&str| term.split_once("  ").is_some_and(|(name, _)| name == text);
    let term = PAGES.lines().filter(|_| text.starts_with('@')).find(is_it);
    term.and_then(|term| term.split_once(' ')).map_or(text, |(_, term)| term).to_owned() + "\n"
}
