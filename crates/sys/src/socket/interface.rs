//! Which network interface an address of this machine belongs to, what sysfs says of it, and the
//! names of hosts.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::ptr;

use crate::attribute;
use crate::cause::answered;

/// What the kernel says of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Bits per second of the link; `None` where nobody knows, and for links without hardware,
    /// whose speed is invented (a veth says 10 Gbit/s).
    pub bits_per_s: Option<u64>,
    /// Longest packet.
    pub mtu_bytes: Option<u64>,
    /// Whether it is loopback.
    pub is_loopback: bool,
}

/// The interface that is up and bears `address`, the one with the number `link` where that is above 0: several may bear
/// one address of a link alone. `None` where none does.
///
/// # Errors
/// Those of getifaddrs(3).
pub fn bearing(address: IpAddr, link: u32) -> io::Result<Option<String>> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: getifaddrs(3) stores the head of a list that it allocates.
    answered(unsafe { libc::getifaddrs(&mut list) })?;
    let mut found = None;
    let mut entry = list;
    while !entry.is_null() {
        // SAFETY: `entry` is a node of the list, which is freed only after the loop.
        let node = unsafe { &*entry };
        let own = ip_of(node.ifa_addr).filter(|_| node.ifa_flags & libc::IFF_UP as u32 != 0);
        if own.is_some_and(|(ip, own)| ip == address && (link == 0 || own == link)) {
            // SAFETY: each node's name is a string that ends in a zero byte.
            let name = unsafe { CStr::from_ptr(node.ifa_name) };
            found = Some(name.to_string_lossy().into_owned());
            break;
        }
        entry = node.ifa_next;
    }
    // SAFETY: the list came from getifaddrs(3) and nothing refers to it any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// An address, and the number of the interface of one of a link alone.
fn ip_of(address: *const libc::sockaddr) -> Option<(IpAddr, u32)> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the pointer comes from getifaddrs(3): a family, and an address as long as that
    // family's. It is read unaligned, since only the family's alignment is promised.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some((Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into(), 0))
            }
            libc::AF_INET6 => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some((Ipv6Addr::from(address.sin6_addr.s6_addr).into(), address.sin6_scope_id))
            }
            _ => None,
        }
    }
}

/// Reads what sysfs below `root` (`/` for the real one) says of an interface.
pub fn read(root: &Path, name: &str) -> Interface {
    let folder = root.join("sys/class/net").join(name);
    let number = |file: &str| attribute::number(&folder, file);
    // ARPHRD_LOOPBACK, linux/if_arp.h. Where sysfs is hidden, the name says it.
    let is_loopback = number("type").map_or(name == "lo", |kind| kind == 772);
    let has_hardware = folder.join("device").exists();
    // Megabits per second; −1 or an error where the driver does not know.
    let megabits = number("speed").filter(|&speed| has_hardware && speed > 0);
    Interface {
        name: name.to_owned(),
        bits_per_s: megabits.map(|megabits| megabits.saturating_mul(1_000_000)),
        mtu_bytes: number("mtu"),
        is_loopback,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Tree;

    #[test]
    fn loopback_bears_its_address() {
        let name = bearing(Ipv4Addr::LOCALHOST.into(), 0).unwrap();
        assert_eq!(name.as_deref(), Some("lo"));
        assert_eq!(bearing("192.0.2.77".parse().unwrap(), 0).unwrap(), None);
        let interface = read(Path::new("/"), "lo");
        assert!(interface.is_loopback && interface.bits_per_s.is_none());
        assert!(interface.mtu_bytes.unwrap() > 1000);
    }

    #[test]
    fn only_a_link_with_hardware_has_a_speed() {
        let tree = Tree::new(&[
            ("sys/class/net/eth0/speed", "25000\n"),
            ("sys/class/net/eth0/mtu", "9000\n"),
            ("sys/class/net/eth0/type", "1\n"),
            ("sys/class/net/eth0/device/vendor", "0x15b3\n"),
            ("sys/class/net/veth0/speed", "10000\n"),
            ("sys/class/net/veth0/mtu", "1500\n"),
            ("sys/class/net/eth1/speed", "-1\n"),
            ("sys/class/net/eth1/device/vendor", "0x1af4\n"),
        ]);
        let eth0 = read(tree.root(), "eth0");
        assert_eq!((eth0.bits_per_s, eth0.mtu_bytes), (Some(25_000_000_000), Some(9000)));
        let veth0 = read(tree.root(), "veth0");
        assert_eq!((veth0.bits_per_s, veth0.mtu_bytes), (None, Some(1500)));
        assert_eq!(read(tree.root(), "eth1").bits_per_s, None);
        assert_eq!(read(tree.root(), "none").mtu_bytes, None);
        let is_loopback = |name| read(tree.root(), name).is_loopback;
        assert_eq!(["lo", "none", "eth0"].map(is_loopback), [true, false, false], "no sysfs");
    }
}
