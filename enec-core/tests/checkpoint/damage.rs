//! Damaged files: an error, never a panic, nothing under the final name, and the other tensors still readable.

use std::fs;
use std::path::Path;

use enec_core::checkpoint::{self, CheckpointFile, Damage, Options, StoredForm};
use enec_core::{CodecChoice, Error, Result};
use enec_format::geometry::HEADER_BYTES;
use enec_format::hash::xxh3_64;
use enec_format::{Header, Layout, Stream};

use crate::backend::{Fault, codec, codec_of, codec_with};
use crate::sample::{Place, Random, Tensor, file, message, noise, options, sample, tensor, weights};

fn compressed(original: &[u8]) -> Vec<u8> {
    compressed_by(CodecChoice::Enec, original)
}

fn compressed_by(choice: CodecChoice, original: &[u8]) -> Vec<u8> {
    let place = Place::new();
    let (input, output) = (place.write("in", original), place.path("out"));
    checkpoint::compress(&codec_of(choice), &input, &output, &options(), &mut ()).unwrap();
    fs::read(output).unwrap()
}

/// Both codecs.
const CODECS: [CodecChoice; 2] = [CodecChoice::Enec, CodecChoice::Cascade];

/// A few kilobytes with a stream of several blocks' worth of structure, one of each other dtype, and carried tensors.
fn small_tensors() -> Vec<Tensor> {
    vec![
        weights("a", "BF16", &[2048 + 5], 1),
        noise("n", "I8", &[40], 40, 2),
        weights("b", "F16", &[2048], 3),
        tensor("s", "F32", &[], vec![1, 2, 3, 4]),
    ]
}

/// What a reader that checks everything makes of a file.
fn check(path: &Path) -> Result<Vec<Damage>> {
    Ok(checkpoint::verify(&codec(), path, None, &options(), &mut ())?.damages)
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for choice in CODECS {
        let whole = compressed_by(choice, &file(&small_tensors(), "", ""));
        let place = Place::new();
        for len in 0..whole.len() {
            let path = place.write("cut", &whole[..len]);
            let error = CheckpointFile::open(&path).unwrap_err();
            assert!(matches!(error, Error::File { .. }), "{len}: {error}");
        }
        for extra in [1, 64] {
            let path = place.write("long", [&whole[..], &vec![0; extra]].concat());
            assert!(CheckpointFile::open(&path).is_err(), "{extra}");
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    CODECS.into_iter().for_each(find_flipped_bits);
}

fn find_flipped_bits(choice: CodecChoice) {
    let original = file(&small_tensors(), r#"{"format":"pt"}"#, "");
    let whole = compressed_by(choice, &original);
    let place = Place::new();
    let restored = place.path("restored");
    let mut harmless = 0;
    for byte in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << (byte % 8);
        let path = place.write("damaged", &damaged);
        match check(&path) {
            Err(error) => assert!(error.is_input(), "byte {byte}: {error}"),
            Ok(damages) => assert_eq!(damages.len(), 1, "byte {byte}: {damages:?}"),
        }
        if byte % 8 == 0 {
            match checkpoint::decompress(&codec(), &path, &restored, &options(), &mut ()) {
                Err(error) => assert!(error.is_input(), "byte {byte}: {error}"),
                Ok(_) => {
                    // A symbol that no element has: what comes out is right.
                    assert!(fs::read(&restored).unwrap() == original, "byte {byte}");
                    fs::remove_file(&restored).unwrap();
                    harmless += 1;
                }
            }
            assert_eq!(place.names(), ["damaged"]);
        }
    }
    assert!(harmless <= if choice == CodecChoice::Cascade { 2 } else { 0 }, "{choice}: {harmless}");
}

#[test]
fn random_damage_is_found_or_harmless() {
    CODECS.into_iter().for_each(find_random_damage);
}

fn find_random_damage(choice: CodecChoice) {
    let original = file(&small_tensors(), r#"{"format":"pt"}"#, "");
    let whole = compressed_by(choice, &original);
    let place = Place::new();
    let restored = place.path("restored");
    let mut random = Random(3);
    let mut found = 0;
    for round in 0..1500 {
        let mut damaged = whole.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(damaged.len());
            let end = at + random.below((damaged.len() - at).min(100) + 1);
            match random.below(4) {
                0 => damaged[at] = random.next().to_be_bytes()[0],
                1 => damaged[at..end].fill(0),
                2 => {
                    let piece = damaged[at..end].to_vec();
                    let to = random.below(damaged.len() - piece.len() + 1);
                    damaged[to..to + piece.len()].copy_from_slice(&piece);
                }
                _ => drop(damaged.drain(at..end)),
            }
        }
        let path = place.write("damaged", &damaged);
        let sound = check(&path).is_ok_and(|damages| damages.is_empty());
        match checkpoint::decompress(&codec(), &path, &restored, &options(), &mut ()) {
            Ok(_) => {
                // Symbols that no element has are only found by the payload hash.
                assert!(sound || choice == CodecChoice::Cascade, "round {round}");
                assert!(fs::read(&restored).unwrap() == original, "round {round}");
                fs::remove_file(&restored).unwrap();
            }
            Err(_) => {
                found += 1;
                assert!(!sound, "round {round}");
                assert_eq!(place.names(), ["damaged"]);
            }
        }
    }
    assert!(found > 1000, "{found}");
}

/// The compressed sample with the stream of `name` changed.
fn with_stream(choice: CodecChoice, name: &str, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = compressed_by(choice, &sample());
    let place = Place::new();
    let file = CheckpointFile::open(&place.write("c", &bytes)).unwrap();
    let stream = file.tensor(name).unwrap().stored_bytes();
    let at = bytes.windows(stream.len()).position(|window| window == stream).unwrap();
    let len = stream.len();
    change(&mut bytes[at..at + len]);
    bytes
}

/// The damages of the compressed sample with the stream of `name` changed. All other tensors must be as they were.
fn damage_of(name: &str, change: impl FnOnce(&mut [u8])) -> Damage {
    damage_of_codec(CodecChoice::Enec, name, change)
}

fn damage_of_codec(choice: CodecChoice, name: &str, change: impl FnOnce(&mut [u8])) -> Damage {
    let place = Place::new();
    let path = place.write("damaged", with_stream(choice, name, change));
    let mut damages = check(&path).unwrap();
    let damage = damages.pop().unwrap();
    assert_eq!(damages, []);
    assert_eq!((damage.file.as_path(), damage.tensor.as_deref()), (&*path, Some(name)));

    let checkpoint = CheckpointFile::open(&path).unwrap();
    for Tensor { name: other, bytes, .. } in crate::sample::tensors() {
        let mut target = vec![0; bytes.len()];
        let result = checkpoint.tensor(&other).unwrap().decode_into(&codec(), &mut target);
        if other == name {
            let error = result.unwrap_err();
            assert!(matches!(&error, Error::Tensor { tensor, .. } if tensor == name), "{error}");
        } else {
            result.unwrap();
            assert!(target == bytes, "{other}");
        }
    }
    let error = checkpoint::decompress(&codec(), &path, &place.path("out"), &options(), &mut ());
    assert!(message(error).starts_with(&format!("damaged: tensor `{name}`: ")));
    assert_eq!(place.names(), ["damaged"]);
    damage
}

fn layout(stream: &[u8]) -> Layout {
    Stream::open(stream).unwrap().layout().clone()
}

/// Changes the header and makes its checksum right again.
fn with_header(stream: &mut [u8], change: impl FnOnce(&mut [u8])) {
    change(&mut stream[..HEADER_BYTES]);
    let checksum = xxh3_64(&stream[..56]);
    stream[56..64].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn the_damaged_tensor_is_named_with_its_block_and_the_others_are_read() {
    const NAME: &str = "bf16.blocks-and-tail";
    // Structure names the block.
    let damage = damage_of(NAME, |stream| {
        let at = layout(stream).block(1).entry.start + 1;
        stream[at] = 9;
    });
    assert_eq!(damage.block, Some(1));
    assert!(damage.message.starts_with("block 1: wide width 9 outside"), "{}", damage.message);
    let damage = damage_of(NAME, |stream| {
        let at = layout(stream).block(0).entry.start + 4;
        stream[at] ^= 2;
    });
    assert_eq!(damage.block, Some(0));
    assert!(damage.message.starts_with("block 0: segment of "), "{}", damage.message);
    // Hashes cover the whole tensor.
    let damage = damage_of(NAME, |stream| {
        let at = layout(stream).byte_plane.offset + 777;
        stream[at] ^= 0x40;
    });
    assert_eq!(damage.block, None);
    assert!(damage.message.starts_with("payload hash mismatch"), "{}", damage.message);
    let damage = damage_of(NAME, |stream| {
        let at = layout(stream).tail.offset;
        stream[at] ^= 1;
    });
    assert!(damage.message.starts_with("payload hash mismatch"), "{}", damage.message);
    // A content hash that disagrees although the payload is right.
    let damage = damage_of("f16", |stream| with_header(stream, |header| header[40] ^= 1));
    assert!(damage.message.starts_with("content hash mismatch"), "{}", damage.message);
    // Fields of the stream that disagree with the file's header.
    let damage = damage_of("f32", |stream| stream[60] ^= 1);
    assert!(damage.message.starts_with("header checksum mismatch"), "{}", damage.message);
    let damage = damage_of("zeros", |stream| with_header(stream, |header| header[17] = 0));
    assert!(damage.message.contains("length"), "{}", damage.message);
    for count in [u64::MAX, 1 << 63, 1 << 62, 1 << 40] {
        damage_of("zeros", |stream| with_header(stream, |header| header[16..24].copy_from_slice(&count.to_le_bytes())));
        damage_of("zeros", |stream| with_header(stream, |header| header[24..32].copy_from_slice(&count.to_le_bytes())));
        damage_of("zeros", |stream| with_header(stream, |header| header[32..40].copy_from_slice(&count.to_le_bytes())));
    }
    let damage = damage_of("f16", |stream| with_header(stream, |header| header[8] = 2));
    assert!(damage.message.contains("newer"), "{}", damage.message);
}

#[test]
fn the_damaged_block_of_a_cascade_is_named() {
    const NAME: &str = "bf16.blocks-and-tail";
    let damage_of = |change: &dyn Fn(&mut [u8])| damage_of_codec(CodecChoice::Cascade, NAME, change);
    let damage = damage_of(&|stream| {
        let at = layout(stream).block(1).entry.start;
        stream[at] = 9;
    });
    assert_eq!(damage.block, Some(1));
    assert!(damage.message.starts_with("block 1: table byte that codec 2 does not use is 9"), "{}", damage.message);
    // Escapes where there were none.
    let damage = damage_of(&|stream| {
        let low_plane = layout(stream).block(2).low_plane;
        stream[low_plane][..100].fill(0xFF);
    });
    assert_eq!(damage.block, Some(2));
    assert!(damage.message.starts_with("block 2: segment of "), "{}", damage.message);
    let damage = damage_of(&|stream| {
        let at = layout(stream).byte_plane.offset + 777;
        stream[at] ^= 0x40;
    });
    assert_eq!(damage.block, None);
    assert!(damage.message.starts_with("payload hash mismatch"), "{}", damage.message);
    let damage = damage_of(&|stream| stream.copy_within(64..65, 65));
    assert!(damage.message.contains("occurs twice"), "{}", damage.message);
    let damage = damage_of(&|stream| stream[64..66].reverse());
    assert!(damage.message.starts_with("payload hash mismatch"), "{}", damage.message);
    let damage = damage_of(&|stream| with_header(stream, |header| header[12] = 6));
    assert!(damage.message.starts_with("6 levels"), "{}", damage.message);
}

#[test]
fn a_stream_that_is_none_of_its_tensor_is_refused() {
    // Sealed in all its parts, but made of something else. BF16 and F32 of the same bytes have streams of the same length rarely; so the
    // one stream takes the other's place by a header that says less.
    let damage = damage_of("f16", |stream| {
        with_header(stream, |header| {
            let unsealed = Header { content_hash: None, payload_hash: None, ..Header::parse(header).unwrap() };
            header.copy_from_slice(&unsealed.to_bytes());
        });
    });
    assert!(damage.message.contains("not sealed"), "{}", damage.message);

    // Two tensors of equal bytes but unequal dtype: their streams cannot be exchanged.
    let tensors = [weights("a", "BF16", &[4096], 1), weights("b", "F16", &[4096], 1)];
    let bytes = compressed(&file(&tensors, "", ""));
    let place = Place::new();
    let path = place.write("c", &bytes);
    let opened = CheckpointFile::open(&path).unwrap();
    let stream = opened.tensor("a").unwrap().stored_bytes().to_vec();
    let other = opened.tensor("b").unwrap().stored_bytes().to_vec();
    let text = String::from_utf8_lossy(&bytes[8..bytes.len() - stream.len() - other.len()]).into_owned();
    let start = 8 + text.len();
    let text = text.replace(r#""a":{"dtype":"U8""#, r#""tmp":{"dtype":"U8""#);
    let text = text.replace(r#""b":{"dtype":"U8""#, r#""a":{"dtype":"U8""#).replace(r#""tmp":{"#, r#""b":{"#);
    let exchanged = [&bytes[..8], text.as_bytes(), &bytes[start..]].concat();
    let damages = check(&place.write("c", exchanged)).unwrap();
    assert_eq!(damages.len(), 2);
    assert_eq!(damages[0].message, "the stream holds 4096 F16 elements, but the original header says 4096 BF16");
}

#[test]
fn a_stored_stream_is_refused() {
    // Exactly as long as the coded stream that it replaces: opaque bytes would be of another dtype, so BF16 stored.
    let mut tensors = vec![weights("a", "BF16", &[4096], 1)];
    let coded = compressed(&file(&tensors, "", ""));
    let place = Place::new();
    let path = place.write("c", &coded);
    let len = CheckpointFile::open(&path).unwrap().tensor("a").unwrap().stored_bytes().len();
    let elements = (len - 64) / 2;
    tensors[0] = weights("a", "BF16", &[elements as u64], 1);
    let plain = &tensors[0].bytes;
    let stored =
        enec_format::reference::encode_stream(enec_format::Dtype::Bf16, enec_format::Coding::Stored, plain).unwrap();
    assert_eq!(stored.len(), len);
    // The container of that shorter tensor, in which the stored stream takes the place of the coded one.
    let short = compressed(&file(&tensors, "", ""));
    let opened = CheckpointFile::open(&place.write("c", &short)).unwrap();
    let short_len = opened.tensor("a").unwrap().stored_bytes().len();
    let start = short.len() - short_len;
    let text = String::from_utf8(short[8..start].to_vec()).unwrap();
    let text = text
        .replace(&format!("[{short_len}]"), &format!("[{len}]"))
        .replace(&format!("[0,{short_len}]"), &format!("[0,{len}]"));
    let bytes = [&(text.len() as u64).to_le_bytes(), text.as_bytes(), &stored].concat();
    let damages = check(&place.write("c", bytes)).unwrap();
    assert_eq!(damages[0].message, "the stream is a stored one, which a compressed file never holds");
}

#[test]
fn carried_tensors_are_checked_too() {
    let bytes = compressed(&sample());
    let place = Place::new();
    let position = bytes.windows(24).rposition(|window| window == [7; 24]).unwrap();
    let mut damaged = bytes;
    damaged[position + 5] ^= 0x80;
    let path = place.write("damaged", damaged);
    let damages = check(&path).unwrap();
    assert_eq!(damages.len(), 1);
    assert_eq!(damages[0].tensor.as_deref(), Some("ids"));
    assert!(damages[0].message.starts_with("content hash mismatch"));
    let checkpoint = CheckpointFile::open(&path).unwrap();
    let tensor = checkpoint.tensor("ids").unwrap();
    assert_eq!(tensor.form(), StoredForm::Carried);
    let error = tensor.decode_into(&codec(), &mut [0; 24]);
    assert!(message(error).starts_with("damaged: tensor `ids`: content hash mismatch"));
}

#[test]
fn several_damaged_tensors_are_all_reported() {
    let mut bytes = with_stream(CodecChoice::Enec, "f16", |stream| stream[70] ^= 1);
    let place = Place::new();
    let opened = CheckpointFile::open(&place.write("c", &bytes)).unwrap();
    let last = opened.tensor("bf16.last").unwrap().stored_bytes();
    let at = bytes.windows(last.len()).position(|window| window == last).unwrap();
    bytes[at] ^= 1;
    let damages = check(&place.write("c", bytes)).unwrap();
    let names = Vec::from_iter(damages.iter().filter_map(|damage| damage.tensor.as_deref()));
    assert_eq!(names, ["f16", "bf16.last"]);
}

#[test]
fn comparing_with_an_original_finds_the_block() {
    let place = Place::new();
    let small = place.write("small", compressed(&sample()));
    let original = place.write("original", sample());
    let verify = |original: &Path| {
        let verification = checkpoint::verify(&codec(), &small, Some(original), &options(), &mut ())?;
        // The same if the backend hands over what it decodes, in windows of one block or of several.
        for window_bytes in [1, 2 * 32_768, 1 << 20] {
            let (codec, options) = (codec_with(Fault::Reports), Options { window_bytes, ..options() });
            let reported = checkpoint::verify(&codec, &small, Some(original), &options, &mut ())?;
            assert_eq!(reported.damages, verification.damages);
        }
        Ok::<_, Error>(verification)
    };
    let sound = verify(&original).unwrap();
    assert_eq!((sound.damages, sound.files, sound.tensors), (vec![], 1, 18));

    // Byte 70,001 of the tensor is in its third block of 16-bit elements.
    let mut other = sample();
    let plain = &crate::sample::tensors()[1].bytes;
    let at = other.windows(plain.len()).position(|window| window == plain).unwrap();
    other[at + 70_001] ^= 1;
    let damages = verify(&place.write("other", other)).unwrap().damages;
    assert_eq!(damages.len(), 1);
    assert_eq!((damages[0].tensor.as_deref(), damages[0].block), (Some("bf16.blocks-and-tail"), Some(2)));
    assert_eq!(damages[0].message, "differs from the original from byte 70001 on");

    // Small tensors are decoded together, and each is compared for itself.
    let mut other = sample();
    for name in ["f32", "zeros"] {
        let plain = crate::sample::tensors().into_iter().find(|tensor| tensor.name == name).unwrap().bytes;
        let at = other.windows(plain.len()).position(|window| window == plain).unwrap();
        other[at + 5] ^= 1;
    }
    let damages = verify(&place.write("other", other)).unwrap().damages;
    let names = Vec::from_iter(damages.iter().filter_map(|damage| damage.tensor.as_deref()));
    assert_eq!(names, ["f32", "zeros"]);

    let another_header = file(&crate::sample::tensors(), "", "");
    let damages = verify(&place.write("another", another_header)).unwrap().damages;
    assert_eq!((damages.len(), &damages[0].tensor), (1, &None));
    assert!(verify(&small).is_err(), "a compressed file is no original");
}
