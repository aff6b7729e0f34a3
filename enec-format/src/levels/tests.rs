//! Counting escapes and placing levels, computed another way.

use alloc::vec::Vec;

use super::*;

fn code(bytes: &[u8], index: usize) -> u8 {
    bytes[index / 4] >> (2 * (index % 4)) & 3
}

#[test]
fn escapes_are_counted_code_by_code() {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    // Several sums of words, and all escapes, whose sums are the largest.
    for bytes in [Vec::from_iter((0..1500).map(|_| next())), [0xFF; 1500].to_vec(), [0; 1500].to_vec()] {
        for codes in (0..200).chain(4 * 500..4 * 520).chain([4 * 1499 + 1, 6000]) {
            let expected = (0..codes).filter(|&index| code(&bytes, index) == 3).count();
            assert_eq!(escapes(&bytes, codes), expected, "{codes} codes");
        }
        let all = escapes(&bytes, 6000);
        assert_eq!(escapes(&bytes, usize::MAX), all, "codes that are not there are no escapes");
    }
    assert_eq!(escapes(&[], 100), 0);
}

#[test]
fn levels_follow_each_other_at_multiples_of_32_bits() {
    let levels = Levels::new(&[2048, 500, 33, 16, 3]);
    assert_eq!((levels.codes(1), levels.codes(4), levels.raw_count()), (2048, 16, 3));
    assert_eq!((levels.level(2), levels.level(3), levels.level(4)), (0..128, 128..140, 140..144));
    assert_eq!((levels.raw(), levels.segment_len()), (144..147, 160));
    let one = Levels::new(&[2048, 32]);
    assert_eq!((one.raw(), one.segment_len()), (0..32, 32));
    assert_eq!(Levels::new(&[2048, 0, 0]).segment_len(), 0);
    assert_eq!([0, 1, 16, 17].map(level_len), [0, 4, 4, 8]);
}

#[test]
fn no_segment_is_longer_than_the_longest() {
    for levels in 1..=5 {
        let reached = [2048; 6];
        let longest = Levels::new(&reached[..=usize::from(levels)]).segment_len();
        assert_eq!(Levels::longest_segment(levels, 2048), Some(longest));
        assert_eq!(Levels::longest_segment(levels, 8 * 2048), Some(8 * longest));
    }
    assert_eq!(Levels::longest_segment(5, usize::MAX), None);
}
