//! Outputs: nothing is overwritten unasked, nothing half appears, nothing is left behind.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use enec_core::checkpoint::{self, Options};
use enec_core::{Error, Result};

use crate::backend::codec;
use crate::sample::{Counter, Place, message, options, sample};

fn compress(input: &Path, output: &Path, force: bool) -> Result<checkpoint::Report> {
    checkpoint::compress(&codec(), input, output, &Options { force, ..options() }, &mut ())
}

#[test]
fn what_exists_is_replaced_on_demand_only() {
    let place = Place::new();
    let input = place.write("in", sample());
    let output = place.write("out", "precious");
    assert_eq!(
        message(compress(&input, &output, false)),
        "`out` exists already: choose another name, or replace it with `--force`"
    );
    assert_eq!(fs::read(&output).unwrap(), b"precious");
    compress(&input, &output, true).unwrap();
    assert!(fs::read(&output).unwrap().len() > 1000);
    fs::create_dir(place.path("folder")).unwrap();
    assert!(matches!(compress(&input, &place.path("folder"), true), Err(Error::Argument(_))));
    assert_eq!(place.names(), ["folder", "in", "out"]);
}

#[test]
fn the_output_needs_a_folder_and_a_name() {
    let place = Place::new();
    let input = place.write("in", sample());
    let error = message(compress(&input, &place.path("no/such/out"), false));
    assert!(error.starts_with("there is no folder `no/such`"), "{error}");
    let error = message(compress(&input, &place.path("new/"), false));
    assert!(error.ends_with("names a folder, and the output is a file: give the file's name"), "{error}");
    assert!(matches!(compress(&input, Path::new("/"), true), Err(Error::Argument(_))));
    assert!(matches!(compress(&input, Path::new(""), true), Err(Error::Argument(_))));
    assert!(matches!(compress(&input, &place.path("in/out"), true), Err(Error::Argument(_))));
}

#[cfg(unix)]
#[test]
fn the_input_is_never_its_own_output() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    let input = place.write("blobs/0123", sample());
    fs::create_dir(place.path("snapshot")).unwrap();
    let link = place.path("snapshot/model.safetensors");
    symlink("../blobs/0123", &link).unwrap();
    symlink("snapshot", place.path("other-way")).unwrap();
    for (from, to) in [
        (&input, &input),
        (&link, &link),
        (&link, &input),
        (&input, &link),
        (&link, &place.path("other-way/model.safetensors")),
        (&link, &place.path("snapshot/../snapshot/model.safetensors")),
    ] {
        let error = compress(from, to, true);
        assert!(message(error).contains(" is the input itself"), "{} to {}", from.display(), to.display());
    }
    assert!(fs::read(&link).unwrap() == sample());
    assert!(link.symlink_metadata().unwrap().is_symlink());

    let model = place.write("model/m.safetensors", sample());
    let model = model.parent().unwrap();
    for (to, why) in [("model", "is the input itself"), ("model/below", "lies inside the input")] {
        assert!(message(compress(model, &place.path(to), true)).contains(why), "{to}");
    }
    place.write("outer/model/m.safetensors", sample());
    place.write("outer/n.safetensors", sample());
    assert!(message(compress(&place.path("outer/model"), &place.path("outer"), true)).contains("holds the input"));
    // A link of the input into a folder that would be replaced.
    place.write("links/m.safetensors", sample());
    symlink("../outer/n.safetensors", place.path("links/n.safetensors")).unwrap();
    let error = message(compress(&place.path("links"), &place.path("outer"), true));
    assert!(error.contains("leads into output"), "{error}");
    assert!(place.path("outer/n.safetensors").exists());
}

#[cfg(unix)]
#[test]
fn mode_and_time_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let input = place.write("in", sample());
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_234_567_890);
    File::options().write(true).open(&input).unwrap().set_modified(time).unwrap();
    fs::set_permissions(&input, fs::Permissions::from_mode(0o640)).unwrap();
    let (small, back) = (place.path("small"), place.path("back"));
    compress(&input, &small, false).unwrap();
    checkpoint::decompress(&codec(), &small, &back, &options(), &mut ()).unwrap();
    for path in [small, back] {
        let metadata = path.metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
        assert_eq!(metadata.modified().unwrap(), time);
    }
}

#[test]
fn a_call_that_is_ended_leaves_nothing() {
    let place = Place::new();
    let input = place.write("in", sample());
    let output = place.write("out", "precious");
    let total = 2 * sample().len() as u64;
    for share in 0..=20 {
        let mut progress = Counter { cancel_at: total * share / 20, ..Counter::new() };
        let force = Options { force: true, ..options() };
        let result = checkpoint::compress(&codec(), &input, &output, &force, &mut progress);
        assert!(matches!(result, Err(Error::Cancelled)), "{share}: {result:?}");
        assert_eq!(place.names(), ["in", "out"]);
        assert_eq!(fs::read(&output).unwrap(), b"precious");
    }
    compress(&input, &output, true).unwrap();
    let back = place.path("back");
    let mut progress = Counter { cancel_at: total / 4, ..Counter::new() };
    let result = checkpoint::decompress(&codec(), &output, &back, &options(), &mut progress);
    assert!(matches!(result, Err(Error::Cancelled)));
    assert_eq!(place.names(), ["in", "out"]);
}

#[test]
fn what_killed_processes_left_is_removed_and_what_others_write_is_not() {
    let place = Place::new();
    let input = place.write("in", sample());
    place.write(".out.enec-abcd1234.tmp", "stale");
    place.write(".other.safetensors.enec-ABCD1234.tmp", "stale");
    place.write(".folder.enec-abcd1234.tmp/deep/inside", "stale");
    let live = File::open(place.write(".live.enec-abcd1234.tmp", "live")).unwrap();
    live.try_lock().unwrap();
    let kept = [
        ".enec-abcd1234.tmp",
        ".live.enec-abcd1234.tmp",
        ".out.enec-abc.tmp",
        ".out.enec-abcd-234.tmp",
        ".out.enec-abcd1234",
        ".out.enec-abcd12345.tmp",
        "out.enec-abcd1234.tmp",
        "x.tmp",
    ];
    for name in kept.iter().filter(|name| !name.starts_with(".live")) {
        place.write(name, "not ours");
    }
    compress(&input, &place.path("out"), false).unwrap();
    let mut expected = Vec::from(kept);
    expected.extend(["in", "out"]);
    expected.sort_unstable();
    assert_eq!(place.names(), expected);
}

#[cfg(unix)]
#[test]
fn links_with_a_name_of_ours_are_not_followed() {
    let place = Place::new();
    let input = place.write("in", sample());
    place.write("treasure/file", "precious");
    std::os::unix::fs::symlink("treasure", place.path(".out.enec-abcd1234.tmp")).unwrap();
    std::os::unix::fs::symlink("treasure", place.path(".out.enec-abcd1234.old")).unwrap();
    compress(&input, &place.path("out"), false).unwrap();
    assert_eq!(fs::read(place.path("treasure/file")).unwrap(), b"precious");
}

#[test]
fn a_folder_that_was_being_replaced_comes_back() {
    let place = Place::new();
    let input = place.write("in", sample());
    // Killed between the two renames: the old folder is aside and the new one still has its temporary name.
    place.write(".model.enec-abcd1234.old/m.safetensors", "old");
    place.write(".model.enec-abcd1234.tmp/m.safetensors", "new");
    // Killed after them.
    place.write("done/m.safetensors", "new");
    place.write(".done.enec-abcd1234.old/m.safetensors", "old");
    compress(&input, &place.path("out"), false).unwrap();
    assert_eq!(place.names(), ["done", "in", "model", "out"]);
    assert_eq!(fs::read(place.path("model/m.safetensors")).unwrap(), b"old");
    assert_eq!(fs::read(place.path("done/m.safetensors")).unwrap(), b"new");
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_being_replaced_is_left_to_whoever_does_it() {
    let place = Place::new();
    let input = place.write("in", sample());
    for name in ["model", "done"] {
        place.write(&format!(".{name}.enec-abcd1234.old/m.safetensors"), "old");
    }
    place.write("done/m.safetensors", "new");
    let folders = [".done.enec-abcd1234.old", ".model.enec-abcd1234.old"];
    let held = folders.map(|name| File::open(place.path(name)).unwrap());
    held.iter().for_each(|folder| folder.try_lock().unwrap());
    compress(&input, &place.path("out"), false).unwrap();
    assert_eq!(place.names(), [folders[0], folders[1], "done", "in", "out"]);
}

#[test]
fn two_at_once_do_not_disturb_each_other() {
    let place = Place::new();
    let input = place.write("in", sample());
    let outputs = Vec::from_iter((0..4).map(|index| place.path(&format!("out{index}"))));
    std::thread::scope(|scope| {
        for output in &outputs {
            scope.spawn(|| compress(&input, output, false).unwrap());
        }
    });
    let first = fs::read(&outputs[0]).unwrap();
    assert!(outputs.iter().all(|output| fs::read(output).unwrap() == first));
    assert_eq!(place.names(), ["in", "out0", "out1", "out2", "out3"]);
}
