//! What is known of a row of the network area besides its figure, and the ratios that follow.

use flatout_measure::fact::Merge;
use flatout_measure::{Facts, Key, Warning, warning};

use crate::counted;
use crate::fact::BYTES;

/// Round trips of a latency row.
pub const QUESTIONS: Key = Key::sum("questions");

/// Busy time of all CPUs within the windows, of both machines.
pub const CPU_BUSY_NS: Key = Key::sum("cpu_busy_ns");
/// The part of it in deferred interrupt work.
pub const CPU_SOFTIRQ_NS: Key = Key::sum("cpu_softirq_ns");
/// The CPU time that there was.
pub const CPU_CAPACITY_NS: Key = Key::sum("cpu_capacity_ns");
/// CPU time of the sending threads.
pub const SENDER_CPU_NS: Key = Key::sum("sender_cpu_ns");
/// How long these ran.
pub const SENDER_TIME_NS: Key = Key::sum("sender_time_ns");
/// CPU time of the receiving threads.
pub const RECEIVER_CPU_NS: Key = Key::sum("receiver_cpu_ns");
/// How long these ran.
pub const RECEIVER_TIME_NS: Key = Key::sum("receiver_time_ns");

/// Time for which a CPU quota held threads of this end back, summed over CPUs; where there is a quota.
pub const THROTTLED_NS: Key = Key::sum("throttled_ns");
/// The time of the trials in which that was.
pub const TRIALS_NS: Key = Key::sum("trials_ns");

/// The most other clients whose tests ran at the server during a trial, where there were any.
pub const OTHER_CLIENTS_MOST: Key = Key::new("other_clients_most", Merge::Max);
/// The trials during which there were.
pub const SHARED_TRIALS: Key = Key::sum("shared_trials");

/// The streams of the last trial, each with what is known of it.
pub const STREAMS_LAST_TRIAL: Key = Key::last("streams_last_trial");

/// The number of a stream.
pub const STREAM: Key = Key::last("stream");
/// Its receive buffer, as the kernel granted it.
pub const BUFFER_BYTES: Key = Key::last("buffer_bytes");

/// Segments that TCP retransmitted within the windows.
pub const RETRANSMITS: Key = Key::sum("retransmits");
/// All segments that it sent.
pub const SEGMENTS: Key = Key::sum("segments");
/// Time of the windows, all sending streams together.
pub const TCP_TIME_NS: Key = Key::sum("tcp_time_ns");
/// The part of it with something to send.
pub const TCP_BUSY_NS: Key = Key::sum("tcp_busy_ns");
/// The part of that held back by the receiver's window.
pub const TCP_RECEIVER_LIMITED_NS: Key = Key::sum("tcp_receiver_limited_ns");
/// The part of it held back by the send buffer.
pub const TCP_BUFFER_LIMITED_NS: Key = Key::sum("tcp_buffer_limited_ns");

/// Datagrams that the sending end says that the kernel took.
pub const DATAGRAMS_SENT: Key = Key::sum("datagrams_sent");
/// Different ones among them.
pub const DATAGRAMS_UNIQUE: Key = Key::sum("datagrams_unique");
/// Missing ones that the receiver's socket dropped.
pub const DATAGRAMS_DROPPED: Key = Key::sum("datagrams_dropped");
/// Missing ones that never reached the socket.
pub const DATAGRAMS_LOST: Key = Key::sum("datagrams_lost");
/// Those too far behind the newest to be told from duplicates.
pub const DATAGRAMS_FORGOTTEN: Key = Key::sum("datagrams_forgotten");

/// CPU time of the sending threads ÷ their time.
pub const SENDER_CPU_RATIO: Key = Key::last("sender_cpu_ratio");
/// The same of the receiving threads.
pub const RECEIVER_CPU_RATIO: Key = Key::last("receiver_cpu_ratio");
/// Busy time of all CPUs of all machines ÷ what there was.
pub const CPU_BUSY_RATIO: Key = Key::last("cpu_busy_ratio");
/// Retransmitted segments ÷ segments.
pub const RETRANSMIT_RATIO: Key = Key::last("retransmit_ratio");
/// Time limited by the receiver's window ÷ time with something to send.
pub const RECEIVER_WINDOW_RATIO: Key = Key::last("receiver_window_ratio");
/// Time limited by the send buffer ÷ the same.
pub const SEND_BUFFER_RATIO: Key = Key::last("send_buffer_ratio");
/// Datagrams lost on the path ÷ datagrams.
pub const LOST_RATIO: Key = Key::last("lost_ratio");
/// Datagrams that the receiver's socket dropped ÷ datagrams.
pub const DROPPED_RATIO: Key = Key::last("dropped_ratio");
/// Seconds of busy CPUs for 10⁹ bits.
pub const CPU_S_PER_GBIT: Key = Key::last("cpu_s_per_gbit");
/// The part of them in deferred interrupt work.
pub const SOFTIRQ_S_PER_GBIT: Key = Key::last("softirq_s_per_gbit");

/// Each ratio with its part and its whole.
const RATIOS: [(Key, Key, Key); 8] = [
    (SENDER_CPU_RATIO, SENDER_CPU_NS, SENDER_TIME_NS),
    (RECEIVER_CPU_RATIO, RECEIVER_CPU_NS, RECEIVER_TIME_NS),
    (CPU_BUSY_RATIO, CPU_BUSY_NS, CPU_CAPACITY_NS),
    (RETRANSMIT_RATIO, RETRANSMITS, SEGMENTS),
    (RECEIVER_WINDOW_RATIO, TCP_RECEIVER_LIMITED_NS, TCP_BUSY_NS),
    (SEND_BUFFER_RATIO, TCP_BUFFER_LIMITED_NS, TCP_BUSY_NS),
    (LOST_RATIO, DATAGRAMS_LOST, DATAGRAMS_SENT),
    (DROPPED_RATIO, DATAGRAMS_DROPPED, DATAGRAMS_SENT),
];

/// Adds the ratios, and the cost in CPU time, over all trials of a row.
pub fn add_ratios(facts: &mut Facts) {
    for (ratio, part, whole) in RATIOS {
        facts.set_known(ratio, share(facts, part, whole));
    }
    // Busy CPUs of the server worked for the bytes of its other clients, too.
    let own_bytes = facts.number(BYTES).filter(|_| facts.count(SHARED_TRIALS).is_none());
    let gigabits = own_bytes.unwrap_or(0.0) * 8.0 / 1e9;
    for (cost, time) in [(CPU_S_PER_GBIT, CPU_BUSY_NS), (SOFTIRQ_S_PER_GBIT, CPU_SOFTIRQ_NS)] {
        let time_ns = facts.number(time).filter(|_| gigabits > 0.0);
        facts.set_known(cost, time_ns.map(|ns| ns / 1e9 / gigabits));
    }
}

/// What other clients at the server say against a row of so many trials.
pub fn shared(facts: &Facts, trials: u64) -> Option<Warning> {
    let most = facts.count(OTHER_CLIENTS_MOST)?;
    let shared = facts.count(SHARED_TRIALS)?.min(trials);
    let most = match most {
        1 => "another client was".to_owned(),
        most => format!("up to {} were", counted(most, "other client")),
    };
    let text = format!(
        "{most} at the server in {shared} of {}: a share of what server and network carry",
        counted(trials, "trial")
    );
    Some(Warning::new(warning::SHARED_SERVER, text))
}

/// A part of a whole; `None` where there is nothing to divide by.
pub fn share(facts: &Facts, part: Key, whole: Key) -> Option<f64> {
    let whole = facts.number(whole).filter(|&whole| whole > 0.0)?;
    Some(facts.number(part).unwrap_or(0.0) / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_clients_at_the_server_are_told_and_take_the_cost_with_them() {
        let facts = Facts::default().with(BYTES, 1_000_u64).with(CPU_BUSY_NS, 500_u64);
        assert_eq!(shared(&facts, 6), None);
        let mut facts = facts.with(OTHER_CLIENTS_MOST, 2_u64).with(SHARED_TRIALS, 4_u64);
        let told = shared(&facts, 6).unwrap();
        assert_eq!(told.code, warning::SHARED_SERVER);
        assert!(told.text.starts_with("up to 2 other clients were at the server in 4 of 6 trials"));
        add_ratios(&mut facts);
        assert_eq!(facts.number(CPU_S_PER_GBIT), None, "the others' bytes are unknown");
    }

    #[test]
    fn cost_counts_all_cpus_per_bit() {
        let mut facts = Facts::default()
            .with(BYTES, 125_000_000_u64)
            .with(CPU_BUSY_NS, 500_000_000_u64)
            .with(CPU_SOFTIRQ_NS, 100_000_000_u64)
            .with(SENDER_CPU_NS, 95_u64)
            .with(SENDER_TIME_NS, 100_u64);
        add_ratios(&mut facts);
        assert_eq!(facts.number(CPU_S_PER_GBIT), Some(0.5));
        assert_eq!(facts.number(SOFTIRQ_S_PER_GBIT), Some(0.1));
        assert_eq!(facts.number(SENDER_CPU_RATIO), Some(0.95));
        assert_eq!(facts.number(LOST_RATIO), None, "nothing was sent");
    }
}
