//! What most likely holds a row back. Pure: facts in, a name out.

/// What is known about a row, as shares of 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Facts {
    /// CPU time of the sending threads ÷ their time.
    pub sender_cpu: f64,
    /// The same of the receiving threads.
    pub receiver_cpu: f64,
    /// Busy CPUs of all machines, interrupts included.
    pub all_cpus: f64,
    /// Time limited by the receiver's window ÷ time with something to send.
    pub receiver_window: f64,
    /// Time limited by the send buffer ÷ the same.
    pub send_buffer: f64,
    /// Time in which TCP waited for the way alone: something was on it, and neither the receiver's
    /// window nor the send buffer held it back ÷ all time.
    pub way: f64,
    /// Datagrams lost on the way ÷ datagrams.
    pub lost: f64,
    /// Segments sent again ÷ segments.
    pub sent_again: f64,
    /// Datagrams that the receiver's socket dropped ÷ datagrams.
    pub dropped: f64,
    /// Figure ÷ what the link can do, where that is known.
    pub link: Option<f64>,
    /// Figure ÷ the rate asked for, where one was.
    pub asked: Option<f64>,
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
pub fn of(facts: &Facts) -> &'static str {
    let Facts { sender_cpu, receiver_cpu, .. } = *facts;
    if facts.asked.is_some_and(|share| share >= 0.98) {
        "the rate asked for"
    } else if facts.link.is_some_and(|share| share >= FULL) {
        "the link"
    } else if facts.dropped >= MANY && receiver_cpu >= sender_cpu.min(BUSY) {
        "receiver CPU"
    } else if facts.lost >= MANY {
        "loss on the way"
    } else if sender_cpu >= BUSY && sender_cpu >= receiver_cpu {
        "sender CPU"
    } else if receiver_cpu >= BUSY {
        "receiver CPU"
    } else if facts.all_cpus >= BUSY {
        "all CPUs"
    } else if facts.sent_again >= LOSSY {
        "loss on the way"
    } else if facts.receiver_window >= MOSTLY {
        "the receiver's window"
    } else if facts.send_buffer >= MOSTLY {
        "the send buffer"
    } else if facts.way >= MOSTLY {
        "the way: a link or a queue between the ends (congestion window)"
    } else {
        "unknown: no CPU, window, link or loss stands out"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bottleneck_has_its_facts() {
        let idle = Facts { sender_cpu: 0.2, receiver_cpu: 0.2, all_cpus: 0.2, ..Facts::default() };
        for (facts, name) in [
            (Facts { link: Some(0.97), sender_cpu: 0.99, ..idle }, "the link"),
            (Facts { asked: Some(1.0), ..idle }, "the rate asked for"),
            (Facts { lost: 0.02, sender_cpu: 1.0, ..idle }, "loss on the way"),
            (Facts { sent_again: 0.01, receiver_window: 0.6, ..idle }, "loss on the way"),
            (Facts { sent_again: 0.01, sender_cpu: 0.97, ..idle }, "sender CPU"),
            (Facts { sender_cpu: 0.97, receiver_cpu: 0.95, ..idle }, "sender CPU"),
            (Facts { sender_cpu: 0.7, receiver_cpu: 0.95, ..idle }, "receiver CPU"),
            (Facts { dropped: 0.2, sender_cpu: 0.99, receiver_cpu: 0.95, ..idle }, "receiver CPU"),
            (Facts { all_cpus: 0.98, ..idle }, "all CPUs"),
            (Facts { receiver_window: 0.8, ..idle }, "the receiver's window"),
            (Facts { send_buffer: 0.8, ..idle }, "the send buffer"),
            (
                Facts { way: 0.95, ..idle },
                "the way: a link or a queue between the ends (congestion window)",
            ),
            (idle, "unknown: no CPU, window, link or loss stands out"),
        ] {
            assert_eq!(of(&facts), name, "{facts:?}");
        }
    }
}
