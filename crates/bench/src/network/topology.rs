//! Which machines a run goes between, as far as this end can tell.

use std::net::SocketAddr;
use std::path::Path;

use flatout_measure::environment;
use flatout_sys::affinity;
use flatout_sys::socket::interface::{self, Interface};

use super::client::Client;
use super::spec::Spec;

flatout_sys::words! {
    /// Which addresses of a name are taken.
    pub enum Family: name {
        /// IPv4 alone.
        V4 = "ipv4",
        /// IPv6 alone.
        V6 = "ipv6",
    }
}

impl Family {
    /// That of an address.
    pub fn of(address: SocketAddr) -> Self {
        // An IPv4 address that is written as one of IPv6 travels as IPv4.
        if address.ip().to_canonical().is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Its header, without options.
    pub fn header_bytes(self) -> u32 {
        if self == Self::V4 { 20 } else { 40 }
    }
}

/// The machines of a run and what lies between them.
#[derive(Debug, Clone)]
pub struct Topology {
    /// The interface that carries what this end sends; `None` where it cannot be told.
    pub interface: Option<Interface>,
    /// Whether both ends are one machine, whose CPUs must be counted once.
    pub is_one_machine: bool,
    /// Whether this end is a virtual machine, whose links have the speed that somebody wrote down.
    pub is_virtual: bool,
    /// CPUs that this end may use.
    pub cpus: u32,
}

impl Topology {
    /// Looks at the session's own address and at the interface that bears it.
    pub fn of(client: &Client) -> Self {
        let name = client.address().and_then(|own| carrier(own, client.server()));
        let root = Path::new("/");
        Self {
            interface: name.map(|name| interface::read(root, &name)),
            is_virtual: environment::capture(root).hypervisor == Some(true),
            is_one_machine: client.shares_machine,
            cpus: affinity::allowed_cpu_count(),
        }
    }

    /// The interface between the ends, where one is known that is not loopback.
    pub fn between(&self) -> Option<&str> {
        let interface = self.interface.as_ref().filter(|interface| !interface.is_loopback);
        interface.map(|interface| interface.name.as_str())
    }

    /// Threads of a test that work on the CPUs of this end.
    pub fn threads(&self, spec: &Spec) -> u32 {
        let flows = u32::try_from(spec.flows().len()).unwrap_or(u32::MAX);
        flows.saturating_mul(if self.is_one_machine { 2 } else { 1 })
    }

    /// Whether the data stay on this machine's loopback.
    pub fn is_loopback(&self) -> bool {
        self.interface.as_ref().is_some_and(|interface| interface.is_loopback)
    }
}

/// The interface that carries what goes from one address to another: loopback where both are the
/// same, whatever interface bears it.
fn carrier(own: SocketAddr, peer: SocketAddr) -> Option<String> {
    let link = if let SocketAddr::V6(own) = own { own.scope_id() } else { 0 };
    let [own, peer] = [own, peer].map(|address| address.ip().to_canonical());
    if own == peer { Some("lo".to_owned()) } else { interface::bearing(own, link).ok()? }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::Direction;

    #[test]
    fn what_a_machine_sends_to_itself_goes_over_loopback() {
        let [one, other] = ["192.0.2.77:1", "192.0.2.78:1"].map(|at| at.parse().unwrap());
        assert_eq!(carrier(one, one).as_deref(), Some("lo"));
        assert_eq!(carrier(one, other), None, "nothing here bears it");
    }

    #[test]
    fn a_stream_has_a_thread_for_each_way_at_each_end() {
        let threads = |direction, is_one_machine| {
            let topology = Topology { interface: None, is_one_machine, is_virtual: false, cpus: 4 };
            topology.threads(&Spec { streams: 3, direction, ..Spec::one_stream() })
        };
        assert_eq!([threads(Direction::Up, false), threads(Direction::Up, true)], [3, 6]);
        assert_eq!([threads(Direction::Both, false), threads(Direction::Both, true)], [6, 12]);
    }
}
