//! The order in which clusters get replicas: weight descending, then a hash that differs between workloads,
//! so that the rounding falls on different clusters.

use std::cmp::Reverse;

/// Returns the 32-bit FNV-1 hash (multiply, then xor) of the cluster's name, directly followed by the key.
pub fn hash(cluster: &str, key: &str) -> u32 {
    let step = |hash: u32, byte: u8| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte);
    cluster.bytes().chain(key.bytes()).fold(0x811c_9dc5, step)
}

/// Returns the sort key, ascending. Names decide only between equal hashes.
pub(super) fn rank(weight: i128, hash: u32, cluster: &str) -> (Reverse<i128>, u32, &str) {
    (Reverse(weight), hash, cluster)
}
