//! The scalar reference codec: slow, safe, and the oracle of every other implementation.
//!
//! It follows docs/format.md sentence by sentence and is not meant to be fast. What another encoder writes must equal what
//! [`encode`] writes, byte for byte.

mod cascade;
mod decode;
mod encode;
mod lane;
mod planes;
#[cfg(test)]
mod tests;
mod value;

use alloc::vec;
use alloc::vec::Vec;

pub use decode::decode;
pub use encode::encode;
pub use value::{exponent, exponents};

use crate::hash::content_hash;
use crate::{
    Coding, DecodePlan, Dtype, EncodeOutcome, EncodePlan, FormatError, FormatErrorKind as Kind, Result, Seal, Stream,
};

/// Encodes little-endian elements into a sealed stream. The stored rule applies.
///
/// # Errors
///
/// [`Kind::PartialElement`] if `source` is not a whole number of elements.
pub fn encode_stream(dtype: Dtype, coding: Coding, source: &[u8]) -> Result<Vec<u8>> {
    let element_bytes = dtype.element_bytes();
    if !source.len().is_multiple_of(element_bytes) {
        let kind = Kind::PartialElement { found: source.len() as u64, element_bytes: element_bytes as u64 };
        return Err(FormatError::new(kind, 0));
    }
    encode_plan(&EncodePlan::new(dtype, coding, source.len() / element_bytes)?, source)
}

/// Encodes by a plan into a sealed stream; with a [window plan](EncodePlan::window) the stored rule does not apply.
///
/// # Errors
///
/// [`Kind::SourceLength`] if the source is not what the plan says.
pub fn encode_plan(plan: &EncodePlan, source: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = vec![0; plan.target_len()];
    let outcome = encode(plan, source, &mut bytes)?;
    seal(plan, outcome, source, &mut bytes)?;
    Ok(bytes)
}

/// Writes the header of an encoded stream with both hashes, and cuts `bytes` to the stream's length.
fn seal(plan: &EncodePlan, outcome: EncodeOutcome, source: &[u8], bytes: &mut Vec<u8>) -> Result<()> {
    let unsealed = plan.header(outcome, None)?;
    bytes.truncate(plan.written(outcome)?.stream_len);
    unsealed.write(bytes);
    let payload = Stream::open(bytes)?.payload_hash();
    unsealed.sealed(Seal { content: content_hash(source), payload }).write(bytes);
    Ok(())
}

/// Decodes a whole stream. Hashes are not checked.
///
/// # Errors
///
/// None that a validated stream can cause.
pub fn decode_stream(stream: &Stream<'_>) -> Result<Vec<u8>> {
    let plan = DecodePlan::whole(stream);
    let mut target = vec![0; plan.target_len()];
    decode(&plan, stream.bytes(), &mut target)?;
    Ok(target)
}
