//! The forms that other programs read follow their grammars, whatever is in the record.

use std::collections::BTreeSet;

use flatout_measure::record::Record;
use flatout_report::{Format, Identity, fio_json, render, render_beside};
use serde_json::Value;

use crate::{FIXTURES, FULL, record};

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Names and values as they are written.
type Labels<'a> = Vec<(&'a str, &'a str)>;

/// Name, labels and value of a sample, as OpenMetrics 1.0 writes it; labels escaped.
fn sample(line: &str) -> Option<(&str, Labels<'_>, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let mut is_escaped = false;
            let end = after.find(|c| {
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            })?;
            labels.push((label, &after[..end]));
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.strip_prefix(' ')?.parse().ok()?;
    Some((name, labels, value))
}

#[test]
fn every_line_of_metrics_follows_the_grammar() {
    for name in FIXTURES {
        for identity in [Identity::Hidden, Identity::Shown] {
            let text = render_beside(&record(name), &[], Format::OpenMetrics, &FULL, identity);
            let body = text.strip_suffix("# EOF\n").expect("a document ends");
            let mut families = BTreeSet::new();
            let mut samples = BTreeSet::new();
            let mut family = "";
            for line in body.lines() {
                if let Some(typed) = line.strip_prefix("# TYPE ") {
                    family = typed.strip_suffix(" gauge").expect("node_exporter knows gauges");
                    assert!(families.insert(family), "{name}: {family} stands apart");
                    continue;
                }
                if let Some(rest) = line.strip_prefix("# UNIT ") {
                    let (of, unit) = rest.split_once(' ').unwrap();
                    assert!(of == family && of.ends_with(&format!("_{unit}")), "{line}");
                    continue;
                }
                if let Some(rest) = line.strip_prefix("# HELP ") {
                    assert!(rest.starts_with(&format!("{family} ")), "{line}");
                    continue;
                }
                let (metric, labels, value) = sample(line).unwrap_or_else(|| panic!("{line}"));
                assert!(metric == family && is_name(metric) && value.is_finite(), "{line}");
                let names: BTreeSet<&str> = labels.iter().map(|(label, _)| *label).collect();
                assert_eq!(names.len(), labels.len(), "{line}");
                assert!(names.iter().all(|name| is_name(name) && !name.starts_with("__")));
                assert!(samples.insert(format!("{metric} {labels:?}")), "{name}: twice: {line}");
            }
        }
    }
}

#[test]
fn every_row_is_in_the_metrics() {
    for name in FIXTURES {
        let text = render(&record(name), Format::OpenMetrics, &FULL);
        let rows = text.lines().filter(|line| line.starts_with("flatout_result_info{")).count();
        assert_eq!(rows, record(name).results.len(), "{name}");
    }
}

#[test]
fn every_line_of_go_is_a_comment_a_setting_a_unit_or_a_benchmark() {
    for name in FIXTURES {
        let record = record(name);
        let text = render(&record, Format::GoBench, &FULL);
        let mut lines = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let is_setting =
                ["goos: ", "goarch: ", "pkg: ", "cpu: "].iter().any(|key| line.starts_with(key));
            match words[0] {
                "#" => {}
                "Unit" => {
                    assert_eq!(words.len(), 3, "{line}");
                    assert!(["better=higher", "better=lower"].contains(&words[2]), "{line}");
                }
                _ if is_setting => {}
                name => {
                    assert_eq!(words.len(), 4, "{line}");
                    let first = name.strip_prefix("Benchmark").and_then(|rest| rest.chars().next());
                    assert!(first.is_some_and(|c| !c.is_lowercase()), "{line}");
                    assert!(words[1] == "1" && words[2].parse::<f64>().is_ok(), "{line}");
                    lines += 1;
                }
            }
        }
        let samples: usize = record.results.iter().map(|row| row.samples.len()).sum();
        assert!(lines <= samples + record.results.len(), "{name}");
    }
}

#[test]
fn a_job_of_fio_has_names_with_spaces_whole_and_hides_them_whole() {
    let mut record = record("disk");
    record.results.retain(|row| row.id == "disk/sequential-read");
    let name = "/home/anna/my data/a file.bin";
    let line = format!("fio --rw=read '--filename={name}' --bs=1M");
    record.results[0].audit.insert("fio_command".to_owned(), line.into());
    let options = |record: &Record, identity| {
        let (_, text) = fio_json::files(record, identity).remove(0);
        let document: Value = serde_json::from_str(&text).unwrap();
        document["jobs"][0]["job options"].clone()
    };
    // Earlier records have the line alone.
    let mut told = record.clone();
    let fields = serde_json::json!({"rw": "read", "filename": name, "bs": "1M"});
    told.results[0].audit.insert("fio_options".to_owned(), fields);
    for record in [record, told] {
        let shown = options(&record, Identity::Shown);
        assert_eq!((&shown["filename"], shown.as_object().unwrap().len()), (&name.into(), 5));
        let hidden = options(&record, Identity::Hidden).to_string();
        assert!(
            !["anna", "my data", "a file"].iter().any(|word| hidden.contains(word)),
            "{hidden}"
        );
    }
}

#[test]
fn a_job_of_fio_has_the_figures_of_its_row() {
    let record = record("disk");
    let text = render(&record, Format::FioJson, &FULL);
    let document: Value = serde_json::from_str(&text).unwrap();
    let jobs = document["jobs"].as_array().unwrap();
    let row = record.results.iter().find(|row| row.id == "disk/sequential-read").unwrap();
    let job = jobs.iter().find(|job| job["job options"]["rw"] == "read").unwrap();
    let rate = job["read"]["bw_bytes"].as_f64().unwrap();
    assert!((rate - row.median.unwrap()).abs() <= 1.0);
    let block = row.parameters["block_bytes"].as_f64().unwrap();
    assert!((job["read"]["iops"].as_f64().unwrap() - row.median.unwrap() / block).abs() < 1e-6);
    assert_eq!(job["write"]["total_ios"], 0);
    for (name, value) in &row.latency.as_ref().unwrap().percentiles_ns {
        let share: f64 = name[1..].parse().unwrap();
        assert_eq!(job["read"]["clat_ns"]["percentile"][format!("{share:.6}")], *value, "{name}");
    }
    for job in jobs {
        let unknown = |members: &Value| -> Vec<String> {
            let members = members.as_object().unwrap().iter();
            members.filter(|(_, member)| member.is_null()).map(|(name, _)| name.clone()).collect()
        };
        let asked_for = |name: &String| ["usr_cpu", "sys_cpu"].contains(&name.as_str());
        assert!(unknown(job).iter().all(asked_for), "{job:#}");
        assert_eq!([&job["read"], &job["write"]].map(unknown).concat().len(), 0, "{job:#}");
    }
    let left_out = document["flatout"]["rows_left_out"].as_u64().unwrap() as usize;
    assert_eq!(jobs.len() + left_out, record.results.len());
    assert_eq!(fio_json::files(&record, Identity::Hidden).len(), jobs.len());
}
