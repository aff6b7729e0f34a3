//! Headers that must be read and headers that must be refused, with the safetensors crate as the oracle.

use safetensors::SafeTensors;
use safetensors::tensor::Metadata;

use super::{Header, HeaderError, element_bits};

/// A file with this header and `data_len` bytes of data.
fn file(text: impl AsRef<[u8]>, data_len: usize) -> Vec<u8> {
    let text = text.as_ref();
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(text);
    file.resize(file.len() + data_len, 0);
    file
}

fn tensor(name: &str, dtype: &str, shape: &str, start: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
}

/// Headers that both read, each with the length of its data.
fn good() -> Vec<(String, usize)> {
    let deep_and_ignored = format!(r#""note":{}{}"#, "[".repeat(100), "]".repeat(100));
    let mut good = vec![
        ("{}".to_owned(), 0),
        (r#"{"__metadata__":{}}"#.to_owned(), 0),
        (r#"{"__metadata__":null}"#.to_owned(), 0),
        (
            format!(
                r#"{{"__metadata__":{{"format":"pt","é\u001f\n":"\"\\"}},{}}}"#,
                tensor("a", "BF16", "[2,3]", 0, 12)
            ),
            12,
        ),
        (format!(r#"{{{},"__metadata__":{{"k":"v"}}}}"#, tensor("a", "F32", "[]", 0, 4)), 4),
        (format!(r#"{{"__metadata__":{{"k":"{}"}}}}"#, "x".repeat(100_000)), 0),
        // Padding and whitespace wherever JSON allows them.
        (format!("\t\n{{ {} }}\r \t\n   ", tensor("a", "U8", "[ 3 ]", 0, 3)), 3),
        // Data order is not header order; empty tensors lie between.
        (
            format!(
                "{{{},{},{},{},{}}}",
                tensor("z", "I64", "[1]", 8, 16),
                tensor("e1", "F16", "[0,7]", 8, 8),
                tensor("a", "I32", "[2]", 0, 8),
                tensor("e0", "F64", "[0]", 8, 8),
                tensor("end", "F64", "[3,0]", 16, 16)
            ),
            16,
        ),
        (format!("{{{}}}", tensor("", "BOOL", "[1,1,1,1,1,1,1,1,1]", 0, 1)), 1),
        (r#"{"a":["F32",[1],[0,4]]}"#.to_owned(), 4),
        (r#"{"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32","extra":{"x":[1.5,null,true]}}}"#.to_owned(), 4),
        (format!(r#"{{"a":{{"dtype":"I8","shape":[1],"data_offsets":[0,1],{deep_and_ignored}}}}}"#), 1),
        (format!("{{{}}}", tensor("\\u0061\\ud83e\\udd80", "\\u0046\\u00332", "[1]", 0, 4)), 4),
        // Sub-byte dtypes in whole bytes.
        (format!("{{{},{}}}", tensor("a", "F4", "[3,2]", 0, 3), tensor("b", "F6_E2M3", "[4]", 3, 6)), 6),
        (format!("{{{}}}", tensor("a", "F6_E3M2", "[2,4]", 0, 6)), 6),
    ];
    for dtype in [
        "BOOL",
        "U8",
        "I8",
        "F8_E5M2",
        "F8_E4M3",
        "F8_E8M0",
        "F8_E4M3FNUZ",
        "F8_E5M2FNUZ",
        "I16",
        "U16",
        "F16",
        "BF16",
        "I32",
        "U32",
        "F32",
        "C64",
        "F64",
        "I64",
        "U64",
    ] {
        let bytes = element_bits(dtype).unwrap() / 8;
        good.push((format!("{{{}}}", tensor("a", dtype, "[1]", 0, bytes)), usize::try_from(bytes).unwrap()));
    }
    good
}

/// Checks that what the crate read is what we read.
fn assert_agree(text: &[u8], oracle: &Metadata, header: &Header) {
    let text = String::from_utf8_lossy(text);
    let tensors = oracle.tensors();
    assert_eq!(tensors.len(), header.tensors().len(), "{text}");
    for (index, entry) in header.tensors().iter().enumerate() {
        let info = tensors[&entry.name];
        assert_eq!(entry.dtype, info.dtype.to_string(), "{text}");
        assert_eq!(element_bits(&entry.dtype), Some(info.dtype.bitsize() as u64), "{text}");
        assert_eq!(entry.shape, Vec::from_iter(info.shape.iter().map(|&extent| extent as u64)), "{text}");
        assert_eq!(entry.range, info.data_offsets.0 as u64..info.data_offsets.1 as u64, "{text}");
        assert_eq!(header.position(&entry.name), Some(index), "{text}");
    }
    assert_eq!(header.position("no such tensor"), None);
    let metadata = oracle.metadata().as_ref().map(|map| map.clone().into_iter().collect());
    assert_eq!(header.metadata(), metadata.as_ref(), "{text}");
    assert_eq!(header.data_len(), oracle.data_len() as u64, "{text}");
}

#[test]
fn good_headers_are_read_as_the_safetensors_crate_reads_them() {
    for (text, data_len) in good() {
        let file = file(&text, data_len);
        let (_, oracle) = SafeTensors::read_metadata(&file).unwrap_or_else(|error| panic!("oracle: {error}: {text}"));
        let header = Header::parse(&file).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_agree(text.as_bytes(), &oracle, &header);
        assert_eq!(header.text(), text);
        assert_eq!(header.data_start(), 8 + text.len() as u64);
    }
}

#[test]
fn order_of_header_and_of_data() {
    let text = &good()[7].0;
    let header = Header::from_text(text.clone()).unwrap();
    let names = |entries: Vec<&super::TensorEntry>| entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(header.tensors().iter().collect()), ["z", "e1", "a", "e0", "end"]);
    // Equal offsets keep the header's order.
    assert_eq!(names(header.in_data_order().map(|(_, entry)| entry).collect()), ["a", "e1", "e0", "z", "end"]);
}

#[test]
fn unknown_dtypes_are_kept_as_text() {
    let text = format!(
        "{{{},{},{}}}",
        tensor("a", "F2_NEW", "[5,7]", 0, 9),
        tensor("b", "", "[]", 9, 9),
        tensor("c", "bf16", "[1]", 9, 12)
    );
    let header = Header::parse(&file(&text, 12)).unwrap();
    assert_eq!(header.tensors()[0].dtype, "F2_NEW");
    assert_eq!(header.tensors()[0].element_count, 35);
    assert_eq!(header.tensors()[0].range, 0..9);
    assert_eq!(header.tensors()[1].byte_len(), 0);
    assert_eq!(header.tensors()[2].dtype, "bf16");
    assert!(SafeTensors::read_metadata(&file(&text, 12)).is_err(), "the reason for a type of our own");
}

#[test]
fn bad_headers_are_refused_as_the_safetensors_crate_refuses_them() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let entry = |entry: &str| format!("{{{entry}}}");
    let bad: Vec<(String, usize)> = vec![
        (String::new(), 0),
        ("   ".to_owned(), 0),
        ("[]".to_owned(), 0),
        ("{".to_owned(), 0),
        ("{}x".to_owned(), 0),
        ("{}\0".to_owned(), 0),
        ("\u{feff}{}".to_owned(), 0),
        ("{}{}".to_owned(), 0),
        ("{}\u{a0}".to_owned(), 0),
        ("null".to_owned(), 0),
        (r#"{"a":1}"#.to_owned(), 0),
        (r#"{"a":null}"#.to_owned(), 0),
        (r#"{"a":{}}"#.to_owned(), 0),
        (r#"{"__metadata__":[]}"#.to_owned(), 0),
        (r#"{"__metadata__":"text"}"#.to_owned(), 0),
        (r#"{"__metadata__":{"a":1}}"#.to_owned(), 0),
        (r#"{"__metadata__":{"a":null}}"#.to_owned(), 0),
        (r#"{"__metadata__":{"a":{"b":"c"}}}"#.to_owned(), 0),
        (r#"{"__metadata__":{},"__metadata__":{}}"#.to_owned(), 0),
        (r#"{"__metadata__":null,"__metadata__":null}"#.to_owned(), 0),
        (r#"{"a":{"dtype":"U8","shape":[1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"shape":[1],"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":null,"shape":[1],"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":null,"data_offsets":[0,1]}}"#.to_owned(), 1),
        (r#"{"a":["U8",[1]]}"#.to_owned(), 1),
        (r#"{"a":["U8",[1],[0,1],0]}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1e999}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":"\ud800"}}"#.to_owned(), 1),
        (format!(r#"{{"a":{{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":{deep}}}}}"#), 1),
        (format!(r#"{{"a":{deep}}}"#), 1),
        (format!(r#"{{"a":{{"dtype":"U8","shape":{deep},"data_offsets":[0,1]}}}}"#), 1),
        (deep.clone(), 0),
        (deep.replace('[', r#"{"a":"#).replace(']', "}"), 0),
        (entry(&tensor("a", "U8", "[-1]", 0, 1)), 1),
        (entry(&tensor("a", "U8", "[1.0]", 0, 1)), 1),
        (entry(&tensor("a", "U8", "[1e0]", 0, 1)), 1),
        (entry(&tensor("a", "U8", "[18446744073709551616]", 0, 1)), 1),
        (entry(&tensor("a", "U8", "[01]", 0, 1)), 1),
        (entry(&tensor("a", "U8", "[1,]", 0, 1)), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":{"0":0,"1":1}}}"#.to_owned(), 1),
        (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":"01"}}"#.to_owned(), 1),
        // The data.
        (entry(&tensor("a", "U8", "[4]", 4, 0)), 4),
        (entry(&tensor("a", "U8", "[4]", 1, 5)), 5),
        (entry(&tensor("a", "U8", "[4]", 0, 4)), 3),
        (entry(&tensor("a", "U8", "[4]", 0, 4)), 5),
        (entry(&tensor("a", "U8", "[4]", 0, 3)), 3),
        (entry(&tensor("a", "U8", "[4]", 0, 5)), 5),
        (entry(&tensor("a", "F32", "[]", 0, 0)), 0),
        (entry(&tensor("a", "F32", "[0]", 0, 4)), 4),
        (entry(&tensor("a", "F4", "[3]", 0, 2)), 2),
        (entry(&tensor("a", "F6_E2M3", "[3]", 0, 3)), 3),
        (entry(&tensor("a", "I32", "[2,18446744073709551614]", 0, 16)), 16),
        (entry(&tensor("a", "I32", "[2,9223372036854775807]", 0, 16)), 16),
        (entry(&tensor("a", "I32", "[4294967296,4294967296]", 0, 0)), 0),
        (entry(&tensor("a", "I32", "[4294967296,4294967296,0]", 0, 0)), 0),
        (entry(&tensor("a", "U8", "[2305843009213693952]", 0, 0)), 0),
        (entry(&tensor("a", "U8", "[18446744073709551615]", 0, 18_446_744_073_709_551_615)), 9),
        (format!("{{{},{}}}", tensor("a", "U8", "[4]", 0, 4), tensor("b", "U8", "[4]", 3, 7)), 7),
        (format!("{{{},{}}}", tensor("a", "U8", "[4]", 0, 4), tensor("b", "U8", "[4]", 0, 4)), 4),
        (format!("{{{},{}}}", tensor("a", "U8", "[4]", 0, 4), tensor("b", "U8", "[4]", 5, 9)), 9),
        (format!("{{{},{}}}", tensor("a", "U8", "[4]", 0, 4), tensor("b", "U8", "[0]", 2, 2)), 4),
        (format!("{{{},{}}}", tensor("a", "U8", "[4]", 0, 4), tensor("b", "U8", "[0]", 9, 9)), 4),
    ];
    for (text, data_len) in bad {
        let shown = &text[..text.len().min(120)];
        let file = file(&text, data_len);
        assert!(SafeTensors::read_metadata(&file).is_err(), "the oracle reads {shown}");
        assert!(Header::parse(&file).is_err(), "{shown}");
    }
}

#[test]
fn lengths_and_encodings_are_checked_before_anything_else() {
    let refused = |file: &[u8]| {
        assert!(SafeTensors::read_metadata(file).is_err());
        Header::parse(file).unwrap_err()
    };
    for length in 0..8 {
        assert_eq!(refused(&[0; 8][..length]), HeaderError::NoLength { file_len: length as u64 });
    }
    assert_eq!(refused(&[0xff; 40]), HeaderError::TooLong { header_len: u64::MAX });
    let mut long = file("{}", 0);
    long[..8].copy_from_slice(&100_000_001_u64.to_le_bytes());
    assert_eq!(refused(&long), HeaderError::TooLong { header_len: 100_000_001 });
    long[..8].copy_from_slice(&100_000_000_u64.to_le_bytes());
    assert_eq!(refused(&long), HeaderError::Cut { header_len: 100_000_000, file_len: 10 });
    assert_eq!(refused(&file(b"{\"\xff\"}", 0)), HeaderError::Encoding { offset: 2 });
    // A character cut at the header's end.
    assert_eq!(refused(&file(b"{}  \xc3", 0)), HeaderError::Encoding { offset: 4 });
}

#[test]
fn names_that_occur_twice_are_refused_where_the_safetensors_crate_keeps_the_last() {
    let twice = format!("{{{},{}}}", tensor("a", "U8", "[4]", 4, 8), tensor("\\u0061", "U8", "[4]", 0, 4));
    assert!(SafeTensors::read_metadata(&file(&twice, 4)).is_ok());
    assert_eq!(Header::from_text(twice).unwrap_err(), HeaderError::DuplicateTensor { tensor: "a".to_owned() });
    let twice = r#"{"__metadata__":{"k":"1","k":"2"}}"#;
    assert!(SafeTensors::read_metadata(&file(twice, 0)).is_ok());
    let error = Header::from_text(twice.to_owned()).unwrap_err();
    assert!(matches!(&error, HeaderError::Json { reason, .. } if reason == "duplicate key `k`"), "{error}");
}

#[test]
fn a_dtype_is_text_where_the_safetensors_crate_takes_an_object_too() {
    // Another spelling of an enum in serde's data model; no writer uses it.
    let text = r#"{"a":{"dtype":{"F32":null},"shape":[1],"data_offsets":[0,4]}}"#;
    assert!(SafeTensors::read_metadata(&file(text, 4)).is_ok());
    assert!(Header::parse(&file(text, 4)).is_err());
}

#[test]
fn errors_name_the_tensor_and_the_place() {
    let message = |text: &str| Header::from_text(text.to_owned()).unwrap_err().to_string();
    assert_eq!(
        message(r#"{"a.weight":{"dtype":"U8","shape":[1]}}"#),
        "tensor `a.weight`: missing field `data_offsets`, at byte 37 of the header text"
    );
    assert_eq!(
        message("{\n  \"a\": {\"dtype\": 5}}"),
        "tensor `a`: invalid type: integer `5`, expected a string, at byte 19 of the header text"
    );
    assert_eq!(message("{\"a\""), "EOF while parsing an object, at byte 3 of the header text");
    assert_eq!(
        message(&format!("{{{}}}", tensor("a", "BF16", "[2,3]", 0, 10))),
        "tensor `a`: BF16 of shape [2, 3] takes 12 bytes, but its offsets span 10"
    );
    assert_eq!(
        message(&format!("{{{}}}", tensor("a", "U8", "[4]", 1, 5))),
        "tensor `a` starts at data byte 1, but the data before it ends at 0"
    );
    assert_eq!(
        Header::parse(&file("{}", 3)).unwrap_err().to_string(),
        "the tensors take 0 bytes, but 3 bytes follow the header"
    );
}

/// Outputs of splitmix64, as in the test vectors.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// One small change: a byte, a piece copied or removed, a number or a token put in.
fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    const TOKENS: [&str; 22] = [
        "0",
        "1",
        "4",
        "9",
        "18446744073709551615",
        "-1",
        "1.0",
        "null",
        "{}",
        "[]",
        "[0]",
        ",",
        ":",
        "\"",
        " ",
        "\\u0061",
        "\"U8\"",
        "\"F32\"",
        "\"F4\"",
        "\"a\"",
        "\"shape\":[1],",
        "\"__metadata__\":{},",
    ];
    let at = random.below(text.len() + 1);
    let end = at + random.below((text.len() - at).min(12) + 1);
    match random.below(5) {
        0 if at < text.len() => text[at] ^= 1 << random.below(8),
        1 => drop(text.drain(at..end)),
        2 => {
            let piece = text[at..end].to_vec();
            let to = random.below(text.len() + 1);
            text.splice(to..to, piece);
        }
        3 if at < text.len() => text[at] = b"0123456789{}[]\",: aF"[random.below(20)],
        _ => {
            text.splice(at..at, TOKENS[random.below(TOKENS.len())].bytes());
        }
    }
}

#[test]
fn mutated_headers_are_judged_as_the_safetensors_crate_judges_them() {
    let good = Vec::from_iter(good().into_iter().filter(|(text, _)| text.len() < 1000));
    let mut random = Random(2);
    let (mut read, mut refused) = (0, 0);
    for round in 0..60_000 {
        let (text, data_len) = &good[round % good.len()];
        let mut text = text.clone().into_bytes();
        for _ in 0..=random.below(2) {
            mutate(&mut text, &mut random);
        }
        let file = file(&text, *data_len);
        match (SafeTensors::read_metadata(&file), Header::parse(&file)) {
            (Ok((_, oracle)), Ok(header)) => {
                assert_agree(&text, &oracle, &header);
                read += 1;
            }
            (Err(_), Err(_)) => refused += 1,
            (Ok(_), Err(HeaderError::DuplicateTensor { .. })) => {}
            (Ok(_), Err(HeaderError::Json { reason, .. })) if reason.starts_with("duplicate key") => {}
            (Ok(_), Err(error)) => panic!("{error}: {}", String::from_utf8_lossy(&text)),
            (Err(error), Ok(header)) => assert!(
                header.tensors().iter().any(|entry| element_bits(&entry.dtype).is_none()),
                "oracle: {error}: {}",
                String::from_utf8_lossy(&text)
            ),
        }
    }
    // Both outcomes must be frequent, or this compares little.
    assert!(read > 2_000 && refused > 20_000, "{read} read, {refused} refused");
}
