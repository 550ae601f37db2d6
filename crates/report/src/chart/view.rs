//! Pictures that a record has the rows for and does not name: which rows, x and lines, as data.
//!
//! A view here is drawn where the record's own charts have none of the same rows by the same
//! parameter. Nothing is calculated but shares of whole numbers that a name already says, such as
//! the size of each of 100 equal files. Bars are in `chart/bars.rs`.

use flatout_measure::record::{Chart, Outcome};

use crate::{label, order};

/// A picture of lines: all rows whose id begins so, by one parameter.
struct View {
    /// How the ids begin; each id that does makes a picture of its own.
    ids: &'static str,
    x: &'static str,
    lines: &'static [&'static str],
}

const VIEWS: [View; 12] = [
    View { ids: "cache/series", x: "block_bytes", lines: &["pass"] },
    View { ids: "disk/", x: "threads", lines: &DISK },
    View { ids: "disk/", x: "depth", lines: &DISK },
    View { ids: "syscall/", x: "threads", lines: &["target", "descriptor"] },
    View { ids: "memory/stream", x: "threads", lines: &["kernel"] },
    View { ids: "memory/access", x: "threads", lines: &["pattern"] },
    View { ids: "cpu/dgemm", x: "threads", lines: &["type"] },
    View { ids: "cpu/linpack", x: "threads", lines: &["type"] },
    View { ids: "network/", x: "streams", lines: &["family", "direction"] },
    View { ids: "network/", x: "message_bytes", lines: &["family", "wait"] },
    View { ids: "copy/", x: "files", lines: &["file_bytes", "cache_state"] },
    View { ids: "copy/", x: "tree_depth", lines: &["file_bytes", "cache_state"] },
];
const DISK: [&str; 5] = ["engine", "caching", "block_bytes", "extents", "until"];
/// Parameters that are spaced by powers of two.
const BY_TWO: [&str; 5] = ["block_bytes", "message_bytes", "depth", "files", "streams"];

/// A picture and the rows that it shows, if these make a line.
pub(crate) struct Derived {
    pub chart: Chart,
    pub results: Vec<Outcome>,
}

/// All pictures of lines that the record has rows of this area for and does not name itself.
pub(crate) fn derived(charts: &[Chart], rows: &[&Outcome]) -> Vec<Derived> {
    let mut found: Vec<Derived> = Vec::new();
    for view in &VIEWS {
        let own = rows.iter().filter(|outcome| outcome.id.starts_with(view.ids));
        for (id, rows) in order::grouped(own.map(|row| (row.id.as_str(), *row))) {
            let is_drawn = charts.iter().any(|c| c.id == id && c.x_parameter == view.x);
            if !is_drawn {
                found.push(of_rows(&rows, id, view));
            }
        }
    }
    found.extend(of_corpora(rows));
    found
}

/// The picture of the rows of one id.
fn of_rows(rows: &[&Outcome], id: &str, view: &View) -> Derived {
    let own = rows.iter().filter(|row| row.parameters.contains_key(view.x));
    let results: Vec<Outcome> = own.map(|row| (*row).clone()).collect();
    let title = format!("{} by {}", label::test(id).replace('-', " "), label::noun(view.x));
    let chart = chart(&title, id, view.x, &varying(&results, view.lines));
    Derived { chart, results }
}

fn chart(title: &str, id: &str, x: &str, lines: &[&str]) -> Chart {
    Chart { x_log2: BY_TWO.contains(&x), ..Chart::new(title, id, x, lines) }
}

/// Those of the parameters that do not have one value in all rows.
fn varying<'a>(results: &[Outcome], keys: &[&'a str]) -> Vec<&'a str> {
    let differs = |key: &&str| {
        results.iter().any(|row| row.parameters.get(*key) != results[0].parameters.get(*key))
    };
    keys.iter().copied().filter(differs).collect()
}

/// The race of copiers: corpora of equal files differ in how many these are, how large, and how
/// deep they lie.
const COPY: &str = "versus/copy";

/// Copy time by files of one size, by pieces of one total, by depth.
fn of_corpora(rows: &[&Outcome]) -> Vec<Derived> {
    let copies: Vec<Outcome> = rows.iter().filter_map(|row| of_equal_files(row)).collect();
    let views = [
        ("Copy time by number of files, for each size of file", "files", "file_bytes", "bytes"),
        ("Copy time of one total by number of pieces", "files", "bytes", "file_bytes"),
        ("Copy time by depth of the tree", "tree_depth", "bytes", ""),
    ];
    let derived = views.into_iter().map(|(title, x, kept, dropped)| {
        let own = copies.iter().filter(|row| row.parameters.contains_key(x));
        // A chain of directories has its own picture, and lies in no other.
        let own = own.filter(|row| x == "tree_depth" || !row.parameters.contains_key("tree_depth"));
        let mut results: Vec<Outcome> = own.cloned().collect();
        for row in &mut results {
            row.parameters.remove(dropped);
        }
        let lines = varying(&results, &["contestant", kept, "cache_state"]);
        let chart = chart(title, COPY, x, &lines);
        Derived { chart, results }
    });
    derived.collect()
}

/// The row with the size of its files in place of the corpus' name; none where they are not equal.
fn of_equal_files(row: &Outcome) -> Option<Outcome> {
    let number = |key: &str| row.parameter_count(key);
    let corpus = row.parameter_text("corpus")?;
    let is_equal = label::is_of_equal_files(row) || corpus.starts_with("deep-");
    if row.id != COPY || !is_equal {
        return None;
    }
    let (bytes, files) = (number("bytes")?, number("files").filter(|files| *files > 0)?);
    let mut row = row.clone();
    row.parameters.remove("corpus");
    if bytes % files == 0 {
        row.parameters.insert("file_bytes".to_owned(), (bytes / files).into());
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::chart::sweep;

    fn row(id: &str, parameters: Value) -> Outcome {
        let parameters = parameters.as_object().cloned().unwrap();
        let (id, unit) = (id.to_owned(), "ns".to_owned());
        Outcome { id, parameters, unit, median: Some(2.0), ..Outcome::default() }
    }

    fn pictures(rows: &[Outcome], charts: &[Chart]) -> Vec<Derived> {
        let mut found = derived(charts, &rows.iter().collect::<Vec<_>>());
        found.retain(|one| sweep::of(&one.results, &one.chart).is_some());
        found
    }

    #[test]
    fn a_picture_that_the_record_names_is_not_drawn_twice() {
        let rows = [1, 2, 4].map(|threads| row("disk/read", json!({"threads": threads})));
        let found = pictures(&rows, &[]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].chart.title, "read by threads");
        assert!(pictures(&rows, &[found[0].chart.clone()]).is_empty());
    }

    #[test]
    fn rows_that_differ_in_more_than_x_make_no_line() {
        let rows = vec![
            row("memory/stream", json!({"threads": 1, "kernel": "copy"})),
            row("memory/stream", json!({"threads": 2, "kernel": "add"})),
        ];
        assert!(pictures(&rows, &[]).is_empty());
    }

    #[test]
    fn copies_are_drawn_by_count_by_pieces_and_by_depth() {
        let copy = |corpus: &str, files: u64, bytes: u64| {
            row(
                "versus/copy",
                json!({"corpus": corpus, "files": files, "bytes": bytes,
                "contestant": "cp-a", "cache_state": "hot"}),
            )
        };
        let deep = |depth: u64| {
            let mut row = copy("deep-5", 1, 128);
            row.parameters.insert("tree_depth".to_owned(), depth.into());
            row
        };
        let rows = vec![
            copy("10x4", 10, 40),
            copy("20x4", 20, 80),
            copy("40x4", 40, 160),
            copy("20x2", 20, 40),
            copy("5x8", 5, 40),
            copy("source-tree", 7, 49),
            deep(5),
            deep(10),
            deep(20),
        ];
        let found = pictures(&rows, &[]);
        let xs: Vec<&str> = found.iter().map(|one| one.chart.x_parameter.as_str()).collect();
        assert_eq!(xs, ["files", "files", "tree_depth"]);
        let by_count = sweep::of(&found[0].results, &found[0].chart).unwrap();
        let names: Vec<String> = by_count.lines.iter().map(sweep::Line::name).collect();
        assert_eq!(names, ["file 4 B", "file 2 B", "file 8 B"]);
        let by_pieces = sweep::of(&found[1].results, &found[1].chart).unwrap();
        assert_eq!(by_pieces.x_values[..3], [5.0, 10.0, 20.0]);
        assert_eq!(by_pieces.lines[0].points.iter().flatten().count(), 3);
    }
}
