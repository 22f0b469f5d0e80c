//! IP addresses: which are on the public internet, and which belong together.

use std::net::{IpAddr, Ipv4Addr};

/// IPv4 ranges that are no hosts on the public internet (IANA IPv4 Special-Purpose Address Registry, RFC 6890).
const NOT_PUBLIC_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),       // this network, unspecified
    ([10, 0, 0, 0], 8),      // private
    ([100, 64, 0, 0], 10),   // shared by carrier-grade NAT
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local, with the metadata of clouds
    ([172, 16, 0, 0], 12),   // private
    ([192, 0, 0, 0], 24),    // IETF protocol assignments
    ([192, 0, 2, 0], 24),    // documentation
    ([192, 88, 99, 0], 24),  // 6to4 relays, deprecated
    ([192, 168, 0, 0], 16),  // private
    ([198, 18, 0, 0], 15),   // benchmarking
    ([198, 51, 100, 0], 24), // documentation
    ([203, 0, 113, 0], 24),  // documentation
    ([224, 0, 0, 0], 4),     // multicast
    ([240, 0, 0, 0], 4),     // reserved, limited broadcast
];

/// Whether an address is a host on the public internet. Private, loopback, link-local, unique-local, shared,
/// multicast, documentation, benchmarking, reserved and unspecified addresses are not. An IPv6 address that embeds IPv4
/// addresses (mapped, compatible, NAT64, 6to4, Teredo) is public if all of these are.
///
/// ```
/// use capo_gateway::is_public;
///
/// assert!(is_public("8.8.8.8".parse().unwrap()));
/// assert!(!is_public("::ffff:169.254.169.254".parse().unwrap()));
/// ```
pub fn is_public(address: IpAddr) -> bool {
    let v6 = match address {
        IpAddr::V4(address) => return is_public_v4(address),
        IpAddr::V6(address) => address,
    };
    let embedded = |shift: u32| Ipv4Addr::from_bits((v6.to_bits() >> shift) as u32);
    match v6.segments() {
        // Compatible and mapped (RFC 4291), translated (RFC 2765), NAT64 (RFC 6052). :: and ::1 are among the first.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            is_public_v4(embedded(0))
        }
        // 6to4 (RFC 3056).
        [0x2002, ..] => is_public_v4(embedded(80)),
        // Teredo: its server, and its client with all bits inverted (RFC 4380).
        [0x2001, 0, ..] => {
            is_public_v4(embedded(64)) && is_public_v4(Ipv4Addr::from_bits(!embedded(0).to_bits()))
        }
        // IETF protocol assignments with benchmarking and ORCHID, documentation twice (IANA IPv6 Special-Purpose
        // Address Registry).
        [0x2001, 0..0x200 | 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // All global unicast.
        [first, ..] => first >> 13 == 1,
    }
}

/// The network of an address: of IPv6 the first half, which one subscriber has to themselves.
pub fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        IpAddr::V4(address) => address.to_string(),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_within = |(range, length): &([u8; 4], u32)| {
        (address.to_bits() ^ u32::from_be_bytes(*range)) >> (32 - length) == 0
    };
    !NOT_PUBLIC_V4.iter().any(is_within)
}

#[cfg(test)]
mod tests {
    #[cfg(not(target_arch = "wasm32"))]
    use std::net::Ipv6Addr;

    use super::*;

    const PUBLIC: &str = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
        169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0
        198.17.255.255 198.20.0.0 203.0.112.255 203.0.114.0 223.255.255.255 2606:4700::1111 2001:4860:4860::8888
        2001:200::1 2000::1 3ffe::1 3fff:1000::1 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1
        2001:0:808:808::f7f7:f7f7";

    const NOT_PUBLIC: &str = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1
        127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.255 192.0.2.1 192.88.99.1 192.168.0.1
        192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
        255.255.255.255 :: ::1 ::7f00:1 ::10.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:192.168.1.1
        64:ff9b::a00:1 64:ff9b::7f00:1 64:ff9b:1::808:808 100::1 2001:0:808:808::f5ff:fffe 2001:0:a00:1::f7f7:f7f7
        2001:1::1 2001:2::1 2001:10::1 2001:20::1 2001:1ff::1 2001:db8::1 2002:a00:1::1 2002:7f00:1::1
        2002:c0a8:101:: 3fff::1 3fff:fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 ff02::1
        ffff::1";

    #[test]
    fn addresses_are_classified() {
        for (addresses, public) in [(PUBLIC, true), (NOT_PUBLIC, false)] {
            for address in addresses.split_whitespace() {
                assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
            }
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    proptest::proptest! {
        #[test]
        fn every_form_of_an_ipv4_address_is_judged_as_the_address(bits in proptest::num::u32::ANY) {
            let (v4, low) = (IpAddr::V4(Ipv4Addr::from_bits(bits)), u128::from(bits));
            for form in [low, 0xffff << 32 | low, 0x64_ff9b << 96 | low, 0x2002 << 112 | low << 80] {
                let form = IpAddr::V6(Ipv6Addr::from_bits(form));
                proptest::prop_assert_eq!(is_public(form), is_public(v4), "{}", form);
            }
        }
    }
}
