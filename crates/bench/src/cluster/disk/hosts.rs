//! Which process is on which host: whose files each reads, and which host is slowest.

use std::collections::BTreeMap;

use super::super::window::Lane;

/// The host whose processes were slowest in the mean; none where there is one host.
pub(super) fn slowest_host(
    hosts: &[String],
    lanes: &[&Lane],
    rate: impl Fn(&Lane) -> f64,
) -> Option<String> {
    let mean = |host: &String| {
        let own = hosts.iter().zip(lanes).filter(|(known, _)| *known == host);
        let rates: Vec<f64> = own.map(|(_, lane)| rate(lane)).collect();
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    };
    let is_one = hosts.iter().all(|host| *host == hosts[0]);
    let slowest = hosts.iter().min_by(|one, other| mean(one).total_cmp(&mean(other)));
    slowest.filter(|_| !is_one).cloned()
}

/// For each process the one whose files it reads: each is somebody's, and on another host wherever
/// no host has more than half of them. On one host it is the next process.
pub(super) fn one_host_away(hosts: &[String]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    order.sort_by_key(|&rank| hosts.iter().position(|host| *host == hosts[rank]));
    let most = hosts.iter().map(|host| hosts.iter().filter(|other| *other == host).count()).max();
    let step = most.filter(|&most| most < hosts.len()).unwrap_or(1);
    let mut of = vec![0; hosts.len()];
    for (at, &rank) in order.iter().enumerate() {
        of[rank] = order[(at + step) % order.len()];
    }
    of
}

/// Bytes that the page caches of all hosts have of one file: what processes of a host see of it is the
/// same.
pub(super) fn shared_bytes(hosts: &[String], seen: &[u64]) -> u64 {
    let mut most = BTreeMap::new();
    for (host, &bytes) in hosts.iter().zip(seen) {
        let known = most.entry(host).or_insert(0);
        *known = bytes.max(*known);
    }
    most.into_values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_processes_of_a_host_see_of_one_file_counts_once() {
        let hosts = ["a", "b", "a"].map(str::to_owned);
        assert_eq!(shared_bytes(&hosts, &[5, 7, 6]), 13);
    }

    #[test]
    fn each_reads_what_another_host_wrote_and_nothing_is_read_twice() {
        let hosts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        for names in [
            &["a", "b"][..],
            &["a", "a", "b", "b"],
            &["a", "b", "a", "b"],
            &["a", "a", "b", "b", "c", "c"],
            &["a", "a", "b", "c"],
        ] {
            let hosts = hosts(names);
            let of = one_host_away(&hosts);
            let mut sorted = of.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..hosts.len()).collect::<Vec<_>>());
            assert!(of.iter().enumerate().all(|(rank, &of)| hosts[rank] != hosts[of]), "{names:?}");
        }
        assert_eq!(one_host_away(&hosts(&["a", "a", "a"])), [1, 2, 0]);
    }
}
