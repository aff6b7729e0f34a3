//! The jobs of one turn, and the launches that run them.

use enec_format::Dtype;

use super::Kernel;
use super::abi::{CopyJob, DecodeJob, EncodeJob};
use super::launcher::{Address, Launch};

/// Bytes of the largest job.
pub(super) const LARGEST_JOB: usize = EncodeJob::BYTES;

/// Tables of jobs. Copies are run first, so that encode jobs may read what they have brought.
#[derive(Debug, Default)]
pub(super) struct Tables {
    copies: Vec<CopyJob>,
    encodes: [Vec<EncodeJob>; 3],
    decodes: [Vec<DecodeJob>; 3],
}

fn index(dtype: Dtype) -> usize {
    match dtype {
        Dtype::Bf16 => 0,
        Dtype::F16 => 1,
        Dtype::F32 => 2,
        Dtype::Opaque => unreachable!("plans of opaque bytes have no tiles"),
    }
}

impl Tables {
    pub(super) fn copy(&mut self, job: CopyJob) {
        if job.len > 0 || job.zeros > 0 {
            self.copies.push(job);
        }
    }

    pub(super) fn encode(&mut self, dtype: Dtype, job: EncodeJob) {
        self.encodes[index(dtype)].push(job);
    }

    pub(super) fn decode(&mut self, dtype: Dtype, job: DecodeJob) {
        self.decodes[index(dtype)].push(job);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all tables.
    pub(super) fn len(&self) -> usize {
        let encodes = self.encodes.iter().map(Vec::len).sum::<usize>() * EncodeJob::BYTES;
        let decodes = self.decodes.iter().map(Vec::len).sum::<usize>() * DecodeJob::BYTES;
        // Tables start at multiples of 16; only copies are no multiple of that.
        (self.copies.len() * CopyJob::BYTES).next_multiple_of(16) + encodes + decodes
    }

    /// Writes the tables one after the other, for a device that has them at `address`. Returns the launches, in order.
    pub(super) fn write(&mut self, bytes: &mut [u8], address: Address) -> Vec<Launch> {
        let mut writer = Writer { bytes, at: 0, address, launches: Vec::new() };
        writer.table(&[Kernel::Copy], &mut self.copies);
        for dtype in Dtype::FLOATS {
            let kernels = [Kernel::EncodeCount(dtype), Kernel::EncodeScan, Kernel::EncodeWrite(dtype)];
            writer.table(&kernels, &mut self.encodes[index(dtype)]);
            writer.table(&[Kernel::Decode(dtype)], &mut self.decodes[index(dtype)]);
        }
        writer.launches
    }
}

/// A job of any kind.
trait Job {
    const BYTES: usize;

    fn place(&mut self, first_cta: u64) -> u64;

    fn write(&self, bytes: &mut [u8]);
}

macro_rules! jobs {
    ($($job:ident)*) => {
        $(impl Job for $job {
            const BYTES: usize = $job::BYTES;

            fn place(&mut self, first_cta: u64) -> u64 {
                self.first_cta = first_cta;
                first_cta + self.ctas()
            }

            fn write(&self, bytes: &mut [u8]) {
                $job::write(self, bytes);
            }
        })*
    };
}

jobs!(CopyJob EncodeJob DecodeJob);

struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
    address: Address,
    launches: Vec<Launch>,
}

impl Writer<'_> {
    fn table<J: Job>(&mut self, kernels: &[Kernel], jobs: &mut [J]) {
        if jobs.is_empty() {
            return;
        }
        let units = self.address + self.at as u64;
        let mut ctas = 0;
        for job in &mut *jobs {
            ctas = job.place(ctas);
            job.write(&mut self.bytes[self.at..self.at + J::BYTES]);
            self.at += J::BYTES;
        }
        self.at = self.at.next_multiple_of(16);
        let number = |count: u64| u32::try_from(count).unwrap_or_else(|_| unreachable!("a launch of {count} blocks"));
        let count = number(jobs.len() as u64);
        self.launches.extend(kernels.iter().map(|&kernel| Launch {
            kernel,
            units,
            count,
            blocks: if kernel == Kernel::EncodeScan { count } else { number(ctas) },
        }));
    }
}
