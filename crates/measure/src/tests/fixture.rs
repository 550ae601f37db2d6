//! Records for the tests of this crate.

use serde_json::{Map, Value, json};

use crate::record::{
    Better, Ceiling, Chart, End, Latency, Load, Outcome, ProgramLoad, Provenance, Record, SCHEMA,
    Series, Start, Status,
};
use crate::warning::{self, Warning};

/// A JSON object as a map.
pub(crate) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

/// A row about which there is nothing to complain.
pub(crate) fn row(id: &str) -> Outcome {
    Outcome {
        id: id.to_owned(),
        parameters: map(json!({"block_bytes": 1_048_576, "engine": "pread"})),
        unit: "bytes/s".to_owned(),
        better: Better::Higher,
        median: Some(100.0),
        ci95: Some([99.0, 101.0]),
        n: 6,
        samples: vec![99.0, 100.0, 100.0, 100.0, 100.0, 101.0],
        status: Status::Ok,
        audit: map(json!({
            "trials_run": 6, "intervals_spoiled": 0, "overhead_ratio": 0.001,
            "evidence": {
                "happened": "yes", "by": "disk_share_ratio", "value": 0.99,
                "text": "the disk moved 99 % of the bytes",
            },
        })),
        ceiling: Some(Ceiling {
            name: "bare memory read, 2 threads".to_owned(),
            value: Some(125.0),
            provenance: Provenance::Measured,
            ratio: Some(0.8),
            limiter: "memory".to_owned(),
        }),
        ..Outcome::default()
    }
}

/// A run of these rows that ended well.
pub(crate) fn record(results: Vec<Outcome>) -> Record {
    Record {
        schema: SCHEMA.to_owned(),
        start: Start {
            tool: "flatout 0.1.0".to_owned(),
            argv: vec!["flatout".to_owned(), "bench".to_owned()],
            seed: 1,
            time: "2026-01-02T03:04:05+00:00".to_owned(),
            environment: json!({"kernel_release": "6.8.0", "hypervisor": false}),
        },
        results,
        charts: Vec::new(),
        end: End { elapsed_s: 1.5, ..End::default() },
    }
}

/// A record in which every member of the schema is there.
pub(crate) fn full_record() -> Record {
    let mut full = row("cache/block-sweep");
    full.latency = Some(Latency {
        loop_kind: "closed".to_owned(),
        operations: 100,
        min_ns: 5.0,
        max_ns: 90.0,
        percentiles_ns: map(json!({"p50": 20, "p90": 40})),
    });
    full.series = vec![Series {
        name: "rate over passes".to_owned(),
        x: "pass".to_owned(),
        y: "bytes/s".to_owned(),
        points: vec![[1.0, 90.0], [2.0, 100.0]],
    }];
    full.warnings = vec![Warning::new(warning::OUTLIERS, "1 of 6 samples lies far off")];
    let failed = Outcome {
        status: Status::Failed,
        better: Better::Lower,
        warnings: vec![Warning::new(warning::FAILED, "read x: I/O error")],
        ..Outcome { id: "disk/read".to_owned(), unit: "ns".to_owned(), ..Outcome::default() }
    };
    let mut record = record(vec![full, failed]);
    record.charts = vec![Chart {
        title: "Rate by block size".to_owned(),
        id: "cache/block-sweep".to_owned(),
        x_parameter: "block_bytes".to_owned(),
        x_log2: true,
        line_parameters: vec!["engine".to_owned()],
    }];
    record.end.errors = vec!["read x: I/O error".to_owned()];
    record.end.exit_code = 1;
    let program = ProgramLoad { name: "cc1".to_owned(), processes: 2, cpus: 0.5 };
    record.end.load = Some(Load {
        cpus: 2,
        others_cpus: Some(0.5),
        stolen_ratio: 0.001,
        run_queue_wait_ratio: Some(0.2),
        cpu_pressure_ratio: Some(0.3),
        programs: vec![program],
    });
    record.end.verdict = crate::verdict::answer(&record);
    record
}
