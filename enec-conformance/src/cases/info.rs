//! Info: what a device says of itself is true and does not change.

use enec_core::Error;

use crate::{Case, Result, Subject, ensure};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("info/claims", claims),
        Case::new("info/opened_twice", opened_twice),
        Case::new("info/unknown_variant", unknown_variant),
        Case::new("info/unknown_device", unknown_device),
    ]
}

fn claims(subject: &Subject) -> Result {
    let (info, options) = (subject.backend().info(), subject.options());
    ensure!(info.backend == subject.name(), "backend `{}` of driver `{}`", info.backend, subject.name());
    ensure!(info.index == options.device, "device {} opened, index {} reported", options.device, info.index);
    ensure!(!info.name.is_empty() && !info.fingerprint.is_empty(), "name or fingerprint missing: {info:?}");
    ensure!(info.variants.contains(&info.variant), "variant `{}` is none of {:?}", info.variant, info.variants);
    let distinct = info.variants.iter().enumerate().all(|(at, variant)| !info.variants[..at].contains(variant));
    ensure!(distinct, "variants named twice: {:?}", info.variants);
    if let Some(variant) = &options.variant {
        ensure!(info.variant == variant, "variant `{variant}` asked for, `{}` in use", info.variant);
    }
    ensure!(info.memory != Some(0), "a device without memory");
    Ok(())
}

/// A fingerprint goes into reports and caches: the same device opened the same way has the same one. Kernels change speed, so it
/// names them.
fn opened_twice(subject: &Subject) -> Result {
    let (first, second) = (subject.backend().info(), subject.reopen(|_| {})?);
    let second = second.backend().info();
    ensure!(first.id != second.id, "two opened backends have the same id");
    ensure!(first.fingerprint == second.fingerprint, "fingerprints differ: {first:?}, {second:?}");
    ensure!((&first.name, first.variant) == (&second.name, second.variant), "{first:?}, then {second:?}");
    for variant in first.variants.iter().filter(|variant| **variant != first.variant) {
        let other = subject.reopen(|options| options.variant = Some((*variant).to_owned()))?;
        let other = other.backend().info();
        ensure!(
            other.variants == first.variants,
            "variants of one device: {:?} and {:?}",
            first.variants,
            other.variants
        );
        ensure!(
            other.fingerprint != first.fingerprint,
            "variants `{}` and `{variant}` have the same fingerprint",
            first.variant
        );
    }
    Ok(())
}

fn unknown_variant(subject: &Subject) -> Result {
    refused(subject.reopen(|options| options.variant = Some("no such variant".into())))
}

fn unknown_device(subject: &Subject) -> Result {
    refused(subject.reopen(|options| options.device = 9_999))
}

fn refused(opened: enec_core::Result<Subject>) -> Result {
    match opened {
        Err(Error::Unavailable { .. } | Error::Argument(_)) => Ok(()),
        Err(error) => Err(format!("expected `Unavailable` or `Argument`, found {error:?}").into()),
        Ok(subject) => Err(format!("opened as {:?}", subject.backend().info()).into()),
    }
}
