//! What a link can carry at most: its speed, less what headers and gaps take. Pure but for the
//! reading of sysfs.

use std::net::IpAddr;
use std::path::Path;

use flatout_measure::record::{Ceiling, Provenance};
use flatout_sys::socket::interface::{self, Interface};

use super::client::Family;
use super::spec::{Direction, Protocol, Spec};

/// Preamble, start of frame, header, checksum and gap of an Ethernet frame.
const ETHERNET_BYTES: f64 = 38.0;
const TCP_BYTES: f64 = 20.0;
/// Time stamps, which Linux sends with each segment unless told otherwise.
const TCP_OPTION_BYTES: f64 = 12.0;
const UDP_BYTES: f64 = 8.0;

fn ip_bytes(family: Family) -> f64 {
    match family {
        Family::V4 => 20.0,
        Family::V6 => 40.0,
    }
}

/// The share of an Ethernet link's bits that are data of the program, at best.
///
/// TCP: (MTU − IP − TCP − 12) ÷ (MTU + 38). UDP: datagram ÷ what it takes in one frame, or in as
/// many fragments as it needs, which carry a multiple of eight bytes each.
pub fn goodput(spec: &Spec, family: Family, mtu_bytes: u64) -> f64 {
    let (mtu, ip) = (mtu_bytes as f64, ip_bytes(family));
    match spec.protocol {
        Protocol::Tcp => {
            ((mtu - ip - TCP_BYTES - TCP_OPTION_BYTES) / (mtu + ETHERNET_BYTES)).max(0.0)
        }
        Protocol::Udp => {
            let datagram = f64::from(spec.datagram_bytes.max(1));
            let carried = datagram + UDP_BYTES;
            if carried + ip <= mtu {
                return datagram / (carried + ip + ETHERNET_BYTES);
            }
            // A fragment header of IPv6 takes eight bytes more.
            let head = if family == Family::V6 { ip + 8.0 } else { ip };
            let each = ((mtu - head) / 8.0).floor() * 8.0;
            let frames = (carried / each.max(8.0)).ceil();
            datagram / (carried + frames * (head + ETHERNET_BYTES))
        }
    }
}

/// The interface that carries what this end sends; `None` where it cannot be told.
pub fn interface_of(address: IpAddr) -> Option<Interface> {
    let name = interface::bearing(address.to_canonical()).ok()??;
    Some(interface::read(Path::new("/"), &name))
}

/// The ceiling of a throughput row over `interface`.
pub fn of_link(spec: &Spec, family: Family, interface: &Interface) -> Ceiling {
    let unknown = |why: String| Ceiling { name: why, ..Ceiling::default() };
    let name = &interface.name;
    let Some(bits_per_s) = interface.bits_per_s else {
        return unknown(format!("unknown: {name} tells no speed, or has no hardware"));
    };
    let Some(mtu_bytes) = interface.mtu_bytes else {
        return unknown(format!("unknown: {name} tells no MTU"));
    };
    let share = goodput(spec, family, mtu_bytes);
    let ways = if spec.direction == Direction::Both { 2.0 } else { 1.0 };
    Ceiling {
        name: format!("{name}: {bits_per_s} bit/s × {share:.4} (goodput at an MTU of {mtu_bytes})"),
        value: Some(bits_per_s as f64 / 8.0 * share * ways),
        provenance: Provenance::Link,
        ..Ceiling::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(datagram_bytes: u32) -> Spec {
        Spec { protocol: Protocol::Udp, datagram_bytes, ..Spec::default() }
    }

    #[test]
    fn goodput_is_that_of_the_textbook() {
        let near = |share: f64, expected: f64| assert!((share - expected).abs() < 1e-4, "{share}");
        near(goodput(&Spec::default(), Family::V4, 1500), 1448.0 / 1538.0);
        near(goodput(&Spec::default(), Family::V6, 1500), 1428.0 / 1538.0);
        near(goodput(&Spec::default(), Family::V4, 9000), 8948.0 / 9038.0);
        near(goodput(&udp(1472), Family::V4, 1500), 1472.0 / 1538.0);
        near(goodput(&udp(100), Family::V4, 1500), 100.0 / 166.0);
        // 65,515 bytes in fragments of 1480.
        near(goodput(&udp(65_507), Family::V4, 1500), 65_507.0 / (65_515.0 + 45.0 * 58.0));
        near(goodput(&Spec::default(), Family::V4, 10), 0.0);
    }

    #[test]
    fn a_link_without_speed_is_unknown_and_both_ways_are_two() {
        let link = |bits_per_s| Interface {
            name: "eth0".to_owned(),
            bits_per_s,
            mtu_bytes: Some(1500),
            is_loopback: false,
        };
        let ceiling = of_link(&Spec::default(), Family::V4, &link(None));
        assert_eq!((ceiling.value, ceiling.provenance), (None, Provenance::Unknown));
        let one = of_link(&Spec::default(), Family::V4, &link(Some(1_000_000_000)));
        assert!((one.value.unwrap() - 125e6 * 1448.0 / 1538.0).abs() < 1.0);
        let both = Spec { direction: Direction::Both, ..Spec::default() };
        let two = of_link(&both, Family::V4, &link(Some(1_000_000_000)));
        assert_eq!(two.value.unwrap(), 2.0 * one.value.unwrap());
    }
}
