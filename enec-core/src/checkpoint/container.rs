//! The header of a compressed checkpoint: a safetensors header that also holds the original one (docs/format.md, "Container").

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use enec_format::Dtype;
use enec_format::geometry::ALIGNMENT;
use enec_format::hash::content_hash;

pub use self::error::ContainerError;
use super::header::{Header, HeaderError, LENGTH_BYTES, MAX_HEADER_LEN, TensorEntry, UniqueMap};

mod error;
#[cfg(test)]
mod tests;

/// Metadata keys with this prefix are ours; a file that has one is compressed.
const PREFIX: &str = "enec.";
const VERSION_KEY: &str = "enec.version";
const HEADER_KEY: &str = "enec.header";
const HEADER_HASH_KEY: &str = "enec.header.xxh3";
const RAW_HASHES_KEY: &str = "enec.raw.xxh3";
const VERSION: &str = "1";
/// The dtype under which a stream lies in the container.
const STREAM_DTYPE: &str = "U8";

/// How one tensor of the original lies in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// As a stream of this many bytes.
    Stream(u64),
    /// As it is; its content hash.
    Carried(u64),
}

/// Whether a file with this header is a container.
#[must_use]
pub fn is_container(header: &Header) -> bool {
    header.metadata().is_some_and(|metadata| metadata.keys().any(|key| key.starts_with(PREFIX)))
}

/// The length of the header of a container of the checkpoint `original`, padding included and its 8 length bytes not.
///
/// It is enough whichever tensors become streams, and a function of the header alone: data can be written behind it first.
/// Together with the 8 length bytes it is a multiple of 64.
///
/// # Errors
///
/// [`ContainerError::TooLong`] if that is more than safetensors reads.
pub fn reserved_len(original: &Header) -> Result<u64, ContainerError> {
    // Offsets in the container are at most those in the original, and a hash is 16 digits whatever it is.
    let widest = original.data_len();
    let carried = vec![Placement::Carried(0); original.tensors().len()];
    let entries: usize = original
        .tensors()
        .iter()
        .map(|tensor| {
            let mut carried = String::new();
            write_entry(&mut carried, tensor, Placement::Carried(0), widest..widest);
            let mut stream = String::new();
            write_entry(&mut stream, tensor, Placement::Stream(widest), widest..widest);
            carried.len().max(stream.len())
        })
        .sum();
    let text = metadata_text(original, &carried).len() + entries + 2;
    let reserved = (LENGTH_BYTES + text as u64).next_multiple_of(ALIGNMENT as u64) - LENGTH_BYTES;
    if reserved > MAX_HEADER_LEN {
        return Err(ContainerError::TooLong { length: reserved });
    }
    Ok(reserved)
}

/// The header of the container, padded with spaces to [`reserved_len`].
///
/// `placements` are those of `original.tensors()`. The data that it describes is all streams in the original's data order, then all
/// carried tensors in the original's data order.
///
/// # Errors
///
/// As [`reserved_len`].
///
/// # Panics
///
/// If `placements` has another length than `original.tensors()`.
pub fn header_text(original: &Header, placements: &[Placement]) -> Result<String, ContainerError> {
    assert_eq!(placements.len(), original.tensors().len(), "a placement for each tensor");
    let reserved = reserved_len(original)?;
    let mut text = String::from("{");
    text.push_str(&metadata_text(original, placements));
    let mut end = 0;
    for streams in [true, false] {
        for (index, tensor) in original.in_data_order() {
            let length = match placements[index] {
                Placement::Stream(length) if streams => length,
                Placement::Carried(_) if !streams => tensor.byte_len(),
                _ => continue,
            };
            write_entry(&mut text, tensor, placements[index], end..end + length);
            end += length;
        }
    }
    text.push('}');
    let padding = reserved.checked_sub(text.len() as u64).and_then(|padding| usize::try_from(padding).ok());
    let padding = padding.ok_or(ContainerError::TooLong { length: text.len() as u64 })?;
    text.extend(std::iter::repeat_n(' ', padding));
    Ok(text)
}

/// The `__metadata__` entry: the user's own and ours, sorted.
fn metadata_text(original: &Header, placements: &[Placement]) -> String {
    let carried = |(tensor, placement): (&TensorEntry, &Placement)| match placement {
        Placement::Carried(hash) => Some((tensor.name.clone(), hash_text(*hash))),
        Placement::Stream(_) => None,
    };
    let raw_hashes: BTreeMap<String, String> = original.tensors().iter().zip(placements).filter_map(carried).collect();
    let mut metadata = original.metadata().cloned().unwrap_or_default();
    metadata.extend([
        (VERSION_KEY.to_owned(), VERSION.to_owned()),
        (HEADER_KEY.to_owned(), original.text().to_owned()),
        (HEADER_HASH_KEY.to_owned(), hash_text(content_hash(original.text().as_bytes()))),
        (RAW_HASHES_KEY.to_owned(), json(&raw_hashes)),
    ]);
    format!("\"__metadata__\":{}", json(&metadata))
}

/// Appends a comma and the entry of one tensor.
fn write_entry(text: &mut String, tensor: &TensorEntry, placement: Placement, range: Range<u64>) {
    let (dtype, shape) = match placement {
        Placement::Stream(length) => (STREAM_DTYPE, json(&[length])),
        Placement::Carried(_) => (tensor.dtype.as_str(), json(&tensor.shape)),
    };
    let (name, dtype, Range { start, end }) = (json(&tensor.name), json(dtype), range);
    write!(text, r#",{name}:{{"dtype":{dtype},"shape":{shape},"data_offsets":[{start},{end}]}}"#)
        .expect("writing to a String cannot fail");
}

/// JSON without spaces.
fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("text and numbers are always JSON")
}

/// The 16 lower-case hex digits of a hash in the metadata.
fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

fn parse_hash(text: &str) -> Option<u64> {
    let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A container's header with everything in it checked against the original header that it holds.
///
/// The streams themselves and the carried bytes are not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    original: Header,
    tensors: Vec<Placed>,
}

/// Where one tensor of the original lies in the container, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The bytes, counted from the start of the container's data section.
    pub range: Range<u64>,
    /// The tensor's form.
    pub form: Form,
}

/// As what a tensor lies in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a stream of this dtype.
    Stream(Dtype),
    /// As in the original; its content hash.
    Carried(u64),
}

impl Container {
    /// Checks the header of a compressed file.
    ///
    /// # Errors
    ///
    /// Anything in the header that is not as a writer of this version leaves it.
    pub fn open(header: &Header) -> Result<Self, ContainerError> {
        let metadata = header.metadata().ok_or(ContainerError::Missing { key: VERSION_KEY })?;
        let entry = |key: &'static str| metadata.get(key).ok_or(ContainerError::Missing { key });
        let version = entry(VERSION_KEY)?;
        if version != VERSION {
            return Err(ContainerError::Version { found: version.clone() });
        }
        let (ours, users): (BTreeMap<_, _>, BTreeMap<_, _>) =
            metadata.iter().partition(|(key, _)| key.starts_with(PREFIX));
        let known = [VERSION_KEY, HEADER_KEY, HEADER_HASH_KEY, RAW_HASHES_KEY];
        if let Some(key) = ours.into_keys().find(|key| !known.contains(&key.as_str())) {
            return Err(ContainerError::UnknownKey { key: key.clone() });
        }
        check_padding(header.text())?;

        let text = entry(HEADER_KEY)?;
        let stored = entry(HEADER_HASH_KEY)?;
        let computed = content_hash(text.as_bytes());
        if parse_hash(stored) != Some(computed) {
            return Err(ContainerError::HeaderHash { stored: stored.clone(), computed });
        }
        let original = Header::from_text(text.clone()).map_err(ContainerError::Original)?;
        if is_container(&original) {
            return Err(ContainerError::Nested);
        }
        let empty = BTreeMap::new();
        if !users.into_iter().eq(original.metadata().unwrap_or(&empty)) {
            return Err(ContainerError::Metadata);
        }

        let raw_hashes: UniqueMap = serde_json::from_str(entry(RAW_HASHES_KEY)?)
            .map_err(|error| ContainerError::RawHashes { reason: error.to_string() })?;
        let tensors = place(header, &original, raw_hashes.0)?;
        Ok(Self { original, tensors })
    }

    /// The header of the original file.
    #[must_use]
    pub fn original(&self) -> &Header {
        &self.original
    }

    /// Where each of `original().tensors()` lies.
    #[must_use]
    pub fn tensors(&self) -> &[Placed] {
        &self.tensors
    }
}

/// Finds each tensor of the original in the container.
fn place(
    header: &Header,
    original: &Header,
    mut raw_hashes: BTreeMap<String, String>,
) -> Result<Vec<Placed>, ContainerError> {
    // Names are unique on both sides: with equally many, none is left over when each of the original's has been found.
    if let Some(extra) = header.tensors().iter().find(|tensor| original.position(&tensor.name).is_none()) {
        return Err(ContainerError::UnknownTensor { tensor: extra.name.clone() });
    }
    let mut tensors = Vec::with_capacity(original.tensors().len());
    for tensor in original.tensors() {
        let name = || tensor.name.clone();
        let index = header.position(&tensor.name).ok_or_else(|| ContainerError::MissingTensor { tensor: name() })?;
        let stored = &header.tensors()[index];
        let form = match Dtype::from_name(&tensor.dtype) {
            Some(dtype) if stored.dtype == STREAM_DTYPE => {
                if stored.shape.len() != 1 {
                    return Err(ContainerError::StreamShape { tensor: name(), found: stored.shape.clone() });
                }
                // Of 16-bit elements the byte plane alone takes half. So what the original header says of sizes is bounded by the file.
                let (found, decoded) = (stored.byte_len(), tensor.byte_len());
                if found < decoded / 2 {
                    return Err(ContainerError::StreamShort { tensor: name(), found, decoded });
                }
                Form::Stream(dtype)
            }
            _ => {
                let lengths = (stored.byte_len(), tensor.byte_len());
                if (&stored.dtype, &stored.shape) != (&tensor.dtype, &tensor.shape) || lengths.0 != lengths.1 {
                    return Err(ContainerError::Carried {
                        tensor: name(),
                        found: format!("{} {:?} of {} bytes", stored.dtype, stored.shape, lengths.0),
                        expected: format!("{} {:?} of {} bytes", tensor.dtype, tensor.shape, lengths.1),
                    });
                }
                let hash = raw_hashes.remove(&tensor.name);
                let hash = hash.ok_or_else(|| ContainerError::MissingHash { tensor: name() })?;
                let parsed = parse_hash(&hash);
                Form::Carried(parsed.ok_or_else(|| ContainerError::HashText { tensor: name(), found: hash })?)
            }
        };
        tensors.push(Placed { range: stored.range.clone(), form });
    }
    match raw_hashes.into_keys().next() {
        Some(tensor) => Err(ContainerError::ExtraHash { tensor }),
        None => Ok(tensors),
    }
}

/// Checks that nothing but spaces surrounds the JSON object.
fn check_padding(text: &str) -> Result<(), ContainerError> {
    let object = text.trim_end_matches(' ');
    match (text.starts_with('{'), object.ends_with('}')) {
        (true, true) => Ok(()),
        (false, _) => Err(ContainerError::Padding { offset: 0 }),
        (true, false) => Err(ContainerError::Padding { offset: object.len().saturating_sub(1) as u64 }),
    }
}
