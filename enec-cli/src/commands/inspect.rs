//! `enec inspect`: what a checkpoint is made of, tensor by tensor.

use std::fmt::{self, Display};
use std::path::PathBuf;

use clap::Args;
use enec::checkpoint::{self, CodecInspection, Inspection, Options, TensorInspection};

use crate::arguments::{CodecOptions, DeviceOptions, OutputOptions};
use crate::commands::summary::Gain;
use crate::failure::Failure;
use crate::number::Size;
use crate::printer::Printable;
use crate::progress::Bar;
use crate::table::{Align, Table};

/// Show what a file or folder is made of, tensor by tensor
///
/// Of an original it is told what compressing would make of it, with `--codec` and `--profile` as `enec compress` has them. The columns: codec;
/// of `enec` the common base b and common width m of the exponents and the lanes that are wide because they do not fit into that, of `cascade` the
/// number of levels K, their symbols, and the elements that escape from each level; bits stored per exponent, and the entropy of the exponents,
/// which an ideal coder of single exponents would need; size before over size after. A tensor without a codec does not gain and is carried as it is.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// Safetensors file, or folder that holds some, compressed or not
    input: PathBuf,
    #[command(flatten)]
    codec: CodecOptions,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    print: OutputOptions,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let printer = self.print.printer();
        let codec = self.codec.apply(self.device.codec()?)?;
        let inspection = checkpoint::inspect(&codec, &self.input, &Options::default(), &mut Bar::new(printer))?;
        printer.data(&inspection, Shown(&inspection))
    }
}

struct Shown<'a>(&'a Inspection);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inspection { tensors, streams, original_bytes, compressed_bytes, ratio, is_compressed, .. } = self.0;
        let files: Vec<&[TensorInspection]> = tensors.chunk_by(|left, right| left.file == right.file).collect();
        for tensors in &files {
            if files.len() > 1 {
                writeln!(f, "{}", Printable(&tensors[0].file.display().to_string()))?;
            }
            writeln!(f, "{}", table(tensors))?;
        }
        writeln!(f, "{}", Gain { streams: *streams, tensors: tensors.len() })?;
        let becomes = if *is_compressed { "compressed to" } else { "would be compressed to" };
        writeln!(f, "{} {becomes} {}, ratio {ratio:.3}", Size(*original_bytes), Size(*compressed_bytes))
    }
}

fn table(tensors: &[TensorInspection]) -> Table<9> {
    let percent = |share: f64| format!("{:.2}%", 100.0 * share);
    let mut table = Table::new([
        ("tensor", Align::Left),
        ("dtype", Align::Left),
        ("shape", Align::Left),
        ("codec", Align::Left),
        ("parameters", Align::Left),
        ("wide, or escapes", Align::Left),
        ("bits", Align::Right),
        ("entropy", Align::Right),
        ("ratio", Align::Right),
    ]);
    for TensorInspection { name, dtype, shape, ratio, stream, .. } in tensors {
        let [codec, parameters, outside] = match stream.as_ref().map(|stream| &stream.codec) {
            None => [const { String::new() }; 3],
            Some(CodecInspection::Enec { common_base, common_width, wide_lane_share }) => {
                ["enec".into(), format!("b {common_base}, m {common_width}"), percent(*wide_lane_share)]
            }
            Some(CodecInspection::Cascade { levels, symbols, escape_shares }) => {
                let symbols = symbols.iter().map(u8::to_string).collect::<Vec<_>>();
                let levels_symbols = symbols.chunks(3).map(|level| level.join(" ")).collect::<Vec<_>>().join(", ");
                let shares = escape_shares.iter().map(|share| percent(*share)).collect::<Vec<_>>().join(" ");
                ["cascade".into(), format!("K {levels}: {levels_symbols}"), shares]
            }
        };
        let [bits, entropy] = match stream {
            None => [const { String::new() }; 2],
            Some(stream) => [stream.exponent_bits, stream.exponent_entropy].map(|bits| format!("{bits:.3}")),
        };
        let (name, dtype) = (Printable(name).to_string(), Printable(dtype).to_string());
        table.row([
            name,
            dtype,
            format!("{shape:?}"),
            codec,
            parameters,
            outside,
            bits,
            entropy,
            format!("{ratio:.3}"),
        ]);
    }
    table
}
