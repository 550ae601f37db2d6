//! Memory nodes: the CPUs of each node with the memory of each.
//!
//! There are pairs only where there is more than one node. Memory is bound to its node, or touched
//! first by a CPU of it where binding is forbidden, and then shown to lie there.

use std::collections::BTreeSet;

use flatout_sys::numa::Node;

/// Most pairs of nodes: all of a machine of four.
const MOST_PAIRS: usize = 16;

/// CPUs of one node that read memory of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) cpu_node: u32,
    pub(super) cpu: usize,
    pub(super) memory_node: u32,
    /// A CPU of the memory's node, which makes it; that of the reader for memory without CPUs.
    pub(super) home_cpu: usize,
}

/// Each node with allowed CPUs with each node that has memory, near pairs first.
pub(super) fn pairs(nodes: &[Node], allowed_cpus: &[usize]) -> Vec<Pair> {
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
    pairs.sort_by_key(|pair| !pair.is_own());
    pairs.truncate(MOST_PAIRS);
    pairs
}

impl Pair {
    /// Whether the memory is that of the CPU's own node.
    pub(super) fn is_own(self) -> bool {
        self.cpu_node == self.memory_node
    }
}

/// Nodes whose memory is read.
pub(super) fn memories(nodes: &[Node], allowed_cpus: &[usize]) -> usize {
    let pairs = pairs(nodes, allowed_cpus);
    pairs.iter().map(|pair| pair.memory_node).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32, cpus: &[usize], memory_bytes: u64) -> Node {
        Node { number, cpus: cpus.to_vec(), memory_bytes }
    }

    #[test]
    fn two_sockets_and_a_node_of_memory_give_six_pairs() {
        let nodes = [node(0, &[0, 1], 1 << 36), node(1, &[2, 3], 1 << 36), node(2, &[], 1 << 37)];
        let found = pairs(&nodes, &[0, 1, 2, 3]);
        let named: Vec<_> = found.iter().map(|pair| (pair.cpu_node, pair.memory_node)).collect();
        assert_eq!(named, [(0, 0), (1, 1), (0, 1), (0, 2), (1, 0), (1, 2)]);
        assert_eq!((found[2].cpu, found[2].home_cpu), (1, 3));
        assert_eq!(found[3].home_cpu, 1, "memory without CPUs is made by its reader");
        assert_eq!(memories(&nodes, &[0, 1, 2, 3]), 3);
        let few = pairs(&nodes, &[0]);
        assert_eq!(few.len(), 3, "node 1 may not be used");
        assert_eq!(few[1].home_cpu, 0);
    }

    #[test]
    fn one_node_gives_no_pairs() {
        let nodes = [node(0, &[0, 1], 1 << 36), node(1, &[2], 0)];
        assert!(pairs(&nodes, &[0, 1, 2]).is_empty());
        assert_eq!(memories(&nodes, &[0, 1]), 0);
    }
}
