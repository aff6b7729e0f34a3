//! Runs that end before their time: interrupted, killed, or out of room.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::checkpoint::{SAMPLE_SHA256, header, sample, write};
use crate::program::{ENEC, Run, command, compress, decompress, names, sha256};

/// A checkpoint that takes long: a gigabyte of zeros, none of which is on the disk.
fn write_large(path: &Path) {
    let elements = 1 << 29;
    let header = header([("zeros", "BF16", &[elements][..], 2 * elements)]);
    let mut file = File::create(path).unwrap();
    file.write_all(&header).unwrap();
    file.set_len((header.len() + 2 * elements) as u64).unwrap();
}

/// Starts compressing in `folder` and returns once the temporary is there.
fn start(folder: &Path, input: &str, output: &str) -> Child {
    let mut command = command(["compress", "-o"]);
    command.arg(folder.join(output)).arg(folder.join(input)).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    while temporaries(folder, output) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "ended before there was a temporary");
        sleep(Duration::from_millis(1));
    }
    child
}

/// How many unfinished outputs of this name there are.
fn temporaries(folder: &Path, output: &str) -> usize {
    let start = format!(".{output}.enec-");
    names(folder).iter().filter(|name| name.starts_with(&start) && name.ends_with(".tmp")).count()
}

/// What Ctrl-C does.
fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write_large(&folder.path().join("large"));
    let child = start(folder.path(), "large", "out");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("error: interrupted"), "{text}");
    assert_eq!(names(folder.path()), ["large"]);
}

#[test]
fn an_interrupted_folder_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("model")).unwrap();
    write(&folder.path().join("model/a.safetensors"));
    write_large(&folder.path().join("model/b.safetensors"));
    let child = start(folder.path(), "model", "out");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(names(folder.path()), ["model"]);
}

#[test]
fn the_next_run_clears_up_after_a_killed_one() {
    let folder = tempfile::tempdir().unwrap();
    write_large(&folder.path().join("large"));
    let mut child = start(folder.path(), "large", "out");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!folder.path().join("out").exists());
    assert_eq!(temporaries(folder.path(), "out"), 1);

    // Not of one that still runs, though.
    let mut running = start(folder.path(), "large", "other");
    write(&folder.path().join("small"));
    compress(&folder.path().join("small"), &folder.path().join("small-out"), &[]).success();
    assert_eq!(temporaries(folder.path(), "out"), 0);
    assert_eq!(temporaries(folder.path(), "other"), 1);
    interrupt(&running);
    running.wait().unwrap();
    assert_eq!(names(folder.path()), ["large", "small", "small-out"]);
}

/// Runs `enec` in a shell where no file can grow beyond `kilobytes`, as on a full disk.
fn limited(kilobytes: usize, on_limit: &str, arguments: &[&Path]) -> Run {
    // POSIX counts blocks of 512 bytes.
    let script = format!(r#"{on_limit}; ulimit -c 0; ulimit -f {}; exec "$0" "$@""#, 2 * kilobytes);
    Run::of(Command::new("sh").arg("-c").arg(script).arg(ENEC).args(arguments))
}

#[test]
fn a_full_disk_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (sample, out) = (sample(), path("out"));
    let ignore = "trap '' XFSZ";
    let call = [Path::new("compress"), &sample, Path::new("-o"), &out];
    limited(1000, ignore, &call).failure(2).says("cannot write").says("out");
    assert_eq!(names(folder.path()), [""; 0]);

    compress(&sample, &path("compressed"), &[]).success();
    let call = [Path::new("decompress"), &path("compressed"), Path::new("-o"), &out];
    limited(3500, ignore, &call).failure(2).says("cannot write");
    let call = [
        Path::new("extract"),
        &sample,
        Path::new("-o"),
        &out,
        Path::new("--tensor"),
        Path::new("embeddings.word_embeddings.weight"),
    ];
    limited(100, ignore, &call).failure(2).says("cannot write");
    let call = [Path::new("compress"), &sample, Path::new("-o"), &out, Path::new("--make-profile"), &path("profile")];
    limited(0, ignore, &call).failure(2);
    assert_eq!(names(folder.path()), ["compressed"]);

    // Enough room is enough.
    let call = [Path::new("decompress"), &path("compressed"), Path::new("-o"), &out];
    limited(4000, ignore, &call).success();
    assert_eq!(sha256(&out), SAMPLE_SHA256);
}

#[test]
fn a_run_killed_while_it_writes_leaves_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    let (sample, out) = (sample(), folder.path().join("out"));
    let call = [Path::new("compress"), &sample, Path::new("-o"), &out];
    // The signal ends the process within the call that writes beyond the limit.
    let run = limited(1000, "trap - XFSZ", &call);
    assert_eq!(run.code, None, "{run:#?}");
    assert!(!out.exists());
    assert_eq!(temporaries(folder.path(), "out"), 1);
    compress(&sample, &out, &[]).success();
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn too_little_room_is_noticed_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge");
    // Four terabytes, none of which is on the disk.
    let elements = 1 << 40;
    let header = header([("zeros", "F32", &[elements][..], 4 * elements)]);
    let mut file = File::create(&path).unwrap();
    file.write_all(&header).unwrap();
    file.set_len((header.len() + 4 * elements) as u64).unwrap();
    compress(&path, &folder.path().join("out"), &[]).failure(2).says("free");
    assert_eq!(names(folder.path()), ["huge"]);
}

#[test]
fn a_closed_pipe_is_success() {
    let folder = tempfile::tempdir().unwrap();
    let compressed = folder.path().join("compressed");
    compress(&sample(), &compressed, &[]).success();
    for arguments in [&["inspect"][..], &["inspect", "--json"], &["devices"], &["completions", "bash"], &["man"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(arguments);
        if arguments[0] == "inspect" {
            command.arg(&compressed);
        }
        let output = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(output.stderr, b"", "{arguments:?}");
    }
    decompress(&compressed, &folder.path().join("restored"), &[]).success();
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let run = command(["inspect"]).arg(sample()).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8(run.stderr).unwrap().starts_with("error: cannot write to standard output"));
}
