//! The device under test: one opened backend, and how to open it again.

use std::fmt;
use std::sync::Arc;

use enec_core::{Backend, Codec, CodecChoice, Codecs, Driver, OpenOptions};

use crate::codecs::{Declaring, Needs};

type Open = dyn Fn(&OpenOptions) -> enec_core::Result<Arc<dyn Backend>> + Send + Sync;

/// An opened device.
#[derive(Clone)]
pub struct Subject {
    name: &'static str,
    options: OpenOptions,
    backend: Arc<dyn Backend>,
    open: Arc<Open>,
}

impl Subject {
    /// Opens a device of a driver.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn open(driver: &Driver, options: OpenOptions) -> enec_core::Result<Self> {
        Self::open_with(driver.name, driver.open, options)
    }

    /// Opens a device by a function, as a driver's would.
    ///
    /// # Errors
    ///
    /// The function's.
    pub fn open_with(
        name: &'static str,
        open: impl Fn(&OpenOptions) -> enec_core::Result<Arc<dyn Backend>> + Send + Sync + 'static,
        options: OpenOptions,
    ) -> enec_core::Result<Self> {
        let backend = open(&options)?;
        Ok(Self { name, options, backend, open: Arc::new(open) })
    }

    /// Opens the same device once more, after `change` has been made to the options.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn reopen(&self, change: impl FnOnce(&mut OpenOptions)) -> enec_core::Result<Self> {
        let mut options = self.options.clone();
        change(&mut options);
        let backend = (self.open)(&options)?;
        Ok(Self { name: self.name, options, backend, open: Arc::clone(&self.open) })
    }

    /// The same device, taken at its word if it declares what a case needs, and otherwise said to have all codecs: whether it does is for the
    /// case to find out.
    #[must_use]
    pub(crate) fn declaring(&self, needs: Needs) -> Self {
        if needs.are_met_by(self.backend.info().codecs) { self.clone() } else { self.with_codecs(Codecs::ALL) }
    }

    /// The same device, said to have these codecs.
    #[must_use]
    pub(crate) fn with_codecs(&self, codecs: Codecs) -> Self {
        let open = Arc::clone(&self.open);
        let declare = move |backend| -> Arc<dyn Backend> { Arc::new(Declaring::new(backend, codecs)) };
        Self {
            name: self.name,
            options: self.options.clone(),
            backend: declare(Arc::clone(&self.backend)),
            open: Arc::new(move |options| open(options).map(declare)),
        }
    }

    /// The backend's name by its driver.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the device was opened with.
    #[must_use]
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// A codec on the backend.
    #[must_use]
    pub fn codec(&self) -> Codec {
        Codec::new(Arc::clone(&self.backend))
    }

    /// A codec on the backend that encodes as the choice says.
    #[must_use]
    pub fn codec_of(&self, choice: CodecChoice) -> Codec {
        self.codec().with_choice(choice)
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).field("options", &self.options).finish_non_exhaustive()
    }
}
