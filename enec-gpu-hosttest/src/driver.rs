//! The backend over the kernels on the host.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use enec_core::{Backend, Driver, Error, OpenOptions, Result};
use enec_gpu::cuda::launcher::Queue;
use enec_gpu::cuda::{CudaBackend, Names, Settings};

use crate::launcher::HostLauncher;
use crate::{ABSENT, Kernels, Order, run};

/// The backend's name.
const NAME: &str = "cuda-host";

/// Orders in which warps, lanes and CTAs take turns.
const VARIANTS: [&str; 3] = ["forward", "reverse", "random"];

/// Staging buffers as small as they may be, so that every tensor of some size takes several turns.
const SETTINGS: Settings =
    Settings { turns: 3, buffer_bytes: Settings::SMALLEST_BUFFER, threads: NonZeroUsize::new(2).unwrap() };

/// The kernels as they are.
pub static DRIVER: Driver = Driver {
    name: NAME,
    probe: || Ok(vec![open(&OpenOptions::default(), None)?.info().clone()]),
    open: |options| open(options, None),
};

/// Opens the backend over the kernels as they are, or with a fault. The variant of the options is the order of warps.
///
/// # Errors
///
/// [`Error::Unavailable`] for a device other than 0 or a variant that there is not, and where kernels [cannot be run](crate::ABSENT).
pub fn open(options: &OpenOptions, kernels: Kernels) -> Result<Arc<dyn Backend>> {
    let refused = |reason| Err(Error::Unavailable { backend: NAME.into(), reason });
    if options.device != 0 {
        return refused(format!("device {} asked for, there is only device 0", options.device));
    }
    let asked = options.variant.as_deref().unwrap_or(VARIANTS[0]);
    let Some(variant) = VARIANTS.into_iter().find(|variant| *variant == asked) else {
        return refused(format!("no variant `{asked}`, expected one of {VARIANTS:?}"));
    };
    if let Some(reason) = ABSENT {
        return refused(reason.into());
    }
    let settings = Settings { threads: options.threads.unwrap_or(SETTINGS.threads), ..SETTINGS };
    Ok(Arc::new(backend(kernels, variant, settings, 1, &[])?))
}

/// The backend itself: with staging buffers of any size, queues run in the order of a seed, and some queues that go on without waiting for
/// events. The variant is one of those that [`DRIVER`] lists.
///
/// # Errors
///
/// [`Error::Argument`] if the settings are too small.
pub fn backend(
    kernels: Kernels,
    variant: &'static str,
    settings: Settings,
    seed: u64,
    heedless: &[Queue],
) -> Result<CudaBackend> {
    let launches = AtomicU64::new(0);
    let order = move || match variant {
        "forward" => Order::Forward,
        "reverse" => Order::Reverse,
        _ => Order::Random(launches.fetch_add(1, Ordering::Relaxed)),
    };
    #[allow(unsafe_code, reason = "kernels dereference what the backend tells them to")]
    let runner = move |name: &str, ctas, jobs, count| {
        // SAFETY: the launcher calls this for launches of the backend only, which answers for the tables and what they name.
        unsafe { run(kernels, order(), name, ctas, jobs, count) }
    };
    let launcher = HostLauncher::new("kernels on the host", "host fibers", Box::new(runner), seed).heedless(heedless);
    let names = Names { backend: NAME, variant, variants: VARIANTS.into() };
    CudaBackend::new(Arc::new(launcher), names, settings)
}
