//! `cargo xtask demo`: the `enec` program on the checkpoint under `assets/`, there and back.

use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::Result;
use crate::command::{cargo, metadata, root, run as run_command};

/// The checkpoint, relative to the root of the repository.
const CHECKPOINT: &str = "assets/minilm-sample/model.safetensors";

pub(crate) fn run() -> Result {
    run_command(&mut cargo(["build", "--release", "--package", "enec-cli"]))?;
    let program = metadata()?.target_directory.join("release").join(format!("enec{}", std::env::consts::EXE_SUFFIX));
    let folder = tempfile::Builder::new().prefix("enec-demo-").tempdir()?;
    let original = Path::new(CHECKPOINT);
    let compressed = folder.path().join("compressed.safetensors");
    let restored = folder.path().join("restored.safetensors");

    let enec = |task: &str| {
        let mut command = Command::new(&program);
        command.current_dir(root()).arg(task);
        command
    };
    run_command(enec("compress").arg(original).arg("-o").arg(&compressed))?;
    run_command(enec("verify").arg(&compressed).arg("--against").arg(original))?;
    run_command(enec("inspect").arg(&compressed))?;
    run_command(enec("decompress").arg(&compressed).arg("-o").arg(&restored))?;

    let (original, restored) = (fs::read(root().join(original))?, fs::read(&restored)?);
    let compressed = fs::metadata(&compressed)?.len();
    let (before, after) = (sha256(&original), sha256(&restored));
    println!();
    println!("original    {before}  {} bytes", original.len());
    println!("restored    {after}  {} bytes", restored.len());
    if before != after {
        return Err("the restored file differs from the original".into());
    }
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people, of files of a few megabytes")]
    let ratio = original.len() as f64 / compressed as f64;
    println!("compressed  {compressed} bytes, ratio {ratio:.3}; restored byte for byte");
    Ok(())
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
