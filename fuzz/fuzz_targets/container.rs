//! See `enec_conformance::fuzzing::container`.

#![no_main]

use enec_fuzz::{codec, corpus};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus { corpus(enec_conformance::fuzzing::container(data, codec())) });
