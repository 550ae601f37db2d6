//! How many ports execute an instruction, counted by a loop of its own.
//!
//! The loop is the counting form of a kernel: other instructions for the same ports, so that the
//! share which the measured loop reaches says something. Its steps per cycle, at the clock read
//! beside it, must be a whole number within 3 %; otherwise nobody knows.

use crate::counted;

/// How far a count may lie from a whole number, as a share of that number.
const TOLERANCE: f64 = 0.03;
/// More ports of one kind than any core has.
const MOST_PORTS: f64 = 8.0;
/// More micro-operations than a product and a sum take on any core.
const MOST_MICRO_OPERATIONS: f64 = 16.0;

/// What a step can be done with per cycle: ports ÷ micro-operations of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) ports: u64,
    /// Micro-operations for these ports that one step takes.
    pub(super) micro_operations: u64,
}

impl Ports {
    /// Steps per cycle.
    pub(super) fn steps_per_cycle(self) -> f64 {
        self.ports as f64 / self.micro_operations as f64
    }

    /// For people: `2 ports`, or `2 ports for 3 micro-operations`.
    pub(super) fn words(self) -> String {
        let ports = counted(self.ports, "port");
        match self.micro_operations {
            1 => ports,
            count => format!("{ports} for {count} micro-operations"),
        }
    }
}

/// The whole number that `value` is, within the tolerance.
fn whole(value: f64, most: f64) -> Option<u64> {
    let whole = value.round();
    let near = (value - whole).abs() <= TOLERANCE * whole;
    (near && (1.0..=most).contains(&whole)).then_some(whole as u64)
}

/// Ports of a step of one instruction, from its steps per cycle.
pub(super) fn of_single(steps_per_cycle: f64) -> Option<Ports> {
    whole(steps_per_cycle, MOST_PORTS).map(|ports| Ports { ports, micro_operations: 1 })
}

/// Ports of a product followed by a sum, from the pairs per cycle; `sums` are the ports of the sum
/// alone, where they are known.
///
/// Either each of the two is one micro-operation, or the product takes several, of the ports
/// that do sums.
pub(super) fn of_pair(pairs_per_cycle: f64, sums: Option<Ports>) -> Option<Ports> {
    if let Some(ports) = whole(2.0 * pairs_per_cycle, MOST_PORTS) {
        return Some(Ports { ports, micro_operations: 2 });
    }
    let ports = sums?.ports;
    let micro_operations = whole(ports as f64 / pairs_per_cycle, MOST_MICRO_OPERATIONS)?;
    (micro_operations > 2).then_some(Ports { ports, micro_operations })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(steps: f64) -> Option<u64> {
        of_single(steps).map(|ports| ports.ports)
    }

    #[test]
    fn counts_near_a_whole_number_are_one() {
        // Sapphire Rapids: 512-bit products, 256-bit sums of integers.
        assert_eq!((single(1.98), single(2.92)), (Some(2), Some(3)));
        // Zen 2: four pipes for sums of integers, two for products.
        assert_eq!((single(3.97), single(2.01)), (Some(4), Some(2)));
        // Neoverse N1: two pipes. Ice Lake client: one for 512 bits.
        assert_eq!((single(1.97), single(0.99)), (Some(2), Some(1)));
    }

    /// Units as published (vendors' optimisation guides): of a core and width of vectors, those for
    /// multiply-adds and for sums of integers, as steps per cycle with what a loop loses.
    #[test]
    fn published_units_of_cores_are_counted() {
        let cores = [
            ("Zen 3, 256 bits", 1.99, 2, 3.96, 4),
            ("Zen 4, 256 bits", 1.98, 2, 3.95, 4),
            // In two halves of 256 bits.
            ("Zen 4, 512 bits", 0.99, 1, 1.98, 2),
            ("Ice Lake server, 256 bits", 1.99, 2, 2.97, 3),
            ("Ice Lake server, 512 bits", 1.98, 2, 1.99, 2),
            ("Sapphire Rapids, 512 bits", 1.99, 2, 1.98, 2),
            ("Neoverse N1, 128 bits", 1.98, 2, 1.99, 2),
            ("Neoverse V1, 128 bits", 3.94, 4, 3.96, 4),
        ];
        for (core, multiply_adds, multiply_add_units, sums, sum_units) in cores {
            assert_eq!(single(multiply_adds), Some(multiply_add_units), "{core}");
            assert_eq!(single(sums), Some(sum_units), "{core}");
        }
        // Zen 3 and 4 have units for sums of their own; Ice Lake has the same two for both.
        assert_eq!(of_pair(1.98, of_single(2.0)).map(|pair| pair.ports), Some(4));
        assert_eq!(of_pair(0.99, of_single(2.0)).map(|pair| pair.ports), Some(2));
    }

    #[test]
    fn other_counts_are_unknown() {
        // An SMT sibling takes a part of the ports.
        assert_eq!((single(1.78), single(0.5), single(0.0)), (None, None, None));
        assert_eq!((single(9.0), single(f64::NAN), single(f64::INFINITY)), (None, None, None));
        assert_eq!(single(1.93), None);
    }

    #[test]
    fn pairs_are_two_micro_operations_or_more() {
        let sums = of_single(2.0);
        let pair = |pairs, sums| of_pair(pairs, sums).map(|one| (one.ports, one.micro_operations));
        // SSE on Zen 2: products and sums have two pipes each.
        assert_eq!(pair(1.99, sums), Some((4, 2)));
        // Golden Cove, SSE: three ports for both together.
        assert_eq!(pair(1.49, of_single(2.0)), Some((3, 2)));
        // AVX-512 VPMULLD: two micro-operations, and the sum a third, on two ports.
        assert_eq!(pair(0.664, sums), Some((2, 3)));
        assert_eq!(pair(0.664, None), None);
        // One multiplier, as in the scalar loop.
        assert_eq!(pair(0.99, None), Some((2, 2)));
        assert_eq!(pair(0.58, sums), None);
    }

    #[test]
    fn ports_are_said_in_words() {
        assert_eq!(Ports { ports: 1, micro_operations: 1 }.words(), "1 port");
        let three = Ports { ports: 2, micro_operations: 3 };
        assert_eq!(three.words(), "2 ports for 3 micro-operations");
        assert!((three.steps_per_cycle() - 0.6667).abs() < 1e-4);
    }
}
