//! What a control group allows of bytes that came from its device, or went there.

use flatout_io::operations::Direction;
use flatout_measure::{Ceiling, Facts, Outcome, Provenance, warning};
use flatout_sys::storage::IoLimit;

use super::accounting::{
    DISK_READ_BYTES, DISK_READ_REQUESTS, DISK_WRITE_BYTES, DISK_WRITE_REQUESTS,
};
use super::evidence::ratio;

/// Share of a limit from which on it is what holds a row back: the kernel hands out a limit in slices.
pub(crate) const REACHED: f64 = 0.8;
/// What limits a row from there on.
pub(crate) const LIMITER: &str = "the control group's limit";

/// The limit that allows least in a direction: bytes per second, its name, and what was set. It is of bytes, or
/// of requests of this length, or of that which those of the row had: what is split counts part by part.
pub(crate) fn tightest(
    limits: &[IoLimit],
    facts: &Facts,
    direction: Direction,
    request_bytes: Option<f64>,
) -> Option<(f64, String, String)> {
    let moved = match direction {
        Direction::Read => [DISK_READ_BYTES, DISK_READ_REQUESTS],
        Direction::Write => [DISK_WRITE_BYTES, DISK_WRITE_REQUESTS],
    };
    let [bytes, requests] = moved.map(|key| facts.number(key));
    let seen = || ratio(bytes, requests).filter(|bytes| bytes.is_normal());
    let request_bytes = request_bytes.into_iter().chain(seen()).reduce(f64::min);
    let all = limits.iter().flat_map(|limit| {
        let (bytes, requests) = match direction {
            Direction::Read => (limit.read_bytes_per_s, limit.read_operations_per_s),
            Direction::Write => (limit.write_bytes_per_s, limit.write_operations_per_s),
        };
        let of_bytes = bytes.map(|most| (most as f64, format!("{most} bytes/s"), limit));
        let of_requests = requests.zip(request_bytes).map(|(most, bytes)| {
            (most as f64 * bytes, format!("{most} requests/s, here of {bytes:.0} bytes"), limit)
        });
        of_bytes.into_iter().chain(of_requests)
    });
    let (value, text, limit) = all.min_by(|one, other| one.0.total_cmp(&other.0))?;
    Some((value, limit.name(), text))
}

/// The tightest limit of a figure in bytes per second. The row says so; its limiter is named where it is that.
pub(crate) fn of(
    outcome: &mut Outcome,
    limits: &[IoLimit],
    facts: &Facts,
    direction: Direction,
) -> Option<Ceiling> {
    let median = outcome.median?;
    let (value, name, text) = tightest(limits, facts, direction, None)?;
    outcome.warn(warning::IO_LIMIT, format!("{name} allows {text}"));
    let bound = Ceiling::known(name, Some(value), Provenance::Given);
    Some(if median >= REACHED * value { bound.limited_by(LIMITER) } else { bound })
}
