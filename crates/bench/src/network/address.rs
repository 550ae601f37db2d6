//! `HOST[:PORT]`: the addresses of a name or an address. One of IPv6 with a port stands in brackets; one of
//! a link names its interface, `fe80::1%eth0`, which the resolver knows.

use std::net::{SocketAddr, ToSocketAddrs};

use flatout_io::cause_text;

use super::topology::Family;

/// The host, and its port where one is named.
///
/// Errors: there is no host, or what should be the port is none.
pub fn parts(target: &str) -> Result<(&str, Option<u16>), String> {
    let bracketed = target.strip_prefix('[').and_then(|rest| rest.rsplit_once(']'));
    let (host, rest) = match target.find(':') {
        _ if bracketed.is_some() => bracketed.unwrap_or_default(),
        Some(colon) if target.matches(':').count() == 1 => target.split_at(colon),
        _ => (target, ""),
    };
    let port = (!rest.is_empty()).then(|| rest.strip_prefix(':').unwrap_or(rest));
    match (host, port.map(str::parse)) {
        ("", _) => Err("it names no host".to_owned()),
        (_, None) => Ok((host, None)),
        (_, Some(Ok(port))) => Ok((host, Some(port))),
        _ => Err(format!("{:?} is no port: 1 to 65535", port.unwrap_or_default())),
    }
}

/// The addresses of a target, at this port unless it names one.
///
/// Errors: one line that names it.
pub fn resolve(target: &str, port: u16, family: Option<Family>) -> Result<Vec<SocketAddr>, String> {
    let (host, own) = parts(target).map_err(|why| format!("{target:?}: {why}"))?;
    let found = (host, own.unwrap_or(port)).to_socket_addrs();
    let found =
        found.map_err(|error| format!("cannot resolve {target:?}: {}", cause_text(&error)))?;
    let mut all: Vec<SocketAddr> = found.collect();
    all.retain(|&address| family.is_none_or(|family| family == Family::of(address)));
    match (all.is_empty(), family) {
        (false, _) => Ok(all),
        (true, Some(family)) => Err(format!("{target:?} has no {} address", family.name())),
        (true, None) => Err(format!("{target:?} has no address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_usual_port_unless_it_names_one() {
        let one = |target: &str| resolve(target, 7878, None).unwrap()[0].to_string();
        assert_eq!(one("127.0.0.1"), "127.0.0.1:7878");
        assert_eq!(one("127.0.0.1:99"), "127.0.0.1:99");
        assert_eq!(one("::1"), "[::1]:7878");
        assert_eq!(one("[::1]"), "[::1]:7878");
        assert_eq!(one("[::1]:99"), "[::1]:99");
        assert!(resolve("127.0.0.1", 7878, Some(Family::V6)).unwrap_err().contains("no ipv6"));
        for wrong in ["127.0.0.1:many", "[::1]many", "127.0.0.1:65536", ":99", "[]", ""] {
            assert!(resolve(wrong, 7878, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_of_a_link_names_its_interface() {
        for (target, shown) in [
            ("fe80::1%lo", "[fe80::1%1]:7878"),
            ("[fe80::1%lo]", "[fe80::1%1]:7878"),
            ("[fe80::1%lo]:99", "[fe80::1%1]:99"),
        ] {
            assert_eq!(resolve(target, 7878, None).unwrap()[0].to_string(), shown);
        }
    }
}
