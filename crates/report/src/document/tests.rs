//! What is refused, and with which words.

use serde_json::{Value, json};

use super::*;

fn document() -> Value {
    json!({"schema": "flatout/1",
        "start": {"tool": "flatout 0.1.0", "argv": ["flatout"], "seed": 1, "time": "", "environment": {}},
        "results": [{"id": "disk/read", "parameters": {"block_bytes": 4096}, "unit": "bytes/s",
            "better": "higher", "median": 2.0, "ci95": [1.0, 3.0], "n": 3, "samples": [1.0, 2.0, 3.0],
            "status": "ok", "audit": {}, "ceiling": null, "warnings": []}],
        "end": {"elapsed_s": 1.0, "exit_code": 0, "errors": [], "load": null}})
}

fn said(text: impl AsRef<[u8]>) -> String {
    let said = parse(text.as_ref(), Path::new("x.json")).unwrap_err().to_string();
    assert!(said.starts_with("cannot read \"x.json\": ") && !said.contains('\n'), "{said}");
    said
}

/// What is said of the document in which the member at `pointer` is `value`.
fn said_with(pointer: &str, value: Value) -> String {
    let mut changed = document();
    *changed.pointer_mut(pointer).expect("the document has it") = value;
    said(changed.to_string())
}

fn assert_said(said: &str, part: &str) {
    assert!(said.contains(part), "{said:?} lacks {part:?}");
}

#[test]
fn a_record_and_a_page_that_holds_it_are_told_by_what_is_in_them() {
    let text = document().to_string();
    let record = parse(text.as_bytes(), Path::new("-")).unwrap();
    assert_eq!(record.results[0].median, Some(2.0));
    let page = crate::render(&record, crate::Format::Html, &crate::Style::default());
    assert_eq!(parse(page.as_bytes(), Path::new("x")).unwrap(), crate::identity::hidden(&record));
    assert_eq!(parse(format!("\u{feff}\n {text}\n").as_bytes(), Path::new("x")).unwrap(), record);
    let error = parse_from(&b""[..], Path::new("-")).unwrap_err().to_string();
    assert_eq!(error, "cannot read standard input: it is empty");
}

#[test]
fn what_is_cut_off_is_cut_off_wherever_that_happens() {
    let text = document().to_string();
    for end in 1..text.len() {
        assert_said(&said(&text[..end]), "it is cut off: the JSON document ends at line 1, column");
    }
    let record = parse(text.as_bytes(), Path::new("x")).unwrap();
    let page = crate::render(&record, crate::Format::Html, &crate::Style::default());
    for end in (1..page.trim_end().len()).filter(|&end| page.is_char_boundary(end)) {
        let cut = parse(&page.as_bytes()[..end], Path::new("x"));
        // Behind the record the page may end as it likes.
        match cut {
            Ok(read) => assert_eq!(read, crate::identity::hidden(&record)),
            Err(error) => assert_said(&error.to_string(), "cut off"),
        }
    }
}

#[test]
fn what_is_foreign_is_said_to_be() {
    for (text, part) in [
        ("{\"schema\": \"other/1\"}", "its schema is \"other/1\""),
        ("{\"schema\": \"flatout/0\"}", "its schema is \"flatout/0\""),
        ("{\"schema\": 1}", "no member \"schema\""),
        ("[1, 2]", "its JSON is no object"),
        ("17", "its JSON is no object"),
        ("<html><body>hello</body></html>", "a page that holds none"),
        ("id,unit\r\n", "no JSON"),
        ("{\"schema\": \"flatout/1\", NaN}", "no JSON"),
    ] {
        assert_said(&said(text), "it is no flatout record: ");
        assert_said(&said(text), part);
    }
    assert_said(&said(b"\x7fELF\x02\x01\xff\xfe"), "byte 6 is no text");
    assert_said(&said("{\"schema\": \"flatout/1\"}"), "missing field `start`");
    assert_said(&said(" \n\t"), "it is empty");
}

#[test]
fn a_newer_schema_is_named() {
    assert_said(
        &said_with("/schema", json!("flatout/2")),
        "made by a newer flatout: its schema is flatout/2, this flatout reads flatout/1",
    );
    // A newer document may have anything else in it.
    assert_said(&said("{\"schema\": \"flatout/17\", \"rows\": 1}"), "newer flatout");
}

fn bound(value: f64, ratio: f64) -> Value {
    json!({"name": "x", "provenance": "link", "value": value, "ratio": ratio, "limiter": ""})
}

fn load(others_cpus: Option<f64>, wait: f64) -> Value {
    json!({"cpus": 2, "others_cpus": others_cpus, "stolen_ratio": 0.0, "run_queue_wait_ratio": wait,
        "cpu_pressure_ratio": null, "programs": []})
}

#[test]
fn figures_that_no_run_leaves_are_refused() {
    for (pointer, value, part) in [
        ("/results/0/n", json!(7), "results[0].n: 7, but there are 3 samples"),
        ("/results/0/n", json!(-3), "invalid value: integer `-3`"),
        ("/results/0/median", json!("fast"), "string \"fast\", expected a number at line"),
        ("/results/0/median", json!(9.0), "is not in it"),
        ("/results/0/ci95", json!([3.0, 1.0]), "ci95: it begins at 3 and ends at 1"),
        ("/results/0/ci95", json!([1.0]), "array of length 2"),
        ("/results/0/samples", json!([1.0, -2.0, 3.0]), "a figure of -2 bytes/s"),
        ("/results/0/samples", json!([1.0, null, 3.0]), "null, expected a number"),
        ("/results/0/samples", json!([4.0, 5.0, 6.0]), "median: 2 is not among samples of 4 to 6"),
        ("/results/0/parameters/block_bytes", json!(-4096), "block_bytes: -4096 is a size below"),
        ("/results/0/audit", json!({"a": [{"x_bytes": -1}]}), "audit.x_bytes: -1 is a size"),
        (
            "/results/0/ceiling",
            bound(4.0, 0.9),
            "ceiling.ratio: 0.9, but figure and bound make 0.5",
        ),
        ("/results/0/ceiling", bound(-4.0, 0.5), "ceiling.value: -4 is below zero"),
        (
            "/results/0/ceiling",
            json!({"name": "x", "provenance": "best_seen", "value": 4.0,
            "ratio": 0.5, "limiter": ""}),
            "ceiling.ratio: 0.5, but there is no bound",
        ),
        ("/results/0/id", json!(""), "results[0].id: empty"),
        ("/results/0/status", json!("great"), "unknown variant `great`"),
        ("/start/environment", json!({"memory_bytes": -1}), "start.environment.memory_bytes"),
        ("/start/environment", json!("fast"), "start.environment: it is no object"),
        ("/end/elapsed_s", json!(-1.0), "end.elapsed_s"),
        ("/end/load", load(Some(2.5), 0.1), "end.load.others_cpus: 2.5 is more than 2"),
        ("/end/load", load(Some(-1.0), 0.1), "end.load.others_cpus: -1 is below zero"),
        ("/end/load", load(None, 1.5), "end.load.run_queue_wait_ratio: 1.5 is more than 1"),
        (
            "/results/0/audit",
            json!({"use_of_cpus": {"others_cpus": -0.5}}),
            "results[0].audit.use_of_cpus.others_cpus: -0.5 is below zero",
        ),
    ] {
        assert_said(&said_with(pointer, value), part);
    }
    let mut loaded = document();
    loaded["end"]["load"] = load(Some(2.0), 1.0);
    loaded["results"][0]["audit"] = json!({"use_of_cpus": {"others_cpus": 2.0, "own_cpus": 0.1}});
    assert!(parse(loaded.to_string().as_bytes(), Path::new("x")).is_ok());
    loaded["results"][0]["audit"]["use_of_cpus"]["others_cpus"] = json!(2.1);
    assert_said(&said(loaded.to_string()), "results[0].audit.use_of_cpus.others_cpus: 2.1");
    let mut bounded = document();
    bounded["results"][0]["ceiling"] = bound(4.0, 0.5);
    assert!(parse(bounded.to_string().as_bytes(), Path::new("x")).is_ok());
    for figure in ["1e999", "-1e999"] {
        assert_said(&said(document().to_string().replace("2.0", figure)), "number out of range");
    }
    assert_said(&said(document().to_string().replace("2.0", "NaN")), "no JSON");
}

#[test]
fn latencies_must_be_times_of_percentiles() {
    let latency = |percentiles: Value, max_ns: f64| {
        let mut changed = document();
        changed["results"][0]["latency"] = json!({"loop_kind": "closed", "operations": 1,
            "min_ns": 5.0, "max_ns": max_ns, "percentiles_ns": percentiles});
        parse(changed.to_string().as_bytes(), Path::new("x")).map_err(|error| error.to_string())
    };
    assert!(latency(json!({"p99.9": 7.0}), 9.0).is_ok());
    assert!(latency(json!({"p100": 7.0, "p50": 5.0, "p99": 5.0}), 9.0).is_ok());
    assert_said(&latency(json!({"p50": 8.0, "p99.9": 7.0}), 9.0).unwrap_err(), "a shorter time");
    assert_said(&latency(json!({"p99.9": "7"}), 9.0).unwrap_err(), "is no time");
    assert_said(&latency(json!({"most": 7.0}), 9.0).unwrap_err(), "is no percentile");
    assert_said(&latency(json!({}), 4.0).unwrap_err(), "latency: from 5 to 4 ns");
}

#[test]
fn a_key_that_stands_twice_is_refused_and_not_chosen_from() {
    let text = document().to_string();
    let twice = text.replace("\"block_bytes\":4096", "\"block_bytes\":4096,\"block_bytes\":1");
    assert_said(&said(twice), "the key \"block_bytes\" stands twice");
    let twice = text.replace("\"median\":2.0", "\"median\":2.0,\"median\":3.0");
    assert_said(&said(twice), "the key \"median\" stands twice");
}

#[test]
fn depth_length_and_memory_are_bounded() {
    let deep = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let with = |inside: &str| {
        document()
            .to_string()
            .replace("\"environment\":{}", &format!("\"environment\":{{\"a\":{inside}}}"))
    };
    assert!(parse(with(&deep(100)).as_bytes(), Path::new("x")).is_ok());
    assert_said(&said(with(&deep(100_000))), "recursion limit exceeded");
    let long = format!("\"{}\"", "x".repeat(300 << 10));
    assert_said(&said(with(&long)), "it holds a text of 307200 bytes");
    let many = format!("[{}{{}}]", "{},".repeat(1 << 20));
    assert_said(&said(with(&many)), "more than 512 MiB of memory");
    let digits = std::io::repeat(b'7');
    let error = parse_from(digits, Path::new("x")).unwrap_err().to_string();
    assert_said(&error, "longer than 64 MiB");
    assert_said(&said(with(&"7".repeat(1 << 20))), "number out of range");
}

#[test]
fn nothing_of_a_hostile_text_gets_into_an_error_raw() {
    let said = said_with("/results/0/status", json!("\u{1b}[31m<script>\u{202e}".repeat(1000)));
    assert!(said.len() < 2000 && text::visible(&said) == said, "{said}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let error = |path: &str| read(Path::new(path)).unwrap_err().to_string();
    assert_eq!(error("/nowhere/x"), "cannot read \"/nowhere/x\": No such file or directory");
    assert_eq!(error("/"), "cannot read \"/\": Is a directory");
    assert_said(&error("/dev/zero"), "longer than 64 MiB");
}
