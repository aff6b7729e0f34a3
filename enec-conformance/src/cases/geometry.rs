//! Geometry: the bytes do not depend on the number of threads.

use std::num::NonZeroUsize;

use enec_core::CodecChoice;
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Dtype, reference};

use crate::codecs::{CODECS, Needs, searched};
use crate::inputs::Input;
use crate::jobs::{Decoding, Encoding, check_decodings, check_encodings};
use crate::{Case, Result, Subject};

/// Few, and more than the blocks of some tensors, and a number that divides none.
const THREADS: [usize; 3] = [1, 2, 7];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (choice, prefix) in CODECS {
        for threads in THREADS {
            let check = move |subject: &Subject| {
                same_bytes(&subject.reopen(|options| options.threads = NonZeroUsize::new(threads))?, choice)
            };
            let name = format!("{prefix}geometry/threads/{threads}");
            cases.push(Case::new(name, check).needing(Needs::of(choice, Needs::Both)));
        }
    }
    cases
}

fn same_bytes(subject: &Subject, choice: CodecChoice) -> Result {
    for dtype in Dtype::FLOATS {
        let top = u64::from(dtype.exponent_mask() / 2);
        let wide = Input::Lanes { seed: 80, wide: 129, base: top, width: 2, wide_base: top + 9, wide_width: 4 };
        let mut tensors: Vec<Vec<u8>> = [1, TILE_ELEMENTS, BLOCK_ELEMENTS, 8 * BLOCK_ELEMENTS + TILE_ELEMENTS + 1]
            .map(|count| wide.bytes(dtype, count))
            .into();
        // One that ends as stored, where threads have to agree to give up, and one with a long variable section.
        tensors.push(Input::Uniform { seed: 81 }.bytes(dtype, 4 * BLOCK_ELEMENTS));
        tensors.push(Input::Weights { seed: 82, top, zeros: 40 }.bytes(dtype, 4 * BLOCK_ELEMENTS));
        let encodings = tensors.iter().map(|elements| {
            let coding = searched(choice, dtype, elements);
            Encoding::of(format!("{} bytes of {}", elements.len(), dtype.name()), dtype, coding, elements)
        });
        let encodings: Vec<Encoding<'_>> = encodings.collect::<Result<_>>()?;
        check_encodings(subject, &encodings)?;
        let streams = encodings.iter().map(|encoding| reference::encode_plan(&encoding.plan, encoding.elements));
        let streams: Vec<Vec<u8>> = streams.collect::<Result<_, _>>()?;
        let decodings = encodings
            .iter()
            .zip(&streams)
            .map(|(encoding, stream)| Ok(Decoding::of(&encoding.name, stream)?.expecting(encoding.elements)));
        check_decodings(subject, &decodings.collect::<Result<Vec<_>>>()?)?;
    }
    Ok(())
}
