//! Decides which addresses a registry may have: none at which a machine or a cloud serves its own secrets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that requests for one reference may reach. Private networks are included, since registries run there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The reference names this machine, so its addresses are allowed.
    ThisMachineToo,
    /// Only addresses of other machines are allowed.
    OtherMachines,
}

/// An address where no registry may be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {what}, and no registry is asked there{unless}")]
pub struct Forbidden {
    /// The address.
    pub address: IpAddr,
    /// The kind of address.
    pub what: &'static str,
    /// When the address would be allowed.
    unless: &'static str,
}

/// Addresses, in addition to the link-local ones, at which clouds serve metadata to a machine.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

impl Reach {
    /// Returns the reach for a registry's host, given without its port. This machine is included only if the host
    /// itself names it, not if it merely resolves to it.
    pub(super) fn of(host: &str) -> Self {
        let name = host == "localhost" || host.ends_with(".localhost");
        let here = name || literal(host).is_some_and(|address| address.to_canonical().is_loopback());
        if here { Self::ThisMachineToo } else { Self::OtherMachines }
    }

    /// Checks that the address may be connected to.
    ///
    /// # Errors
    /// Returns the kind of the address if it may not.
    pub(super) fn admit(self, address: IpAddr) -> Result<(), Forbidden> {
        let address = embedded(address);
        let forbidden = |what, unless| Err(Forbidden { address, what, unless });
        let link_local = match address {
            IpAddr::V4(four) => four.is_link_local(),
            IpAddr::V6(six) => six.is_unicast_link_local(),
        };
        if link_local || METADATA.contains(&address) {
            return forbidden("where machines are told secrets", "");
        }
        if address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return forbidden("the address of many machines", "");
        }
        if self == Self::OtherMachines && (address.is_loopback() || address.is_unspecified()) {
            return forbidden(
                "this machine itself",
                " unless the reference itself names it, as localhost:5000/plugin:1 does",
            );
        }
        Ok(())
    }
}

/// Returns the address if the host of a URL is one, or None if it is a name.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Returns the IPv4 address that an IPv6 address maps or translates (RFC 6052), else the address itself.
fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address.to_canonical() else { return address.to_canonical() };
    match six.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        _ => IpAddr::V6(six),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(reach: Reach, address: &str) -> bool {
        reach.admit(literal(address).unwrap()).is_ok()
    }

    #[test]
    fn link_local_and_metadata_addresses_are_out_of_reach_in_every_notation() {
        let out =
            ["169.254.169.254", "169.254.0.1", "fe80::1", "[fe80::1]", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"];
        let clouds =
            ["100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254", "224.0.0.1", "255.255.255.255"];
        for address in out.iter().chain(&clouds) {
            assert!(!admit(Reach::OtherMachines, address), "{address}");
            assert!(!admit(Reach::ThisMachineToo, address), "{address}");
        }
    }

    #[test]
    fn this_machine_is_in_reach_only_if_the_reference_names_it() {
        for host in ["localhost", "registry.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"] {
            assert_eq!(Reach::of(host), Reach::ThisMachineToo, "{host}");
        }
        for host in ["ghcr.io", "10.0.0.1", "localhost.example.com", "notlocalhost"] {
            assert_eq!(Reach::of(host), Reach::OtherMachines, "{host}");
        }
        for address in ["127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"] {
            assert!(!admit(Reach::OtherMachines, address), "{address}");
            assert!(admit(Reach::ThisMachineToo, address), "{address}");
        }
    }

    #[test]
    fn public_and_private_addresses_are_in_reach() {
        for address in ["140.82.121.34", "10.0.0.1", "192.168.1.1", "172.16.0.1", "2606:50c0::1", "fd12::1"] {
            assert!(admit(Reach::OtherMachines, address), "{address}");
        }
    }
}
