//! IP addresses and networks, as Kubernetes reads them: without zones, and without IPv4 in IPv6 form.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{CallResult, Function, text_of};
use crate::types::Type::{self, Bool, Int, Text};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("ip", &[Text], Type::Ip, |_, values| address(&values[0]).map(Value::Ip)),
    Function::global("isIP", &[Text], Bool, |_, values| Ok(Value::Bool(address(&values[0]).is_ok()))),
    Function::global("ip.isCanonical", &[Text], Bool, |_, values| {
        Ok(Value::Bool(address(&values[0])?.to_string() == text_of(&values[0])))
    }),
    Function::method("family", &[Type::Ip], Int, |_, values| match &values[0] {
        Value::Ip(IpAddr::V4(_)) => Ok(Value::Int(4)),
        _ => Ok(Value::Int(6)),
    }),
    Function::method("isUnspecified", &[Type::Ip], Bool, |_, values| is(values, |ip| ip.is_unspecified())),
    Function::method("isLoopback", &[Type::Ip], Bool, |_, values| is(values, |ip| ip.is_loopback())),
    Function::method("isLinkLocalMulticast", &[Type::Ip], Bool, |_, values| {
        is(values, is_link_local_multicast)
    }),
    Function::method("isLinkLocalUnicast", &[Type::Ip], Bool, |_, values| is(values, is_link_local_unicast)),
    Function::method("isGlobalUnicast", &[Type::Ip], Bool, |_, values| {
        is(values, |ip| {
            let broadcast = *ip == IpAddr::V4(Ipv4Addr::BROADCAST);
            let special = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast();
            !broadcast && !special && !is_link_local_unicast(ip)
        })
    }),
    Function::global("cidr", &[Text], Type::Cidr, |_, values| {
        network(&values[0]).map(|(address, bits)| Value::Cidr(address, bits))
    }),
    Function::global("isCIDR", &[Text], Bool, |_, values| Ok(Value::Bool(network(&values[0]).is_ok()))),
    Function::method("containsIP", &[Type::Cidr, Type::Ip], Bool, contains_address),
    Function::method("containsIP", &[Type::Cidr, Text], Bool, contains_address),
    Function::method("containsCIDR", &[Type::Cidr, Type::Cidr], Bool, contains_network),
    Function::method("containsCIDR", &[Type::Cidr, Text], Bool, contains_network),
    Function::method("ip", &[Type::Cidr], Type::Ip, |_, values| Ok(Value::Ip(network(&values[0])?.0))),
    Function::method("prefixLength", &[Type::Cidr], Int, |_, values| {
        Ok(Value::Int(i64::from(network(&values[0])?.1)))
    }),
    Function::method("masked", &[Type::Cidr], Type::Cidr, |_, values| {
        let (address, bits) = network(&values[0])?;
        Ok(Value::Cidr(masked(address, bits), bits))
    }),
];

fn is(values: &[Value], holds: fn(&IpAddr) -> bool) -> CallResult {
    Ok(Value::Bool(matches!(&values[0], Value::Ip(address) if holds(address))))
}

fn is_link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Returns an address from an address or its text.
fn address(value: &Value) -> Result<IpAddr, String> {
    if let Value::Ip(address) = value {
        return Ok(*address);
    }
    let text = text_of(value);
    text.parse()
        .ok()
        .filter(|address| !is_mapped(address))
        .ok_or_else(|| format!("`{text}` is no IP address"))
}

fn is_mapped(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

fn network(value: &Value) -> Result<(IpAddr, u8), String> {
    if let Value::Cidr(address, bits) = value {
        return Ok((*address, *bits));
    }
    let text = text_of(value);
    let read = || {
        let (address, bits) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok().filter(|address| !is_mapped(address))?;
        let plain = bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
        let bits: u8 = bits.parse().ok().filter(|bits| plain && *bits <= width(&address))?;
        Some((address, bits))
    };
    read().ok_or_else(|| format!("`{text}` is no network such as `10.0.0.0/8`"))
}

fn width(address: &IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

fn contains_address(_: &mut crate::run::Meter, values: &[Value]) -> CallResult {
    let ((outer, bits), address) = (network(&values[0])?, address(&values[1])?);
    let same = outer.is_ipv4() == address.is_ipv4();
    Ok(Value::Bool(same && masked(address, bits) == masked(outer, bits)))
}

fn contains_network(_: &mut crate::run::Meter, values: &[Value]) -> CallResult {
    let ((outer, bits), (inner, inner_bits)) = (network(&values[0])?, network(&values[1])?);
    let same = outer.is_ipv4() == inner.is_ipv4();
    Ok(Value::Bool(same && inner_bits >= bits && masked(inner, bits) == masked(outer, bits)))
}
