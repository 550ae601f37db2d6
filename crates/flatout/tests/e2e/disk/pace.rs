//! Storage that changes its pace: a burst that a bucket allows, and blocks that are slow once.

use std::time::Duration;

use serde_json::Value;

use crate::bin::{Folder, warnings};
use crate::faulty::{Bucket, Faults, Faulty};
use crate::fixture::random_bytes;
use crate::skip::needs;

use super::{LENGTH_BYTES, all_warned, audit, disk, document, rows};

/// A run of one pattern that is long enough to see how it goes on, and ends where others spoil its
/// trials: repeated, they come after the burst.
const LONG: &str = "--rw sequential-read --block-size 16KiB --engine sync --time 4s --max-time 12s";

/// The limit of the bucket: 488 blocks a second, a fifth of what the server can do.
const LIMIT_BYTES_PER_S: u64 = 8_000_000;

/// Runs in one of which the curve should be flat: the server shares two CPUs with other tests.
const ATTEMPTS: u32 = 4;

/// Whether the curve shows the burst as it is when nobody disturbs: some bins at twice the limit at
/// least, one at most in which the burst ends, and from there on the limit.
fn has_burst(row: &Value) -> bool {
    let points = row["series"][0]["points"].as_array().unwrap().iter();
    let over_limit = points.map(|point| point[1].as_f64().unwrap() / LIMIT_BYTES_PER_S as f64);
    let rates: Vec<f64> = over_limit.collect();
    let fast = rates.iter().take_while(|rate| **rate > 2.0).count();
    let slow = rates.iter().rev().take_while(|rate| (0.9..1.1).contains(*rate)).count();
    fast >= 5 && slow >= 10 && fast + slow + 1 >= rates.len()
}

/// Whether the rate behind the knee is as even as a bucket makes it when nobody disturbs.
fn is_even(row: &Value) -> bool {
    let points = row["series"][0]["points"].as_array().unwrap().iter();
    let later = points.filter(|point| point[0].as_f64() > row["audit"]["knee_s"].as_f64());
    let mut rates: Vec<f64> = later.map(|point| point[1].as_f64().unwrap()).collect();
    rates.sort_unstable_by(f64::total_cmp);
    let last = rates.len().saturating_sub(1);
    // A server that gets no CPU stays below its limit, evenly: that figure is not a round one.
    let is_reached =
        rates.get(last / 2).is_some_and(|rate| *rate > 0.99 * LIMIT_BYTES_PER_S as f64);
    rates.len() >= 10 && is_reached && rates[last * 4 / 5] < 1.02 * rates[last / 5]
}

#[test]
fn a_burst_and_the_limit_behind_it_are_named() {
    let faults =
        Faults { delay: Duration::from_micros(200), is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    faulty.put("data", &random_bytes(LENGTH_BYTES, 1));
    let folder = Folder::new();
    let path = faulty.path().join("data");
    for attempt in 1..=ATTEMPTS {
        // A while at full speed, and then the limit.
        let bucket = Bucket { burst: Duration::from_millis(1500), bytes_per_s: LIMIT_BYTES_PER_S };
        faulty.restart(|faults| faults.bucket = Some(bucket));
        let document = document(&disk(&folder, path.to_str().unwrap(), LONG).run());
        let row = rows(&document, "disk/sequential-read")[0];
        assert_eq!(row["series"][0]["name"], "rate over time", "{row:#}");
        // Others who leave in the middle look like a level that rises.
        let is_named = warnings(row).contains(&"burst");
        if !is_named || audit(row, "burst_per_s") < audit(row, "sustained_per_s") {
            assert!(!has_burst(row), "a burst that is plain to see is not named: {row:#}");
            println!("attempt {attempt}: others disturbed the burst");
            continue;
        }
        all_warned(&document, "disk/sequential-read", "burst");
        if is_even(row) {
            all_warned(&document, "disk/sequential-read", "plateau");
            break;
        }
        println!("attempt {attempt}: others disturbed the limited rate");
    }
    faulty.finish();
}

#[test]
fn a_pace_that_stays_is_no_burst() {
    let faults = Faults { delay: Duration::from_millis(1), is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    faulty.put("data", &random_bytes(LENGTH_BYTES, 1));
    let folder = Folder::new();
    let path = faulty.path().join("data");
    let options = LONG.replace("4s", "1s").replace("12s", "3s");
    // Others who take the CPU from the server for the rest of a run look like the end of a burst.
    let is_steady = (0..ATTEMPTS).any(|_| {
        let document = document(&disk(&folder, path.to_str().unwrap(), &options).run());
        let all = rows(&document, "disk/sequential-read");
        !all.is_empty() && all.iter().all(|row| !warnings(row).contains(&"burst"))
    });
    assert!(is_steady, "a burst in each of {ATTEMPTS} runs");
    faulty.finish();
}

#[test]
fn blocks_that_are_slow_the_first_time_are_named() {
    let faults =
        Faults { first_delay: Duration::from_micros(200), is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = Folder::new();
    // Others who take the CPU from the server make the second time slow, too.
    let is_named = (0..ATTEMPTS).any(|attempt| {
        faulty.restart(|faults| faults.first_delay = Duration::from_micros(200 << attempt));
        let name = format!("data{attempt}");
        faulty.put(&name, &random_bytes(LENGTH_BYTES, 1));
        let path = faulty.path().join(name);
        let document = document(&disk(&folder, path.to_str().unwrap(), "").run());
        let rows = rows(&document, "disk/cold-blocks");
        for pass in ["first", "second"] {
            assert!(
                rows.iter().any(|row| row["parameters"]["pass"] == pass),
                "{pass}: {document:#}"
            );
        }
        rows.iter().all(|row| warnings(row).contains(&"cold_blocks"))
    });
    assert!(is_named, "not in one of {ATTEMPTS} runs");
    faulty.finish();
}
