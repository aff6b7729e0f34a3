//! The ENEC bitstream, version 1: header, layout, validated views and the scalar reference codec.
//!
//! Two codecs code the exponents of model weights at fixed width: ENEC (Yu et al., arXiv 2604.03298) in two windows, the cascade by rank in
//! levels of 2 bits. This crate specifies how the bytes lie in memory. The normative text is `docs/format.md` of the repository. The crate does no I/O, starts no threads,
//! uses no floating-point arithmetic and needs `alloc` only. Unsafe code is in one place, where hashing uses vector instructions (feature `std`).
//!
//! - [`Stream::open`] is the only way to read a stream: it validates everything but the hashes, so that whoever holds a
//!   [`Stream`] may trust every size and offset in it.
//! - [`EncodePlan`] and [`DecodePlan`] say where each byte of a conversion lies; backends work from them.
//! - [`mod@reference`](mod@reference) is the slow scalar codec, the oracle that every other implementation is compared with.
//!
//! ```
//! use enec_format::{Coding, Dtype, Stream, TwoWindows, reference};
//!
//! let words: Vec<u8> = (0..4096u16).flat_map(|i| (0x3F80 | (i % 100)).to_le_bytes()).collect();
//! let coding = Coding::TwoWindows(TwoWindows::new(Dtype::Bf16, 127, 1)?);
//! let bytes = reference::encode_stream(Dtype::Bf16, coding, &words)?;
//! let stream = Stream::open(&bytes)?;
//! assert_eq!(reference::decode_stream(&stream)?, words);
//! # Ok::<(), enec_format::FormatError>(())
//! ```

#![no_std]
#![deny(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod block;
mod cascade;
mod coding;
mod dtype;
mod error;
pub mod geometry;
pub mod hash;
mod header;
mod layout;
mod levels;
mod plan;
pub mod reference;
mod stream;
mod validate;

pub use block::{Block, BlockEntry, padded_lanes, segment, segment_len, wide_lanes};
pub use cascade::Cascade;
pub use coding::{Coding, TwoWindows};
pub use dtype::Dtype;
pub use error::{FormatError, FormatErrorKind, Result};
pub use header::{Header, Seal};
pub use layout::{BlockRanges, Layout, Section};
pub use levels::{Levels, escapes, level_len};
pub use plan::{DecodePlan, EncodeOutcome, EncodePlan, max_encoded_len};
pub use stream::Stream;
