//! Test vectors computed independently from the text of the format: `testdata/vectors/README.md` says what the fields mean.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use enec_format::{Cascade, Coding, Dtype, EncodePlan, Header, Stream, TwoWindows, hash::xxh3_64, reference};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Vectors {
    splitmix64_check: Check,
    cases: Vec<Case>,
    refuse: Vec<Refusal>,
}

#[derive(Deserialize)]
struct Check {
    seed: u64,
    outputs: Vec<String>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    dtype: String,
    count: usize,
    input: Input,
    codec: u8,
    params: Vec<u8>,
    forced: bool,
    input_sha256: String,
    stream_codec: u8,
    stream_length: usize,
    content_hash: String,
    payload_hash: String,
    sealed_sha256: String,
    unsealed_sha256: String,
    sealed_hex: Option<String>,
}

#[derive(Deserialize)]
struct Input {
    kind: String,
    seed: u64,
    #[serde(default)]
    top: u64,
    #[serde(default)]
    cap: u64,
    #[serde(default)]
    low: u64,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    zeros: u64,
    #[serde(default)]
    patches: Vec<Patch>,
}

#[derive(Deserialize)]
struct Patch {
    first: usize,
    step: usize,
    end: usize,
    word: u64,
}

#[derive(Deserialize)]
struct Refusal {
    name: String,
    case: String,
    form: String,
    xor: Vec<(usize, u8)>,
    truncate_to: Option<usize>,
    append_zeros: usize,
    repair_header_checksum: bool,
    expect: String,
    fault_at: u64,
    result_sha256: String,
}

fn vectors() -> Vectors {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/vectors/vectors.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl Case {
    fn dtype(&self) -> Dtype {
        Dtype::from_name(&self.dtype).unwrap_or(Dtype::Opaque)
    }

    fn input(&self) -> Vec<u8> {
        let (input, dtype) = (&self.input, self.dtype());
        let width = 8 * dtype.element_bytes();
        let mantissa = width - 1 - usize::from(dtype.exponent_bits());
        let mut random = SplitMix64(input.seed);
        let mut words: Vec<u64> = (0..self.count as u64)
            .map(|i| {
                let u = random.next();
                let float =
                    |exponent: u64| (u & 1) << (width - 1) | exponent << mantissa | (u >> 1) & ((1 << mantissa) - 1);
                let word = match input.kind.as_str() {
                    "uniform" => u & (u64::MAX >> (64 - width)),
                    "counter" if dtype == Dtype::F32 => (i % 65536) << 16 | u & 0xFFFF,
                    "counter" => i % 65536,
                    "geo" => float(input.top - u64::from(((u >> 32) as u32).trailing_zeros()).min(input.cap)),
                    "span" => float(input.low + (u >> 32) % input.size),
                    kind => panic!("unknown kind {kind}"),
                };
                if u >> 56 < input.zeros { 0 } else { word }
            })
            .collect();
        for patch in &input.patches {
            for at in (patch.first..patch.end.min(self.count)).step_by(patch.step) {
                words[at] = patch.word;
            }
        }
        words.iter().flat_map(|word| word.to_le_bytes().into_iter().take(width / 8)).collect()
    }

    fn coding(&self) -> Coding {
        match self.codec {
            0 => Coding::Stored,
            1 => Coding::TwoWindows(TwoWindows::new(self.dtype(), self.params[0], self.params[1]).unwrap()),
            2 => Coding::Cascade(Cascade::new(self.dtype(), &self.params).unwrap()),
            codec => panic!("codec {codec}"),
        }
    }

    fn sealed(&self, input: &[u8]) -> Vec<u8> {
        if !self.forced {
            return reference::encode_stream(self.dtype(), self.coding(), input).unwrap();
        }
        let plan = EncodePlan::window(self.dtype(), self.coding(), self.count, 0).unwrap();
        reference::encode_plan(&plan, input).unwrap()
    }
}

fn unsealed(sealed: &[u8]) -> Vec<u8> {
    let mut header = Header::parse(sealed).unwrap();
    (header.content_hash, header.payload_hash) = (None, None);
    let mut stream = sealed.to_vec();
    stream[..64].copy_from_slice(&header.to_bytes());
    stream
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn generator_agrees() {
    let check = vectors().splitmix64_check;
    let mut random = SplitMix64(check.seed);
    for output in check.outputs {
        assert_eq!(format!("{:016x}", random.next()), output);
    }
}

#[test]
fn cases() {
    let mut by_codec = [0; 3];
    for case in vectors().cases {
        let input = case.input();
        assert_eq!(sha256(&input), case.input_sha256, "{}: input", case.name);
        by_codec[usize::from(case.codec)] += 1;
        let sealed = case.sealed(&input);
        let header = Header::parse(&sealed).unwrap();
        assert_eq!(header.coding.codec(), case.stream_codec, "{}: codec", case.name);
        assert_eq!(sealed.len(), case.stream_length, "{}: length", case.name);
        assert_eq!(sha256(&unsealed(&sealed)), case.unsealed_sha256, "{}: unsealed stream", case.name);
        let seal = header.seal().unwrap();
        assert_eq!(format!("{:016x}", seal.content), case.content_hash, "{}: content hash", case.name);
        assert_eq!(format!("{:016x}", seal.payload), case.payload_hash, "{}: payload hash", case.name);
        assert_eq!(sha256(&sealed), case.sealed_sha256, "{}: sealed stream", case.name);
        if let Some(expected) = &case.sealed_hex {
            assert_eq!(&hex(&sealed), expected, "{}", case.name);
        }
        let stream = Stream::open(&sealed).unwrap();
        stream.check_payload().unwrap();
        let decoded = reference::decode_stream(&stream).unwrap();
        stream.check_content(&decoded).unwrap();
        assert!(decoded == input, "{}: decoded bytes differ", case.name);
    }
    assert_eq!(by_codec, [5, 29, 18], "cases by the codec that is asked for");
}

/// What our error says of an entry's `expect`.
fn text_of(expect: &str) -> &str {
    match expect {
        "not a stream: wrong magic" => "not an ENEC stream: wrong magic",
        "written by a newer version: version 2" => "written by a newer version: stream version 2",
        "written by a newer version: codec 3" => "written by a newer version: unknown codec 3",
        "unknown dtype 4" => "written by a newer version: unknown dtype 4",
        "written by a newer version: unknown flag" => "written by a newer version: unknown flags",
        "common width above the exponent's bits" => "common width 9 above",
        "common base not below 2^E" => "common base 44 above",
        "byte 12 not zero in codec 0" => "header byte that codec 0 does not use",
        "count times size overflows" => "element count 9223372036854815808 is too large",
        "stream length differs from what the fields imply" => "differs from what the header's other fields imply",
        "padding not zero" => "is not zero",
        "padding not zero (end of a row in a high segment)" => "padding after the row of a high segment is not zero",
        "block table not monotone" => "block table not monotone",
        "block table end beyond the high section" => "beyond the variable section",
        "segment length differs from widths and mask" => "its widths and mask imply",
        "wide width outside m to E" => "outside 3 to 8",
        "wide base not below 2^E" => "above 31",
        "wide base without a wide lane" => "without a wide lane, expected 0",
        "wide width without a wide lane" => "without a wide lane, expected 0",
        "number of levels outside 1 to 5" => "levels, expected 1 to 5",
        "byte 13 not zero in codec 2" => "header byte that codec 2 does not use",
        "symbol twice" => "occurs twice",
        "symbol not below 2^E" => "above 31",
        "padding not zero (after the symbols)" => "padding after the symbols is not zero",
        "block table byte not zero in codec 2" => "table byte that codec 2 does not use",
        "padding not zero (code beyond a level's count)" => "padding after the codes of a level is not zero",
        "padding not zero (end of a segment)" => "padding after the raw exponents of a segment is not zero",
        "levels do not add up to the segment" => "its levels imply",
        "raw exponent not below 2^E" => "raw exponent",
        "payload hash mismatch (and content hash mismatch)" => "payload hash mismatch",
        other => other,
    }
}

#[test]
fn refusals() {
    let Vectors { cases, refuse, .. } = vectors();
    let mut of_codec_2 = 0;
    for refusal in refuse {
        let case = cases.iter().find(|case| case.name == refusal.case).unwrap();
        of_codec_2 += usize::from(case.codec == 2);
        let sealed = case.sealed(&case.input());
        let mut stream = if refusal.form == "sealed" { sealed } else { unsealed(&sealed) };
        for (offset, value) in refusal.xor {
            stream[offset] ^= value;
        }
        stream.truncate(refusal.truncate_to.unwrap_or(stream.len()));
        stream.resize(stream.len() + refusal.append_zeros, 0);
        if refusal.repair_header_checksum {
            let checksum = xxh3_64(&stream[..56]);
            stream[56..64].copy_from_slice(&checksum.to_le_bytes());
        }
        assert_eq!(sha256(&stream), refusal.result_sha256, "{}: result", refusal.name);
        let error = match Stream::open(&stream) {
            Err(error) => error,
            Ok(stream) => {
                assert!(refusal.expect.contains("hash mismatch"), "{}: accepted", refusal.name);
                let decoded = reference::decode_stream(&stream).unwrap();
                stream.check_payload().and_then(|()| stream.check_content(&decoded)).unwrap_err()
            }
        };
        assert!(
            error.to_string().contains(text_of(&refusal.expect)),
            "{}: {error}, not {}",
            refusal.name,
            refusal.expect
        );
        assert_eq!(error.offset(), refusal.fault_at, "{}: {error}", refusal.name);
        assert_eq!(error.is_newer(), refusal.expect.contains("newer") || refusal.expect.contains("unknown"));
    }
    assert_eq!(of_codec_2, 12, "refusals of codec 2");
}
