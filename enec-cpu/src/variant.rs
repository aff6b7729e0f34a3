//! Which kernels run: the best that the processor has, or those that the caller names.

use enec_core::{Error, Result};

#[cfg(target_arch = "x86_64")]
use crate::kernels::{Avx2, Avx512};
use crate::kernels::{Portable, Scalar};

/// The environment variable that names the kernels when the options do not.
pub(crate) const ENVIRONMENT: &str = "ENEC_CPU";

/// Kernels that this processor can run; the value is the proof.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Variant {
    /// 512-bit x86 vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// 256-bit x86 vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// Plain loops that the compiler vectorises for the target's baseline.
    Portable(Portable),
    /// One lane after the other.
    Scalar(Scalar),
}

/// Evaluates an expression with `$kernels` as those of a variant.
macro_rules! with_kernels {
    ($variant:expr, $kernels:ident => $run:expr) => {
        match $variant {
            #[cfg(target_arch = "x86_64")]
            Variant::Avx512($kernels) => $run,
            #[cfg(target_arch = "x86_64")]
            Variant::Avx2($kernels) => $run,
            Variant::Portable($kernels) => $run,
            Variant::Scalar($kernels) => $run,
        }
    };
}
pub(crate) use with_kernels;

impl Variant {
    /// Those that can run here, best first.
    pub(crate) fn available() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        let best = Avx512::new().map(Variant::Avx512).into_iter().chain(Avx2::new().map(Variant::Avx2));
        #[cfg(not(target_arch = "x86_64"))]
        let best = None;
        best.into_iter().chain([Variant::Portable(Portable), Variant::Scalar(Scalar)]).collect()
    }

    /// The one with this name; without a name the one that [`ENVIRONMENT`] names, or else the best.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the name is unknown or the processor cannot run it.
    pub(crate) fn choose(name: Option<&str>) -> Result<Self> {
        Self::choose_with(name, std::env::var_os(ENVIRONMENT).map(|name| name.to_string_lossy().into_owned()))
    }

    fn choose_with(name: Option<&str>, environment: Option<String>) -> Result<Self> {
        match name.map(str::to_owned).or(environment) {
            Some(name) => Self::named(&name),
            None => Ok(Self::available()[0]),
        }
    }

    fn named(name: &str) -> Result<Self> {
        let available = Self::available();
        available.iter().copied().find(|variant| variant.name() == name).ok_or_else(|| {
            let usable: Vec<String> = available.iter().map(|variant| format!("`{}`", variant.name())).collect();
            let why = if ["avx2", "avx512"].contains(&name) { "this processor cannot run" } else { "there are no" };
            let reason = format!("{why} kernels `{name}`; use one of {}", usable.join(", "));
            Error::Unavailable { backend: "cpu".into(), reason }
        })
    }

    /// The name that users type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Variant::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Variant::Avx2(_) => "avx2",
            Variant::Portable(_) => "portable",
            Variant::Scalar(_) => "scalar",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = Variant::named("neon").unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }));
        assert!(error.to_string().contains("`portable`, `scalar`"), "{error}");
    }

    #[test]
    fn the_option_goes_before_the_environment() {
        let name = |name, environment: Option<&str>| {
            Variant::choose_with(name, environment.map(str::to_owned)).map(Variant::name).ok()
        };
        assert_eq!(name(Some("portable"), Some("scalar")), Some("portable"));
        assert_eq!(name(None, Some("scalar")), Some("scalar"));
        assert_eq!(name(None, Some("fast")), None);
        assert_eq!(name(None, None), Some(Variant::available()[0].name()));
    }

    #[test]
    fn every_available_variant_is_found_by_its_name() {
        for variant in Variant::available() {
            assert_eq!(Variant::named(variant.name()).unwrap().name(), variant.name());
        }
    }
}
