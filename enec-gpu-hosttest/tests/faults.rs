//! The suite must catch every fault that is put into the kernels' sources.

use std::process::ExitCode;

use enec_conformance::{Subject, cases};
use enec_core::OpenOptions;
use enec_gpu_hosttest::{FAULTS, Fault, open};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let trials = FAULTS.iter().map(|fault| Trial::test(fault.name, move || caught(fault)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// Runs the cases that are there to catch a fault, in the order of warps that is hardest on it: at least one must fail, and all must
/// pass without the fault.
fn caught(fault: &'static Fault) -> Result<(), Failed> {
    let variant = Some(fault.variant.to_owned());
    let options = OpenOptions { variant, ..OpenOptions::default() };
    let sound = Subject::open(&enec_gpu_hosttest::DRIVER, options.clone()).map_err(|error| error.to_string())?;
    let open = |options: &OpenOptions| open(options, Some(fault));
    let faulty = Subject::open_with("cuda-host", open, options).map_err(|error| error.to_string())?;
    let cases = cases::all().into_iter().filter(|case| case.name().starts_with(fault.caught_by));
    let cases: Vec<_> = cases.collect();
    if cases.is_empty() {
        return Err(format!("no case's name starts with `{}`", fault.caught_by).into());
    }
    for case in &cases {
        case.run(&sound).map_err(|error| format!("{} fails without the fault: {error}", case.name()))?;
    }
    match cases.iter().find_map(|case| case.run(&faulty).err()) {
        Some(error) => {
            println!("{}: {error}", fault.name);
            Ok(())
        }
        None => Err(format!("not caught by {} cases `{}`", cases.len(), fault.caught_by).into()),
    }
}
