//! Records made by the tests: one with rows for every picture there is, and long ones.
//!
//! The figures are invented, and smooth, so that a wrong picture is seen at once.

use flatout_measure::record::{
    Answer, Ceiling, Chart, End, Latency, Mark, Outcome, Provenance, Record, SCHEMA, Series, Start,
};
use serde_json::{Value, json};

fn row(id: &str, parameters: Value, unit: &str, median: f64) -> Outcome {
    let samples: Vec<f64> = (0..8).map(|at| median * (0.97 + 0.01 * f64::from(at))).collect();
    let ceiling = Ceiling {
        name: "what the test says".to_owned(),
        value: Some(median * 1.25),
        provenance: Provenance::Inferred,
        ratio: Some(0.8),
        limiter: "the test".to_owned(),
    };
    Outcome {
        id: id.to_owned(),
        parameters: parameters.as_object().cloned().expect("an object"),
        unit: unit.to_owned(),
        median: Some(median),
        ci95: Some([median * 0.97, median * 1.03]),
        n: samples.len() as u64,
        samples,
        ceiling: Some(ceiling),
        ..Outcome::default()
    }
}

fn chart(title: &str, id: &str, x: &str, lines: &[&str]) -> Chart {
    Chart {
        title: title.to_owned(),
        id: id.to_owned(),
        x_parameter: x.to_owned(),
        x_log2: x.ends_with("_bytes") || matches!(x, "bytes" | "flop_per_byte"),
        line_parameters: lines.iter().map(|line| (*line).to_owned()).collect(),
    }
}

/// A record of these rows and charts on a machine that does not exist.
pub fn of(results: Vec<Outcome>, charts: Vec<Chart>) -> Record {
    let environment = json!({
        "cpu_model": "Example Xeon 2.00GHz", "cpus_online": 4, "cpus_allowed": 4, "simd": "avx512",
        "memory_bytes": 8_u64 << 30, "memory_available_bytes": 7_u64 << 30, "kernel_release": "6.1.0",
        "hypervisor": true, "governor": null, "load_average": [0.1, 0.2, 0.3],
        "mitigations": {"retbleed": "Mitigation: IBRS", "spectre_v2": "Vulnerable", "mds": "Not affected"},
        "storage": [{"place": ".", "nature": "disk", "filesystem": "ext4", "layers": [
            {"kind": "mount", "filesystem": "ext4", "source": "/dev/vda", "options": "rw"},
            {"kind": "disk", "name": "vda", "transport": "virtio", "link": null}]}],
    });
    let start = Start {
        tool: "flatout 0.1.0".to_owned(),
        argv: vec!["flatout".to_owned(), "bench".to_owned()],
        seed: 1,
        time: "2026-01-01T00:00:00+00:00".to_owned(),
        environment,
    };
    let answer = |question: &str, mark: Mark| Answer {
        question: question.to_owned(),
        good: mark == Mark::Good,
        mark: Some(mark),
        text: "40 rows were looked at, and this is one of them: a/b c=1; a/b c=2. So it is."
            .to_owned(),
        rests_on: vec!["results[].samples".to_owned()],
    };
    let questions = ["why not double?", "did it break limits?", "did it error?"];
    let others = [
        ("does it reproduce?", Mark::Partly),
        ("does it matter?", Mark::Bad),
        ("did it even happen?", Mark::Unknown),
    ];
    let good = questions.iter().map(|question| answer(question, Mark::Good));
    let verdict = good.chain(others.map(|(question, mark)| answer(question, mark))).collect();
    let end = End { elapsed_s: 60.0, verdict, ..End::default() };
    Record { schema: SCHEMA.to_owned(), start, results, charts, end }
}

/// Rows for every picture.
pub fn everything() -> Record {
    let mut rows = Vec::new();
    let mut charts = Vec::new();
    cache(&mut rows, &mut charts);
    disk(&mut rows);
    processor(&mut rows, &mut charts);
    memory(&mut rows, &mut charts);
    network(&mut rows, &mut charts);
    copy(&mut rows, &mut charts);
    race(&mut rows, &mut charts);
    of(rows, charts)
}

fn cache(rows: &mut Vec<Outcome>, charts: &mut Vec<Chart>) {
    for (engine, best) in [("sync", 5e9), ("mmap", 8e9), ("uring", 6e9)] {
        for (state, share) in [("hot", 1.0), ("cold", 0.2)] {
            for power in 0..12_i32 {
                let rate = share * best / (1.0 + 4096.0 / 4_f64.powi(power));
                let parameters = json!({"engine": engine, "cache_state": state, "threads": 1,
                    "block_bytes": 4_u64.pow(power as u32)});
                rows.push(row("cache/block-sweep", parameters, "bytes/s", rate));
            }
            for threads in [1, 2, 4] {
                let parameters = json!({"engine": engine, "cache_state": state, "threads": threads,
                    "block_bytes": 1 << 20});
                let rate = share * best * f64::from(threads).sqrt();
                rows.push(row("cache/thread-sweep", parameters, "bytes/s", rate));
            }
        }
    }
    for (pass, rate) in [("1 first", 1e9), ("2 again", 5e9), ("3 again", 6e9), ("4 cleared", 1.1e9)]
    {
        for block in [4096, 1 << 14, 1 << 18] {
            let parameters = json!({"pass": pass, "engine": "sync", "block_bytes": block});
            rows.push(row("cache/series", parameters, "bytes/s", rate));
        }
    }
    let lines = ["engine", "cache_state", "threads"];
    charts.push(chart("Read rate by block size", "cache/block-sweep", "block_bytes", &lines));
    charts.push(chart("Read rate by threads", "cache/thread-sweep", "threads", &lines[..2]));
}

fn disk(rows: &mut Vec<Outcome>) {
    for threads in [1, 2, 4] {
        let parameters = json!({"engine": "uring", "caching": "direct", "block_bytes": 1 << 20,
            "threads": threads});
        let rate = 1e9 * f64::from(threads).sqrt();
        rows.push(row("disk/sequential-read", parameters, "bytes/s", rate));
    }
    let mut write = row("disk/sequential-write", json!({"threads": 1}), "bytes/s", 4e8);
    for (key, value) in [("burst_per_s", 8e8), ("sustained_per_s", 4e8), ("knee_s", 3.0)] {
        write.audit.insert(key.to_owned(), value.into());
    }
    let at = |at: u32| [f64::from(at) / 10.0, if at < 30 { 8e8 } else { 4e8 }];
    write.series.push(Series {
        name: "rate over time".to_owned(),
        x: "time_s".to_owned(),
        y: "bytes/s".to_owned(),
        points: (0..100).map(at).collect(),
    });
    rows.push(write);
    for (depth, rate) in [(1, 2e4), (64, 9e4)] {
        let parameters = json!({"depth": depth, "block_bytes": 4096, "threads": 1});
        let mut random = row("disk/random-read", parameters, "operations/s", rate);
        let percentiles =
            json!({"p50": 4e4, "p90": 6e4, "p99": 1e5, "p99.9": 9e5 * f64::from(depth)});
        random.latency = Some(Latency {
            loop_kind: "closed".to_owned(),
            operations: 100_000,
            min_ns: 1e4,
            max_ns: 1e8,
            percentiles_ns: percentiles.as_object().cloned().expect("an object"),
        });
        rows.push(random);
    }
}

fn processor(rows: &mut Vec<Outcome>, charts: &mut Vec<Chart>) {
    for (call, ns) in [("empty-call", 1.4), ("getppid", 70.0), ("read", 400.0), ("fork-exit", 3e5)]
    {
        rows.push(row(&format!("syscall/{call}"), json!({"threads": 1}), "ns", ns));
    }
    for threads in [1, 2, 4] {
        for (curve, share) in [("measured", 0.9), ("peak", 1.0)] {
            let rate = share * 6e10 * f64::from(threads);
            let parameters = json!({"type": "f64", "curve": curve, "threads": threads});
            rows.push(row("cpu/scaling", parameters, "flop/s", rate));
        }
    }
    let clock =
        |load: &str, hz: f64| row("cpu/clock", json!({"load": load, "threads": 1}), "Hz", hz);
    rows.extend([clock("none", 3e9), clock("f64 multiply-add avx512", 2.5e9)]);
    charts.push(chart(
        "Multiply-add by threads, and its peak",
        "cpu/scaling",
        "threads",
        &["type", "curve"],
    ));
}

fn memory(rows: &mut Vec<Outcome>, charts: &mut Vec<Chart>) {
    for power in 10..30_u32 {
        let bytes = 1_u64 << power;
        let ns = if power <= 15 {
            2.0
        } else if power <= 20 {
            7.0
        } else {
            150.0
        };
        for page in [4096, 2 << 20] {
            let parameters = json!({"working_set_bytes": bytes, "page_bytes": page});
            rows.push(row("memory/latency", parameters, "ns", ns));
        }
        for (kernel, rate) in [("read", 1e11), ("write", 5e10)] {
            let parameters = json!({"working_set_bytes": bytes, "kernel": kernel});
            rows.push(row("memory/working-set", parameters, "bytes/s", rate / ns));
        }
    }
    for (level, bytes, ns) in [("L1", 32_u64 << 10, 2.0), ("L2", 1 << 20, 7.0)] {
        let mut found = row("memory/level", json!({"level": level}), "ns", ns);
        found.audit.insert("measured_bytes".to_owned(), bytes.into());
        rows.push(found);
    }
    for threads in [1, 2, 4] {
        for block in [8192, 8 << 20] {
            let parameters = json!({"threads": threads, "block_bytes": block});
            let rate = 1e10 * f64::from(threads);
            rows.push(row("memory/sequential-copy", parameters, "bytes/s", rate));
        }
    }
    for power in -5..=6 {
        let intensity = 2_f64.powi(power);
        let rate = (1e10 * intensity).min(6e10);
        let parameters = json!({"curve": "DRAM, 1 thread", "flop_per_byte": intensity});
        rows.push(row("memory/roofline", parameters, "flop/s", rate));
    }
    let parameters = json!({"curve": "STREAM measured, 1 thread", "flop_per_byte": 0.0625});
    rows.push(row("memory/roofline", parameters, "flop/s", 6e8));
    charts.push(chart(
        "Latency by working set",
        "memory/latency",
        "working_set_bytes",
        &["page_bytes"],
    ));
    charts.push(chart(
        "Rate by working set",
        "memory/working-set",
        "working_set_bytes",
        &["kernel"],
    ));
    charts.push(chart("Copy by threads", "memory/sequential-copy", "threads", &["block_bytes"]));
    charts.push(chart("Roofline", "memory/roofline", "flop_per_byte", &["curve"]));
}

fn network(rows: &mut Vec<Outcome>, charts: &mut Vec<Chart>) {
    for streams in [1, 2, 4, 8] {
        for direction in ["up", "down"] {
            let parameters = json!({"streams": streams, "direction": direction});
            let rate = 2e9 * f64::from(streams).sqrt();
            rows.push(row("network/tcp-throughput", parameters, "bytes/s", rate));
        }
        let parameters = json!({"streams": streams, "wait": "blocking"});
        rows.push(row("network/tcp-latency", parameters, "ns", 3e4 * f64::from(streams)));
    }
    charts.push(chart("TCP throughput", "network/tcp-throughput", "streams", &["direction"]));
    charts.push(chart("TCP round trip", "network/tcp-latency", "streams", &["wait"]));
}

fn copy(rows: &mut Vec<Outcome>, charts: &mut Vec<Chart>) {
    for files in [1, 10, 100, 1000] {
        for size in [1 << 17, 1 << 20] {
            let parameters = json!({"files": files, "file_bytes": size, "cache_state": "hot"});
            let ns = f64::from(files) * (2e4 + f64::from(size) / 3.0);
            rows.push(row("copy/by-count", parameters, "ns", ns));
        }
        let parameters = json!({"files": files, "bytes": 1 << 30, "cache_state": "hot"});
        rows.push(row("copy/by-pieces", parameters, "ns", 3e8 + 2e4 * f64::from(files)));
        let parameters = json!({"tree_depth": files, "file_bytes": 1 << 27, "cache_state": "hot"});
        rows.push(row("copy/by-depth", parameters, "ns", 4e7 + 5e4 * f64::from(files)));
    }
    for state in ["hot", "cold"] {
        let parameters = json!({"files": 50, "file_bytes": 4 << 20, "cache_state": state});
        rows.push(row("copy/deviation", parameters, "ns", 6e7));
    }
    let by_count = chart("Copy time by file count", "copy/by-count", "files", &["file_bytes"]);
    charts.push(Chart { x_log2: true, ..by_count });
}

fn race(rows: &mut Vec<Outcome>, charts: &mut Vec<Chart>) {
    let corpora = [
        ("10x128K", 10, 10 << 17, None),
        ("100x128K", 100, 100 << 17, None),
        ("80x16K", 80, 80 << 14, None),
        ("deep-5", 1, 128 << 20, Some(5)),
        ("deep-10", 1, 128 << 20, Some(10)),
        ("deep-20", 1, 128 << 20, Some(20)),
        ("1000x128K", 1000, 1000 << 17, None),
        ("20x64K", 20, 20 << 16, None),
    ];
    for (corpus, files, bytes, depth) in corpora {
        for (contestant, slower) in [("flatout", 1.0), ("cp-a", 1.5)] {
            let mut parameters = json!({"corpus": corpus, "files": files, "bytes": bytes,
                "cache_state": "hot", "contestant": contestant});
            if let Some(depth) = depth {
                parameters["tree_depth"] = json!(depth);
            }
            let ns = slower * (f64::from(files) * 1e5 + f64::from(bytes) / 2.0);
            rows.push(row("versus/copy", parameters.clone(), "ns", ns));
            let rate = f64::from(bytes) / (ns / 1e9);
            rows.push(row("versus/copy-speed", parameters, "bytes/s", rate));
        }
    }
    for bytes in [1 << 20, 10 << 20, 100 << 20] {
        for (contestant, rate) in [("flatout", 2e9), ("dd", 1.5e9)] {
            let parameters = json!({"bytes": bytes, "contestant": contestant});
            let ns = 1e6 + f64::from(bytes) / rate * 1e9;
            rows.push(row("versus/dd-copy", parameters.clone(), "ns", ns));
            let rate = f64::from(bytes) / (ns / 1e9);
            rows.push(row("versus/dd-copy-speed", parameters, "bytes/s", rate));
        }
    }
    let lines = ["contestant"];
    charts.push(chart("Copying a file: time by size", "versus/dd-copy", "bytes", &lines));
    charts.push(chart("Copying a file: speed by size", "versus/dd-copy-speed", "bytes", &lines));
}

/// A record of so many rows in a few areas, each with a curve of so many points, so many samples
/// and counted facts.
pub fn long(count: usize, points: usize, samples: usize) -> Record {
    let rows = (0..count).map(|at| {
        let area = ["disk", "memory", "network"][at % 3];
        let parameters = json!({"threads": at / 90 + 1, "block_bytes": 512_u64 << (at % 15),
            "engine": (["sync", "uring"][at % 2]), "kernel": format!("kernel {}", at % 7)});
        let median = 1e9 + at as f64 / 3.0;
        let mut row = row(&format!("{area}/test-{}", at % 30), parameters, "bytes/s", median);
        row.samples = (0..samples).map(|sample| median + sample as f64 / 7.0).collect();
        let curve = |at: usize| [at as f64 / 10.0, median / (1.0 + at as f64 / 700.0)];
        row.series.push(Series {
            name: "rate over time".to_owned(),
            x: "time_s".to_owned(),
            y: "bytes/s".to_owned(),
            points: (0..points).map(curve).collect(),
        });
        for fact in ["requests", "disk_requests", "user_ns", "system_ns", "minor_faults"] {
            row.audit.insert(fact.to_owned(), (at * 1000).into());
        }
        row
    });
    of(rows.collect(), Vec::new())
}
