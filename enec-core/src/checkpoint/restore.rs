//! Writing decoded tensors into a file.

use std::borrow::Cow;

use super::buffer::AlignedBuffer;
use super::decode::Receiver;
use super::progress::{Progress, advance};
use super::tensor::TensorRef;
use super::write::{Destination, Part};
use crate::Result;

/// Writes each tensor to where `start` says that it begins.
pub(crate) struct Restoration<'a, 'r> {
    pub(crate) start: &'r dyn Fn(TensorRef<'a>) -> u64,
    pub(crate) output: &'r mut dyn Destination<'a>,
    pub(crate) progress: &'r mut dyn Progress,
}

impl<'a> Receiver<'a> for Restoration<'a, '_> {
    fn bytes(&mut self, tensor: TensorRef<'a>, offset: u64, bytes: &[u8]) -> Result<()> {
        self.output.write_at((self.start)(tensor) + offset, Cow::Owned(bytes.to_vec()))?;
        advance(self.progress, bytes.len() as u64)
    }

    fn window(&mut self, buffer: &mut AlignedBuffer, parts: Vec<(TensorRef<'a>, Part)>) -> Result<()> {
        let decoded: usize = parts.iter().map(|(_, (_, range))| range.len()).sum();
        let parts = parts.into_iter().map(|(tensor, (offset, range))| ((self.start)(tensor) + offset, range));
        self.output.write_parts(buffer, parts.collect())?;
        advance(self.progress, decoded as u64)
    }

    fn stored(&mut self, tensor: TensorRef<'a>, offset: u64, bytes: &'a [u8]) -> Result<()> {
        self.output.write_at((self.start)(tensor) + offset, Cow::Borrowed(bytes))?;
        advance(self.progress, bytes.len() as u64)
    }

    fn busy_cores(&mut self) -> usize {
        self.output.busy_cores()
    }

    fn end(&mut self, _tensor: TensorRef<'a>, result: Result<()>) -> Result<()> {
        result
    }
}
