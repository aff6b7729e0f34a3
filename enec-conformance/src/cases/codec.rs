//! Codec: everything that callers use, on this backend.

use std::sync::Arc;

use enec_core::{
    Codec, CodecChoice, Codecs, DecodeBatch, DecodeJob, DeviceSlice, DeviceStream, Error, OpenOptions, Profile, Source,
    Target,
};
use enec_format::geometry::{BLOCK_ELEMENTS, HEADER_BYTES, TILE_ELEMENTS};
use enec_format::{Coding, DecodePlan, Dtype, FormatErrorKind as Kind, Header, Stream, max_encoded_len, reference};

use crate::codecs::{CODECS, Needs};
use crate::inputs::Input;
use crate::jobs::same;
use crate::{Case, Result, Subject, ensure};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (choice, prefix) in CODECS {
        for dtype in Dtype::FLOATS {
            let mut add = |name: &str, check: fn(&Subject, &Codec, Dtype) -> Result| {
                let name = format!("{prefix}codec/{}/{name}", dtype.name().to_lowercase());
                let case = Case::new(name, move |subject| check(subject, &subject.codec_of(choice), dtype));
                cases.push(case.needing(Needs::of(choice, Needs::Both)));
            };
            add("round_trip", round_trip);
            add("batch", batch);
            add("elements", elements);
            add("device", device);
            add("damage", damage);
        }
    }
    cases.push(Case::new("codec/fallback", fallback));
    cases.push(Case::new("codec/profile", profile));
    cases.push(Case::new("codec/refusals", refusals));
    cases
}

fn tensors(dtype: Dtype) -> Vec<Vec<u8>> {
    let weights = Input::Weights { seed: 100, top: u64::from(dtype.exponent_mask() / 2), zeros: 1 };
    let counts = [0, 1, TILE_ELEMENTS, BLOCK_ELEMENTS + TILE_ELEMENTS + 33];
    let mut tensors: Vec<Vec<u8>> = counts.map(|count| weights.bytes(dtype, count)).into();
    tensors.push(Input::Uniform { seed: 101 }.bytes(dtype, TILE_ELEMENTS + 5));
    tensors
}

/// What the codec must write: the reference's stream with the codec's parameters.
fn expected(codec: &Codec, dtype: Dtype, elements: &[u8]) -> Result<Vec<u8>> {
    Ok(reference::encode_stream(dtype, codec.coding(dtype, elements), elements)?)
}

fn round_trip(_: &Subject, codec: &Codec, dtype: Dtype) -> Result {
    for elements in tensors(dtype) {
        let expected = expected(codec, dtype, &elements)?;
        let stream = codec.encode(dtype, &elements)?;
        same(&stream, &expected, |at| format!("byte {at} of a stream of {} bytes", elements.len()))?;
        same(&codec.decode(&stream)?, &elements, |at| format!("byte {at} of {} decoded", elements.len()))?;
        codec.verify(&stream)?;
        // Into a buffer that held something else before.
        let mut target = vec![0xEE; max_encoded_len(elements.len())?];
        let len = codec.encode_into(dtype, &elements, &mut target)?;
        same(&target[..len], &expected, |at| format!("byte {at} of a stream encoded into a used buffer"))?;
        let mut target = vec![0xEE; elements.len()];
        codec.decode_into(&Stream::open(&stream)?, &mut target)?;
        same(&target, &elements, |at| format!("byte {at} decoded into a used buffer"))?;
    }
    let bytes = Input::Uniform { seed: 102 }.bytes(Dtype::Opaque, 999);
    let stream = codec.encode(Dtype::Opaque, &bytes)?;
    ensure!(codec.decode(&stream)? == bytes, "opaque bytes do not come back");
    Ok(codec.verify(&stream)?)
}

/// All tensors in one call: as each by itself, in their order, and a damaged stream is no other's damage.
fn batch(_: &Subject, codec: &Codec, dtype: Dtype) -> Result {
    // Whichever of them end a batch, there are some of no bytes behind them.
    let tensors: Vec<_> = tensors(dtype).into_iter().flat_map(|tensor| [tensor, Vec::new()]).collect();
    let mut streams = Vec::new();
    for elements in &tensors {
        streams.push(vec![0xEE; max_encoded_len(elements.len())?]);
    }
    let jobs = tensors.iter().zip(&mut streams).map(|(elements, target)| (dtype, &elements[..], &mut target[..]));
    let lengths = codec.encode_batch(jobs)?;
    ensure!(lengths.len() == tensors.len(), "{} streams of {} tensors", lengths.len(), tensors.len());
    for ((elements, stream), len) in tensors.iter().zip(&mut streams).zip(lengths) {
        stream.truncate(len);
        let expected = expected(codec, dtype, elements)?;
        same(stream, &expected, |at| format!("byte {at} of one of several streams, of {} bytes", elements.len()))?;
    }
    let damaged = 6;
    let at = Stream::open(&streams[damaged])?.layout().byte_plane.offset;
    streams[damaged][at] ^= 1;
    let opened = streams.iter().map(|stream| Stream::open(stream)).collect::<std::result::Result<Vec<_>, _>>()?;
    let mut targets: Vec<_> = tensors.iter().map(|elements| vec![0xEE; elements.len()]).collect();
    let jobs = opened.iter().zip(&mut targets).map(|(stream, target)| (stream, &mut target[..]));
    let results = codec.decode_batch(jobs)?;
    ensure!(results.len() == tensors.len(), "{} results of {} streams", results.len(), tensors.len());
    for (index, (result, (target, elements))) in results.into_iter().zip(targets.iter().zip(&tensors)).enumerate() {
        if index == damaged {
            let told = is_format(&result, |kind| matches!(kind, Kind::ContentHash { .. }));
            ensure!(told, "a damaged stream among others: {result:?}");
        } else {
            result?;
            same(target, elements, |at| format!("byte {at} of tensor {index} of several"))?;
        }
    }
    Ok(())
}

fn elements(_: &Subject, codec: &Codec, dtype: Dtype) -> Result {
    let element_bytes = dtype.element_bytes();
    for elements in tensors(dtype) {
        let bytes = codec.encode(dtype, &elements)?;
        let (stream, count) = (Stream::open(&bytes)?, elements.len() / element_bytes);
        let edges =
            [0, 1, 2000, TILE_ELEMENTS, TILE_ELEMENTS + 1, BLOCK_ELEMENTS, BLOCK_ELEMENTS + TILE_ELEMENTS, count];
        for start in edges.into_iter().filter(|&edge| edge <= count) {
            for end in edges.into_iter().filter(|&edge| start <= edge && edge <= count) {
                let mut target = vec![0xEE; (end - start) * element_bytes];
                codec.decode_elements_into(&stream, start..end, &mut target)?;
                let expected = &elements[start * element_bytes..end * element_bytes];
                same(&target, expected, |at| format!("byte {at} of elements {start}..{end} of {count}"))?;
            }
        }
        let refused = codec.decode_elements_into(&stream, count..count + 1, &mut vec![0; element_bytes]);
        ensure!(matches!(refused, Err(Error::Argument(_))), "an element behind the last: {refused:?}");
        let tiles = stream.layout().tiles;
        let mut target = vec![0xEE; tiles * dtype.tile_bytes()];
        codec.decode_tiles_into(&stream, 0..tiles, &mut target)?;
        same(&target, &elements[..target.len()], |at| format!("byte {at} of all tiles"))?;
        let refused = codec.decode_tiles_into(&stream, tiles..tiles + 1, &mut vec![0; dtype.tile_bytes()]);
        ensure!(
            is_format(&refused, |kind| matches!(kind, Kind::TileRange { .. })),
            "a tile behind the last: {refused:?}"
        );
    }
    Ok(())
}

fn download(subject: &Subject, slice: &DeviceSlice) -> Result<Vec<u8>> {
    let mut bytes = vec![0; slice.len()];
    subject.backend().download(slice, &mut bytes)?;
    Ok(bytes)
}

fn device(subject: &Subject, codec: &Codec, dtype: Dtype) -> Result {
    let backend = subject.backend();
    for elements in tensors(dtype) {
        let sealed = expected(codec, dtype, &elements)?;
        let source = backend.alloc(elements.len() + 6)?.slice(3..3 + elements.len())?;
        backend.upload(&elements, &source)?;
        let target = backend.alloc(max_encoded_len(elements.len())? + 5)?.full();
        backend.upload(&vec![0xEE; target.len()], &target)?;
        let encoded = codec.encode_device(dtype, &source, &target)?;

        let mut stream = download(subject, encoded.memory())?;
        ensure!(Stream::open(&stream)?.header().seal().is_none(), "a stream from device memory is sealed");
        codec.seal(&mut stream)?;
        same(&stream, &sealed, |at| format!("byte {at} of {} bytes encoded on the device and sealed", elements.len()))?;

        let uploaded = codec.upload(&Stream::open(&sealed)?)?;
        for stream in [
            &encoded,
            &codec.open_device(encoded.memory().clone())?,
            &uploaded,
            &codec.open_device(uploaded.memory().clone())?,
        ] {
            decodes_to(subject, codec, stream, &elements)?;
        }
    }
    Ok(())
}

fn decodes_to(subject: &Subject, codec: &Codec, stream: &DeviceStream, elements: &[u8]) -> Result {
    let target = subject.backend().alloc(elements.len() + 2)?.slice(1..1 + elements.len())?;
    codec.decode_device(stream, Target::Device(target.clone()))?;
    same(&download(subject, &target)?, elements, |at| format!("byte {at} decoded on the device"))?;
    let mut host = vec![0xEE; elements.len()];
    codec.decode_device(stream, Target::Host(&mut host))?;
    same(&host, elements, |at| format!("byte {at} decoded from the device"))
}

/// One flipped bit in each section: the structure or a hash must tell.
fn damage(_: &Subject, codec: &Codec, dtype: Dtype) -> Result {
    let top = u64::from(dtype.exponent_mask() / 2);
    let input = Input::Lanes { seed: 103, wide: 40, base: top, width: 2, wide_base: top + 5, wide_width: 4 };
    let elements = input.bytes(dtype, 9 * TILE_ELEMENTS + 3);
    let intact = codec.encode(dtype, &elements)?;
    let opened = Stream::open(&intact)?;
    for (section, place) in opened.layout().sections() {
        for at in [place.range().start, place.range().end.saturating_sub(1)] {
            if place.len == 0 {
                continue;
            }
            let mut stream = intact.clone();
            stream[at] ^= 1 << (at % 8);
            let results = [codec.decode(&stream).map(|_| ()), codec.verify(&stream)];
            for result in results {
                ensure!(matches!(result, Err(Error::Format(_))), "byte {at} of the {section} changed: {result:?}");
            }
            if let Ok(stream) = Stream::open(&stream) {
                let result = codec.upload(&stream).map(|_| ());
                let told = is_format(&result, |kind| matches!(kind, Kind::PayloadHash { .. }));
                ensure!(told, "byte {at} of the {section} changed before an upload: {result:?}");
                let mut half_sealed = stream.bytes().to_vec();
                let header = Header { content_hash: None, ..*stream.header() };
                half_sealed[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
                let result = codec.seal(&mut half_sealed);
                let told = is_format(&result, |kind| matches!(kind, Kind::PayloadHash { .. }));
                ensure!(told, "byte {at} of the {section} changed before a seal: {result:?}");
            }
        }
    }
    Ok(())
}

/// A device that has codec 1 only: codec 2 goes through host memory, by a fallback or by the reference codec, from and to any place.
fn fallback(subject: &Subject) -> Result {
    let half = subject.with_codecs(Codecs::ENEC);
    let cascade = half.codec_of(CodecChoice::Cascade);
    let other = crate::pretend::open(&OpenOptions::default(), None)?;
    for codec in [cascade.clone(), cascade.with_fallback(Arc::clone(&other))] {
        for dtype in Dtype::FLOATS {
            round_trip(&half, &codec, dtype)?;
            elements(&half, &codec, dtype)?;
            device(&half, &codec, dtype)?;
        }
        let tensors = tensors(Dtype::Bf16);
        let coding = codec.coding(Dtype::Bf16, &tensors[3]);
        ensure!(coding.cascade().is_some(), "a choice is not kept to: {coding:?}");
        ensure!(
            !codec.encodes_on_backend(coding) && !codec.decodes_on_backend(coding),
            "it is said to be the device's"
        );
        // Jobs of both codecs in one call.
        let windows = half.codec_of(CodecChoice::Enec);
        let streams = [windows.encode(Dtype::Bf16, &tensors[3])?, codec.encode(Dtype::Bf16, &tensors[3])?];
        let opened = [Stream::open(&streams[1])?, Stream::open(&streams[0])?, Stream::open(&streams[1])?];
        let mut targets = vec![vec![0xEE; tensors[3].len()]; 3];
        let jobs = opened.iter().zip(&mut targets).map(|(stream, target)| (stream, &mut target[..]));
        codec.decode_batch(jobs)?.into_iter().collect::<enec_core::Result<Vec<()>>>()?;
        ensure!(targets.iter().all(|target| *target == tensors[3]), "a batch of both codecs decodes to something else");
    }
    // What is chosen automatically is what the device has, unless a fallback has more.
    let weights = Input::Weights { seed: 105, top: 120, zeros: 0 }.bytes(Dtype::Bf16, 3 * TILE_ELEMENTS);
    let alone = half.codec().coding(Dtype::Bf16, &weights);
    ensure!(alone.two_windows().is_some(), "chosen without a fallback: {alone:?}");
    let with = half.codec().with_fallback(other).coding(Dtype::Bf16, &weights);
    ensure!(with.cascade().is_some(), "chosen with a fallback: {with:?}");
    // A batch for the device takes no job of a codec that it lacks.
    let stream = reference::encode_stream(Dtype::Bf16, with, &weights)?;
    let (plan, mut target) = (DecodePlan::whole(&Stream::open(&stream)?), vec![0; weights.len()]);
    let mut batch = DecodeBatch::new(half.backend().info());
    let refused = batch.push(DecodeJob::new(plan, Source::Host(&stream), Target::Host(&mut target)));
    ensure!(matches!(refused, Err(Error::Argument(_))), "a job of an undeclared codec: {refused:?}");
    Ok(())
}

fn profile(subject: &Subject) -> Result {
    let elements = Input::Weights { seed: 104, top: 120, zeros: 0 }.bytes(Dtype::Bf16, 3 * TILE_ELEMENTS);
    let codec = subject.codec().with_profile(Profile::new().with(Dtype::Bf16, 118, 4)?);
    let stream = codec.encode(Dtype::Bf16, &elements)?;
    let header = *Stream::open(&stream)?.header();
    let windows = header.coding.two_windows().ok_or("stored")?;
    ensure!((windows.common_base(), windows.common_width()) == (118, 4), "parameters {windows:?}");
    same(&codec.decode(&stream)?, &elements, |at| format!("byte {at} with a profile"))
}

fn refusals(subject: &Subject) -> Result {
    let (codec, backend) = (subject.codec(), subject.backend());
    let elements = vec![1; 2 * TILE_ELEMENTS + 1];
    let partial = codec.encode(Dtype::Bf16, &elements).map(|_| ());
    ensure!(is_format(&partial, |kind| matches!(kind, Kind::PartialElement { .. })), "half an element: {partial:?}");
    let short = codec.encode_into(Dtype::Bf16, &elements[1..], &mut [0; 100]).map(|_| ());
    ensure!(is_format(&short, |kind| matches!(kind, Kind::TargetLength { .. })), "a short target: {short:?}");
    let stream = codec.encode(Dtype::Bf16, &elements[1..])?;
    for len in [0, elements.len() - 2, elements.len()] {
        let result = codec.decode_into(&Stream::open(&stream)?, &mut vec![0; len]);
        ensure!(is_format(&result, |kind| matches!(kind, Kind::TargetLength { .. })), "a target of {len}: {result:?}");
    }
    let memory = backend.alloc(stream.len() + 1)?;
    backend.upload(&stream, &memory.slice(0..stream.len())?)?;
    for len in [0, 63, stream.len() - 64, stream.len() + 1] {
        let result = codec.open_device(memory.slice(0..len)?).map(|_| ());
        let told = is_format(&result, |kind| matches!(kind, Kind::Truncated { .. } | Kind::Trailing { .. }));
        ensure!(told, "a device stream of {len} bytes: {result:?}");
    }
    let opened = codec.open_device(memory.slice(0..stream.len())?)?;
    let overlapping = memory.slice(HEADER_BYTES..stream.len() + 1)?;
    let result = codec.decode_device(&opened, Target::Device(overlapping));
    let too_short = is_format(&result, |kind| matches!(kind, Kind::TargetLength { .. }));
    ensure!(too_short || matches!(result, Err(Error::Argument(_))), "overlapping memory: {result:?}");
    let other = subject.reopen(|_| {})?;
    let foreign = other.backend().alloc(elements.len())?.full();
    let result = codec.decode_device(&opened, Target::Device(foreign));
    ensure!(matches!(result, Err(Error::Argument(_))), "another backend's memory: {result:?}");
    ensure!(codec.coding(Dtype::Opaque, &elements) == Coding::Stored, "opaque bytes coded");
    Ok(())
}

fn is_format(result: &enec_core::Result<()>, expected: impl Fn(Kind) -> bool) -> bool {
    matches!(result, Err(Error::Format(error)) if expected(error.kind()))
}
