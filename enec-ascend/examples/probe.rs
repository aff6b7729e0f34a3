//! Compiles the kernels of `probes/` by the CANN toolkit, runs them on the first device, and prints what only a device can settle
//! (docs/ascend.md). Started by `cargo xtask ascend-probe`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to the person who started it")]

#[path = "../build/toolkit.rs"]
mod toolkit;

use std::env;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use enec_ascend::probing::Object;
use enec_ascend::{Configuration, KernelSource};
use toolkit::Toolkit;

const USAGE: &str = "\
Finds out on an Ascend device what only a device can settle.

Usage: cargo xtask ascend-probe [--object FILE]

  --object FILE  use this object of `enec-ascend/probes`, instead of compiling one by the toolkit that ASCEND_HOME_PATH names";

/// Bytes that the probes write.
const OUTPUT: usize = 2048;
/// Of a 910B2, for figures in cycles.
const CLOCK_GHZ: f64 = 1.8;
/// Elements of the large instructions of `enec_probe_cost`.
const LARGE: f64 = 8192.0;
const GATHERED: f64 = 2048.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let object = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => compile(),
        ["--object", path] => Ok(path.into()),
        _ => {
            println!("{USAGE}");
            return ExitCode::from(u8::from(arguments != ["--help"]) * 2);
        }
    };
    match object.and_then(|object| run(&object)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Compiles the crate's kernels, to see whether they can be, and the probes.
fn compile() -> Result<PathBuf, String> {
    let folder = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"].iter().find_map(env::var_os);
    let folder = folder.ok_or("no CANN toolkit: `ASCEND_HOME_PATH` is not set; source its `set_env.sh`")?;
    let toolkit = Toolkit::open(Path::new(&folder))?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = env::temp_dir().join(format!("enec-probe-{}", std::process::id()));
    std::fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    toolkit.build(&sources.join("kernels"), &output, &output.join("enec_kernels.o"))?;
    answer("the toolkit compiles the kernels", "yes".into(), "yes");
    let object = output.join("enec_probes.o");
    toolkit.build(&sources.join("probes"), &output, &object)?;
    println!("objects are in {}", output.display());
    Ok(object)
}

fn run(object: &Path) -> Result<(), String> {
    let configuration = Configuration::of_environment().map_err(|error| error.to_string())?;
    let object = Object::load(&configuration, &KernelSource::File(object.into())).map_err(|error| error.to_string())?;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    answer("an object of vector kernels is taken without options", yes(!object.needed_magic()), "not known");

    let words = |kernel: &CStr, cores: u32, numbers: [u64; 2]| -> Result<Vec<u16>, String> {
        let (bytes, _) = launch(&object, kernel, cores, numbers)?;
        Ok(bytes.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]])).collect())
    };
    let bits = words(c"enec_probe_subnormals", 1, [0; 2])?;
    answer("subnormal halves differ from zero in comparisons", yes(bits[0] == 0xFFFF), "never compared");
    let sums = words(c"enec_probe_overlap", 1, [0; 2])?;
    let reading = match (sums[128], sums[256], sums[896]) {
        (2, 2, 2) => "all sources first".to_owned(),
        (2, 3, 8) => "repeat by repeat".to_owned(),
        other => format!("neither: {other:?}"),
    };
    answer("an instruction that overlaps itself reads", reading, "never overlapped");
    let shifted = words(c"enec_probe_shift", 1, [0; 2])?;
    answer("shifts by 16 of 0x8001", format!("right {:#06x}, left {:#06x}", shifted[0], shifted[128]), "never done");
    let sectors = words(c"enec_probe_sectors", 48, [0; 2])?;
    let intact = (0..48 * 8).all(|word| usize::from(sectors[word]) == word / 8 + 1);
    answer("two cores can write into one sector of 32 bytes", yes(intact), "not needed: 32 bytes per block");
    for bytes in [188_160_u64, 196_352] {
        let whole = words(c"enec_probe_memory", 1, [bytes, 0]).map(|words| words.iter().all(|&word| word == 1));
        let result = whole.map_or_else(|error| format!("no: {error}"), yes);
        answer(&format!("{bytes} bytes of a core's memory can be used"), result, "188,160 at most");
    }

    let cost = |kind: u64| -> Result<f64, String> {
        // The difference of two runs has neither the launch nor the preparation.
        let time = |repetitions| Ok::<_, String>(launch(&object, c"enec_probe_cost", 1, [kind, repetitions])?.1);
        let (short, long) = (time(10_000)?, time(110_000)?);
        Ok((long - short) / 1e5 * CLOCK_GHZ)
    };
    let (nothing, small, large) = (cost(0)?, cost(1)?, cost(2)?);
    let cycles = |cycles: f64| format!("{cycles:.1} cycles");
    answer("a turn of a scalar loop", cycles(nothing), "0");
    answer("an Adds of 128 words", cycles(small), "25");
    answer("an Adds of 8,192 words", cycles(large), "88");
    answer("words of an Adds per cycle", format!("{:.1}", (LARGE - 128.0) / (large - small)), "128");
    answer("a PipeBarrier<PIPE_V> behind an Adds of 128 words", cycles(cost(3)? - small), "0");
    answer("words of a Gather per cycle, offsets in order", format!("{:.1}", GATHERED / cost(4)?), "5");
    answer("words of a Gather per cycle, offsets anywhere", format!("{:.1}", GATHERED / cost(5)?), "5");
    answer("words of a GatherMask per cycle", format!("{:.1}", GATHERED / cost(6)?), "64");
    Ok(())
}

/// Runs a probe; the time is in nanoseconds.
fn launch(object: &Object, kernel: &CStr, cores: u32, numbers: [u64; 2]) -> Result<(Vec<u8>, f64), String> {
    // SAFETY: every entry point of `probes/probes.cpp` takes these arguments and writes at most `OUTPUT` bytes: its 1,024 words, or 16 bytes
    // for each of 48 cores.
    #[allow(unsafe_code, reason = "what a kernel does with its arguments, only the caller knows")]
    let result = unsafe { object.run(kernel, cores, OUTPUT, numbers) };
    let (bytes, time) = result.map_err(|error| format!("{}: {error}", kernel.to_string_lossy()))?;
    Ok((bytes, time.as_secs_f64() * 1e9))
}

/// One line: a question, what the device says, and what the crate assumes.
fn answer(question: &str, found: String, assumed: &str) {
    println!("{question:<55}  {found:<30}  (assumed: {assumed})");
}
