//! Cases as trials: for every device and variant of a driver.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use enec_core::{Driver, OpenOptions};
use libtest_mimic::{Arguments, Failed, Trial};

use crate::codecs::Needs;
use crate::{Result, Subject, cases};

/// Environment variable: a comma-separated list of the backends that must have a device.
pub const REQUIRE: &str = "ENEC_REQUIRE";

/// One check of a device.
pub struct Case {
    name: String,
    needs: Needs,
    check: Box<dyn Fn(&Subject) -> Result + Send + Sync>,
}

impl Case {
    /// A case, named with slashes from the general to the particular.
    pub fn new(name: impl Into<String>, check: impl Fn(&Subject) -> Result + Send + Sync + 'static) -> Self {
        Self { name: name.into(), needs: Needs::Nothing, check: Box::new(check) }
    }

    /// The same case, of a backend that has this.
    #[must_use]
    pub(crate) fn needing(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// Its name, without device and variant.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it; a panic is a failure like any other.
    ///
    /// # Errors
    ///
    /// What the device did wrong.
    pub fn run(&self, subject: &Subject) -> Result {
        catch_unwind(AssertUnwindSafe(|| (self.check)(subject))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            Err(format!("panicked: {text}").into())
        })
    }
}

/// A case that a driver is known to fail. One that passes all the same is a failure, so that the declaration goes.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// The case's name without device and variant, or the start of it up to a slash.
    pub case: &'static str,
    /// Why, and what has to happen for it to pass.
    pub reason: &'static str,
}

/// The gap of a device that does not say that it has codec 2. The cases ask it all the same.
const UNDECLARED: Gap = Gap { case: "", reason: "codec 2 is not among `DeviceInfo::codecs`" };

impl Gap {
    fn covers(&self, name: &str) -> bool {
        name.strip_prefix(self.case).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Runs the whole suite on every device and variant of a driver; the arguments of the process select trials as in any Rust test.
#[must_use]
pub fn main(driver: &Driver) -> ExitCode {
    main_with(driver, &[])
}

/// As [`main`], for a driver with known gaps.
#[must_use]
pub fn main_with(driver: &Driver, gaps: &[Gap]) -> ExitCode {
    let required = std::env::var(REQUIRE).is_ok_and(|list| list.split(',').any(|name| name.trim() == driver.name));
    let trials = plan(driver, gaps, required).into_iter().map(Planned::into_trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A trial to be.
struct Planned {
    name: String,
    is_ignored: bool,
    run: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

impl Planned {
    fn new(name: String, run: impl FnOnce() -> Result<(), String> + Send + 'static) -> Self {
        Self { name, is_ignored: false, run: Box::new(run) }
    }

    fn into_trial(self) -> Trial {
        let Self { name, is_ignored, run } = self;
        Trial::test(name, || run().map_err(Failed::from)).with_ignored_flag(is_ignored)
    }
}

fn plan(driver: &Driver, gaps: &[Gap], required: bool) -> Vec<Planned> {
    let devices = match (driver.probe)() {
        Ok(devices) if devices.is_empty() => return vec![absent(driver, "the probe found no device", required)],
        Ok(devices) => devices,
        Err(error) => return vec![absent(driver, &error.to_string(), required)],
    };
    let mut trials = Vec::new();
    for gap in gaps {
        if !cases::all().iter().any(|case| gap.covers(case.name())) {
            let name = format!("{} [known gap: `{}`]", driver.name, gap.case);
            trials.push(Planned::new(name, || Err("names no case: delete the declared gap".into())));
        }
    }
    for device in devices {
        for variant in device.variants {
            let options = OpenOptions { device: device.index, threads: None, variant: Some(variant.to_owned()) };
            let opened = Arc::new(Opened { driver: *driver, options, subject: OnceLock::new() });
            for case in cases::all() {
                let name = format!("{}:{}/{variant}/{}", driver.name, device.index, case.name());
                let declared = gaps.iter().find(|gap| gap.covers(case.name())).copied();
                let undeclared = (!case.needs.are_met_by(device.codecs)).then_some(UNDECLARED);
                trials.push(trial(name, case, undeclared.or(declared), Arc::clone(&opened)));
            }
        }
    }
    trials
}

/// A device that is opened by the first trial that needs it and shared by all.
struct Opened {
    driver: Driver,
    options: OpenOptions,
    subject: OnceLock<Result<Subject, String>>,
}

impl Opened {
    fn subject(&self) -> Result<&Subject, &String> {
        let open = || Subject::open(&self.driver, self.options.clone()).map_err(|error| error.to_string());
        self.subject.get_or_init(open).as_ref()
    }
}

fn trial(name: String, case: Case, gap: Option<Gap>, opened: Arc<Opened>) -> Planned {
    let run = move || match opened.subject() {
        Ok(subject) => case.run(&subject.declaring(case.needs)).map_err(|error| error.to_string()),
        Err(error) => Err(format!("cannot open the device: {error}")),
    };
    match gap {
        None => Planned::new(name, run),
        Some(gap) => Planned::new(format!("{name} [known gap: {}]", gap.reason), move || match run() {
            Err(_) => Ok(()),
            Ok(()) if gap.case.is_empty() => Err("passes: declare the codec in `DeviceInfo::codecs`".into()),
            Ok(()) => Err("passes: delete the declared gap".into()),
        }),
    }
}

fn absent(driver: &Driver, reason: &str, required: bool) -> Planned {
    let message = format!("no device: {reason}; {REQUIRE} names `{}`: {required}", driver.name);
    let planned = Planned::new(format!("{} [no device: {reason}]", driver.name), move || Err(message));
    Planned { is_ignored: !required, ..planned }
}

#[cfg(test)]
mod tests;
