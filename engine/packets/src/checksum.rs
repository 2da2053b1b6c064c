//! The internet checksum (RFC 1071), kept as a running sum so that parts can be computed once.

/// Adds the 16-bit big-endian words of `bytes` to `sum`; an odd last byte is padded with zero.
pub fn add(sum: u64, bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let last = pairs.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.fold(sum, |sum, pair| sum + u64::from(u16::from_be_bytes([pair[0], pair[1]]))) + last
}

/// The checksum: the one's complement of the folded sum.
pub fn finish(sum: u64) -> u16 {
    let mut folded = (sum >> 32) + (sum & 0xFFFF_FFFF);
    while folded > 0xFFFF {
        folded = (folded >> 16) + (folded & 0xFFFF);
    }
    !(folded as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_is_reproduced() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(add(0, &bytes)), !0xddf2);
    }

    #[test]
    fn sums_of_parts_add_up_to_the_sum_of_the_whole() {
        let bytes: Vec<u8> = (0..=254).collect();
        assert_eq!(finish(add(add(0, &bytes[..100]), &bytes[100..])), finish(add(0, &bytes)));
    }
}
