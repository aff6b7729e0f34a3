//! The backends that the fuzz targets compare.

use std::sync::{Arc, OnceLock};

use enec_conformance::fuzzing::Verdict;
use enec_core::{Backend, Codec, OpenOptions};
use libfuzzer_sys::Corpus;

/// Every variant of the CPU backend that this machine can run, on one thread.
pub fn backends() -> Vec<&'static dyn Backend> {
    static OPENED: OnceLock<Vec<Arc<dyn Backend>>> = OnceLock::new();
    let open = || {
        let device = (enec_cpu::DRIVER.probe)().expect("a CPU").remove(0);
        let open = |variant: &&str| {
            let options = OpenOptions { device: 0, threads: 1.try_into().ok(), variant: Some((*variant).to_owned()) };
            (enec_cpu::DRIVER.open)(&options).expect("a variant that the CPU has named")
        };
        device.variants.iter().map(open).collect()
    };
    OPENED.get_or_init(open).iter().map(|backend| &**backend).collect()
}

/// A codec on the CPU backend's best variant.
pub fn codec() -> &'static Codec {
    static CODEC: OnceLock<Codec> = OnceLock::new();
    CODEC.get_or_init(|| {
        let options = OpenOptions { threads: 1.try_into().ok(), ..OpenOptions::default() };
        Codec::new((enec_cpu::DRIVER.open)(&options).expect("a CPU"))
    })
}

/// The verdict as libFuzzer takes it.
pub fn corpus(verdict: Verdict) -> Corpus {
    match verdict {
        Verdict::Keep => Corpus::Keep,
        Verdict::Reject => Corpus::Reject,
    }
}
