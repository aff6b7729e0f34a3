//! What callers use: encode and decode with any backend, parameters chosen, hashes checked, streams sealed.

use std::ops::Range;
use std::sync::Arc;

use enec_format::{
    Coding, DecodePlan, Dtype, EncodePlan, FormatError, FormatErrorKind, Header, Layout, Seal, Stream,
    geometry::TILE_ELEMENTS, max_encoded_len,
};

use crate::search::choice::choose;
use crate::{
    Backend, CodecChoice, DecodeJob, DeviceSlice, DeviceStream, EncodeJob, Error, PieceHashes, Profile, Result, Source,
    Target,
};

/// Encodes and decodes tensors with one backend.
///
/// What the backend has no kernels for, a codec that [`DeviceInfo::codecs`](crate::DeviceInfo::codecs) lacks, a fallback does: its results pass
/// through host memory, also from and to device memory. Without a fallback that is the scalar reference codec, which is slow.
#[derive(Debug, Clone)]
pub struct Codec {
    backend: Arc<dyn Backend>,
    fallback: Option<Arc<dyn Backend>>,
    choice: CodecChoice,
    profile: Profile,
}

impl Codec {
    /// A codec that finds codec and parameters for each tensor.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, fallback: None, choice: CodecChoice::Auto, profile: Profile::new() }
    }

    /// The same codec, with a backend on the host that has all codecs and does what the first one cannot.
    #[must_use]
    pub fn with_fallback(mut self, fallback: Arc<dyn Backend>) -> Self {
        self.fallback = Some(fallback);
        self
    }

    /// The same codec, encoding tensors as the choice says. [`CodecChoice::Auto`], which is where one starts, takes only codecs that the
    /// backend or the fallback encodes; any other choice is done whatever they have.
    #[must_use]
    pub fn with_choice(mut self, choice: CodecChoice) -> Self {
        self.choice = choice;
        self
    }

    /// The same codec, but with the profile's parameters for the dtypes that it names.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// The backend that does what the first one cannot.
    #[must_use]
    pub fn fallback(&self) -> Option<&Arc<dyn Backend>> {
        self.fallback.as_ref()
    }

    /// The coding for a tensor: the codec by the choice, with the profile's parameters or the best by a sample of the elements. With
    /// [`CodecChoice::Auto`] the codec is the only one that the profile has for the dtype, or the one with the shorter stream, ties going to
    /// the two windows: by the sample, or by all blocks if that is not clear. Opaque bytes are stored.
    #[must_use]
    pub fn coding(&self, dtype: Dtype, elements: &[u8]) -> Coding {
        if dtype == Dtype::Opaque {
            return Coding::Stored;
        }
        let encodes = |backend: &Arc<dyn Backend>| backend.info().codecs.encodes_cascade();
        self.coding_among(dtype, elements, encodes(&self.backend) || self.fallback.as_ref().is_some_and(encodes))
    }

    fn coding_among(&self, dtype: Dtype, elements: &[u8], has_cascade: bool) -> Coding {
        let known = self.profile.known(dtype);
        choose(dtype, elements, self.choice_among(dtype, has_cascade), known)
    }

    /// The choice, once what cannot be encoded and what the profile decides are taken out of it.
    fn choice_among(&self, dtype: Dtype, has_cascade: bool) -> CodecChoice {
        let known = self.profile.known(dtype);
        match (self.choice, known.windows, known.cascade) {
            (CodecChoice::Auto, _, _) if !has_cascade => CodecChoice::Enec,
            (CodecChoice::Auto, Some(_), None) => CodecChoice::Enec,
            (CodecChoice::Auto, None, Some(_)) => CodecChoice::Cascade,
            (choice, _, _) => choice,
        }
    }

    /// Whether the backend itself encodes by this coding, not the fallback.
    #[must_use]
    pub fn encodes_on_backend(&self, coding: Coding) -> bool {
        self.backend.info().codecs.encodes(coding)
    }

    /// Whether the backend itself decodes streams of this coding, not the fallback.
    #[must_use]
    pub fn decodes_on_backend(&self, coding: Coding) -> bool {
        self.backend.info().codecs.decodes(coding)
    }

    /// Encodes little-endian elements into a sealed stream.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if `elements` is not a whole number of elements, [`Error::Device`] if the device fails.
    pub fn encode(&self, dtype: Dtype, elements: &[u8]) -> Result<Vec<u8>> {
        let mut target = vec![0; max_encoded_len(elements.len())?];
        let len = self.encode_into(dtype, elements, &mut target)?;
        target.truncate(len);
        Ok(target)
    }

    /// As [`encode`](Self::encode), into `target`, which has at least [`max_encoded_len`] bytes. Returns the stream's length.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode), and [`Error::Format`] if `target` is too short.
    pub fn encode_into(&self, dtype: Dtype, elements: &[u8], target: &mut [u8]) -> Result<usize> {
        Ok(only(self.encode_batch([(dtype, elements, target)])?))
    }

    /// As [`encode_into`](Self::encode_into) for several tensors in as few batches as suit the backend: what many small tensors want.
    ///
    /// # Errors
    ///
    /// As [`encode_into`](Self::encode_into), of the first tensor that fails. After an error the targets hold unspecified bytes.
    pub fn encode_batch<'a>(
        &self,
        tensors: impl IntoIterator<Item = (Dtype, &'a [u8], &'a mut [u8])>,
    ) -> Result<Vec<usize>> {
        let (mut tensors, mut lengths) = (tensors.into_iter(), Vec::new());
        loop {
            let batch = take_batch(&mut tensors, self.backend.batch_bytes(), |(_, elements, _)| elements.len());
            if batch.is_empty() {
                return Ok(lengths);
            }
            self.encode_one_batch(batch, &mut lengths)?;
        }
    }

    fn encode_one_batch(&self, mut tensors: Vec<(Dtype, &[u8], &mut [u8])>, lengths: &mut Vec<usize>) -> Result<()> {
        let plan = |(dtype, elements, _): &(Dtype, &[u8], &mut [u8])| -> Result<EncodePlan> {
            let count = element_count(*dtype, elements.len())?;
            Ok(EncodePlan::new(*dtype, self.coding(*dtype, elements), count)?)
        };
        let plans = tensors.iter().map(plan).collect::<Result<Vec<_>>>()?;
        let pieces: Vec<_> = plans.iter().map(|plan| PieceHashes::new(plan.layout())).collect();
        let sinks: Vec<_> = pieces.iter().map(|pieces| pieces.sink(0)).collect();
        let jobs = tensors.iter_mut().zip(&plans).zip(&sinks).map(|(((_, elements, target), plan), sink)| {
            EncodeJob::new(plan.clone(), Source::Host(elements), Target::Host(target)).with_pieces(sink)
        });
        let outcomes = self.encode_jobs(jobs.collect(), 0)?;
        for ((((_, elements, target), plan), pieces), outcome) in
            tensors.into_iter().zip(plans).zip(pieces).zip(outcomes)
        {
            let layout = plan.written(outcome?)?;
            let target = &mut target[..layout.stream_len];
            let content = pieces.complete_content(elements);
            let payload = written_payload(&pieces, &layout, content, target)?;
            layout.header(Some(Seal { content, payload })).write(target);
            lengths.push(layout.stream_len);
        }
        Ok(())
    }

    /// Decodes a stream, checking the content hash if it has one.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the stream is damaged or newer than this program, [`Error::Device`] if the device fails.
    pub fn decode(&self, stream: &[u8]) -> Result<Vec<u8>> {
        let stream = Stream::open(stream)?;
        let mut target = vec![0; stream.decoded_len()];
        self.decode_into(&stream, &mut target)?;
        Ok(target)
    }

    /// As [`decode`](Self::decode), into `target`, which has exactly the decoded length.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode). After an error `target` holds unspecified bytes.
    pub fn decode_into(&self, stream: &Stream<'_>, target: &mut [u8]) -> Result<()> {
        only(self.decode_batch([(stream, target)])?)
    }

    /// As [`decode_into`](Self::decode_into) for several streams in as few batches as suit the backend. Gives the result of each: a damaged
    /// stream does not spoil the others.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if a target has not the decoded length of its stream, [`Error::Device`] if the device fails.
    pub fn decode_batch<'a, 's: 'a>(
        &self,
        streams: impl IntoIterator<Item = (&'a Stream<'s>, &'a mut [u8])>,
    ) -> Result<Vec<Result<()>>> {
        let (mut streams, mut results) = (streams.into_iter(), Vec::new());
        loop {
            let bytes = |(stream, _): &(&Stream<'_>, &mut [u8])| stream.decoded_len();
            let batch = take_batch(&mut streams, self.backend.batch_bytes(), bytes);
            if batch.is_empty() {
                return Ok(results);
            }
            self.decode_one_batch(batch, &mut results)?;
        }
    }

    fn decode_one_batch(
        &self,
        mut streams: Vec<(&Stream<'_>, &mut [u8])>,
        results: &mut Vec<Result<()>>,
    ) -> Result<()> {
        let pieces: Vec<_> = streams.iter().map(|(stream, _)| PieceHashes::new(stream.layout())).collect();
        let sinks: Vec<_> = pieces.iter().map(|pieces| pieces.sink(0).without_payload()).collect();
        let mut jobs = Vec::with_capacity(streams.len());
        for ((stream, target), sink) in streams.iter_mut().zip(&sinks) {
            check_exact(target.len(), stream.decoded_len())?;
            let job = DecodeJob::new(DecodePlan::whole(stream), Source::Host(stream.bytes()), Target::Host(target));
            jobs.push(job.with_pieces(sink));
        }
        let decoded = self.decode_jobs(jobs, 0)?;
        for (((stream, target), pieces), decoded) in streams.into_iter().zip(pieces).zip(decoded) {
            let header = stream.header();
            results.push(match decoded {
                Ok(()) if header.content_hash.is_some() => {
                    header.check_content(pieces.complete_content(target)).map_err(Error::from)
                }
                decoded => decoded,
            });
        }
        Ok(())
    }

    /// Decodes whole tiles of 2,048 elements, without checking any hash. A stored stream has none.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the stream has no such tiles or `target` has not exactly their length, [`Error::Device`] if the device
    /// fails.
    pub fn decode_tiles_into(&self, stream: &Stream<'_>, tiles: Range<usize>, target: &mut [u8]) -> Result<()> {
        let plan = DecodePlan::whole(stream).with_tiles(tiles, false)?;
        check_exact(target.len(), plan.target_len())?;
        self.run_decode(DecodeJob::new(plan, Source::Host(stream.bytes()), Target::Host(target)))
    }

    /// Decodes a range of elements, without checking any hash: only the tiles that it touches are read.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the stream has no such elements, [`Error::Format`] if `target` has not exactly their length,
    /// [`Error::Device`] if the device fails.
    pub fn decode_elements_into(&self, stream: &Stream<'_>, elements: Range<usize>, target: &mut [u8]) -> Result<()> {
        if elements.start > elements.end || elements.end > stream.elements() {
            let message = format!("elements {elements:?} of a tensor of {}", stream.elements());
            return Err(Error::Argument(message));
        }
        let element_bytes = stream.dtype().element_bytes();
        check_exact(target.len(), elements.len() * element_bytes)?;
        let layout = stream.layout();
        let tiled = layout.tiles * TILE_ELEMENTS;
        let split = elements.end.min(tiled).saturating_sub(elements.start) * element_bytes;
        let (from_tiles, from_tail) = target.split_at_mut(split);
        let tail_start = (elements.start.max(tiled) - tiled) * element_bytes;
        from_tail.copy_from_slice(&stream.tail()[tail_start..tail_start + from_tail.len()]);
        if from_tiles.is_empty() {
            return Ok(());
        }
        let end = elements.end.min(tiled);
        let tiles = elements.start / TILE_ELEMENTS..end.div_ceil(TILE_ELEMENTS);
        if elements.start.is_multiple_of(TILE_ELEMENTS) && end.is_multiple_of(TILE_ELEMENTS) {
            return self.decode_tiles_into(stream, tiles, from_tiles);
        }
        let mut decoded = vec![0; tiles.len() * layout.dtype.tile_bytes()];
        self.decode_tiles_into(stream, tiles.clone(), &mut decoded)?;
        let start = (elements.start - tiles.start * TILE_ELEMENTS) * element_bytes;
        from_tiles.copy_from_slice(&decoded[start..start + from_tiles.len()]);
        Ok(())
    }

    /// Checks both hashes of a stream, decoding it.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the stream is damaged or not sealed, [`Error::Device`] if the device fails.
    pub fn verify(&self, stream: &[u8]) -> Result<()> {
        let stream = Stream::open(stream)?;
        stream.check_payload()?;
        let mut target = vec![0; stream.decoded_len()];
        self.decode_into(&stream, &mut target)?;
        if stream.header().content_hash.is_none() {
            stream.check_content(&target)?;
        }
        Ok(())
    }

    /// Seals a stream that was encoded from device memory: decodes it and writes both hashes into its header. Hashes that it has are
    /// checked before.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if it is damaged, [`Error::Device`] if the device fails.
    pub fn seal(&self, bytes: &mut [u8]) -> Result<()> {
        let stream = Stream::open(bytes)?;
        if stream.header().payload_hash.is_some() {
            stream.check_payload()?;
        }
        let content = enec_format::hash::content_hash(&self.decode(bytes)?);
        let header = stream.header().sealed(Seal { content, payload: stream.payload_hash() });
        header.write(bytes);
        Ok(())
    }

    /// Copies a stream into device memory, after checking its payload hash if it has one, so that it can be decoded there.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the hash disagrees, [`Error::Device`] if the device fails.
    pub fn upload(&self, stream: &Stream<'_>) -> Result<DeviceStream> {
        if stream.header().payload_hash.is_some() {
            stream.check_payload()?;
        }
        let memory = self.backend.alloc(stream.bytes().len())?.full();
        self.backend.upload(stream.bytes(), &memory)?;
        Ok(DeviceStream { header: *stream.header(), layout: stream.layout().clone(), memory })
    }

    /// Validates a stream that is already in device memory, from its downloaded header, block table and mask; of codec 2, from its symbols,
    /// block table, low plane and variable section.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if it is not a valid stream, [`Error::Device`] if the device fails.
    pub fn open_device(&self, memory: DeviceSlice) -> Result<DeviceStream> {
        let part = |range: Range<usize>| -> Result<Vec<u8>> {
            let mut bytes = vec![0; range.len()];
            self.backend.download(&memory.slice(range)?, &mut bytes)?;
            Ok(bytes)
        };
        let front = part(0..memory.len().min(Header::FRONT_BYTES))?;
        let (header, layout) = Stream::open_parts(&front, memory.len(), |section| part(section.range()))?;
        Ok(DeviceStream { header, layout, memory })
    }

    /// Encodes elements that lie in device memory into device memory of at least [`max_encoded_len`] bytes.
    ///
    /// The stream is not sealed: only its header crosses the bus, and the bytes for the parameter search unless the profile has the parameters.
    /// [`CodecChoice::Auto`] takes only codecs that the device encodes. Download it and [`seal`](Self::seal) it to store it.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the sizes do not fit, [`Error::Argument`] if the memory overlaps or is another backend's,
    /// [`Error::Device`] if the device fails.
    pub fn encode_device(&self, dtype: Dtype, elements: &DeviceSlice, target: &DeviceSlice) -> Result<DeviceStream> {
        let count = element_count(dtype, elements.len())?;
        let (known, has_cascade) = (self.profile.known(dtype), self.backend.info().codecs.encodes_cascade());
        let coding = match (dtype, self.choice_among(dtype, has_cascade), known.windows, known.cascade) {
            (Dtype::Opaque, ..) => Coding::Stored,
            (_, CodecChoice::Enec, Some(windows), _) => windows.into(),
            (_, CodecChoice::Cascade, _, Some(cascade)) => cascade.into(),
            _ => {
                let mut host = vec![0; elements.len()];
                self.backend.download(elements, &mut host)?;
                self.coding_among(dtype, &host, has_cascade)
            }
        };
        let plan = EncodePlan::new(dtype, coding, count)?;
        let job = EncodeJob::new(plan.clone(), Source::Device(elements.clone()), Target::Device(target.clone()));
        let layout = plan.written(self.run_encode(job)?)?;
        let header = layout.header(None);
        let mut front = vec![0; header.front_len()];
        header.write(&mut front);
        self.backend.upload(&front, &target.slice(0..front.len())?)?;
        Ok(DeviceStream { header, memory: target.slice(0..layout.stream_len)?, layout })
    }

    /// Decodes a stream that lies in device memory. No hash is checked.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if `target` is too short, [`Error::Argument`] if device memory overlaps or is another backend's,
    /// [`Error::Device`] if the device fails.
    pub fn decode_device(&self, stream: &DeviceStream, target: Target<'_>) -> Result<()> {
        let plan = DecodePlan::of_layout(stream.layout.clone());
        self.run_decode(DecodeJob::new(plan, Source::Device(stream.memory.clone()), target))
    }

    fn run_encode(&self, job: EncodeJob<'_>) -> Result<enec_format::EncodeOutcome> {
        only(self.encode_jobs(vec![job], 0)?)
    }

    fn run_decode(&self, job: DecodeJob<'_>) -> Result<()> {
        only(self.decode_jobs(vec![job], 0)?)
    }
}

/// The payload hash of a stream that lacks its header only. It is opened only if the backend left out a piece.
fn written_payload(pieces: &PieceHashes, layout: &Layout, content: u64, stream: &mut [u8]) -> Result<u64> {
    if layout.coding == Coding::Stored {
        // What was reported is not of its stored bytes, which are its content.
        return Ok(content);
    }
    pieces.add_tail(layout.blocks(), &stream[layout.tail.range()]);
    if let Some(payload) = pieces.payload() {
        return Ok(payload);
    }
    layout.header(None).write(stream);
    Ok(pieces.complete_payload(&Stream::open(stream)?))
}

/// The next items, one at least if there are any: as many as it takes until they have `bytes` bytes.
fn take_batch<T>(items: &mut impl Iterator<Item = T>, bytes: usize, len: impl Fn(&T) -> usize) -> Vec<T> {
    let mut left = bytes;
    let mut batch = Vec::new();
    for item in items {
        left = left.saturating_sub(len(&item));
        batch.push(item);
        if left == 0 {
            break;
        }
    }
    batch
}

/// The result of the only job of a batch.
fn only<T>(results: Vec<T>) -> T {
    results.into_iter().next().unwrap_or_else(|| unreachable!("a batch keeps its jobs"))
}

fn element_count(dtype: Dtype, bytes: usize) -> Result<usize> {
    let element_bytes = dtype.element_bytes();
    if bytes.is_multiple_of(element_bytes) {
        return Ok(bytes / element_bytes);
    }
    let kind = FormatErrorKind::PartialElement { found: bytes as u64, element_bytes: element_bytes as u64 };
    Err(FormatError::new(kind, 0).into())
}

fn check_exact(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let kind = FormatErrorKind::TargetLength { expected: expected as u64, found: found as u64 };
    Err(FormatError::new(kind, 0).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_of_all_items_in_order() {
        let batches = |bytes: usize, lens: &[usize]| -> Vec<Vec<usize>> {
            let mut items = lens.iter().copied();
            let next = || Some(take_batch(&mut items, bytes, |&len| len)).filter(|batch| !batch.is_empty());
            std::iter::from_fn(next).collect()
        };
        let expected = [vec![0, 4, 0, 6], vec![0, 11], vec![0, 3, 0]];
        assert_eq!(batches(10, &[0, 4, 0, 6, 0, 11, 0, 3, 0]), expected);
        assert_eq!(batches(usize::MAX, &[0, usize::MAX - 1, 0]), [[0, usize::MAX - 1, 0]]);
        assert_eq!(batches(0, &[5, 0]), [[5], [0]], "a limit that nothing fits into leaves nothing out");
        assert_eq!(batches(10, &[]), Vec::<Vec<usize>>::new());
    }
}
