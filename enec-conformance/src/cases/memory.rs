//! Memory: allocation, transfers and what they refuse.

use enec_core::{DecodeBatch, DeviceSlice, EncodeBatch, Error};

use crate::random::SplitMix64;
use crate::{Case, Result, Subject, ensure};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("memory/zeroed", zeroed),
        Case::new("memory/zeroed_again", zeroed_again),
        Case::new("memory/empty", empty),
        Case::new("memory/too_large", too_large),
        Case::new("memory/transfers", transfers),
        Case::new("memory/lengths", lengths),
        Case::new("memory/copies", copies),
        Case::new("memory/foreign", foreign),
        Case::new("memory/shared", shared),
    ]
}

fn read(subject: &Subject, slice: &DeviceSlice) -> Result<Vec<u8>> {
    let mut bytes = vec![0xAA; slice.len()];
    subject.backend().download(slice, &mut bytes)?;
    Ok(bytes)
}

fn zeroed(subject: &Subject) -> Result {
    for len in [1, 2, 3, 4, 63, 64, 65, 4096, 100_001] {
        let buffer = subject.backend().alloc(len)?;
        ensure!(buffer.len() == len, "{len} bytes asked for, {} given", buffer.len());
        ensure!(read(subject, &buffer.full())?.iter().all(|&byte| byte == 0), "{len} bytes are not zero");
    }
    Ok(())
}

/// A pool must not hand out what the last owner left.
fn zeroed_again(subject: &Subject) -> Result {
    for len in [64, 5000, 100_000] {
        let buffer = subject.backend().alloc(len)?;
        subject.backend().upload(&vec![0xFF; len], &buffer.full())?;
        drop(buffer);
        let buffer = subject.backend().alloc(len)?;
        ensure!(read(subject, &buffer.full())?.iter().all(|&byte| byte == 0), "{len} used bytes are not zero");
    }
    Ok(())
}

fn empty(subject: &Subject) -> Result {
    let buffer = subject.backend().alloc(0)?;
    ensure!(buffer.is_empty(), "0 bytes asked for, {} given", buffer.len());
    subject.backend().upload(&[], &buffer.full())?;
    subject.backend().download(&buffer.full(), &mut [])?;
    let buffer = subject.backend().alloc(10)?;
    for at in [0, 3, 10] {
        subject.backend().upload(&[], &buffer.slice(at..at)?)?;
        subject.backend().download(&buffer.slice(at..at)?, &mut [])?;
    }
    Ok(())
}

fn too_large(subject: &Subject) -> Result {
    for len in [usize::MAX, isize::MAX.unsigned_abs(), 1 << 61] {
        match subject.backend().alloc(len) {
            Err(Error::Device { .. }) => {}
            Err(error) => return Err(format!("{len} bytes: expected `Device`, found {error:?}").into()),
            Ok(_) => return Err(format!("{len} bytes allocated").into()),
        }
    }
    Ok(())
}

/// Parts of a buffer at any offset and of any length, each transfer leaving the rest alone.
fn transfers(subject: &Subject) -> Result {
    let mut random = SplitMix64::new(1);
    let mut expected = random.bytes(1000);
    let buffer = subject.backend().alloc(expected.len())?;
    subject.backend().upload(&expected, &buffer.full())?;
    for start in [0, 1, 2, 3, 4, 64, 333] {
        for len in [1, 2, 3, 4, 5, 63, 64, 65, 667] {
            let bytes = random.bytes(len);
            let slice = buffer.slice(start..start + len)?;
            subject.backend().upload(&bytes, &slice)?;
            expected[start..start + len].copy_from_slice(&bytes);
            ensure!(read(subject, &slice)? == bytes, "bytes {start}..{} do not come back", start + len);
            ensure!(read(subject, &buffer.full())? == expected, "upload to {start}..{} changed others", start + len);
            let within = slice.slice(len / 2..len)?;
            ensure!(read(subject, &within)? == bytes[len / 2..], "part of a part at {start}, {len} bytes");
        }
    }
    Ok(())
}

fn lengths(subject: &Subject) -> Result {
    let buffer = subject.backend().alloc(100)?;
    for (device, host) in [(100, 99), (100, 101), (50, 100), (0, 1), (1, 0)] {
        let slice = buffer.slice(0..device)?;
        refused(subject.backend().upload(&vec![7; host], &slice), "upload of another length")?;
        refused(subject.backend().download(&slice, &mut vec![7; host]), "download of another length")?;
    }
    ensure!(read(subject, &buffer.full())? == [0; 100], "a refused upload wrote");
    Ok(())
}

fn foreign(subject: &Subject) -> Result {
    let other = subject.reopen(|_| {})?;
    let buffer = other.backend().alloc(100)?;
    refused(subject.backend().upload(&[7; 100], &buffer.full()), "upload to another backend's memory")?;
    refused(subject.backend().download(&buffer.full(), &mut [7; 100]), "download of another backend's memory")?;
    ensure!(read(&other, &buffer.full())? == [0; 100], "a refused upload wrote");
    // What a batch has checked holds for its own device only.
    let info = other.backend().info();
    refused(subject.backend().encode(&mut EncodeBatch::new(info)), "encoding a batch for another backend")?;
    refused(subject.backend().decode(&mut DecodeBatch::new(info)), "decoding a batch for another backend")?;
    Ok(())
}

/// From any offset to any other, each copy leaving the rest alone, and none that overlaps or goes astray.
fn copies(subject: &Subject) -> Result {
    let mut random = SplitMix64::new(2);
    let (bytes, mut expected) = (random.bytes(500), random.bytes(500));
    let (source, target) = (subject.backend().alloc(500)?, subject.backend().alloc(500)?);
    subject.backend().upload(&bytes, &source.full())?;
    subject.backend().upload(&expected, &target.full())?;
    for (from, to, len) in [(0, 0, 0), (0, 0, 64), (1, 2, 3), (3, 0, 1), (64, 65, 130), (333, 7, 100), (0, 256, 244)] {
        subject.backend().copy(&source.slice(from..from + len)?, &target.slice(to..to + len)?)?;
        expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
        ensure!(read(subject, &target.full())? == expected, "copy of {len} bytes from {from} to {to}");
    }
    subject.backend().copy(&target.slice(0..100)?, &target.slice(100..200)?)?;
    expected.copy_within(0..100, 100);
    ensure!(read(subject, &target.full())? == expected, "copy within one buffer");
    let foreign = subject.reopen(|_| {})?.backend().alloc(100)?;
    for (from, to, what) in [
        (source.slice(0..100)?, target.slice(0..99)?, "copy to another length"),
        (source.slice(0..100)?, source.slice(99..199)?, "copy that overlaps"),
        (foreign.full(), target.slice(0..100)?, "copy of another backend's memory"),
        (source.slice(0..100)?, foreign.full(), "copy to another backend's memory"),
    ] {
        refused(subject.backend().copy(&from, &to), what)?;
    }
    ensure!(read(subject, &source.full())? == bytes, "the source of copies changed");
    ensure!(read(subject, &target.full())? == expected, "a refused copy wrote");
    Ok(())
}

/// Clones are the same memory and keep it alive.
fn shared(subject: &Subject) -> Result {
    let buffer = subject.backend().alloc(300)?;
    let slice = buffer.clone().slice(100..200)?;
    subject.backend().upload(&[9; 100], &buffer.slice(100..200)?)?;
    drop(buffer);
    let others = subject.backend().alloc(300)?;
    subject.backend().upload(&[1; 300], &others.full())?;
    ensure!(read(subject, &slice)? == [9; 100], "memory changed although a slice of it is alive");
    Ok(())
}

fn refused(result: enec_core::Result<()>, what: &str) -> Result {
    match result {
        Err(Error::Argument(_)) => Ok(()),
        Err(error) => Err(format!("{what}: expected `Argument`, found {error:?}").into()),
        Ok(()) => Err(format!("{what} was accepted").into()),
    }
}
