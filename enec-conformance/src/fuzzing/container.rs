//! Arbitrary bytes as a checkpoint, original or compressed.

use std::fs;
use std::path::{Path, PathBuf};

use enec_core::Codec;
use enec_core::checkpoint::container::{Container, Form, Placement, header_text, is_container, reserved_len};
use enec_core::checkpoint::header::Header;
use enec_core::checkpoint::{CheckpointFile, Options, compress, verify};
use enec_format::hash::content_hash;

use super::Verdict;
use crate::Result;
use crate::inputs::Input;

/// Reads the bytes as a checkpoint: as they are, and with the length of the header put right. What opens is read tensor by tensor
/// and verified; what is an original gets a compressed header, which must lead back to it.
///
/// # Panics
///
/// Over a fault.
pub fn container(data: &[u8], codec: &Codec) -> Verdict {
    let as_given = open(data, codec);
    let opens = repaired(data).is_some_and(|repaired| open(&repaired, codec));
    if as_given || opens || data.contains(&b'{') { Verdict::Keep } else { Verdict::Reject }
}

/// The header ends with the last brace and the spaces behind it.
fn repaired(data: &[u8]) -> Option<Vec<u8>> {
    let brace = data.iter().rposition(|&byte| byte == b'}').filter(|&at| at >= 8)?;
    let spaces = data[brace + 1..].iter().take_while(|&&byte| byte == b' ').count();
    let mut repaired = data.to_vec();
    repaired[..8].copy_from_slice(&((brace + 1 + spaces - 8) as u64).to_le_bytes());
    Some(repaired)
}

fn open(bytes: &[u8], codec: &Codec) -> bool {
    let header = match Header::parse(bytes) {
        Ok(header) => header,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    assert_eq!(header.data_start() + header.data_len(), bytes.len() as u64, "the data section ends with the file");
    if is_container(&header) {
        let container = Container::open(&header);
        // The file is written only where its header is sound: most inputs end here.
        if container.is_ok() {
            read(bytes, codec);
        }
    } else {
        compressed_header(&header);
        read(bytes, codec);
    }
    true
}

/// The header of a container of this original, with every other tensor as a stream.
fn compressed_header(original: &Header) {
    let placements: Vec<Placement> = original
        .tensors()
        .iter()
        .enumerate()
        .map(|(index, tensor)| match enec_format::Dtype::from_name(&tensor.dtype) {
            Some(_) if index % 2 == 0 && tensor.byte_len() > 0 => Placement::Stream(tensor.byte_len() / 64 * 64),
            _ => Placement::Carried(index as u64),
        })
        .collect();
    let Ok(text) = header_text(original, &placements) else { return };
    assert_eq!(text.len() as u64, reserved_len(original).expect("the header was written"));
    let header = Header::from_text(text).expect("a container is a safetensors file");
    let container = Container::open(&header).expect("a container that was just written");
    assert_eq!(container.original().text(), original.text(), "the original header comes back");
    for (placed, placement) in container.tensors().iter().zip(&placements) {
        match (placed.form, placement) {
            (Form::Stream(_), Placement::Stream(_)) => {}
            (Form::Carried(stored), Placement::Carried(hash)) => assert_eq!(stored, *hash),
            (form, placement) => panic!("{placement:?} comes back as {form:?}"),
        }
    }
}

/// A file with these bytes, deleted when dropped.
struct ShortLived(PathBuf);

impl ShortLived {
    fn with(bytes: &[u8]) -> Self {
        let thread = format!("{:?}", std::thread::current().id());
        let name = format!("enec-{}-{}", std::process::id(), thread.replace(|c: char| !c.is_ascii_digit(), ""));
        let path = std::env::temp_dir().join(name).with_extension("safetensors");
        fs::write(&path, bytes).expect("the temporary folder can be written");
        Self(path)
    }
}

impl Drop for ShortLived {
    fn drop(&mut self) {
        // Nothing depends on it; the next input overwrites the file.
        let _ = fs::remove_file(&self.0);
    }
}

fn read(bytes: &[u8], codec: &Codec) {
    let file = ShortLived::with(bytes);
    let opened = CheckpointFile::open(&file.0).expect("its header is sound");
    let mut damaged = 0;
    for tensor in opened.tensors() {
        let sound = match tensor.stream() {
            // The bytes of the file bound those of the tensor only once its stream has been validated.
            Ok(Some(stream)) => {
                assert_eq!(stream.header().decoded_len(), tensor.byte_len());
                let mut elements = vec![0xA5; stream.decoded_len()];
                let decoded = tensor.decode_into(codec, &mut elements).is_ok();
                assert!(!decoded || stream.header().check_content(content_hash(&elements)).is_ok());
                decoded && stream.check_payload().is_ok()
            }
            Ok(None) => {
                let mut elements = vec![0xA5; tensor.stored_bytes().len()];
                let decoded = tensor.decode_into(codec, &mut elements).is_ok();
                assert!(!decoded || elements == tensor.stored_bytes());
                decoded
            }
            Err(error) => {
                assert!(error.to_string().contains(tensor.name()), "{error} does not name `{}`", tensor.name());
                false
            }
        };
        damaged += usize::from(!sound);
    }
    if opened.is_compressed() {
        let verification = verify(codec, &file.0, None, &Options::default(), &mut ()).expect("the file can be read");
        assert_eq!(verification.damages.len(), damaged, "{:?}", verification.damages);
        assert_eq!(verification.tensors, opened.tensors().len());
    } else {
        assert_eq!(damaged, 0, "plain bytes cannot be damaged");
    }
}

/// Small originals of every kind of tensor, and what they are compressed to.
///
/// # Errors
///
/// If the temporary folder cannot be written.
pub fn container_seeds(codec: &Codec) -> Result<Vec<(String, Vec<u8>)>> {
    let weights = |dtype: enec_format::Dtype, count| {
        Input::Weights { seed: 1, top: u64::from(dtype.exponent_mask() / 2), zeros: 0 }.bytes(dtype, count)
    };
    let bf16 = weights(enec_format::Dtype::Bf16, 2048);
    let originals = [
        ("empty", r"{}".to_owned(), Vec::new()),
        ("metadata", r#"{"__metadata__":{"format":"pt","b":"\u00e9"}}  "#.to_owned(), Vec::new()),
        (
            "bf16",
            r#"{"w":{"dtype":"BF16","shape":[16,128],"data_offsets":[0,4096]},"scalar":{"dtype":"F32","shape":[],"data_offsets":[4096,4100]},"none":{"dtype":"I8","shape":[0,3],"data_offsets":[4096,4096]}}"#.to_owned(),
            [&bf16[..], &[1, 2, 3, 4]].concat(),
        ),
        (
            "f16",
            r#"{"__metadata__":{"format":"pt"},"x":{"dtype":"F16","shape":[2049],"data_offsets":[3,4101]},"u":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}     "#.to_owned(),
            [&[9; 3][..], &weights(enec_format::Dtype::F16, 2049)].concat(),
        ),
        (
            "unknown",
            r#"{"q":{"dtype":"F4_NEW","shape":[7],"data_offsets":[0,4]},"f":{"dtype":"F4","shape":[2],"data_offsets":[4,5]}}"#.to_owned(),
            vec![5; 5],
        ),
    ];
    let folder = std::env::temp_dir().join(format!("enec-seeds-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let seeds = originals.into_iter().map(|(name, text, data)| {
        let original = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &data].concat();
        let (input, output) = (folder.join(name).with_extension("safetensors"), folder.join("out.safetensors"));
        fs::write(&input, &original)?;
        let compressed = compressed(codec, &input, &output)?;
        Ok([(format!("{name}_original"), original), (format!("{name}_compressed"), compressed)])
    });
    let seeds: Vec<[_; 2]> = seeds.collect::<Result<_>>()?;
    fs::remove_dir_all(&folder)?;
    Ok(seeds.into_iter().flatten().collect())
}

fn compressed(codec: &Codec, input: &Path, output: &Path) -> Result<Vec<u8>> {
    compress(codec, input, output, &Options { force: true, ..Options::default() }, &mut ())?;
    Ok(fs::read(output)?)
}
