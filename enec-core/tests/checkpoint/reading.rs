//! Tensors, rows and elements of opened checkpoints, original and compressed.

use std::fs;

use enec_core::Error;
use enec_core::checkpoint::{self, Checkpoint, Options, StoredForm};

use crate::backend::codec;
use crate::sample::{Place, Tensor, file, message, options, sample, tensors, weights};

/// The sample as an original and as a compressed file.
fn both(place: &Place) -> [Checkpoint; 2] {
    let original = place.write("original", sample());
    let small = place.path("small");
    checkpoint::compress(&codec(), &original, &small, &options(), &mut ()).unwrap();
    [Checkpoint::open(&original).unwrap(), Checkpoint::open(&small).unwrap()]
}

#[test]
fn tensors_are_the_same_in_both() {
    let place = Place::new();
    for checkpoint in both(&place) {
        // The sample's header names them from last to first.
        let mut expected = tensors();
        expected.reverse();
        assert_eq!(checkpoint.tensors().count(), expected.len());
        for (found, Tensor { name, dtype, shape, bytes }) in checkpoint.tensors().zip(&expected) {
            assert_eq!((found.name(), found.dtype(), found.shape()), (name.as_str(), *dtype, shape.as_slice()));
            assert_eq!(found.byte_len(), bytes.len() as u64);
            assert_eq!(found.element_count(), shape.iter().product::<u64>());
            let mut target = vec![0xAA; bytes.len()];
            found.decode_into(&codec(), &mut target).unwrap();
            assert!(&target == bytes, "{name}");
            let error = found.decode_into(&codec(), &mut vec![0; bytes.len() + 1]);
            assert!(matches!(error, Err(Error::Argument(_))));
        }
    }
}

#[test]
fn elements_and_rows() {
    let place = Place::new();
    for checkpoint in both(&place) {
        // 40 rows of 1,000: three blocks, 19 tiles, a tail of 1,088 elements.
        let tensor = checkpoint.tensor("bf16.blocks-and-tail").unwrap();
        let bytes = &tensors()[1].bytes;
        for range in [
            0..0,
            0..1,
            2047..2049,
            2048..4096,
            16_383..32_769,
            38_911..38_913,
            38_912..40_000,
            39_999..40_000,
            0..40_000,
        ] {
            let expected = &bytes[2 * range.start..2 * range.end];
            let mut target = vec![0; expected.len()];
            tensor.decode_elements_into(&codec(), range.start as u64..range.end as u64, &mut target).unwrap();
            assert!(target == expected, "{range:?}");
        }
        let mut rows = vec![0; 6000];
        tensor.decode_rows_into(&codec(), 37..40, &mut rows).unwrap();
        assert!(rows == bytes[74_000..]);
        for (start, end) in [(0, 40_001), (2, 1), (u64::MAX, u64::MAX)] {
            let error = tensor.decode_elements_into(&codec(), start..end, &mut []);
            assert!(matches!(error, Err(Error::Argument(_))), "{start}..{end}");
        }
        assert!(matches!(tensor.decode_rows_into(&codec(), 40..41, &mut [0; 2000]), Err(Error::Argument(_))));
        assert!(matches!(tensor.decode_rows_into(&codec(), 0..1, &mut [0; 1999]), Err(Error::Argument(_))));

        // Carried tensors, a scalar, an empty one, and elements that are no whole bytes.
        let mut target = [0; 8];
        checkpoint.tensor("ids").unwrap().decode_rows_into(&codec(), 1..2, &mut target).unwrap();
        assert_eq!(target, [7; 8]);
        let scalar = checkpoint.tensor("scalar").unwrap();
        assert!(scalar.decode_rows_into(&codec(), 0..1, &mut [0; 4]).is_err());
        scalar.decode_elements_into(&codec(), 0..1, &mut [0; 4]).unwrap();
        checkpoint.tensor("empty.first").unwrap().decode_rows_into(&codec(), 0..0, &mut []).unwrap();
        for name in ["nibbles", "unknown"] {
            let tensor = checkpoint.tensor(name).unwrap();
            assert_eq!(tensor.element_bytes(), None);
            assert!(matches!(tensor.decode_elements_into(&codec(), 0..1, &mut [0]), Err(Error::Argument(_))));
        }
    }
}

#[test]
fn forms_and_streams() {
    let place = Place::new();
    let [original, small] = both(&place);
    let form = |checkpoint: &Checkpoint, name: &str| checkpoint.tensor(name).unwrap().form();
    assert_eq!(form(&original, "f32"), StoredForm::Original);
    assert_eq!(form(&small, "f32"), StoredForm::Stream);
    assert_eq!(form(&small, "f32.noise"), StoredForm::Carried);
    assert!(original.tensor("f32").unwrap().stream().unwrap().is_none());
    assert_eq!(small.tensor("f32").unwrap().stream().unwrap().unwrap().elements(), 15_000);
}

#[test]
fn folders_are_searched_as_a_whole() {
    let place = Place::new();
    place
        .write("model/a.safetensors", file(&[weights("x", "BF16", &[10], 1), weights("both", "F32", &[4], 2)], "", ""));
    place.write(
        "model/below/b.safetensors",
        file(&[weights("y", "BF16", &[10], 1), weights("both", "F32", &[4], 2)], "", ""),
    );
    let checkpoint = Checkpoint::open(&place.path("model")).unwrap();
    assert_eq!(checkpoint.files().len(), 2);
    assert_eq!(checkpoint.tensors().count(), 4);
    assert!(checkpoint.tensor("y").unwrap().path().ends_with("below/b.safetensors"));
    assert_eq!(message(checkpoint.tensor("z")), "model: there is no tensor `z`");
    let both = message(checkpoint.tensor("both"));
    assert!(both.starts_with("model: tensor `both` lies in `"), "{both}");
}

#[test]
fn extraction_writes_the_plain_bytes() {
    let place = Place::new();
    for checkpoint in both(&place) {
        for index in [0, 1, 2, 7] {
            let Tensor { name, bytes, .. } = &tensors()[index];
            let output = place.path("tensor.bin");
            checkpoint::extract(&codec(), &checkpoint, name, &output, &options(), &mut ()).unwrap();
            assert!(&fs::read(&output).unwrap() == bytes, "{name}");
            let again = checkpoint::extract(&codec(), &checkpoint, name, &output, &options(), &mut ());
            assert!(matches!(again, Err(Error::Argument(_))));
            fs::remove_file(output).unwrap();
        }
    }
    let forced = Options { force: true, ..options() };
    let checkpoint = Checkpoint::open(&place.path("small")).unwrap();
    let over_itself = checkpoint::extract(&codec(), &checkpoint, "f32", &place.path("small"), &forced, &mut ());
    assert!(message(over_itself).contains("is the input itself"));
    assert_eq!(place.names(), ["original", "small"]);
}
