//! The backends by name: which there are, which are built in, and how one is opened.

use std::sync::Arc;

use enec_core::{Backend, Codec, Codecs, Driver, Error, OpenOptions, Result};

/// All backends of the project, built in or not. The feature that builds one in has its name.
pub const BACKENDS: &[&str] = &["cpu"];

/// What `auto` tries, best first.
const AUTO: &[&str] = &["cpu"];

static DRIVERS: &[Driver] = &[
    #[cfg(feature = "cpu")]
    enec_cpu::DRIVER,
];

/// The drivers of the backends that are built in, in the order of [`BACKENDS`].
#[must_use]
pub fn drivers() -> &'static [Driver] {
    DRIVERS
}

/// Opens the device that `spec` names: `NAME`, `NAME:INDEX`, or `auto` for the best that is present.
///
/// An index in `spec` goes before the one in `options`.
///
/// ```
/// use enec::OpenOptions;
///
/// let backend = enec::open("cpu", &OpenOptions::default())?;
/// assert_eq!(backend.info().backend, "cpu");
///
/// let error = enec::open("abacus", &OpenOptions::default()).unwrap_err();
/// assert_eq!(error.to_string(), "backend `abacus` is not available: there is none of this name; known are `auto`, `cpu`");
/// # Ok::<(), enec::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Unavailable`] if there is no such backend, if it is not built in, or if it has no such device; [`Error::Argument`] if the
/// index is no number.
pub fn open(spec: &str, options: &OpenOptions) -> Result<Arc<dyn Backend>> {
    let (name, options) = match spec.split_once(':') {
        None => (spec, options.clone()),
        Some((name, index)) => {
            let device = index.parse().map_err(|_| {
                Error::Argument(format!("`{spec}`: a backend is `NAME` or `NAME:INDEX`, and `{index}` is no index"))
            })?;
            (name, OpenOptions { device, ..options.clone() })
        }
    };
    if name == "auto" { open_best(&options) } else { (driver(name)?.open)(&options) }
}

/// A codec on the device that [`open`] opens. What that device has no kernels for the CPU does, if its backend is built in.
///
/// ```
/// use enec::{CodecChoice, Dtype, OpenOptions};
///
/// let codec = enec::codec("cpu", &OpenOptions::default())?.with_choice(CodecChoice::Cascade);
/// let stream = codec.encode(Dtype::Bf16, &[0; 8192])?;
/// assert_eq!(codec.decode(&stream)?, [0; 8192]);
/// # Ok::<(), enec::Error>(())
/// ```
///
/// # Errors
///
/// As [`open`].
pub fn codec(spec: &str, options: &OpenOptions) -> Result<Codec> {
    let backend = open(spec, options)?;
    let has_all = backend.info().codecs == Codecs::ALL;
    let codec = Codec::new(backend);
    match driver("cpu") {
        Ok(cpu) if !has_all => {
            let options = OpenOptions { threads: options.threads, ..OpenOptions::default() };
            Ok(codec.with_fallback((cpu.open)(&options)?))
        }
        _ => Ok(codec),
    }
}

/// The driver of a backend.
///
/// # Errors
///
/// [`Error::Unavailable`] if there is no such backend or it is not built in.
pub fn driver(name: &str) -> Result<&'static Driver> {
    if let Some(driver) = DRIVERS.iter().find(|driver| driver.name == name) {
        return Ok(driver);
    }
    let reason = if BACKENDS.contains(&name) {
        format!("this build lacks it; build `enec` with its feature `{name}`")
    } else {
        let known: Vec<String> = ["auto"].iter().chain(BACKENDS).map(|name| format!("`{name}`")).collect();
        format!("there is none of this name; known are {}", known.join(", "))
    };
    Err(Error::Unavailable { backend: name.to_owned(), reason })
}

/// Opens the first backend of [`AUTO`] that can be opened; when none can, says why each could not.
fn open_best(options: &OpenOptions) -> Result<Arc<dyn Backend>> {
    let mut reasons = Vec::new();
    for name in AUTO {
        match driver(name).and_then(|driver| (driver.open)(options)) {
            Ok(backend) => return Ok(backend),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(Error::Unavailable { backend: "auto".to_owned(), reason: reasons.join("; ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(spec: &str) -> String {
        open(spec, &OpenOptions::default()).unwrap_err().to_string()
    }

    #[test]
    fn drivers_bear_the_names_of_the_list() {
        let built_in: Vec<&str> = drivers().iter().map(|driver| driver.name).collect();
        let listed: Vec<&str> = BACKENDS.iter().copied().filter(|name| built_in.contains(name)).collect();
        assert_eq!(built_in, listed);
        assert!(AUTO.iter().all(|name| BACKENDS.contains(name)));
    }

    #[test]
    fn specifications_that_name_nothing_are_refused() {
        for (spec, expected) in [
            ("", "known are `auto`, `cpu`"),
            ("CPU", "known are `auto`, `cpu`"),
            ("cpu:", "`` is no index"),
            ("cpu:one", "`one` is no index"),
            ("cpu:-1", "`-1` is no index"),
            (":0", "known are `auto`, `cpu`"),
        ] {
            let message = refusal(spec);
            assert!(message.contains(expected), "`{spec}`: {message}");
        }
    }

    #[cfg(feature = "cpu")]
    #[test]
    fn the_cpu_is_one_device() {
        for spec in ["cpu", "cpu:0", "auto"] {
            let backend = open(spec, &OpenOptions { device: 0, ..OpenOptions::default() }).unwrap();
            assert_eq!((backend.info().backend, backend.info().index), ("cpu", 0), "{spec}");
        }
        // The index in the text goes before the one in the options.
        assert!(open("cpu:0", &OpenOptions { device: 1, ..OpenOptions::default() }).is_ok());
        assert!(open("cpu", &OpenOptions { device: 1, ..OpenOptions::default() }).is_err());
        assert!(refusal("cpu:1").contains("cpu"));
    }

    #[cfg(not(feature = "cpu"))]
    #[test]
    fn a_backend_that_is_left_out_names_its_feature() {
        assert!(refusal("cpu").contains("feature `cpu`"));
        assert!(refusal("auto").contains("feature `cpu`"));
    }
}
