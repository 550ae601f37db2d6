//! `flatout versus`: races against small scripts that behave well, badly, or not at all.

mod commands;
mod compute;
mod copy;
mod trouble;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::bin::{Flatout, Folder, Ran, executable, warnings};
use crate::schema::assert_valid;

/// Where races leave their corpora.
const LEFT: &str = ".flatout-versus";

/// A folder with programs of its own, which are found before those of the system.
struct Stable(Folder);

impl Stable {
    fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir(folder.join("bin")).unwrap();
        fs::create_dir(folder.join("place")).unwrap();
        Self(folder)
    }

    /// A rival that says its version when it is asked, and else does this.
    fn rival(&self, name: &str, text: &str) -> &Self {
        let path = self.0.join("bin").join(name);
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo {name} 9.9; exit; fi\n{text}\n"
        );
        flatout_sys::launcher::write_program(&path, &script);
        self
    }

    /// A b3sum that is right.
    fn honest(&self) -> &Self {
        self.rival("b3sum", &format!("exec {} sum \"$@\"", executable().display()))
    }

    fn flatout(&self, place: &Path, arguments: &[&str]) -> Flatout<'_> {
        let quick = ["--quick", "--rounds", "2", "--seed", "7"];
        self.versus(place, quick.iter().chain(arguments))
    }

    fn versus<'a>(
        &self,
        place: &Path,
        arguments: impl IntoIterator<Item = &'a &'a str>,
    ) -> Flatout<'_> {
        let mut path = OsString::from(self.0.join("bin"));
        path.push(":/usr/bin:/bin");
        let place = place.to_owned();
        self.0.flatout([&"versus"].into_iter().chain(arguments)).with(move |command| {
            command.env("PATH", path).arg("--directory").arg(place);
        })
    }

    fn race(&self, arguments: &[&str]) -> Ran {
        self.flatout(&self.0.join("place"), arguments).run()
    }

    /// What is left in the place of the race.
    fn left(&self) -> BTreeSet<String> {
        left_in(&self.0.join("place"))
    }
}

fn left_in(place: &Path) -> BTreeSet<String> {
    let place = place.join(LEFT);
    if place.exists() { Folder::names_in(&place) } else { BTreeSet::new() }
}

fn rows(document: &Value, id: &str) -> Vec<Value> {
    let results = document["results"].as_array().unwrap();
    results.iter().filter(|row| row["id"] == id).cloned().collect()
}

#[test]
fn where_time_is_too_short_for_the_usual_work_that_of_quick_is_raced() {
    let stable = Stable::new();
    stable.honest();
    // Beside others the shortest may be too short for that, too.
    let ran = ["1500ms", "3s", "6s", "9s"].into_iter().find_map(|time| {
        let words = ["b3sum", "--max-time", time, "--format", "json"];
        stable.versus(&stable.0.join("place"), &words).run().if_measured()
    });
    let ran = ran.unwrap();
    assert!(ran.stderr.contains("no time for the usual work: that of --quick is raced"), "{ran}");
    let document = ran.document();
    let files = rows(&document, "versus/sum-file");
    assert!(files.iter().all(|row| row["parameters"]["bytes"] == 32 << 20), "{ran}");
    // Which of the two races there was time for is not known.
    let raced: Vec<Value> =
        [files.clone(), rows(&document, "versus/sum-files")].into_iter().flatten().collect();
    let is_told = |row: &Value| row["median"].is_null() || warnings(row).contains(&"size_reduced");
    assert!(
        raced.iter().all(is_told) && raced.iter().any(|row| row["median"].is_number()),
        "{ran}"
    );
    assert_eq!((files.len(), stable.left().len()), (2, 0), "{ran}");
}

#[test]
fn a_race_leaves_rows_of_contestants_speeds_and_pairs() {
    let stable = Stable::new();
    let ran = stable.honest().race(&["b3sum", "--cold", "--format", "json"]);
    let document = ran.exits(0).document();
    assert_valid(&document);
    assert_eq!(rows(&document, "versus/sum-file").len(), 2);
    let files = rows(&document, "versus/sum-files");
    assert_eq!((files.len(), rows(&document, "versus/sum-files-speed").len()), (4, 4));
    for row in &files {
        assert_eq!(
            (&row["unit"], &row["better"], &row["n"]),
            (&"ns".into(), &"lower".into(), &2.into())
        );
        let audit = &row["audit"];
        assert_eq!((&audit["digests_checked"], &audit["runs"]), (&1000.into(), &2.into()));
        assert!(audit["cpu_ns"].as_f64().unwrap() > 0.0, "{row:#}");
        assert!(audit["peak_memory_bytes"].as_f64().unwrap() > 0.0, "{row:#}");
        let is_cold = row["parameters"]["cache_state"] == "cold";
        if audit["cache_state_proved"] == true {
            let cached = if is_cold { 0 } else { 1000 * 4096 };
            assert_eq!(audit["source_cached_bytes"], cached, "{row:#}");
        }
    }
    assert_eq!(files[1]["audit"]["version"], "b3sum 9.9");
    assert!(files[1]["audit"]["command"].as_str().unwrap().contains("exec "), "{}", files[1]);
    let pairs = rows(&document, "versus/ratio");
    assert_eq!(pairs.len(), 3);
    for pair in &pairs {
        let parameters = &pair["parameters"];
        assert_eq!(
            (&parameters["subject"], &parameters["against"]),
            (&"flatout".into(), &"b3sum".into())
        );
        assert_eq!(
            (&pair["unit"], &pair["audit"]["result"]),
            (&"ratio".into(), &"undecided".into())
        );
        assert!(pair["median"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(stable.left().len(), 0);
    let again = stable.race(&["b3sum", "--keep"]);
    assert!(again.exits(0).stderr.contains("few rounds of small work"), "{again}");
    assert_eq!(stable.left(), ["corpora".to_owned()].into());
    let cleaned = stable.race(&["--clean"]);
    assert_eq!((cleaned.exits(0).stdout.as_str(), stable.left().len()), ("", 0));
}

#[test]
fn a_race_against_dd_has_its_charts_and_takes_its_targets_away() {
    let stable = Stable::new();
    let ran = stable.race(&["dd", "--format", "json"]);
    let document = ran.exits(0).document();
    assert_valid(&document);
    assert_eq!(rows(&document, "versus/dd-copy").len(), 4);
    assert_eq!(rows(&document, "versus/dd-block").len(), 8);
    assert_eq!(rows(&document, "versus/dd-read").len(), 4);
    assert_eq!(rows(&document, "versus/ratio").len(), 8);
    assert!(rows(&document, "versus/dd-copy").iter().all(|row| row["median"].is_number()));
    let charts = document["charts"].as_array().unwrap();
    assert_eq!(charts.len(), 4);
    assert_eq!(stable.left().len(), 0);
}

#[test]
fn all_rivals_are_listed_with_version_or_package() {
    let stable = Stable::new();
    let ran = stable.honest().race(&["--list"]);
    let lines: Vec<_> = ran.exits(0).stdout.lines().collect();
    assert_eq!(lines.len(), 27);
    let line = |name: &str| *lines.iter().find(|line| line.starts_with(name)).unwrap();
    assert!(line("b3sum").contains("b3sum 9.9") && line("b3sum").contains("flatout sum"));
    assert!(line("rsync-r").starts_with("rsync-r "));
    assert!(line("sockperf").contains("flatout bench network"));
    assert!(!ran.stdout.contains("transfer"), "{ran}");
    let at = |text: &str| lines.iter().filter_map(|line| line.find(text)).collect::<Vec<_>>();
    let column = lines[0].find("raced against").unwrap();
    assert!(at("flatout bench").iter().all(|at| *at >= column), "{ran}");
    assert!(at("flatout copy").iter().all(|at| *at == column), "{ran}");
    let two = stable.race(&["--list", "cp"]);
    assert_eq!(two.exits(0).stdout.lines().count(), 3, "{two}");
    let document = stable.race(&["--list", "--format", "json"]).exits(0).document();
    assert_valid(&document);
    let rivals = rows(&document, "versus/rival");
    let b3sum = rivals.iter().find(|row| row["parameters"]["rival"] == "b3sum").unwrap();
    assert_eq!((rivals.len(), &b3sum["audit"]["version"]), (26, &"b3sum 9.9".into()));
}
