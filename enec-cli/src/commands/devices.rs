//! `enec devices`: the backends and what they run on here.

use clap::Args;
use enec::Codecs;
use serde::Serialize;

use crate::failure::Failure;
use crate::number::Size;
use crate::printer::{Printable, Printer};
use crate::table::{Align, Table};

/// List the backends, their devices, and why one has none
///
/// The first kernels of a device are the best and are used. For the CPU, the environment variable `ENEC_CPU` names others to use instead; the
/// output does not depend on them.
#[derive(Debug, Args)]
pub(crate) struct Devices {
    /// List the devices of this backend only; without any, fail as a command on it would
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listing {
    backends: Vec<BackendEntry>,
}

#[derive(Serialize)]
struct BackendEntry {
    name: &'static str,
    devices: Vec<Device>,
    /// Why there is no device.
    absent: Option<String>,
}

#[derive(Serialize)]
struct Device {
    /// What `--backend` takes.
    backend: String,
    name: String,
    fingerprint: String,
    memory_bytes: Option<u64>,
    /// Codecs that it encodes and decodes itself; others are done by the CPU.
    codecs: Vec<&'static str>,
    kernels: &'static str,
    all_kernels: Vec<&'static str>,
}

impl Devices {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let backends = match &self.backend {
            Some(name) => vec![present(name)?],
            None => enec::BACKENDS.iter().map(|name| entry(name)).collect(),
        };
        let listing = Listing { backends };
        Printer::new(false, self.json).data(&listing, text(&listing))
    }
}

/// The entry of a backend that has a device.
fn present(name: &str) -> Result<BackendEntry, enec::Error> {
    match entry(enec::driver(name)?.name) {
        BackendEntry { name, absent: Some(reason), .. } => {
            Err(enec::Error::Unavailable { backend: name.into(), reason })
        }
        entry => Ok(entry),
    }
}

fn entry(name: &'static str) -> BackendEntry {
    let devices = enec::driver(name).and_then(|driver| (driver.probe)());
    let (devices, absent) = match devices {
        Ok(devices) if devices.is_empty() => (devices, Some("no device".to_owned())),
        Ok(devices) => (devices, None),
        Err(enec::Error::Unavailable { reason, .. }) => (Vec::new(), Some(reason)),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let devices = devices.into_iter().map(|info| Device {
        backend: format!("{}:{}", info.backend, info.index),
        name: info.name,
        fingerprint: info.fingerprint,
        memory_bytes: info.memory,
        codecs: codecs(info.codecs),
        kernels: info.variant,
        all_kernels: info.variants,
    });
    BackendEntry { name, devices: devices.collect(), absent }
}

/// The codecs that go both ways, and those that go one way.
fn codecs(codecs: Codecs) -> Vec<&'static str> {
    let cascade = match (codecs.encodes_cascade(), codecs.decodes_cascade()) {
        (true, true) => Some("cascade"),
        (true, false) => Some("cascade (encodes only)"),
        (false, true) => Some("cascade (decodes only)"),
        (false, false) => None,
    };
    ["enec"].into_iter().chain(cascade).collect()
}

/// The devices as a table, and behind it why a backend has none.
fn text(listing: &Listing) -> String {
    let mut table = Table::new([
        ("backend", Align::Left),
        ("codecs", Align::Left),
        ("kernels", Align::Left),
        ("memory", Align::Right),
        ("device", Align::Left),
        ("fingerprint", Align::Left),
    ]);
    let mut absences = String::new();
    for BackendEntry { name, devices, absent } in &listing.backends {
        for device in devices {
            table.row([
                device.backend.clone(),
                device.codecs.join(", "),
                device.all_kernels.join(", "),
                device.memory_bytes.map_or_else(String::new, |bytes| Size(bytes).to_string()),
                Printable(&device.name).to_string(),
                Printable(&device.fingerprint).to_string(),
            ]);
        }
        if let Some(reason) = absent {
            absences += &format!("{name}: none, {}\n", Printable(reason));
        }
    }
    format!("{table}{absences}")
}
