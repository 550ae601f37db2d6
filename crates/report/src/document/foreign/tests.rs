//! Small documents of each program, cut down from what they write.

use std::path::Path;

use flatout_measure::record::{Record, Status};
use serde_json::{Value, json};

use crate::document::parse;

fn read(document: &Value) -> Result<Record, String> {
    parse(document.to_string().as_bytes(), Path::new("x")).map_err(|error| error.to_string())
}

/// Id, unit, median and number of samples of each row.
fn rows(record: &Record) -> Vec<(&str, &str, Option<f64>, u64)> {
    let row = record.results.iter();
    row.map(|row| (&*row.id, &*row.unit, row.median, row.n)).collect()
}

#[test]
fn jobs_of_fio_are_rows_of_rates_and_requests() {
    let way = |ios: u64| {
        json!({"total_ios": ios, "bw_bytes": 4096 * ios, "iops": ios as f64,
            "clat_ns": {"N": ios, "min": 100, "max": 9000,
                "percentile": {"20.000000": 300, "50.000000": 500, "99.000000": 800, "99.900000": 8000}}})
    };
    let job = |name: &str, reads| {
        json!({"jobname": name, "error": 0, "read": way(reads), "write": way(0),
            "job options": {"bs": "4k", "rw": "randread"}})
    };
    let failed = json!({"jobname": "bad", "error": 5, "read": way(1)});
    let document = json!({"fio version": "fio-3.33", "timestamp": 1_795_954_991,
        "global options": {"direct": "1"}, "jobs": [job("a", 1000), job("a", 2000), failed]});
    let record = read(&document).unwrap();
    let (tool, time) = (&*record.start.tool, &*record.start.time);
    assert_eq!((tool, time), ("fio-3.33", "2026-11-29T12:23:11Z"));
    assert_eq!(
        rows(&record),
        [
            ("fio/read", "bytes/s", Some(4_096_000.0), 1),
            ("fio/read-iops", "operations/s", Some(1000.0), 1),
            ("fio/read", "bytes/s", Some(8_192_000.0), 1),
            ("fio/read-iops", "operations/s", Some(2000.0), 1),
            ("fio/read", "", None, 0),
            ("fio/read-iops", "", None, 0),
        ]
    );
    let parameters = Value::from(record.results[0].parameters.clone());
    let expected = json!({"job": "a", "bs": "4k", "rw": "randread", "direct": "1", "number": 1});
    assert_eq!(parameters, expected);
    assert_eq!(record.results[2].parameters["number"], 2, "jobs of one name are two rows");
    let latency = record.results[1].latency.as_ref().unwrap();
    let told: Vec<&String> = latency.percentiles_ns.keys().collect();
    assert_eq!(told, ["p50", "p99"], "beyond p99.9 there is one request");
    assert_eq!((latency.operations, latency.max_ns), (1000, 9000.0));
    assert_eq!(record.results[4].status, Status::Failed);
    assert_eq!(record.end.exit_code, 1);
    assert_eq!(record.end.errors, ["job \"bad\" failed with error 5"]);
}

#[test]
fn what_fio_says_before_its_document_is_passed_over() {
    let notes = "note: queue depth will be capped at 1\nfio: io_u error on file {}\n";
    let document = "{\n  \"fio version\" : \"fio-3.36\",\n  \"jobs\" : [{\"jobname\": \"a\", \"error\": 5}]\n}\n";
    let parse = |text: String| parse(text.as_bytes(), Path::new("x"));
    assert_eq!(parse(format!("{notes}{document}")).unwrap(), parse(document.to_owned()).unwrap());
    let cut = parse(format!("{notes}{}", &document[..40])).unwrap_err().to_string();
    assert!(cut.contains("cut off: the JSON document ends at line 5, column "), "{cut}");
    assert!(parse(format!("{notes}{{}}")).unwrap_err().to_string().contains("no flatout record"));
}

#[test]
fn a_time_whose_unit_is_not_known_is_no_figure() {
    let run = |unit: Value| json!({"name": "a", "run_type": "iteration", "real_time": 5.0, "time_unit": unit});
    for (unit, median) in [(json!("ms"), Some(5e6)), (json!("min"), None), (Value::Null, None)] {
        let record = read(&json!({"context": {}, "benchmarks": [run(unit)]})).unwrap();
        assert_eq!(record.results[0].median, median);
        assert_eq!(record.end.exit_code, i32::from(median.is_none()));
    }
}

#[test]
fn a_job_of_fio_that_failed_has_the_rows_that_it_would_have() {
    let job = |error: u32, rw: &str| {
        let way = json!({"total_ios": 9, "bw_bytes": 4096, "iops": 1.0});
        json!({"jobname": "a", "error": error, "read": way, "job options": {"rw": rw}})
    };
    let ids = |error, rw| {
        let record = read(&json!({"fio version": "fio-3.33", "jobs": [job(error, rw)]})).unwrap();
        let medians = record.results.iter().filter(|row| row.median.is_some()).count();
        (record.results.iter().map(|row| row.id[4..].to_owned()).collect::<Vec<_>>(), medians)
    };
    assert_eq!(ids(0, "randread"), (vec!["read".to_owned(), "read-iops".to_owned()], 2));
    assert_eq!(ids(5, "randread"), (vec!["read".to_owned(), "read-iops".to_owned()], 0));
    let (mixed, _) = ids(5, "randrw");
    assert_eq!(mixed, ["read", "read-iops", "write", "write-iops"]);
}

#[test]
fn a_test_of_iperf3_is_what_was_sent_and_what_arrived() {
    let interval = |end: f64, bits: f64| json!({"sum": {"end": end, "bits_per_second": bits}});
    let mut document = json!({
        "start": {"version": "iperf 3.12", "timestamp": {"timesecs": 0}, "system_info": "Linux",
            "test_start": {"protocol": "TCP", "num_streams": 1, "blksize": 131_072, "reverse": 0}},
        "intervals": [interval(1.0, 8e9), interval(2.0, 16e9)],
        "end": {"sum_sent": {"bits_per_second": 12e9, "retransmits": 3},
            "sum_received": {"bits_per_second": 11.9e9}}});
    let record = read(&document).unwrap();
    assert_eq!(record.start.tool, "iperf 3.12");
    let expected = [
        ("iperf3/sent", "bytes/s", Some(1.5e9), 1),
        ("iperf3/received", "bytes/s", Some(1.4875e9), 1),
    ];
    assert_eq!(rows(&record), expected);
    assert_eq!(record.results[0].series[0].points, [[1.0, 1e9], [2.0, 2e9]]);
    assert_eq!(record.results[0].audit["retransmits"], 3);
    document["intervals"][0]["sum"]["omitted"] = true.into();
    assert!(read(&document).unwrap().results[0].series.is_empty(), "one second counts");
    document["error"] = json!("unable to connect");
    assert!(read(&document).unwrap_err().ends_with("iperf3, which failed: unable to connect"));
}

#[test]
fn each_end_of_iperf3_tells_what_it_has_counted() {
    let sum = |bytes: u64, is_sender: bool| json!({"bytes": bytes, "bits_per_second": 8 * bytes, "end": bytes, "sender": is_sender});
    let interval = |bytes| json!({"sum": sum(bytes, false), "sum_bidir_reverse": sum(bytes, true)});
    // A server: it has received one way, and sent the other.
    let mut document = json!({
        "start": {"version": "iperf 3.12", "system_info": "Linux somewhere 6.1.0 x86_64",
            "test_start": {"protocol": "TCP", "num_streams": 1, "reverse": 0}},
        "intervals": [interval(1), interval(2)],
        "end": {"sum_sent": sum(0, false), "sum_received": sum(7, false),
            "sum_sent_bidir_reverse": sum(5, true), "sum_received_bidir_reverse": sum(0, true)}});
    let record = read(&document).unwrap();
    let expected =
        [("iperf3/received", "bytes/s", Some(7.0), 1), ("iperf3/sent", "bytes/s", Some(5.0), 1)];
    assert_eq!(rows(&record), expected, "nothing is known of what the other end counted");
    let ways = record.results.iter().map(|row| (row.series.len(), row.parameters.get("reverse")));
    assert_eq!(ways.collect::<Vec<_>>(), [(1, None), (1, Some(&json!(true)))]);
    let hidden = crate::identity::hidden(&record).start.environment;
    assert!(!hidden.to_string().contains("somewhere"), "{hidden}");

    // A client that receives.
    document["start"]["test_start"]["reverse"] = 1.into();
    document["end"] = json!({"sum_sent": sum(8, false), "sum_received": sum(7, false)});
    let record = read(&document).unwrap();
    let curves = record.results.iter().map(|row| (&*row.id, row.series.len()));
    assert_eq!(curves.collect::<Vec<_>>(), [("iperf3/sent", 0), ("iperf3/received", 1)]);
}

#[test]
fn latencies_of_fio_are_those_that_have_percentiles() {
    let told =
        |percentiles: Value| json!({"N": 1000, "min": 1, "max": 9, "percentile": percentiles});
    let way = json!({"total_ios": 1000, "bw_bytes": 1, "iops": 1.0,
        "clat_ns": {"N": 1000, "min": 2, "max": 8}, "lat_ns": told(json!({"50.000000": 5}))});
    let document = json!({"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": way}]});
    let record = read(&document).unwrap();
    let latency = record.results[1].latency.as_ref().unwrap();
    assert_eq!((latency.min_ns, &latency.percentiles_ns["p50"]), (1.0, &json!(5)));
}

#[test]
fn what_did_not_run_or_failed_is_no_plain_figure() {
    let skipped = json!({"name": "a", "run_type": "iteration", "skipped": true,
        "skip_message": "no such device", "iterations": 0, "real_time": 0.0, "time_unit": "ns"});
    let record = read(&json!({"context": {}, "benchmarks": [skipped]})).unwrap();
    let row = &record.results[0];
    assert_eq!((row.median, row.status), (None, Status::Unsupported));
    assert_eq!((&*row.warnings[0].text, record.end.exit_code), ("no such device", 0));

    let run = json!({"command": "a", "times": [0.1, 0.2, 0.3], "exit_codes": [0, 1, null]});
    let record = read(&json!({"results": [run]})).unwrap();
    assert_eq!((record.results[0].status, record.end.exit_code), (Status::Degraded, 1));
    assert_eq!(record.end.errors, ["2 of 3 runs of the command failed"]);
}

#[test]
fn runs_of_hyperfine_and_repetitions_of_google_benchmark_are_samples() {
    let document = json!({"results": [
        {"command": "a", "median": 0.2, "times": [0.1, 0.2, 0.4], "parameters": {"n": "1"}},
        {"command": "b", "median": 2.0}]});
    let record = read(&document).unwrap();
    let expected =
        [("hyperfine/command", "ns", Some(2e8), 3), ("hyperfine/command", "ns", Some(2e9), 1)];
    assert_eq!(rows(&record), expected);
    assert_eq!(record.results[0].parameters["n"], "1");

    let run = |name: &str, time: f64| {
        json!({"name": name, "run_name": name, "run_type": "iteration", "real_time": time,
            "time_unit": "us"})
    };
    let mean = json!({"name": "x_mean", "run_name": "x", "run_type": "aggregate", "real_time": 1});
    let broken = json!({"name": "z", "error_occurred": true, "error_message": "out of luck"});
    let document = json!({"context": {"date": "2026-11-29T12:00:00+00:00", "num_cpus": 2},
        "benchmarks": [run("x", 1.0), run("x", 3.0), run("y", 5.0), mean, broken]});
    let record = read(&document).unwrap();
    let id = "google-benchmark/time";
    let expected = [(id, "ns", Some(2e3), 2), (id, "ns", Some(5e3), 1), (id, "", None, 0)];
    assert_eq!(rows(&record), expected);
    assert_eq!(record.start.environment["cpus_online"], 2);
    assert_eq!(record.end.errors, ["out of luck"]);
}

#[test]
fn a_document_of_theirs_without_a_result_is_refused() {
    for (document, part) in [
        (json!({"fio version": "fio-3.33", "jobs": []}), "it is JSON of fio-3.33 without"),
        (json!({"fio version": 1, "jobs": 17}), "without a result"),
        (json!({"results": [{"command": "true"}]}), "it is JSON of hyperfine without"),
        (json!({"context": {}, "benchmarks": []}), "Google Benchmark without"),
        (json!({"start": {}, "intervals": [], "end": {}}), "without a result"),
    ] {
        let said = read(&document).unwrap_err();
        assert!(said.contains(part), "{said}");
    }
    for (time, said) in [(-1.0, "a figure of -1000000000 ns"), (1e308, "a figure of inf ns")] {
        let document = json!({"results": [{"command": "a", "times": [time]}]});
        assert!(read(&document).unwrap_err().contains(said));
    }
}
