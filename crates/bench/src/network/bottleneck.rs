//! What most likely holds a row back. Pure: facts in, a name out.

use flatout_measure::Facts;

use super::fact;

/// What is known of a row besides its facts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Figure ÷ what the link can carry, where that is known.
    pub link: Option<f64>,
    /// Figure ÷ the rate asked for, where one was.
    pub asked: Option<f64>,
    /// Whether there is no path between the ends, and no link that loses anything.
    pub is_loopback: bool,
}

/// A thread that works so much of its time does little but work.
const BUSY: f64 = 0.9;
/// So much of a link is all of it.
const FULL: f64 = 0.9;
/// Part of the time that makes a limit the usual state.
const MOSTLY: f64 = 0.5;
/// Losses that TCP answers by slowing down. (A few segments are sent again over loopback, too, when
/// threads wait for CPUs; so a busy CPU is looked for first.)
const LOSSY: f64 = 0.001;
/// Losses of UDP that are more than a queue full for a moment.
const MANY: f64 = 0.01;

/// The name of the bottleneck.
pub fn of(facts: &Facts, limits: &Limits) -> &'static str {
    let ratio = |key| facts.number(key).unwrap_or(0.0);
    let (sender_cpu, receiver_cpu) =
        (ratio(fact::SENDER_CPU_RATIO), ratio(fact::RECEIVER_CPU_RATIO));
    let has_path = !limits.is_loopback;
    if limits.asked.is_some_and(|share| share >= 0.98) {
        "the rate asked for"
    } else if limits.link.is_some_and(|share| share >= FULL) {
        "the link"
    } else if ratio(fact::DROPPED_RATIO) >= MANY && receiver_cpu >= sender_cpu.min(BUSY) {
        "receiver CPU"
    } else if ratio(fact::LOST_RATIO) >= MANY {
        "packet loss"
    } else if sender_cpu >= BUSY && sender_cpu >= receiver_cpu {
        "sender CPU"
    } else if receiver_cpu >= BUSY {
        "receiver CPU"
    } else if ratio(fact::CPU_BUSY_RATIO) >= BUSY {
        "all CPUs"
    } else if has_path && ratio(fact::RETRANSMIT_RATIO) >= LOSSY {
        "packet loss"
    } else if ratio(fact::RECEIVER_WINDOW_RATIO) >= MOSTLY {
        "the receiver's window"
    } else if ratio(fact::SEND_BUFFER_RATIO) >= MOSTLY {
        "the send buffer"
    } else if has_path && waits_for_path(facts) >= MOSTLY {
        "the path: a link or a queue between the ends (congestion window)"
    } else {
        "unknown: no CPU, window, link or loss stands out"
    }
}

/// The share of time in which TCP waited for the path alone: something was on it, and neither the
/// receiver's window nor the send buffer held it back.
fn waits_for_path(facts: &Facts) -> f64 {
    let share = |part| fact::share(facts, part, fact::TCP_TIME_NS).unwrap_or(0.0);
    share(fact::TCP_BUSY_NS)
        - share(fact::TCP_RECEIVER_LIMITED_NS)
        - share(fact::TCP_BUFFER_LIMITED_NS)
}

#[cfg(test)]
mod tests {
    use flatout_measure::fact::Key;

    use super::*;

    const IDLE: [(Key, f64); 3] = [
        (fact::SENDER_CPU_RATIO, 0.2),
        (fact::RECEIVER_CPU_RATIO, 0.2),
        (fact::CPU_BUSY_RATIO, 0.2),
    ];

    fn name(limits: Limits, more: &[(Key, f64)]) -> &'static str {
        let mut facts = Facts::default();
        IDLE.iter().chain(more).for_each(|&(key, ratio)| facts.set(key, ratio));
        of(&facts, &limits)
    }

    #[test]
    fn each_bottleneck_has_its_facts() {
        use fact::{
            CPU_BUSY_RATIO, DROPPED_RATIO, LOST_RATIO, RECEIVER_CPU_RATIO, RECEIVER_WINDOW_RATIO,
            RETRANSMIT_RATIO, SEND_BUFFER_RATIO, SENDER_CPU_RATIO, TCP_BUFFER_LIMITED_NS,
            TCP_BUSY_NS, TCP_RECEIVER_LIMITED_NS, TCP_TIME_NS,
        };
        let none = Limits::default();
        let link = Limits { link: Some(0.97), ..none };
        assert_eq!(name(link, &[(SENDER_CPU_RATIO, 0.99)]), "the link");
        assert_eq!(name(Limits { asked: Some(1.0), ..none }, &[]), "the rate asked for");
        for (facts, expected) in [
            (&[(LOST_RATIO, 0.02), (SENDER_CPU_RATIO, 1.0)][..], "packet loss"),
            (&[(RETRANSMIT_RATIO, 0.01), (RECEIVER_WINDOW_RATIO, 0.6)], "packet loss"),
            (&[(RETRANSMIT_RATIO, 0.01), (SENDER_CPU_RATIO, 0.97)], "sender CPU"),
            (&[(SENDER_CPU_RATIO, 0.97), (RECEIVER_CPU_RATIO, 0.95)], "sender CPU"),
            (&[(SENDER_CPU_RATIO, 0.7), (RECEIVER_CPU_RATIO, 0.95)], "receiver CPU"),
            (
                &[(DROPPED_RATIO, 0.2), (SENDER_CPU_RATIO, 0.99), (RECEIVER_CPU_RATIO, 0.95)],
                "receiver CPU",
            ),
            (&[(CPU_BUSY_RATIO, 0.98)], "all CPUs"),
            (&[(RECEIVER_WINDOW_RATIO, 0.8)], "the receiver's window"),
            (&[(SEND_BUFFER_RATIO, 0.8)], "the send buffer"),
            (
                &[
                    (TCP_TIME_NS, 100.0),
                    (TCP_BUSY_NS, 98.0),
                    (TCP_RECEIVER_LIMITED_NS, 1.0),
                    (TCP_BUFFER_LIMITED_NS, 2.0),
                ],
                "the path: a link or a queue between the ends (congestion window)",
            ),
            (&[], "unknown: no CPU, window, link or loss stands out"),
        ] {
            assert_eq!(name(none, facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn loopback_has_no_path_to_wait_for_and_no_loss_on_it() {
        let loopback = Limits { is_loopback: true, ..Limits::default() };
        let waiting = [(fact::TCP_TIME_NS, 100.0), (fact::TCP_BUSY_NS, 98.0)];
        for facts in [&[(fact::RETRANSMIT_RATIO, 0.01)][..], &waiting] {
            assert!(name(loopback, facts).starts_with("unknown"), "{facts:?}");
        }
    }
}
