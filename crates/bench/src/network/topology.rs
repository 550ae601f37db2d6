//! Which machines a run goes between, as far as this end can tell.

use std::path::Path;

use flatout_sys::affinity;
use flatout_sys::socket::interface::{self, Interface};

use super::client::Client;

/// The machines of a run and what lies between them.
#[derive(Debug, Clone)]
pub struct Topology {
    /// The interface that carries what this end sends; `None` where it cannot be told.
    pub interface: Option<Interface>,
    /// Whether both ends are one machine, whose CPUs must be counted once.
    pub is_one_machine: bool,
    /// CPUs that this end may use.
    pub cpus: u32,
}

impl Topology {
    /// Looks at the session's own address and at the interface that bears it.
    pub fn of(client: &Client) -> Self {
        let address = client.address().map(|address| address.ip().to_canonical());
        let name = address.and_then(|address| interface::bearing(address).ok()?);
        Self {
            interface: name.map(|name| interface::read(Path::new("/"), &name)),
            is_one_machine: client.shares_machine,
            cpus: affinity::allowed_cpu_count(),
        }
    }

    /// Whether the data stay on this machine's loopback.
    pub fn is_loopback(&self) -> bool {
        self.interface.as_ref().is_some_and(|interface| interface.is_loopback)
    }
}
