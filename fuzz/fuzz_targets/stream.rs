//! See `enec_conformance::fuzzing::stream`.

#![no_main]

use enec_fuzz::{backends, corpus};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus { corpus(enec_conformance::fuzzing::stream(data, &backends())) });
