//! Trials: how absence and gaps show.

use libtest_mimic::Conclusion;

use super::*;
use crate::pretend;

const NOWHERE: Driver = Driver {
    name: "nowhere",
    probe: || Err(enec_core::Error::Unavailable { backend: "nowhere".into(), reason: "not built".into() }),
    open: |_| Err(enec_core::Error::Argument("never opened".into())),
};

const NONE: Driver = Driver { probe: || Ok(Vec::new()), ..NOWHERE };

fn run(trials: Vec<Trial>) -> Conclusion {
    let arguments = Arguments { quiet: true, ..Arguments::default() };
    libtest_mimic::run(&arguments, trials)
}

fn only(gaps: &[Gap], case: &str) -> Vec<Trial> {
    let trials = trials(&pretend::DRIVER, gaps, false);
    trials.into_iter().filter(|trial| trial.name().contains(case)).collect()
}

#[test]
fn absence_is_ignored_with_its_reason_unless_required() {
    for (driver, reason) in [(NOWHERE, "not built"), (NONE, "found no device")] {
        let ignored = trials(&driver, &[], false);
        assert!(ignored.len() == 1 && ignored[0].name().contains(reason), "{}", ignored[0].name());
        let conclusion = run(ignored);
        assert_eq!((conclusion.num_ignored, conclusion.num_failed), (1, 0));
        let conclusion = run(trials(&driver, &[], true));
        assert_eq!((conclusion.num_ignored, conclusion.num_failed), (0, 1));
    }
}

#[test]
fn gaps_that_pass_or_name_nothing_fail() {
    let gap = |case| [Gap { case, reason: "declared by a test" }];
    let trials = only(&gap("memory/empty"), "memory/empty");
    assert!(trials.iter().all(|trial| trial.name().contains("declared by a test")));
    assert!(!trials.is_empty() && run(trials).has_failed());
    assert!(!run(only(&gap("memory/empty"), "memory/shared")).has_failed());
    assert!(run(only(&gap("memory/nothing"), "memory/nothing")).has_failed());
    assert!(!gap("memory/sh")[0].covers("memory/shared") && gap("memory")[0].covers("memory/shared"));
}

#[test]
fn names_are_unique() {
    let names: Vec<String> = trials(&pretend::DRIVER, &[], false).iter().map(|trial| trial.name().to_owned()).collect();
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(names.contains(&"pretend:0/plain/parity/bf16/weights".to_owned()));
}
