//! Pictures that a record has the rows for and does not name: which rows, x and lines, as data.
//!
//! A view here is drawn where the record's own charts have none of the same rows by the same
//! parameter. Bars are in `chart/bars.rs`.

use flatout_measure::record::{Chart, Outcome};

use crate::{label, order};

/// A picture of lines: all rows whose id begins so, by one parameter.
struct View {
    /// How the ids begin; each id that does makes a picture of its own.
    ids: &'static str,
    x: &'static str,
    lines: &'static [&'static str],
}

const VIEWS: [View; 10] = [
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
];
const DISK: [&str; 5] = ["engine", "caching", "block_bytes", "extents", "until"];
/// Parameters that are spaced by powers of two.
const BY_TWO: [&str; 4] = ["block_bytes", "message_bytes", "depth", "streams"];

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
    found
}

/// The picture of the rows of one id.
fn of_rows(rows: &[&Outcome], id: &str, view: &View) -> Derived {
    let own = rows.iter().filter(|row| row.parameters.contains_key(view.x));
    let results: Vec<Outcome> = own.map(|row| (*row).clone()).collect();
    let title = format!("{} by {}", label::test(id).replace('-', " "), label::noun(view.x));
    let chart = Chart::new(&title, id, view.x, &varying(&results, view.lines));
    let chart = Chart { x_log2: BY_TWO.contains(&view.x), ..chart };
    Derived { chart, results }
}

/// Those of the parameters that do not have one value in all rows.
fn varying<'a>(results: &[Outcome], keys: &[&'a str]) -> Vec<&'a str> {
    let differs = |key: &&str| {
        results.iter().any(|row| row.parameters.get(*key) != results[0].parameters.get(*key))
    };
    keys.iter().copied().filter(differs).collect()
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
}
