//! Memory nodes: latency and rate from the CPUs of each node to the memory of each.
//!
//! There are rows only where there is more than one node. Memory is bound to its node, or touched
//! first by a CPU of it where binding is forbidden, and then shown to lie there.

use flatout_measure::case::{Case, Plain, Sample, TrialError};
use flatout_measure::ceiling;
use flatout_measure::record::{Ceiling, Outcome, Provenance};
use flatout_measure::row::Unit;
use flatout_sys::chase::LINE_BYTES;
use flatout_sys::numa::Node;
use serde_json::{Map, Value};

use super::latency::{Chases, RUN_BYTES};
use super::parallel::{self, Start};
use super::ring::{self, Shape};

/// Id of the rows of latency.
pub const LATENCY_ID: &str = "memory/node-latency";
/// Id of the rows of the rate of one core.
pub const RATE_ID: &str = "memory/node-rate";

/// Most pairs of nodes: all of a machine of four.
const MOST_PAIRS: usize = 16;
/// Chases at once in the rows of rate.
const CHASES: usize = 16;

/// CPUs of one node that read memory of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    cpu_node: u32,
    cpu: usize,
    memory_node: u32,
    /// A CPU of the memory's node, which makes it; that of the reader for memory without CPUs.
    home_cpu: usize,
}

/// The rows on a machine with these nodes, of which `allowed_cpus` may be used.
pub fn cases(chases: &Chases, nodes: &[Node], allowed_cpus: &[usize]) -> Vec<Case<'static, Plain>> {
    let on = |node: u32, run_bytes: u64| -> Vec<Shape> {
        let shapes = chases.memory_shapes(run_bytes).into_iter();
        shapes.map(|shape| Shape { node: Some(node), ..shape }).collect()
    };
    if chases.memory_shapes(LINE_BYTES).is_empty() {
        return Vec::new();
    }
    let of = |pair: Pair| {
        [LINE_BYTES, RUN_BYTES]
            .map(|run_bytes| case(chases.clone(), pair, on(pair.memory_node, run_bytes)))
    };
    pairs(nodes, allowed_cpus).into_iter().flat_map(of).collect()
}

/// Memory that the rows need beside the rings of the curve: an arena on each node.
pub fn memory_bytes(chases: &Chases, nodes: &[Node], allowed_cpus: &[usize]) -> u64 {
    let mut memories: Vec<u32> =
        pairs(nodes, allowed_cpus).iter().map(|pair| pair.memory_node).collect();
    memories.sort_unstable();
    memories.dedup();
    let set_bytes =
        chases.memory_shapes(LINE_BYTES).first().map_or(0, |shape| shape.working_set_bytes);
    memories.len() as u64 * set_bytes
}

/// Each node with allowed CPUs with each node that has memory, near pairs first.
fn pairs(nodes: &[Node], allowed_cpus: &[usize]) -> Vec<Pair> {
    let cpu_of =
        |node: &Node| node.cpus.iter().rev().find(|cpu| allowed_cpus.contains(cpu)).copied();
    let memories: Vec<&Node> = nodes.iter().filter(|node| node.memory_bytes > 0).collect();
    if memories.len() < 2 {
        return Vec::new();
    }
    let mut pairs: Vec<Pair> = Vec::new();
    for reader in nodes {
        let Some(cpu) = cpu_of(reader) else { continue };
        pairs.extend(memories.iter().map(|memory| Pair {
            cpu_node: reader.number,
            cpu,
            memory_node: memory.number,
            home_cpu: cpu_of(memory).unwrap_or(cpu),
        }));
    }
    pairs.sort_by_key(|pair| pair.cpu_node != pair.memory_node);
    pairs.truncate(MOST_PAIRS);
    pairs
}

fn case(chases: Chases, pair: Pair, shapes: Vec<Shape>) -> Case<'static, Plain> {
    let mut parameters = Map::new();
    parameters.insert("cpu_node".to_owned(), pair.cpu_node.into());
    parameters.insert("memory_node".to_owned(), pair.memory_node.into());
    let is_rate = shapes[0].run_bytes == RUN_BYTES;
    Case {
        row: Plain {
            id: if is_rate { RATE_ID } else { LATENCY_ID },
            parameters,
            unit: if is_rate { Unit::BytesPerSecond } else { Unit::Nanoseconds },
        },
        trial: Box::new(move |seed| trial(&chases, pair, &shapes, seed)),
    }
}

fn trial(chases: &Chases, pair: Pair, shapes: &[Shape], seed: u64) -> Result<Sample, TrialError> {
    let (shape, chase) = chases.rings.first(shapes, pair.home_cpu, seed)?;
    let chase = &*chase;
    let walk_ns = chases.walk_ns;
    let warm_nodes = ring::warm_nodes(shape, chases.cache_bytes);
    let is_rate = shape.run_bytes == RUN_BYTES;
    ring::on_cpu(pair.cpu, || {
        let index = seed as usize % chase.places();
        chase.warm(index, warm_nodes);
        let count = if is_rate { CHASES } else { 1 };
        let mut sample = parallel::walk(chase, Start { index, count }, walk_ns)?;
        if !is_rate {
            sample.amount /= LINE_BYTES as f64;
        }
        ring::note_cpu(&mut sample, pair.cpu);
        ring::note_ring(&mut sample, shape, shapes[0]);
        Ok(sample)
    })
}

/// Holds memory of other nodes against that of the CPU's own.
pub fn finish(outcomes: &mut [Outcome]) {
    let number = |row: &Outcome, key: &str| row.parameters.get(key).and_then(Value::as_u64);
    let is_own = |row: &Outcome| number(row, "cpu_node") == number(row, "memory_node");
    let own: Vec<(String, Option<u64>, Option<f64>)> = outcomes
        .iter()
        .filter(|row| [LATENCY_ID, RATE_ID].contains(&row.id.as_str()) && is_own(row))
        .map(|row| (row.id.clone(), number(row, "cpu_node"), row.median))
        .collect();
    let rows = outcomes.iter_mut().filter(|row| [LATENCY_ID, RATE_ID].contains(&row.id.as_str()));
    for outcome in rows {
        let of = own.iter().find(|(id, node, _)| {
            *id == outcome.id && *node == number(outcome, "cpu_node") && !is_own(outcome)
        });
        let limit = match of.and_then(|(_, _, median)| *median) {
            Some(value) => Ceiling {
                name: "memory of the CPU's own node".to_owned(),
                value: Some(value),
                provenance: Provenance::Measured,
                limiter: "link between the nodes".to_owned(),
                ..Ceiling::default()
            },
            None => Ceiling {
                name: "none is known: other nodes are held against it".to_owned(),
                limiter: "latency of memory".to_owned(),
                ..Ceiling::default()
            },
        };
        ceiling::apply(outcome, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::Extent;
    use flatout_measure::record::Better;
    use flatout_sys::affinity;
    use flatout_sys::chase::Pages;

    fn node(number: u32, cpus: &[usize], memory_bytes: u64) -> Node {
        Node { number, cpus: cpus.to_vec(), memory_bytes, distances: Vec::new() }
    }

    #[test]
    fn two_sockets_and_a_node_of_memory_give_six_pairs() {
        let nodes = [node(0, &[0, 1], 1 << 36), node(1, &[2, 3], 1 << 36), node(2, &[], 1 << 37)];
        let found = pairs(&nodes, &[0, 1, 2, 3]);
        let named: Vec<_> = found.iter().map(|pair| (pair.cpu_node, pair.memory_node)).collect();
        assert_eq!(named, [(0, 0), (1, 1), (0, 1), (0, 2), (1, 0), (1, 2)]);
        assert_eq!((found[2].cpu, found[2].home_cpu), (1, 3));
        assert_eq!(found[3].home_cpu, 1, "memory without CPUs is made by its reader");
        let few = pairs(&nodes, &[0]);
        assert_eq!(few.len(), 3, "node 1 may not be used");
        assert_eq!(few[1].home_cpu, 0);
    }

    #[test]
    fn one_node_gives_no_rows() {
        let chases = Chases::new(Extent::Full, u64::MAX, &[]);
        let nodes = [node(0, &[0, 1], 1 << 36), node(1, &[2], 0)];
        assert!(cases(&chases, &nodes, &[0, 1, 2]).is_empty());
        assert_eq!(memory_bytes(&chases, &nodes, &[0, 1]), 0);
        let two = [node(0, &[0], 1), node(1, &[1], 1)];
        assert_eq!(cases(&chases, &two, &[0, 1]).len(), 8);
        assert_eq!(memory_bytes(&chases, &two, &[0, 1]), 2 * (128 << 20));
    }

    #[test]
    fn a_trial_on_a_real_node_gives_latency_or_says_why_not() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let chases = Chases::hasty(1 << 20);
        let pair = Pair { cpu_node: 0, cpu, memory_node: 0, home_cpu: cpu };
        let shape = Shape { node: Some(0), ..Shape::random(1 << 20, Pages::Base) };
        for shape in [shape, Shape { run_bytes: RUN_BYTES, ..shape }] {
            match trial(&chases, pair, &[shape], 1) {
                Ok(sample) => assert!(sample.amount >= 1024.0 && sample.elapsed_ns > 0),
                Err(TrialError::Unsupported(text)) => eprintln!("skipped: {text}"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn other_nodes_are_held_against_the_own_one() {
        let row = |cpu_node: u64, memory_node: u64, latency_ns: f64| {
            let mut outcome = Outcome {
                id: LATENCY_ID.to_owned(),
                better: Better::Lower,
                median: Some(latency_ns),
                ..Outcome::default()
            };
            outcome.parameters.insert("cpu_node".to_owned(), cpu_node.into());
            outcome.parameters.insert("memory_node".to_owned(), memory_node.into());
            outcome
        };
        let mut rows = [row(0, 0, 90.0), row(0, 1, 150.0), row(1, 1, 80.0)];
        finish(&mut rows);
        assert_eq!(rows[1].ceiling.as_ref().unwrap().ratio, Some(0.6));
        assert_eq!(rows[0].ceiling.as_ref().unwrap().value, None);
        assert_eq!(rows[2].ceiling.as_ref().unwrap().value, None);
    }
}
