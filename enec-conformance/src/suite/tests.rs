//! Trials: how absence and gaps show.

use enec_core::{Codecs, DeviceInfo};

use super::*;
use crate::codecs::Declaring;
use crate::pretend;

const NOWHERE: Driver = Driver {
    name: "nowhere",
    probe: || Err(enec_core::Error::Unavailable { backend: "nowhere".into(), reason: "not built".into() }),
    open: |_| Err(enec_core::Error::Argument("never opened".into())),
};

const NONE: Driver = Driver { probe: || Ok(Vec::new()), ..NOWHERE };

/// The planned trials of the pretend backend that contain `case` in their names.
fn only(gaps: &[Gap], case: &str) -> Vec<Planned> {
    plan(&pretend::DRIVER, gaps, false).into_iter().filter(|planned| planned.name.contains(case)).collect()
}

fn failures(planned: Vec<Planned>) -> Vec<String> {
    planned.into_iter().filter_map(|planned| (planned.run)().err()).collect()
}

#[test]
fn absence_is_ignored_with_its_reason_unless_required() {
    for (driver, reason) in [(NOWHERE, "not built"), (NONE, "found no device")] {
        for required in [false, true] {
            let planned = plan(&driver, &[], required);
            assert!(planned.len() == 1 && planned[0].name.contains(reason), "{}", planned[0].name);
            assert_eq!(planned[0].is_ignored, !required);
            assert!(failures(planned)[0].contains(reason), "run all the same, it fails");
        }
    }
}

#[test]
fn gaps_that_pass_or_name_nothing_fail() {
    let gap = |case| [Gap { case, reason: "declared by a test" }];
    let planned = only(&gap("memory/empty"), "memory/empty");
    assert!(planned.iter().all(|planned| planned.name.contains("declared by a test") && !planned.is_ignored));
    assert_eq!(failures(planned), ["passes: delete the declared gap"; 2]);
    assert!(failures(only(&gap("memory/empty"), "memory/shared")).is_empty());
    assert_eq!(failures(only(&gap("memory/nothing"), "memory/nothing")), ["names no case: delete the declared gap"]);
    assert!(!gap("memory/sh")[0].covers("memory/shared") && gap("memory")[0].covers("memory/shared"));
}

#[test]
fn a_gap_that_fails_passes() {
    let fails = Case::new("memory/broken", |_| Err("as declared".into()));
    let options = OpenOptions::default();
    let opened = Arc::new(Opened { driver: pretend::DRIVER, options, subject: OnceLock::new() });
    let gap = Gap { case: "memory", reason: "declared by a test" };
    assert!(failures(vec![trial("memory/broken".into(), fails, Some(gap), opened)]).is_empty());
}

/// A device that says that it has codec 1 only, but has codec 2.
const MODEST: Driver = Driver {
    name: "modest",
    probe: || {
        Ok((pretend::DRIVER.probe)()?.into_iter().map(|info| DeviceInfo { codecs: Codecs::ENEC, ..info }).collect())
    },
    open: |options| Ok(Arc::new(Declaring::new((pretend::DRIVER.open)(options)?, Codecs::ENEC))),
};

#[test]
fn an_undeclared_codec_is_a_gap_until_it_works() {
    let trials = |case: &str| -> Vec<Planned> {
        plan(&MODEST, &[], false).into_iter().filter(|planned| planned.name.contains(case)).collect()
    };
    for case in
        ["cascade/parity/bf16/encode/weights", "cascade/parity/f16/decode/special", "golden/f32_cascade_special"]
    {
        let planned = trials(case);
        assert!(planned.len() == 2 && planned.iter().all(|planned| planned.name.contains("known gap")));
        assert_eq!(failures(planned), ["passes: declare the codec in `DeviceInfo::codecs`"; 2], "{case}");
    }
    for case in ["golden/bf16_blocks", "/parity/bf16/weights", "codec/fallback", "corpora/stream"] {
        let planned = trials(case);
        assert!(!planned.is_empty() && planned.iter().all(|planned| !planned.name.contains("known gap")), "{case}");
        assert!(failures(planned).is_empty(), "{case}");
    }
    let fails = Case::new("cascade/broken", |_| Err("no kernels".into())).needing(Needs::Both);
    let opened = Arc::new(Opened { driver: MODEST, options: OpenOptions::default(), subject: OnceLock::new() });
    assert!(failures(vec![trial("cascade/broken".into(), fails, Some(UNDECLARED), opened)]).is_empty());
}

#[test]
fn a_device_that_does_not_open_fails_every_trial() {
    let driver = Driver { probe: pretend::DRIVER.probe, ..NOWHERE };
    let planned = plan(&driver, &[], false);
    let count = planned.len();
    let failures = failures(planned);
    assert!(failures.len() == count && failures[0].contains("never opened"), "{}", failures[0]);
}

#[test]
fn names_are_unique() {
    let names: Vec<String> = plan(&pretend::DRIVER, &[], false).into_iter().map(|planned| planned.name).collect();
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(names.contains(&"pretend:0/plain/parity/bf16/weights".to_owned()));
}
