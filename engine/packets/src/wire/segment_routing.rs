//! The segment routing header of SRv6 (RFC 8754 2), an extension header of IPv6, before its list of segments.

use super::view::{Field, Header};

/// The header without its segments, each of which is an address of 16 bytes.
#[derive(Debug)]
pub struct SegmentRouting;

impl Header for SegmentRouting {
    const BYTES: usize = 8;
}

/// RFC 8754 2, "Next Header".
pub const NEXT_HEADER: Field<SegmentRouting, u8> = Field::new(0);
/// RFC 8754 2, "Hdr Ext Len": the length of the segments in units of 8 bytes.
pub const LENGTH: Field<SegmentRouting, u8> = Field::new(1);
/// RFC 8754 2, "Routing Type".
pub const TYPE: Field<SegmentRouting, u8> = Field::new(2);
/// RFC 8754 2, "Segments Left": the index of the segment that is the destination now.
pub const SEGMENTS_LEFT: Field<SegmentRouting, u8> = Field::new(3);
/// RFC 8754 2, "Last Entry": the index of the last segment of the list, the first of the path.
pub const LAST_ENTRY: Field<SegmentRouting, u8> = Field::new(4);

/// RFC 8754 2: the routing type of this header.
pub const SEGMENT_ROUTING: u8 = 4;
/// Bytes of a segment.
pub const SEGMENT_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_written_to_its_place() {
        let mut written = Vec::new();
        let mut header = SegmentRouting::append(&mut written);
        header.set(NEXT_HEADER, 41);
        header.set(LENGTH, 4);
        header.set(TYPE, SEGMENT_ROUTING);
        header.set(SEGMENTS_LEFT, 1);
        header.set(LAST_ENTRY, 1);
        assert_eq!(written, [41, 4, 4, 1, 1, 0, 0, 0]);
        assert!(SegmentRouting::at(&written, 1).is_none());
    }
}
