//! The order in which clusters are served: weight descending, then a hash that differs from workload to
//! workload, so that the rounding falls on different clusters.

use std::cmp::Reverse;

/// 32-bit FNV-1 (multiply, then xor) of the cluster's name, with the key right behind it.
pub fn hash(cluster: &str, key: &str) -> u32 {
    let step = |hash: u32, byte: u8| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte);
    cluster.bytes().chain(key.bytes()).fold(0x811c_9dc5, step)
}

/// Sorts ascending by this. Names decide only between equal hashes.
pub(super) fn rank(weight: i128, hash: u32, cluster: &str) -> (Reverse<i128>, u32, &str) {
    (Reverse(weight), hash, cluster)
}
