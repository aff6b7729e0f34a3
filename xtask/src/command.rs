//! Subprocesses: started in the repository root, output passed through, failure turned into a message.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use cargo_metadata::{Metadata, MetadataCommand};

use crate::Result;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

/// The cargo that runs this task, so that a `+toolchain` reaches the subprocesses too.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Packages and resolved dependencies of the workspace, from `cargo metadata`.
pub(crate) fn metadata() -> Result<Metadata> {
    Ok(MetadataCommand::new().current_dir(root()).exec()?)
}

/// Prints the command, runs it to its end, and fails if it failed.
pub(crate) fn run(command: &mut Command) -> Result {
    let text = text(command);
    println!("$ {text}");
    let status = command.status().map_err(|error| format!("cannot start `{text}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{text}` failed ({status})").into()) }
}

/// Whether the command can be started and succeeds; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The command as one would type it: set variables, program name, arguments.
fn text(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
    });
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    variables.chain([program]).chain(arguments).collect::<Vec<_>>().join(" ")
}
