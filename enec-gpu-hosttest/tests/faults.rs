//! The suite must catch every fault that is put into the kernels' sources.
//!
//! Each is tried in a process of its own: what a fault does may end it.

#![allow(clippy::print_stderr, reason = "what caught a fault is said to the process that asked")]

use std::env;
use std::process::{Command, ExitCode};

use enec_conformance::{Case, Subject, cases};
use enec_core::OpenOptions;
use enec_gpu_hosttest::{ABSENT, DRIVER, FAULTS, Fault, SANITIZED, open};
use libtest_mimic::{Arguments, Failed, Trial};

/// Set in the processes that try a fault: its name.
const TRY: &str = "ENEC_HOSTTEST_TRY";

fn main() -> ExitCode {
    if let Ok(name) = env::var(TRY) {
        return try_fault(&name);
    }
    let trials = FAULTS.iter().map(|fault| {
        let absent = match (ABSENT, fault.needs_sanitizer, SANITIZED) {
            (Some(reason), ..) => reason,
            (None, true, false) => "only with ENEC_SANITIZE",
            (None, false, true) => "only without ENEC_SANITIZE",
            _ => return Trial::test(fault.name, move || caught(fault)),
        };
        Trial::test(format!("{} [{absent}]", fault.name), || Ok(())).with_ignored_flag(true)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// The cases that must catch a fault.
fn cases_for(fault: &Fault) -> Vec<Case> {
    cases::all().into_iter().filter(|case| case.name().starts_with(fault.caught_by)).collect()
}

fn options(fault: &Fault) -> OpenOptions {
    OpenOptions { variant: Some(fault.variant.to_owned()), ..OpenOptions::default() }
}

/// All cases must pass without the fault, and with it at least one must fail or end its process.
fn caught(fault: &'static Fault) -> Result<(), Failed> {
    let cases = cases_for(fault);
    if cases.is_empty() {
        return Err(format!("no case's name starts with `{}`", fault.caught_by).into());
    }
    let sound = Subject::open(&DRIVER, options(fault)).map_err(|error| error.to_string())?;
    for case in &cases {
        case.run(&sound).map_err(|error| format!("{} fails without the fault: {error}", case.name()))?;
    }
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).env(TRY, fault.name).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Err(format!("not caught by the {} cases `{}`", cases.len(), fault.caught_by).into());
    }
    if fault.needs_sanitizer && !text.contains("Sanitizer") {
        return Err(format!("caught, but not by a sanitizer: {text}").into());
    }
    Ok(())
}

/// Fails, in one way or another, if a case fails.
fn try_fault(name: &str) -> ExitCode {
    let Some(fault) = FAULTS.iter().find(|fault| fault.name == name) else { return ExitCode::SUCCESS };
    let open = move |options: &OpenOptions| open(options, Some(fault));
    let faulty = Subject::open_with(DRIVER.name, open, options(fault));
    let Ok(faulty) = faulty else { return ExitCode::SUCCESS };
    match cases_for(fault).iter().find_map(|case| case.run(&faulty).err()) {
        Some(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}
