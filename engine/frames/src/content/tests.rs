use std::collections::HashSet;

use super::*;

fn unique(seed: u64) -> Content {
    Content::new(FramesContent::Unique, seed)
}

fn filled(seed: u64, frame: u64, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    unique(seed).fill(frame, offset, &mut bytes);
    bytes
}

#[test]
fn what_was_written_is_found_right_also_where_a_frame_ends_within_a_block() {
    for length in [1, 31, 32, 33, 4095, 4096, 4097, 3 * 4096 + 20] {
        for verify in [Verify::None, Verify::Blocks, Verify::Full] {
            assert_eq!(unique(7).check(verify, 3, 8192, &filled(7, 3, 8192, length)), Ok(()), "{length}");
        }
    }
}

#[test]
fn content_is_the_same_in_whatever_pieces_it_is_made() {
    let whole = filled(7, 3, 0, 5 * 4096 + 100);
    let pieces = [filled(7, 3, 0, 2 * 4096), filled(7, 3, 2 * 4096, 3 * 4096 + 100)].concat();
    assert!(whole == pieces);
}

#[test]
fn a_flipped_bit_anywhere_is_found_by_the_full_comparison_and_told_with_its_place() {
    let content = unique(7);
    for length in [4096, 3 * 4096, 3 * 4096 + 100] {
        for at in [STAMP_BYTES, 2000, 4095, length - 1] {
            let mut bytes = filled(7, 3, 4096, length);
            bytes[at] ^= 0x10;
            let mismatch = content.check(Verify::Full, 3, 4096, &bytes).unwrap_err();
            assert_eq!(mismatch.found, Found::Changed { at: 4096 + at as u64 });
            assert_eq!(mismatch.offset, 4096 + (at / 4096 * 4096) as u64);
        }
        let mut bytes = filled(7, 3, 4096, length);
        bytes[0] ^= 1;
        assert_eq!(content.check(Verify::Blocks, 3, 4096, &bytes).unwrap_err().found, Found::Foreign);
    }
}

#[test]
fn what_is_there_instead_is_told() {
    let content = unique(7);
    let other = filled(8, 4, 8192, 4096);
    let mismatch = content.check(Verify::Blocks, 3, 0, &other).unwrap_err();
    assert_eq!(mismatch, Mismatch { offset: 0, found: Found::Other { seed: 8, frame: 4, offset: 8192 } });
    assert_eq!(content.check(Verify::Blocks, 3, 0, &[0; 5000]).unwrap_err().found, Found::Zeros);
    assert_eq!(content.check(Verify::Full, 3, 0, &[b'x'; 5000]).unwrap_err().found, Found::Foreign);
}

#[test]
fn no_two_pieces_of_64_bytes_are_alike_within_frames_or_between_them() {
    let mut seen = HashSet::new();
    for frame in 0..4 {
        for piece in filled(1, frame, 0, 1 << 20).chunks(64) {
            assert!(seen.insert(piece.to_vec()));
        }
    }
}

#[test]
fn every_byte_occurs_about_as_often_as_every_other() {
    let mut counts = [0u32; 256];
    filled(1, 0, 0, 1 << 20).iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    // 4096 of each are expected; the stamps add a few zeros, which are 12 of 32 bytes of each of 256 blocks or more.
    assert!(counts[1..].iter().all(|count| (3000..6500).contains(count)), "{counts:?}");
}

#[test]
fn a_buffer_that_is_stamped_again_holds_what_a_fresh_one_would() {
    for kind in [FramesContent::Unique, FramesContent::Stamped, FramesContent::Same] {
        stamped_again(&Content::new(kind, 7));
    }
}

fn stamped_again(content: &Content) {
    let mut kept = vec![0; 3 * 4096];
    let mut holds = None;
    for (frame, offset, length) in [
        (0, 0, 12_288),
        (0, 1 << 20, 12_288),
        (1, 0, 5000),
        (2, 0, 12_288),
        (2, 4096, 8192),
        (2, 4096, 12_288),
        (3, 4096, 9000),
    ] {
        let mut fresh = vec![0; length];
        content.fill(frame, offset, &mut fresh);
        content.fill_again(frame, offset, &mut kept[..length], &mut holds);
        assert!(fresh == kept[..length], "{frame} {offset} {length}");
        assert_eq!(content.check(Verify::Full, frame, offset, &kept[..length]), Ok(()));
    }
}

#[test]
fn stamped_blocks_differ_by_their_stamps_alone_after_a_mebibyte() {
    let content = Content::new(FramesContent::Stamped, 7);
    let mut bytes = vec![0; (1 << 20) + 4096];
    content.fill(3, 0, &mut bytes);
    let (first, last) = (&bytes[..4096], &bytes[1 << 20..]);
    assert!(first != last && first[STAMP_BYTES..] == last[STAMP_BYTES..]);
    assert!(first[STAMP_BYTES..] != bytes[4096..][STAMP_BYTES..4096]);
}

#[test]
fn frames_that_are_the_same_differ_by_the_stamp_of_their_first_block_alone() {
    let content = Content::new(FramesContent::Same, 7);
    let (mut one, mut other) = (vec![0; (1 << 20) + 8192], vec![0; (1 << 20) + 8192]);
    content.fill(3, 0, &mut one);
    content.fill(4, 0, &mut other);
    assert!(one[..4096] != other[..4096] && one[4096..] == other[4096..]);
    assert_eq!(read_stamp(&one[..4096]), Some((7, 3, 0)));
    assert!(content.check(Verify::Full, 3, 0, &one).is_ok() && content.check(Verify::Blocks, 4, 0, &one).is_err());
}
