//! A stream that lies in device memory.

use enec_format::{Header, Layout};

use crate::DeviceSlice;

/// A validated stream in device memory.
#[derive(Debug, Clone)]
pub struct DeviceStream {
    pub(crate) header: Header,
    pub(crate) layout: Layout,
    pub(crate) memory: DeviceSlice,
}

impl DeviceStream {
    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the sections lie.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The stream's bytes.
    #[must_use]
    pub fn memory(&self) -> &DeviceSlice {
        &self.memory
    }
}
