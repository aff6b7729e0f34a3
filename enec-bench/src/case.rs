//! What is measured in one go: some tensors of one dtype, one after the other in aligned, warm buffers.

use std::path::Path;

use enec::checkpoint::CheckpointFile;
use enec::format::EncodePlan;
use enec::{Codec, Dtype};

use crate::Result;
use crate::arguments::Data;
use crate::buffer::Buffer;
use crate::data::{files, short_name};
use crate::synthetic;

/// Decoded bytes per thread of a measurement in cache: with what they are encoded to they stay within a second-level cache of 1 MiB.
const IN_CACHE_BYTES: usize = 512 << 10;

/// Decoded bytes of a measurement in the cache that cores share: with what they are encoded to they exceed the second-level caches of a few of
/// them and stay within a third-level cache of 8 MiB.
const IN_SHARED_CACHE_BYTES: usize = 4 << 20;

/// Where the data of a measurement lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    InCache,
    InSharedCache,
    OutOfCache,
    File,
    /// Wherever data of that size lies.
    BySize,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::InCache => "in cache",
            Place::InSharedCache => "in shared cache",
            Place::OutOfCache => "out of cache",
            Place::File => "file",
            Place::BySize => "by size",
        }
    }
}

/// Tensors of one dtype.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) dtype: Dtype,
    /// Bytes of each tensor in `source`.
    pub(crate) lengths: Vec<usize>,
    pub(crate) source: Buffer,
}

impl Case {
    /// All cases of the given data.
    pub(crate) fn all(data: &[Data], dtypes: &[Dtype]) -> Result<Vec<Self>> {
        let mut cases = Vec::new();
        for data in data {
            match data {
                Data::Synthetic(bytes) => cases.extend(dtypes.iter().map(|&dtype| Self::synthetic(dtype, *bytes))),
                Data::Path(path) => {
                    for file in files(std::slice::from_ref(path))? {
                        cases.extend(Self::file(&file, dtypes)?);
                    }
                }
            }
        }
        if cases.is_empty() {
            return Err("the data has no tensor of the wanted element types".into());
        }
        Ok(cases)
    }

    /// Cases that fit the caches of so many cores: for each dtype the first bytes of its first case.
    pub(crate) fn in_cache(cases: &[Self], dtypes: &[Dtype], threads: usize) -> Vec<Self> {
        let first = |&dtype: &Dtype| cases.iter().find(|case| case.dtype == dtype);
        dtypes.iter().filter_map(first).map(|case| case.head(IN_CACHE_BYTES * threads, Place::InCache)).collect()
    }

    /// As [`in_cache`](Self::in_cache), for the cache that cores share; none where there is not that much data.
    pub(crate) fn in_shared_cache(cases: &[Self], dtypes: &[Dtype]) -> Vec<Self> {
        let enough = |case: &&Self| case.source.bytes().len() >= IN_SHARED_CACHE_BYTES;
        let first = |&dtype: &Dtype| cases.iter().filter(enough).find(|case| case.dtype == dtype);
        let cases = dtypes.iter().filter_map(first);
        cases.map(|case| case.head(IN_SHARED_CACHE_BYTES, Place::InSharedCache)).collect()
    }

    fn synthetic(dtype: Dtype, bytes: usize) -> Self {
        let bytes = bytes / dtype.element_bytes() * dtype.element_bytes();
        let mut source = Buffer::new(bytes);
        synthetic::fill(dtype, source.bytes_mut());
        Self { name: "synthetic".into(), place: Place::OutOfCache, dtype, lengths: vec![bytes], source }
    }

    /// Generated tensors of these lengths, a whole number of elements each. What is generated repeats itself: making gigabytes takes minutes.
    pub(crate) fn repeated(dtype: Dtype, lengths: Vec<usize>) -> Self {
        const PERIOD: usize = 64 << 20;
        let mut source = Buffer::new(lengths.iter().sum());
        let bytes = source.bytes_mut();
        let (period, rest) = bytes.split_at_mut(bytes.len().min(PERIOD));
        synthetic::fill(dtype, period);
        for copy in rest.chunks_mut(PERIOD) {
            copy.copy_from_slice(&period[..copy.len()]);
        }
        Self { name: "synthetic".into(), place: Place::BySize, dtype, lengths, source }
    }

    fn file(path: &Path, dtypes: &[Dtype]) -> Result<Vec<Self>> {
        let file = CheckpointFile::open(path)?;
        let mut cases = Vec::new();
        for &dtype in dtypes {
            let tensors = || file.tensors().filter(|tensor| tensor.dtype() == dtype.name() && tensor.byte_len() > 0);
            let lengths: Vec<usize> = tensors().map(|tensor| tensor.stored_bytes().len()).collect();
            let mut source = Buffer::new(lengths.iter().sum());
            let mut rest = source.bytes_mut();
            for tensor in tensors() {
                let (head, tail) = rest.split_at_mut(tensor.stored_bytes().len());
                head.copy_from_slice(tensor.stored_bytes());
                rest = tail;
            }
            if !lengths.is_empty() {
                cases.push(Self { name: short_name(path), place: Place::File, dtype, lengths, source });
            }
        }
        Ok(cases)
    }

    /// The first bytes as one tensor that fits that place.
    pub(crate) fn head(&self, bytes: usize, place: Place) -> Self {
        let bytes = bytes.min(self.source.bytes().len());
        let mut source = Buffer::new(bytes);
        source.bytes_mut().copy_from_slice(&self.source.bytes()[..bytes]);
        Self { name: self.name.clone(), place, dtype: self.dtype, lengths: vec![bytes], source }
    }

    /// The tensors' elements.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.source.bytes();
        self.lengths.iter().map(move |&len| {
            let (tensor, tail) = rest.split_at(len);
            rest = tail;
            tensor
        })
    }

    /// How each tensor is encoded.
    pub(crate) fn plans(&self, codec: &Codec) -> Result<Vec<EncodePlan>> {
        let plan = |elements: &[u8]| {
            let coding = codec.coding(self.dtype, elements);
            Ok(EncodePlan::new(self.dtype, coding, elements.len() / self.dtype.element_bytes())?)
        };
        self.tensors().map(plan).collect()
    }
}
