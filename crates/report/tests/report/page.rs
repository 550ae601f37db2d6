//! The HTML page: complete in itself, well-formed, and the record comes back out of it.

use flatout_report::{Format, Identity, identity, render};

use crate::{FIXTURES, FULL, extract, page_of, page_with, record, sample};

#[test]
fn the_record_comes_back() {
    for name in FIXTURES {
        let record = record(name);
        let shown = page_with(&record, Identity::Shown);
        assert_eq!(extract(&shown).as_ref(), Some(&record), "{name}");
        let hidden = page_of(&record);
        assert_eq!(extract(&hidden), Some(identity::hidden(&record)), "{name}");
    }
    assert_eq!(extract("<!doctype html><title>something else</title>"), None);
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    for name in FIXTURES {
        let page = page_of(&record(name));
        let tags = without_text(&page);
        for sign in ["http://", "https://", "url(", "@import"] {
            assert!(!tags.contains(sign), "{name}: {sign}");
        }
        // Values may say anything: what counts are the names before them.
        let names: String = tags.split('"').step_by(2).collect();
        for sign in [" src=", " on", "link ", "iframe"] {
            assert!(!names.contains(sign), "{name}: {sign}");
        }
        assert_eq!(page.matches("<script").count(), 1, "{name}");
        assert_eq!(page.matches("</script").count(), 1, "{name}");
    }
}

/// Only the tags of a page: what could make a browser do something.
fn without_text(page: &str) -> String {
    page.split('<').filter_map(|piece| piece.split_once('>')).map(|(tag, _)| tag).collect()
}

#[test]
fn every_element_is_closed() {
    for name in FIXTURES {
        let page = page_of(&record(name));
        let mut open: Vec<&str> = Vec::new();
        for piece in page.split('<').skip(2) {
            let (tag, _) = piece.split_once('>').expect("a tag ends");
            let word = tag.split([' ', '/', '\n']).find(|word| !word.is_empty()).unwrap();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(word), "{name}: {piece}");
            } else if !tag.ends_with('/') && !["meta", "br"].contains(&word) {
                open.push(word);
            }
        }
        assert!(open.is_empty(), "{name}: {open:?}");
    }
}

#[test]
fn pairs_of_processes_are_cells_coloured_by_their_figure() {
    use flatout_measure::record::{Better, Chart, Outcome};
    let pair = |(from, to, median): (u64, u64, f64)| Outcome {
        id: "network/pair-one-way".to_owned(),
        parameters: [("from", from), ("to", to)]
            .map(|(key, value)| (key.to_owned(), value.into()))
            .into_iter()
            .collect(),
        unit: "bytes/s".to_owned(),
        median: Some(median),
        better: Better::Higher,
        ..Outcome::default()
    };
    let slow = [(0, 1, 1e9), (1, 0, 0.8e9), (0, 2, 0.6e9), (2, 0, 0.3e9)];
    let figures = slow.into_iter().chain([(1, 2, 1e9), (2, 1, 1e9), (0, 3, 1e9)]);
    // As such a run has it: from four processes on, a chart has the figures, and they are no rows of their own.
    let chart = Chart::new("rate", "network/pair-one-way", "to", &["from"]);
    let page = page_of(&sample::of(figures.map(pair).collect(), vec![chart]));
    for (at, told) in
        ["0 to 1: 8.00 ", "1 to 0: 6.40 ", "0 to 2: 4.80 ", "2 to 0: 2.40 "].iter().enumerate()
    {
        let cell = format!("<td class=\"number shade-{at}\" title=\"{told}");
        assert_eq!(page.matches(&cell).count(), 1, "{cell}: {page}");
    }
    assert_eq!(page.matches("<table class=\"matrix pair-matrix\">").count(), 1);
}

#[test]
fn every_note_that_is_referred_to_exists() {
    let page = page_of(&record("bench"));
    let mut references = 0;
    for piece in page.split("href=\"#").skip(1) {
        let target = piece.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{target}\"")), "{target}");
        references += 1;
    }
    assert!(references > 20);
}

#[test]
fn host_and_paths_stay_out_unless_asked_for() {
    for name in ["bench", "disk", "read", "write"] {
        let record = record(name);
        let page = page_of(&record);
        for secret in ["workbench", "/home", "anna", "192.0.2", "0b51c8d2", "user.slice"] {
            assert!(!page.contains(secret), "{name}: {secret}");
        }
        assert!(page_with(&record, Identity::Shown).contains("/home/anna"));
    }
}

#[test]
fn a_page_says_what_it_is_and_which_file_it_is_about() {
    let mut read = record("read");
    read.start.argv[0] = "/home/anna/bin/flatout".to_owned();
    let page = page_of(&read);
    assert!(page.contains("<title>flatout read: "));
    assert!(page.contains("<code>flatout read big file.bin</code>"));
    assert!(page.contains("<dt>file</dt><dd>big file.bin</dd>"));
    assert!(!page.contains("(hidden)</dd>\n<dt>block size"));
    let explained = "paths are left out of pages; the JSON (<code>--format json</code>) has them";
    assert_eq!(page.matches(explained).count(), 1);
    assert!(!page_with(&read, Identity::Shown).contains(explained));
    let bench = page_of(&record("bench"));
    assert!(bench.contains("<title>flatout bench: Example Xeon 2.00GHz, 2 CPUs"));
}

#[test]
fn a_page_of_a_disk_holds_its_proof_and_no_markup_from_a_command() {
    let mut disk = record("disk");
    let page = page_of(&disk);
    assert!(page.contains("<summary>Check with fio</summary>"));
    assert!(page.contains("<code>fio --name=flatout --directory=DIRECTORY --rw=read"));
    assert!(page.contains("→ vda1 → vda, virtio, write back"));
    assert!(page.contains("burst 639 MiB/s until 12.0 s, then sustained 212 MiB/s"));
    disk.results[0].audit.insert("fio_command".to_owned(), "fio </pre><b>'&".into());
    assert!(page_of(&disk).contains("<code>fio &lt;/pre&gt;&lt;b&gt;"));
}

#[test]
fn a_point_tells_its_exact_value() {
    let record = record("bench");
    let row = record.results.iter().find(|o| o.id == "cache/thread-sweep").unwrap();
    let exact = format!("exactly {} bytes/s", row.median.unwrap());
    assert!(page_of(&record).contains(&exact), "{exact}");
}

#[test]
fn every_row_of_a_chart_tells_its_exact_value() {
    let record = sample::everything();
    let page = page_of(&record);
    let mut rows = 0;
    for row in &record.results {
        let is_charted = record.charts.iter().any(|chart| chart.id == row.id);
        // Values in ns are exact as they are.
        if is_charted && row.unit != "ns" {
            let (factor, unit) = match (row.unit.as_str(), row.id.split_once('/')) {
                ("bytes/s", Some(("network", _))) => (8.0, "bit/s"),
                (
                    "operations/s",
                    Some(("disk", "random-read" | "random-write" | "mixed" | "depth-sweep")),
                ) => (1.0, "IOPS"),
                (unit, _) => (1.0, unit),
            };
            let exact = format!("exactly {} {unit}", row.median.unwrap() * factor);
            assert!(page.contains(&exact), "{}: {exact}", row.id);
            rows += 1;
        }
    }
    assert!(rows > 100, "{rows}");
}

#[test]
fn the_top_tells_no_more_than_the_rest() {
    let mut told = sample::everything();
    let environment = &mut told.start.environment;
    environment["host_name"] = "workbench".into();
    environment["storage"][0]["place"] = "/home/anna/disk".into();
    environment["storage"][0]["layers"][1]["serial"] = "S3CR3T".into();
    let limited = told.results.iter_mut().filter_map(|row| row.ceiling.as_mut());
    limited
        .for_each(|ceiling| ceiling.limiter = "the file /home/anna/disk of workbench".to_owned());
    told.end.verdict[0].text = "Ask workbench about /home/anna/disk or S3CR3T.".to_owned();
    let page = page_of(&told);
    for secret in ["workbench", "/home/anna", "S3CR3T"] {
        assert!(!page.contains(secret), "{secret}");
        assert!(page_with(&told, Identity::Shown).contains(secret), "{secret}");
    }
}

#[test]
fn the_top_has_a_bar_per_area_and_what_could_not_be_read() {
    let page = page_of(&sample::everything());
    let (_, top) = page.split_once("<section id=\"summary\">").expect("there is a top");
    let (top, _) = top.split_once("<section id=\"area-0\">").expect("areas follow");
    for area in ["cache", "disk", "syscall", "cpu", "memory", "network", "copy"] {
        let place = page.split_once(&format!("\">{area}</a>")).expect("areas are listed").0;
        let place = &place[place.rfind('#').unwrap_or(0)..];
        assert!(top.contains(&format!("href=\"{place}\"")), "{area}");
    }
    let bars = top.matches("<span class=\"bar\">").count();
    assert_eq!((bars, top.matches("<dd>limit: ").count()), (bars, bars));
    assert!(bars >= 7, "{bars}");
    assert!(top.contains("<dt>could not be read</dt><dd>governor, link of vda</dd>"));
    assert!(top.contains("2.50 GHz (f64 multiply-add avx512), 3.00 GHz (no load), measured"));
    assert_eq!(top.matches("<details><summary><b>").count(), 6);
}

/// A median of trials and a percentile of operations differ by a factor of four in a row with two
/// speeds: no table has both, and each says which it has.
#[test]
fn one_table_has_one_statistic_and_names_it() {
    let (mut of_trials, mut of_operations) = (0, 0);
    for name in FIXTURES {
        let page = render(&record(name), Format::Markdown, &FULL);
        let lines: Vec<&str> = page.lines().collect();
        let mut heading = "";
        for pair in lines.windows(2) {
            if pair[0].starts_with('#') {
                heading = pair[0];
            }
            if !pair[1].starts_with("|--") && !pair[1].starts_with("| --") {
                continue;
            }
            let heads: Vec<&str> = pair[0].split('|').map(str::trim).collect();
            let is_percentile =
                |head: &&str| head.strip_prefix('p').is_some_and(|n| n.parse::<f64>().is_ok());
            let (has_median, has_percentile) =
                (heads.contains(&"median"), heads.iter().any(is_percentile));
            assert!(!(has_median && has_percentile), "{name}: {heading}: {heads:?}");
            let says = heading.contains("latency of single operations, all trials together");
            assert_eq!(says, has_percentile, "{name}: {heading}: {heads:?}");
            (of_trials, of_operations) =
                (of_trials + usize::from(has_median), of_operations + usize::from(has_percentile));
        }
    }
    assert!(of_trials > 5 && of_operations > 2, "{of_trials} {of_operations}");
}
