//! A kernel object by itself, for programs that find out what a device does.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::Duration;

use enec_core::Result;

use crate::acl::binary::Binary;
use crate::acl::device::Device;
use crate::acl::error::AclError;
use crate::acl::memory::Memory;
use crate::acl::stream::{Event, Stream};
use crate::configuration::Configuration;
use crate::kernels::KernelSource;
use crate::probe;

/// An object with kernels of any kind, loaded to a device.
#[derive(Debug)]
pub struct Object {
    device: Arc<Device>,
    binary: Arc<Binary>,
}

impl Object {
    /// Loads an object to the first device.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](enec_core::Error::Unavailable) with the reason.
    pub fn load(configuration: &Configuration, source: &KernelSource) -> Result<Self> {
        let configuration = Configuration { kernels: Some(source.clone()), ..configuration.clone() };
        let machine = probe::machine(&configuration)?;
        let device = probe::device(&configuration, &machine, 0)?.device;
        let load = |path: &std::path::Path| Binary::load(&device, path).map_err(|error| error.to_string());
        let binary = source.with_file(load).map_err(|reason| configuration.unavailable(reason))?;
        Ok(Self { device, binary })
    }

    /// Whether AscendCL took the object only when told that its kernels are for vector cores.
    #[must_use]
    pub fn needed_magic(&self) -> bool {
        self.binary.with_magic
    }

    /// Runs a kernel that takes the address of its output and two numbers, and returns the output and the time by the device's clock.
    ///
    /// # Errors
    ///
    /// A sentence with AscendCL's reason.
    ///
    /// # Safety
    ///
    /// The kernel takes these arguments, and writes at most `output_len` bytes at its output and nothing else.
    pub unsafe fn run(
        &self,
        kernel: &CStr,
        cores: u32,
        output_len: usize,
        numbers: [u64; 2],
    ) -> std::result::Result<(Vec<u8>, Duration), String> {
        let run = || -> std::result::Result<_, AclError> {
            let kernel = self.binary.kernel(kernel)?;
            let output = Memory::new(&self.device, output_len)?;
            let stream = Stream::new(&self.device)?;
            let (start, end) = (Event::new(&self.device)?, Event::new(&self.device)?);
            let entered = self.device.enter()?;
            let span = output.span(0..output_len);
            entered.clear(span)?;
            let arguments = [span.address(), numbers[0], numbers[1]];
            let queued = start.record(&stream, &entered).and_then(|()| {
                // SAFETY: the caller vouches for the kernel; its output lives until the stream has been waited for.
                unsafe { kernel.launch(cores, &arguments, &stream, &entered) }?;
                end.record(&stream, &entered)
            });
            stream.synchronize(&entered).and(queued)?;
            let mut bytes = vec![0; output_len];
            entered.download(span, &mut bytes)?;
            Ok((bytes, start.until(&end, &entered)?))
        };
        run().map_err(|error| error.to_string())
    }
}
