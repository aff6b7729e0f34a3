//! Buffers between guard bytes, in host or device memory, at any offset from an alignment of 64.

use enec_core::{DeviceBuf, Source, Target};

use crate::{Result, Subject, ensure};

/// Guard bytes on each side. More than one vector register and one GPU word, so that a store of either is noticed.
const GUARD: usize = 128;
const ALIGNMENT: usize = 64;

/// Which memory a buffer lies in, and its offset from an address that is a multiple of 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Host memory.
    Host(usize),
    /// Device memory.
    Device(usize),
}

impl Place {
    /// Aligned host memory.
    pub const HOST: Self = Place::Host(0);
    /// Aligned device memory.
    pub const DEVICE: Self = Place::Device(0);
}

enum Memory {
    Host(Vec<u8>),
    Device(DeviceBuf),
}

/// A buffer whose surroundings are known, so that a stray write is seen.
pub struct Guarded {
    memory: Memory,
    /// What was put into the memory, guards included.
    image: Vec<u8>,
    start: usize,
    len: usize,
}

/// Byte `index` of poison: never zero, so that padding that nobody wrote is seen, and different from its neighbours.
fn poison(index: usize) -> u8 {
    let [low, ..] = (index % 251 + 1).to_le_bytes();
    low
}

impl Guarded {
    /// A buffer that holds `bytes`.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn holding(subject: &Subject, place: Place, bytes: &[u8]) -> Result<Self> {
        Self::with(subject, place, bytes.len(), |content| content.copy_from_slice(bytes))
    }

    /// A buffer full of poison.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn poisoned(subject: &Subject, place: Place, len: usize) -> Result<Self> {
        Self::with(subject, place, len, |_| {})
    }

    fn with(subject: &Subject, place: Place, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<Self> {
        let (Place::Host(offset) | Place::Device(offset)) = place;
        let offset = offset % ALIGNMENT;
        let host = vec![0_u8; 2 * GUARD + 2 * ALIGNMENT + len];
        let misaligned = match place {
            Place::Host(_) => host.as_ptr().addr() % ALIGNMENT,
            Place::Device(_) => 0,
        };
        let start = GUARD + (ALIGNMENT + offset - misaligned) % ALIGNMENT;
        let mut image = host;
        image.iter_mut().enumerate().for_each(|(index, byte)| *byte = poison(index));
        fill(&mut image[start..start + len]);
        let (memory, image) = match place {
            // The copy is the image, so that the buffer itself keeps its address.
            Place::Host(_) => {
                let copy = image.clone();
                (Memory::Host(image), copy)
            }
            Place::Device(_) => {
                let buffer = subject.backend().alloc(image.len())?;
                subject.backend().upload(&image, &buffer.full())?;
                (Memory::Device(buffer), image)
            }
        };
        Ok(Self { memory, image, start, len })
    }

    /// The buffer as a job's source.
    ///
    /// # Errors
    ///
    /// None: the slice lies within the memory.
    pub fn source(&self) -> Result<Source<'_>> {
        let range = self.start..self.start + self.len;
        Ok(match &self.memory {
            Memory::Host(bytes) => Source::Host(&bytes[range]),
            Memory::Device(buffer) => Source::Device(buffer.slice(range)?),
        })
    }

    /// The buffer as a job's target.
    ///
    /// # Errors
    ///
    /// None: the slice lies within the memory.
    pub fn target(&mut self) -> Result<Target<'_>> {
        let range = self.start..self.start + self.len;
        Ok(match &mut self.memory {
            Memory::Host(bytes) => Target::Host(&mut bytes[range]),
            Memory::Device(buffer) => Target::Device(buffer.slice(range)?),
        })
    }

    /// What the buffer was filled with.
    #[must_use]
    pub fn before(&self) -> &[u8] {
        &self.image[self.start..self.start + self.len]
    }

    /// The buffer's bytes now, once the guards have been found as they were.
    ///
    /// # Errors
    ///
    /// If a guard byte changed, or the device fails.
    pub fn checked(&self, subject: &Subject) -> Result<Vec<u8>> {
        let mut now = match &self.memory {
            Memory::Host(bytes) => bytes.clone(),
            Memory::Device(buffer) => {
                let mut bytes = vec![0; buffer.len()];
                subject.backend().download(&buffer.full(), &mut bytes)?;
                bytes
            }
        };
        let end = self.start + self.len;
        for index in (0..self.start).chain(end..now.len()) {
            ensure!(
                now[index] == self.image[index],
                "the byte {} of a buffer of {} bytes changed",
                if index < self.start {
                    format!("{} before the start", self.start - index)
                } else {
                    format!("{} after the end", index - end)
                },
                self.len
            );
        }
        now.truncate(end);
        now.drain(..self.start);
        Ok(now)
    }
}
