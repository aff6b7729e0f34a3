//! The suite itself: it passes on the pretend backend, and catches each fault that is put into it.

use enec_conformance::pretend::{self, Fault};
use enec_conformance::{Subject, cases};
use enec_core::OpenOptions;

/// The pretend backend with a fault, or why it does not open.
fn subject(fault: Option<Fault>) -> enec_core::Result<Subject> {
    let options = OpenOptions { variant: Some("plain".into()), ..OpenOptions::default() };
    Subject::open_with("pretend", move |options| pretend::open(options, fault), options)
}

#[test]
fn no_fault_passes() {
    let subject = subject(None).unwrap();
    let failures: Vec<String> = cases::all()
        .into_iter()
        .filter_map(|case| case.run(&subject).err().map(|error| format!("{}: {error}", case.name())))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn each_fault_is_caught_by_its_family() {
    let caught = |fault: Fault| {
        let subject = subject(Some(fault)).unwrap();
        let mut family = cases::all().into_iter().filter(|case| case.name().starts_with(fault.family())).peekable();
        assert!(family.peek().is_some(), "no family `{}`", fault.family());
        family.any(|case| case.run(&subject).is_err())
    };
    let missed: Vec<&Fault> = Fault::ALL.iter().filter(|fault| !caught(**fault)).collect();
    assert!(missed.is_empty(), "faults that the suite does not catch: {missed:?}");
}

/// A fault may show in other families too; what it cannot touch must still pass.
#[test]
fn faults_are_particular() {
    for (fault, untouched) in [
        (Fault::StoredTooEarly, "windows/bf16/widths/2"),
        (Fault::EntryEndCutTo32Bits, "parity/bf16/weights"),
        (Fault::RangeOffByTile, "parity/bf16/sizes"),
        (Fault::PayloadOfWrongBlock, "batch/mixed"),
        (Fault::WideBaseSaturates, "ranges/bf16/all"),
        (Fault::WholeWordsWritten, "placement/aligned/host_to_host"),
        (Fault::ThreadsChangeBytes, "geometry/threads/1"),
    ] {
        let case = cases::all().into_iter().find(|case| case.name() == untouched).unwrap();
        case.run(&subject(Some(fault)).unwrap()).unwrap_or_else(|error| panic!("{fault:?}: {untouched}: {error}"));
    }
}
