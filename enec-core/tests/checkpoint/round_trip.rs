//! Compressed and restored: the same bytes, whatever is in the file and however it is cut into windows.

use std::fs;

use enec_core::checkpoint::{self, Checkpoint, CheckpointFile, Options, Step, StoredForm};
use enec_core::{Codec, CodecChoice, Profile};
use enec_format::Dtype;
use safetensors::SafeTensors;

use crate::backend::{Fault, codec, codec_of, codec_with, codec_without_cascade};
use crate::sample::{Counter, Place, Tensor, file, noise, options, sample, tensor, tensors, weights};

/// Compresses, restores, compares; gives the compressed bytes.
fn round_trip(original: &[u8], options: &Options) -> Vec<u8> {
    round_trip_with(&codec(), original, options)
}

fn round_trip_with(codec: &Codec, original: &[u8], options: &Options) -> Vec<u8> {
    let place = Place::new();
    let input = place.write("model.safetensors", original);
    let (compressed, restored) = (place.path("small.safetensors"), place.path("restored.safetensors"));
    let report = checkpoint::compress(codec, &input, &compressed, options, &mut ()).unwrap();
    assert_eq!(report.input_bytes, original.len() as u64);
    assert_eq!(report.output_bytes, fs::metadata(&compressed).unwrap().len());
    let back = checkpoint::decompress(codec, &compressed, &restored, options, &mut ()).unwrap();
    assert_eq!(back.output_bytes, original.len() as u64);
    assert_eq!((back.streams, back.tensors, back.files), (report.streams, report.tensors, 1));
    assert!((report.ratio() * back.ratio() - 1.0).abs() < 1e-12);
    assert!(fs::read(restored).unwrap() == original, "restored bytes differ");
    assert_eq!(place.names(), ["model.safetensors", "restored.safetensors", "small.safetensors"]);
    fs::read(compressed).unwrap()
}

#[test]
fn every_kind_of_tensor_comes_back() {
    let lengths = CodecChoice::ALL.map(|choice| round_trip_with(&codec_of(choice), &sample(), &options()).len());
    let [auto, enec, cascade] = lengths;
    assert!(auto < enec && auto < cascade, "each codec is the smaller one for some tensor: {lengths:?}");
}

/// Each tensor gets the smaller of its two streams: the choice is made by exact sizes where the sample is the whole tensor.
#[test]
fn auto_is_the_smaller_codec_tensor_by_tensor() {
    let mut chosen = [0, 0];
    for Tensor { name, dtype, bytes, .. } in tensors() {
        let Some(dtype) = Dtype::from_name(dtype) else { continue };
        let [auto, enec, cascade] = CodecChoice::ALL.map(|choice| codec_of(choice).encode(dtype, &bytes).unwrap());
        assert_eq!(auto, if cascade.len() < enec.len() { &cascade[..] } else { &enec[..] }, "{name}");
        if enec.len() != cascade.len() {
            chosen[usize::from(cascade.len() < enec.len())] += 1;
        }
    }
    assert!(chosen[0] >= 1 && chosen[1] >= 4, "{chosen:?}");
}

/// A backend that has not all codecs makes and reads the same files, with a fallback that says so.
#[test]
fn what_a_backend_lacks_the_fallback_does() {
    let place = Place::new();
    let input = place.write("model", sample());
    let (small, whole, back) = (place.path("small"), place.path("whole"), place.path("back"));
    let half = codec_without_cascade(Fault::None);
    let report = checkpoint::compress(&half, &input, &small, &options(), &mut ()).unwrap();
    let all = checkpoint::compress(&codec(), &input, &whole, &options(), &mut ()).unwrap();
    assert!(fs::read(&small).unwrap() == fs::read(&whole).unwrap());
    assert_eq!((all.fallback_streams, report.streams), (0, all.streams));
    assert!((1..report.streams).contains(&report.fallback_streams), "{report:?}");
    let restored = checkpoint::decompress(&half, &small, &back, &options(), &mut ()).unwrap();
    assert_eq!((restored.fallback_streams, restored.streams), (report.fallback_streams, report.streams));
    assert!(fs::read(&back).unwrap() == sample());
    let verified = checkpoint::verify(&half, &small, None, &options(), &mut ()).unwrap();
    assert_eq!((verified.fallback_streams, verified.damages), (report.fallback_streams, vec![]));
    // A fallback is a device like any other, and what it does wrong is found.
    let force = Options { force: true, ..options() };
    for fault in [Fault::EncodesWrong, Fault::JobsFail, Fault::Fails(0)] {
        let codec = codec_without_cascade(fault);
        let error = checkpoint::compress(&codec, &input, &small, &force, &mut ()).unwrap_err();
        assert!(!error.is_input(), "{fault:?}: {error}");
    }
    // Without a fallback, automatic choices keep to what the backend has, and what it cannot decode the reference codec does.
    let alone = Codec::new(half.backend().clone());
    let report = checkpoint::compress(&alone, &input, &place.path("enec"), &options(), &mut ()).unwrap();
    assert_eq!(report.fallback_streams, 0);
    let restored = checkpoint::decompress(&alone, &whole, &back, &force, &mut ()).unwrap();
    assert!(restored.fallback_streams > 0 && fs::read(&back).unwrap() == sample());
    let cascade = checkpoint::compress(
        &alone.with_choice(CodecChoice::Cascade),
        &input,
        &place.path("cascade"),
        &options(),
        &mut (),
    );
    assert!(cascade.unwrap().fallback_streams > 0);
}

#[test]
fn streams_are_those_that_gain_and_the_rest_is_carried() {
    let place = Place::new();
    let compressed = place.write("small.safetensors", round_trip(&sample(), &options()));
    let file = CheckpointFile::open(&compressed).unwrap();
    assert!(file.is_compressed());
    let mut streams = Vec::from_iter(
        file.tensors().filter(|tensor| tensor.form() == StoredForm::Stream).map(|tensor| tensor.name().to_owned()),
    );
    streams.sort();
    assert_eq!(streams, ["bf16.blocks-and-tail", "bf16.last", "bf16.one-block", "f16", "f32", "zeros"]);
    // In one piece, each encodes to the same bytes; and streams come first, in data order, at multiples of 64.
    let bytes = fs::read(&compressed).unwrap();
    let mut at = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    assert_eq!(at % 64, 0);
    for Tensor { name, dtype, bytes: plain, .. } in tensors() {
        let tensor = file.tensor(&name).unwrap();
        if tensor.form() == StoredForm::Stream {
            let alone = codec().encode(Dtype::from_name(dtype).unwrap(), &plain).unwrap();
            assert_eq!(tensor.stored_bytes(), alone, "{name}");
            assert_eq!(&bytes[at..at + alone.len()], alone, "{name}");
            at += alone.len();
        } else {
            assert_eq!(tensor.stored_bytes(), plain, "{name}");
        }
    }
}

#[test]
fn bytes_depend_neither_on_windows_nor_on_who_hashes_nor_on_the_run() {
    let original = sample();
    for choice in CodecChoice::ALL {
        let once = round_trip_with(&codec_of(choice), &original, &options());
        for window_bytes in [0, 1, 65_536, 3 * 65_536, 64 << 20] {
            let again = round_trip_with(&codec_of(choice), &original, &Options { window_bytes, ..options() });
            let difference = again.iter().zip(&once).position(|(left, right)| left != right);
            assert_eq!((again.len(), difference), (once.len(), None), "{choice}, window of {window_bytes} bytes");
        }
        let place = Place::new();
        let input = place.write("a", &original);
        let output = place.path("b");
        let reporting = codec_with(Fault::Reports).with_choice(choice);
        checkpoint::compress(&reporting, &input, &output, &options(), &mut ()).unwrap();
        assert!(fs::read(output).unwrap() == once, "{choice}, hashes by the backend");
    }
}

#[test]
fn files_with_little_in_them() {
    for (tensors, metadata, padding) in [
        (vec![], "", ""),
        (vec![], "{}", "  "),
        (vec![], "null", ""),
        (vec![tensor("e", "BF16", &[0], vec![])], "", " "),
        (vec![tensor("s", "BF16", &[], vec![1, 2])], r#"{"k":"v"}"#, ""),
        (vec![noise("n", "BF16", &[2048], 4096, 1)], "", "\n\t "),
        (vec![weights("w", "BF16", &[2048], 1)], "{}", ""),
        (vec![weights("w", "F32", &[2049], 1)], "", ""),
    ] {
        let original = file(&tensors, metadata, padding);
        round_trip(&original, &options());
    }
    // Large metadata.
    let large = format!(r#"{{"k":"{}"}}"#, "\\\"x".repeat(100_000));
    round_trip(&file(&[weights("w", "BF16", &[4096], 1)], &large, ""), &options());
    // Many small tensors share a batch.
    let many =
        Vec::from_iter((0..200).map(|index| weights(&format!("layer.{index}"), "BF16", &[2048 + index % 7], index)));
    round_trip(&file(&many, "", ""), &Options::default());
}

#[test]
fn a_tensor_given_up_in_a_later_window_leaves_no_trace() {
    // Compressible at first, so that windows are written before it turns out that the whole does not gain; then streams whose padding
    // would show what was left behind.
    let profiles = [
        Profile::new().with(Dtype::Bf16, 122, 3).unwrap(),
        Profile::new().with_cascade(Dtype::Bf16, &[122, 121, 120, 119, 118, 117]).unwrap(),
    ];
    let mut bytes = weights("", "BF16", &[16_384], 1).bytes;
    bytes.extend(noise("", "BF16", &[], 4_000_000, 2).bytes);
    let elements = bytes.len() as u64 / 2;
    let tensors = [
        weights("before", "BF16", &[5000], 3),
        tensor("given up", "BF16", &[elements], bytes),
        weights("after", "F16", &[2100], 4),
        weights("last", "BF16", &[70_001], 5),
    ];
    let original = file(&tensors, "", "");
    for profile in profiles {
        let codec = codec().with_profile(profile);
        let small_windows = round_trip_with(&codec, &original, &Options { window_bytes: 1, ..options() });
        let one_window = round_trip_with(&codec, &original, &Options::default());
        assert!(small_windows == one_window);
        let place = Place::new();
        let checkpoint = Checkpoint::open(&place.write("c", small_windows)).unwrap();
        assert_eq!(checkpoint.tensor("given up").unwrap().form(), StoredForm::Carried);
        assert_eq!(checkpoint.tensor("last").unwrap().form(), StoredForm::Stream);
    }
}

/// A window is whole blocks, so one of a large tensor may leave room for a small tensor: which must not be written over it.
#[test]
fn nothing_is_placed_behind_a_stream_that_has_no_end_yet() {
    let tensors = [weights("large", "BF16", &[50_000], 1), weights("small", "BF16", &[2048], 2)];
    let original = file(&tensors, "", "");
    let one_window = round_trip(&original, &Options::default());
    for verify in [true, false] {
        let roomy = round_trip(&original, &Options { window_bytes: 40_000, verify, ..options() });
        assert!(roomy == one_window);
    }
}

#[test]
fn a_compressed_checkpoint_is_a_safetensors_file() {
    let known = Vec::from_iter(tensors().into_iter().filter(|tensor| tensor.name != "unknown"));
    let compressed = round_trip(&file(&known, r#"{"format":"pt"}"#, ""), &options());
    let parsed = SafeTensors::deserialize(&compressed).unwrap();
    assert_eq!(parsed.len(), known.len());
    assert_eq!(parsed.tensor("u8").unwrap().data(), b"\x89ENEC\r\n\x1a\n");
    assert_eq!(&parsed.tensor("f32").unwrap().data()[..5], b"\x89ENEC");
    // As HF tools do it: load everything and save it again. The order of entries and data changes, the content does not.
    let (_, metadata) = SafeTensors::read_metadata(&compressed).unwrap();
    let saved = safetensors::serialize(parsed.tensors(), metadata.metadata().clone()).unwrap();
    let place = Place::new();
    let (saved, restored) = (place.write("saved", saved), place.path("restored"));
    checkpoint::decompress(&codec(), &saved, &restored, &options(), &mut ()).unwrap();
    assert!(fs::read(restored).unwrap() == file(&known, r#"{"format":"pt"}"#, ""));
}

#[test]
fn profiles_decide_the_parameters() {
    let place = Place::new();
    let input = place.write("model.safetensors", sample());
    let profile = Checkpoint::open(&input).unwrap().profile().unwrap();
    assert!(Dtype::FLOATS.into_iter().all(|dtype| profile.windows(dtype).is_some()));
    let output = place.path("small");
    for choice in [CodecChoice::Enec, CodecChoice::Cascade] {
        let codec = codec_of(choice).with_profile(profile.clone());
        let force = Options { force: true, ..options() };
        checkpoint::compress(&codec, &input, &output, &force, &mut ()).unwrap();
        let compressed = Checkpoint::open(&output).unwrap();
        for name in ["bf16.blocks-and-tail", "bf16.last"] {
            let coding = compressed.tensor(name).unwrap().stream().unwrap().unwrap().coding();
            match choice {
                CodecChoice::Enec => assert_eq!(coding.two_windows(), profile.windows(Dtype::Bf16)),
                _ => assert_eq!(coding.cascade(), profile.cascade(Dtype::Bf16)),
            }
        }
    }
    let compressed = Checkpoint::open(&output).unwrap();
    assert!(compressed.profile().is_err(), "a profile is made from originals");
    let without = place.write("none", file(&[tensor("a", "I64", &[1], vec![0; 8])], "", ""));
    assert!(Checkpoint::open(&without).unwrap().profile().is_err());
}

#[test]
fn progress_ends_where_it_was_said_to_end() {
    let place = Place::new();
    let input = place.write("model.safetensors", sample());
    let (small, back) = (place.path("small"), place.path("back"));
    let len = sample().len() as u64;

    let mut counter = Counter::new();
    checkpoint::compress(&codec(), &input, &small, &options(), &mut counter).unwrap();
    assert_eq!((counter.total, counter.done), (2 * len, 2 * len));
    assert_eq!(counter.steps, [Step::Compress, Step::Verify]);

    let mut counter = Counter::new();
    let no_verify = Options { verify: false, force: true, ..options() };
    checkpoint::compress(&codec(), &input, &small, &no_verify, &mut counter).unwrap();
    assert_eq!((counter.total, counter.done), (len, len));

    let mut counter = Counter::new();
    checkpoint::decompress(&codec(), &small, &back, &options(), &mut counter).unwrap();
    assert_eq!((counter.total, counter.done), (len, len));

    let mut counter = Counter::new();
    assert_eq!(checkpoint::verify(&codec(), &small, None, &options(), &mut counter).unwrap().damages, []);
    assert_eq!((counter.total, counter.done), (len, len));

    for path in [&input, &small] {
        let mut counter = Counter::new();
        checkpoint::inspect(&codec(), path, &options(), &mut counter).unwrap();
        assert_eq!(counter.total, counter.done);
    }
}

#[test]
fn a_device_that_goes_wrong_is_found_out_before_the_output_has_its_name() {
    let place = Place::new();
    let input = place.write("model.safetensors", sample());
    for fault in
        [Fault::EncodesWrong, Fault::TableBackwards, Fault::TooLong, Fault::Fails(0), Fault::Fails(2), Fault::JobsFail]
    {
        let error =
            checkpoint::compress(&codec_with(fault), &input, &place.path("out"), &options(), &mut ()).unwrap_err();
        assert!(!error.is_input(), "{fault:?}: {error}");
        assert_eq!(place.names(), ["model.safetensors"], "{fault:?}");
    }
}
