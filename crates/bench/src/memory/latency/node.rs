//! Memory nodes: the CPUs of each node with the memory of each.
//!
//! There are pairs only where there is more than one node. Memory is bound to its node, or touched
//! first by a CPU of it where binding is forbidden, and then shown to lie there.

use std::collections::BTreeSet;
use std::path::Path;

use flatout_sys::numa::{self, Node};

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

/// The node of the first of these CPUs, where memory may lie on others, too, and nothing says that it should:
/// what finds no room there goes to another one, and a figure would be that of another way.
pub(in super::super) fn near(nodes: &[Node], order: &[usize]) -> Option<u32> {
    let usable = numa::usable(Path::new("/")).filter(|_| numa::is_local())?;
    near_of(nodes, *order.first()?, &usable)
}

fn near_of(nodes: &[Node], cpu: usize, usable: &[usize]) -> Option<u32> {
    let has_memory =
        |node: &&Node| node.memory_bytes > 0 && usable.contains(&(node.number as usize));
    let memories: Vec<&Node> = nodes.iter().filter(has_memory).collect();
    let own = memories.iter().find(|node| node.cpus.contains(&cpu))?;
    (memories.len() > 1).then_some(own.number)
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
    fn a_cpu_has_a_node_of_its_own_where_memory_could_lie_on_another_one() {
        let nodes = [node(0, &[0, 1], 1 << 36), node(1, &[2], 1 << 36), node(2, &[3], 0)];
        let near = |usable: &[usize]| [0, 2, 3, 9].map(|cpu| near_of(&nodes, cpu, usable));
        assert_eq!(near(&[0, 1, 2]), [Some(0), Some(1), None, None], "no memory, no node");
        assert_eq!(near(&[1]), [None; 4], "nothing else may be used");
    }

    #[test]
    fn one_node_gives_no_pairs() {
        let nodes = [node(0, &[0, 1], 1 << 36), node(1, &[2], 0)];
        assert!(pairs(&nodes, &[0, 1, 2]).is_empty());
        assert_eq!(memories(&nodes, &[0, 1]), 0);
    }
}
