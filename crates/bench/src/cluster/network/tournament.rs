//! Who meets whom: in each round every process meets one other, and in all rounds together
//! everybody meets everybody once (the circle method). With an odd number one rests in each.

/// The pairs of each round, the smaller number first.
pub(super) fn rounds(processes: usize) -> Vec<Vec<(usize, usize)>> {
    if processes < 2 {
        return Vec::new();
    }
    // One who is not there makes the number even: who meets it rests.
    let even = processes.next_multiple_of(2);
    let around = even - 1;
    let round = |turn: usize| {
        let first = (around, turn);
        let rest = (1..even / 2).map(|by| ((turn + by) % around, (turn + around - by) % around));
        let pairs = std::iter::once(first).chain(rest);
        let pairs = pairs.map(|(one, other)| (one.min(other), one.max(other)));
        pairs.filter(|(_, other)| *other < processes).collect()
    };
    (0..around).map(round).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn everybody_meets_everybody_once_and_nobody_two_at_a_time() {
        for processes in 2..40 {
            let rounds = rounds(processes);
            assert_eq!(rounds.len(), processes - 1 + processes % 2, "{processes}");
            let mut met = BTreeSet::new();
            for round in &rounds {
                assert_eq!(round.len(), processes / 2, "{processes}");
                let mut busy = BTreeSet::new();
                for &(one, other) in round {
                    assert!(one < other && other < processes);
                    assert!(met.insert((one, other)), "{one} and {other} of {processes} again");
                    assert!(busy.insert(one) && busy.insert(other), "{round:?}");
                }
            }
            assert_eq!(met.len(), processes * (processes - 1) / 2);
        }
        assert!(rounds(1).is_empty() && rounds(0).is_empty());
    }
}
