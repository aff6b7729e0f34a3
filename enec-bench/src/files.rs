//! Whole files: `enec compress` and `enec decompress` beside plain writing and reading of the same bytes at the same place.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use enec::checkpoint::{self, Options};
use enec::{Codec, OpenOptions};

use crate::Result;
use crate::arguments::{Arguments, Data};
use crate::buffer::Buffer;
use crate::data::{files, short_name};
use crate::throughput::median;

/// Bytes per call of plain reading and writing.
const BLOCK_BYTES: usize = 4 << 20;

pub(crate) fn run(arguments: &Arguments, place: &Path) -> Result<()> {
    let options = OpenOptions { threads: arguments.threads.first().copied(), ..OpenOptions::default() };
    let codec = Codec::new(enec::open(&arguments.backend, &options)?);
    println!(
        "seconds, medians of {}; every written file is synced; compared with the plain writing (and reading) of the same bytes",
        arguments.repetitions
    );
    for data in &arguments.data {
        let Data::Path(path) = data else { return Err("`--files` wants files".into()) };
        for path in files(std::slice::from_ref(path))? {
            measure(&codec, &path, place, arguments.repetitions)?;
        }
    }
    Ok(())
}

/// What is timed, in the order in which it takes turns.
#[derive(Clone, Copy)]
enum Step {
    Read,
    WriteCompressed,
    WriteOriginal,
    Compress,
    CompressVerified,
    Decompress,
}

const STEPS: [Step; 6] =
    [Step::Read, Step::WriteCompressed, Step::WriteOriginal, Step::Compress, Step::CompressVerified, Step::Decompress];

fn measure(codec: &Codec, original: &Path, place: &Path, repetitions: usize) -> Result<()> {
    let scratch = |name: &str| place.join(format!("enec-bench-{}-{name}", std::process::id()));
    let (compressed, restored, plain) = (scratch("compressed"), scratch("restored"), scratch("plain"));
    let options = |verify| Options { force: true, verify, ..Options::default() };
    let compress = |verify| checkpoint::compress(codec, original, &compressed, &options(verify), &mut ());
    compress(true)?;
    let (before, after) = (contents(original)?, contents(&compressed)?);
    let mut block = Buffer::new(BLOCK_BYTES);
    let mut seconds = [const { Vec::new() }; STEPS.len()];
    for _ in 0..repetitions.max(1) {
        for step in STEPS {
            let start = Instant::now();
            match step {
                Step::Read => read(original, block.bytes_mut())?,
                Step::WriteCompressed => write(&plain, after.bytes())?,
                Step::WriteOriginal => write(&plain, before.bytes())?,
                Step::Compress => compress(false).map(|_| ())?,
                Step::CompressVerified => compress(true).map(|_| ())?,
                Step::Decompress => {
                    checkpoint::decompress(codec, &compressed, &restored, &options(false), &mut ())?;
                }
            }
            seconds[step as usize].push(start.elapsed().as_secs_f64());
        }
    }
    if contents(&restored)?.bytes() != before.bytes() {
        return Err(format!("{} was not restored", original.display()).into());
    }
    [compressed, restored, plain].iter().try_for_each(fs::remove_file)?;

    let time = |step: Step| median(&seconds[step as usize]);
    let (compressing, decompressing) = (time(Step::Read) + time(Step::WriteCompressed), time(Step::WriteOriginal));
    println!("{}: {:.1} MB to {:.1} MB", short_name(original), megabytes(&before), megabytes(&after));
    println!(
        "  read {:.3}, write compressed {:.3}, write original {:.3}",
        time(Step::Read),
        time(Step::WriteCompressed),
        decompressing
    );
    for (name, step, against) in [
        ("compress --no-verify", Step::Compress, compressing),
        ("compress", Step::CompressVerified, compressing),
        ("decompress", Step::Decompress, decompressing),
    ] {
        println!("  {name:20} {:.3}, {:.2} x", time(step), time(step) / against);
    }
    Ok(())
}

fn megabytes(buffer: &Buffer) -> f64 {
    buffer.bytes().len() as f64 / 1e6
}

fn contents(path: &Path) -> Result<Buffer> {
    let mut buffer = Buffer::new(usize::try_from(fs::metadata(path)?.len())?);
    File::open(path)?.read_exact(buffer.bytes_mut())?;
    Ok(buffer)
}

fn read(path: &Path, block: &mut [u8]) -> Result<()> {
    let mut file = File::open(path)?;
    while file.read(block)? > 0 {
        black_box(&block);
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    // A new file each time, as the conversions make one.
    let _ = fs::remove_file(path);
    let mut file = File::create(path)?;
    bytes.chunks(BLOCK_BYTES).try_for_each(|block| file.write_all(block))?;
    Ok(file.sync_all()?)
}
