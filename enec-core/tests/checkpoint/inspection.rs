//! What inspection says, of originals and of compressed checkpoints.

use enec_core::CodecChoice;
use enec_core::checkpoint::{self, CodecInspection, Inspection};

use crate::backend::{codec, codec_of};
use crate::sample::{Place, file, message, options, sample, tensor, weights};

fn inspect(path: &std::path::Path) -> Inspection {
    checkpoint::inspect(&codec(), path, &options(), &mut ()).unwrap()
}

#[test]
fn of_an_original_it_says_what_compressing_makes_of_it() {
    let place = Place::new();
    let original = place.write("original", sample());
    let small = place.path("small");
    let report = checkpoint::compress(&codec(), &original, &small, &options(), &mut ()).unwrap();
    let (before, after) = (inspect(&original), inspect(&small));
    assert!(!before.is_compressed && after.is_compressed);
    assert_eq!((before.original_bytes, before.compressed_bytes), (report.input_bytes, report.output_bytes));
    assert_eq!((after.original_bytes, after.compressed_bytes), (report.input_bytes, report.output_bytes));
    assert_eq!((before.streams, after.streams), (report.streams, report.streams));
    assert_eq!(before.tensors.len(), 18);
    for (before, after) in before.tensors.iter().zip(&after.tensors) {
        assert_eq!((&before.name, &before.dtype, &before.shape), (&after.name, &after.dtype, &after.shape));
        assert_eq!(before.compressed_bytes, after.compressed_bytes, "{}", before.name);
        assert_eq!(before.stream, after.stream, "{}", before.name);
    }
}

#[test]
fn figures_of_streams_that_can_be_reckoned_by_hand() {
    // Exponents 120 and 121 in turn over rows: one bit each. Of 128 lanes, two have another exponent once: 7 wide lanes in 8 tiles.
    let mut words =
        Vec::from_iter((0..16_384_u32).map(|element| if element / 128 % 2 == 0 { 120_u16 << 7 } else { 121 << 7 }));
    for tile in 0..7 {
        words[tile * 2048 + 5] = 118 << 7;
    }
    let bytes = Vec::from_iter(words.iter().flat_map(|word| word.to_le_bytes()));
    let place = Place::new();
    let path = place.write("a", file(&[tensor("t", "BF16", &[16_384], bytes)], "", ""));
    let inspect = |choice| checkpoint::inspect(&codec_of(choice), &path, &options(), &mut ()).unwrap();
    let inspection = inspect(CodecChoice::Enec);
    let tensor = &inspection.tensors[0];
    let stream = tensor.stream.as_ref().unwrap();
    let expected = CodecInspection::Enec { common_base: 121, common_width: 1, wide_lane_share: 7.0 / 1024.0 };
    assert_eq!(stream.codec, expected);
    // Table 8 bytes, mask 128, low plane 2048, high segment of 7 lanes padded to 16 at one more bit: 32.
    assert_eq!(stream.exponent_bits, 8.0 * (8.0 + 128.0 + 2048.0 + 32.0) / 16_384.0);
    let share = [7.0 / 16_384.0, 8185.0 / 16_384.0, 8192.0 / 16_384.0_f64];
    let entropy = -share.iter().map(|share| share * share.log2()).sum::<f64>();
    assert!((stream.exponent_entropy - entropy).abs() < 1e-12);
    // Header 64, table padded to 64, mask 128, byte plane 16,384, low plane 2048, high segment padded to 64.
    assert_eq!(tensor.compressed_bytes, 64 + 64 + 128 + 16_384 + 2048 + 64);
    assert_eq!(tensor.ratio, 32_768.0 / 18_752.0);

    // Three symbols are enough: no element escapes. The exponent that occurs most ranks first.
    let inspection = inspect(CodecChoice::Cascade);
    let tensor = &inspection.tensors[0];
    let stream = tensor.stream.as_ref().unwrap();
    let expected = CodecInspection::Cascade { levels: 1, symbols: vec![121, 120, 118], escape_shares: vec![0.0] };
    assert_eq!(stream.codec, expected);
    // Table 8 bytes, low plane 4096.
    assert_eq!(stream.exponent_bits, 8.0 * (8.0 + 4096.0) / 16_384.0);
    assert!((stream.exponent_entropy - entropy).abs() < 1e-12);
    assert_eq!(tensor.compressed_bytes, 64 + 64 + 64 + 16_384 + 4096);
    assert_eq!(inspect(CodecChoice::Auto), inspect(CodecChoice::Enec), "the smaller one");
}

#[test]
fn escapes_are_told_level_by_level() {
    // Of 16 rows, 8 hold exponent 100, 4 hold 101, 2 hold 102, and 103 and 104 have one each: 2 of 16 escape.
    let row_exponents = [100, 100, 100, 100, 100, 100, 100, 100, 101, 101, 101, 101, 102, 102, 103, 104_u16];
    let words = (0..2048).map(|element: usize| (row_exponents[element / 128] << 7).to_le_bytes());
    let place = Place::new();
    let tensors = [tensor("t", "BF16", &[2048], words.flatten().collect())];
    let path = place.write("a", file(&tensors, "", ""));
    let inspection = checkpoint::inspect(&codec_of(CodecChoice::Cascade), &path, &options(), &mut ()).unwrap();
    let stream = inspection.tensors[0].stream.as_ref().unwrap();
    let CodecInspection::Cascade { levels, symbols, escape_shares } = &stream.codec else { panic!("{stream:?}") };
    assert_eq!((*levels, &symbols[..3], escape_shares[0]), (2, &[100, 101, 102][..], 2.0 / 16.0));
    // Table 8 bytes, low plane 512, 256 codes of the second level.
    assert_eq!((&symbols[3..5], escape_shares[1]), (&[103, 104][..], 0.0));
    assert_eq!(stream.exponent_bits, 8.0 * (8.0 + 512.0 + 64.0) / 2048.0);
}

#[test]
fn carried_tensors_have_no_figures() {
    let place = Place::new();
    let tensors =
        [tensor("ids", "I64", &[1], vec![0; 8]), weights("w", "BF16", &[2000], 1), tensor("e", "F32", &[0], vec![])];
    let inspection = inspect(&place.write("a", file(&tensors, "", "")));
    assert_eq!(inspection.streams, 0);
    for tensor in &inspection.tensors {
        assert_eq!((tensor.stream.as_ref(), tensor.ratio, tensor.compressed_bytes), (None, 1.0, tensor.original_bytes));
    }
    assert!(inspection.ratio < 1.0, "the new header is longer");
}

#[test]
fn originals_and_compressed_files_in_one_folder_are_told_apart() {
    let place = Place::new();
    let original = place.write("model/a.safetensors", sample());
    checkpoint::compress(&codec(), &original, &place.path("model/b.safetensors"), &options(), &mut ()).unwrap();
    let mixed = checkpoint::inspect(&codec(), &place.path("model"), &options(), &mut ());
    assert_eq!(message(mixed), "model: original and compressed files are mixed");
}
