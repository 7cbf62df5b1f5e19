//! The index of a pack: where each object begins, by its id. Version 2 of Git's format.

use git2::Oid;
use sha1::{Digest as _, Sha1};

/// An object's place in a pack.
pub(super) struct Indexed {
    pub(super) id: Oid,
    /// The checksum of the object as the pack has it, deflated and with its header.
    pub(super) crc: u32,
    pub(super) offset: u64,
}

/// Offsets from here on stand in a table of their own.
const LONG: u64 = 1 << 31;

/// The bytes of the index file.
pub(super) fn write(mut objects: Vec<Indexed>, pack_sum: &[u8]) -> Vec<u8> {
    objects.sort_unstable_by_key(|object| object.id);
    let mut out = Vec::with_capacity(1100 + 28 * objects.len());
    out.extend(b"\xfftOc\0\0\0\x02");
    for first in 0..=u8::MAX {
        let until = objects.partition_point(|object| object.id.as_bytes().first() <= Some(&first));
        out.extend((until as u32).to_be_bytes());
    }
    objects.iter().for_each(|object| out.extend(object.id.as_bytes()));
    objects.iter().for_each(|object| out.extend(object.crc.to_be_bytes()));
    let mut long: Vec<u64> = Vec::new();
    for Indexed { offset, .. } in &objects {
        let short = if *offset < LONG {
            *offset as u32
        } else {
            long.push(*offset);
            LONG as u32 | (long.len() - 1) as u32
        };
        out.extend(short.to_be_bytes());
    }
    long.iter().for_each(|offset| out.extend(offset.to_be_bytes()));
    out.extend(pack_sum);
    let sum = Sha1::digest(&out);
    out.extend(sum);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_are_too_long_for_four_bytes_stand_in_the_second_table() {
        let id = |byte: u8| Oid::from_bytes(&[byte; 20]).unwrap();
        let at = |byte, offset| Indexed { id: id(byte), crc: 7, offset };
        let index = write(vec![at(9, LONG + 5), at(3, LONG - 1), at(200, 12)], &[1; 20]);
        let fanout = 8..8 + 4 * 256;
        let last: Vec<u8> = index[fanout.clone()].chunks(4).map(|count| count[3]).collect();
        assert_eq!((last[2], last[3], last[9], last[199], last[200], last[255]), (0, 1, 2, 2, 3, 3));
        let offsets = fanout.end + 3 * 20 + 3 * 4;
        assert_eq!(index[offsets..offsets + 12], [0x7f, 255, 255, 255, 0x80, 0, 0, 0, 0, 0, 0, 12]);
        assert_eq!(index[offsets + 12..offsets + 20], [0, 0, 0, 0, 0x80, 0, 0, 5]);
        assert_eq!(index.len(), offsets + 20 + 2 * 20);
    }
}
