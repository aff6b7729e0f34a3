//! What is common to all ENEC backends: the [`Backend`] trait and its jobs, the parameter search, [`Codec`] for callers, and whole
//! checkpoints.
//!
//! Applications use the facade crate `enec`, which names the backends; a backend crate implements [`Backend`] and exports a
//! [`Driver`].

// Not forbidden: mapping files, in checkpoint/map.rs, is the one exception.
#![deny(unsafe_code)]

mod backend;
pub mod checkpoint;
mod codec;
mod codecs;
mod device_stream;
mod error;
mod histogram;
mod job;
mod memory;
mod pieces;
mod profile;
mod routing;
pub mod search;

pub use backend::{Backend, DeviceInfo, Driver, KernelTime, OpenOptions};
pub use codec::Codec;
pub use codecs::{CodecChoice, Codecs, two_windows_only};
pub use device_stream::DeviceStream;
pub use error::{Error, Result};
pub use job::{
    CheckedDecodeJob, CheckedEncodeJob, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, Feed, JobStatus, PieceSink,
    Source, Target, TargetMut,
};
pub use memory::{BackendId, DeviceBuf, DeviceMemory, DeviceSlice};
pub use pieces::{PieceHashes, PieceWindow};
pub use profile::Profile;
