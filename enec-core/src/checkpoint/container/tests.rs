//! Headers of containers: what is written is read back, and nothing else is.

use safetensors::SafeTensors;

use super::{Container, ContainerError, Form, Placement, header_text, is_container, reserved_len};
use crate::checkpoint::header::Header;
use enec_format::Dtype;
use enec_format::hash::content_hash;

/// A header with a stream candidate of each kind, carried tensors, an empty one and one of unknown dtype.
const ORIGINAL: &str = concat!(
    r#"{"w\n\"é\"":{"dtype":"BF16","shape":[64,64],"data_offsets":[64,8256]},"#,
    r#""ids":{"dtype":"I64","shape":[8],"data_offsets":[0,64]},"#,
    r#""__metadata__":{"zz":"last","format":"pt","a":"first"},"#,
    r#""empty":{"dtype":"F16","shape":[0,3],"data_offsets":[64,64]},"#,
    r#""new":{"dtype":"F3_NEW","shape":[5],"data_offsets":[8256,8259]}}  "#
);

fn placements() -> [Placement; 4] {
    [Placement::Stream(5824), Placement::Carried(1), Placement::Carried(0xFEDC_BA98_7654_3210), Placement::Carried(3)]
}

fn original() -> Header {
    Header::from_text(ORIGINAL.to_owned()).unwrap()
}

fn container_text() -> String {
    header_text(&original(), &placements()).unwrap()
}

fn open(text: &str) -> Result<Container, ContainerError> {
    Container::open(&Header::from_text(text.to_owned()).unwrap())
}

#[test]
fn the_text_is_exactly_this() {
    let hash = format!("{:016x}", content_hash(ORIGINAL.as_bytes()));
    let header = ORIGINAL.replace('\\', r"\\").replace('"', "\\\"");
    let expected = [
        r#"{"__metadata__":{"a":"first","enec.header":""#,
        &header,
        r#"","enec.header.xxh3":""#,
        &hash,
        r#"","enec.raw.xxh3":"{\"empty\":\"fedcba9876543210\",\"ids\":\"0000000000000001\",\"new\":\"0000000000000003\"}","#,
        r#""enec.version":"1","format":"pt","zz":"last"},"#,
        r#""w\n\"é\"":{"dtype":"U8","shape":[5824],"data_offsets":[0,5824]},"#,
        r#""ids":{"dtype":"I64","shape":[8],"data_offsets":[5824,5888]},"#,
        r#""empty":{"dtype":"F16","shape":[0,3],"data_offsets":[5888,5888]},"#,
        r#""new":{"dtype":"F3_NEW","shape":[5],"data_offsets":[5888,5891]}}"#,
    ]
    .concat();
    let text = container_text();
    assert_eq!(text.trim_end_matches(' '), expected);
    assert_eq!(text.len() as u64, reserved_len(&original()).unwrap());
    assert_eq!((8 + text.len()) % 64, 0);
}

#[test]
fn what_was_written_is_read() {
    let text = container_text();
    let container = open(&text).unwrap();
    assert_eq!(container.original(), &original());
    let tensors = Vec::from_iter(container.tensors().iter().map(|placed| (placed.range.clone(), placed.form)));
    assert_eq!(
        tensors,
        [
            (0..5824, Form::Stream(Dtype::Bf16)),
            (5824..5888, Form::Carried(1)),
            (5888..5888, Form::Carried(0xFEDC_BA98_7654_3210)),
            (5888..5891, Form::Carried(3)),
        ]
    );
}

#[test]
fn a_container_is_a_safetensors_file() {
    let original = Header::from_text(ORIGINAL.replace("F3_NEW", "U8").replace("[5]", "[3]")).unwrap();
    let text = header_text(&original, &placements()).unwrap();
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(text.as_bytes());
    file.resize(file.len() + 5891, 0);
    let (_, oracle) = SafeTensors::read_metadata(&file).unwrap();
    assert_eq!(oracle.info("w\n\"é\"").unwrap().shape, [5824]);
    assert_eq!(oracle.metadata().as_ref().unwrap()["format"], "pt");
}

#[test]
fn the_reserve_is_enough_for_every_choice_of_streams() {
    let long = "n".repeat(70);
    let originals = [
        ORIGINAL.to_owned(),
        "{}".to_owned(),
        r#"{"__metadata__":{}}"#.to_owned(),
        // A shape that is longer as text than a stream's, and one that is shorter.
        r#"{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,2048],"data_offsets":[0,8192]}}"#.to_owned(),
        r#"{"a":{"dtype":"F32","shape":[99999999999],"data_offsets":[0,399999999996]}}"#.to_owned(),
        format!(r#"{{"{long}":{{"dtype":"BF16","shape":[4999,2],"data_offsets":[0,19996]}}}}"#),
    ];
    for text in originals {
        let original = Header::from_text(text.clone()).unwrap();
        let tensors = original.tensors();
        for choice in 0..1_u32 << tensors.len() {
            let placements = Vec::from_iter(tensors.iter().enumerate().map(|(index, tensor)| {
                if choice >> index & 1 == 1 && tensor.byte_len() > 0 {
                    Placement::Stream(tensor.byte_len() - 1)
                } else {
                    Placement::Carried(u64::MAX)
                }
            }));
            let written = header_text(&original, &placements).unwrap();
            assert_eq!(written.len() as u64, reserved_len(&original).unwrap(), "{text}");
        }
    }
}

#[test]
fn a_header_that_safetensors_would_not_read_is_not_made() {
    // Every quotation mark takes two bytes more inside a JSON text.
    let text = format!(r#"{{"__metadata__":{{"k":"{}"}}}}"#, "x".repeat(60_000_000));
    let original = Header::from_text(text).unwrap();
    assert!(matches!(reserved_len(&original), Err(ContainerError::TooLong { length: 120_000_000.. })));
}

#[test]
fn containers_are_told_from_originals() {
    assert!(is_container(&Header::from_text(container_text()).unwrap()));
    assert!(!is_container(&original()));
    let any = r#"{"__metadata__":{"enec.":"x"}}"#;
    assert!(is_container(&Header::from_text(any.to_owned()).unwrap()));
}

/// The text with one replacement that must apply.
fn with(from: &str, to: &str) -> String {
    let text = container_text();
    assert!(text.contains(from), "{from} in {text}");
    text.replacen(from, to, 1)
}

#[test]
fn each_disagreement_is_refused() {
    let error = |from: &str, to: &str| open(&with(from, to)).unwrap_err();
    let kind = |from: &str, to: &str| {
        let error = format!("{:?}", error(from, to));
        error.split([' ', '(']).next().unwrap().to_owned()
    };
    assert_eq!(kind(r#""enec.version":"1""#, r#""enec.version":"2""#), "Version");
    assert_eq!(kind(r#","enec.version":"1""#, ""), "Missing");
    assert_eq!(kind(r#""enec.version":"1""#, r#""enec.version":"1","enec.w":"""#), "UnknownKey");
    assert_eq!(kind(r#""enec.header.xxh3":""#, r#""enec.header.xxh3":"0"#), "HeaderHash");
    assert_eq!(kind("[64,64]", "[63,64]"), "HeaderHash");
    assert_eq!(kind(r#""format":"pt""#, r#""format":"tf""#), "Metadata");
    assert_eq!(kind(r#""format":"pt","#, ""), "Metadata");
    assert_eq!(kind(r#""format":"pt""#, r#""format":"pt","g":"""#), "Metadata");
    assert_eq!(kind(r#""shape":[5824]"#, r#""shape":[2,2912]"#), "StreamShape");
    assert_eq!(kind(r#""ids":{"dtype":"I64""#, r#""ids":{"dtype":"U64""#), "Carried");
    assert_eq!(kind(r#""dtype":"I64","shape":[8]"#, r#""dtype":"I64","shape":[2,4]"#), "Carried");
    // An unknown dtype's bytes follow from its offsets only.
    assert_eq!(kind("[5888,5891]", "[5888,5892]"), "Carried");
    assert_eq!(kind(r#""ids":{"#, r#""idz":{"#), "UnknownTensor");
    assert_eq!(kind(r#","new":{"dtype":"F3_NEW","shape":[5],"data_offsets":[5888,5891]}"#, ""), "MissingTensor");
    assert_eq!(kind(r#"\"ids\":\""#, r#"\"idz\":\""#), "MissingHash");
    assert_eq!(kind(r#",\"new\":\"0"#, r#",\"also\":\"\",\"new\":\"0"#), "ExtraHash");
    assert_eq!(kind("fedcba9876543210", "Fedcba9876543210"), "HashText");
    assert_eq!(kind("fedcba9876543210", "fedcba987654321"), "HashText");
    assert_eq!(kind(r#"{\"empty\""#, r#"[\"empty\""#), "RawHashes");
    assert_eq!(kind(r#"{\"empty\""#, r#"{\"new\":\"\",\"empty\""#), "RawHashes");
    assert_eq!(kind("{\"__metadata__\"", " {\"__metadata__\""), "Padding");
    assert!(matches!(open(&format!("{}\n ", container_text())), Err(ContainerError::Padding { .. })));
    assert_eq!(
        error(r#""dtype":"I64","shape":[8]"#, r#""dtype":"I64","shape":[2,4]"#).to_string(),
        "tensor `ids` is I64 [2, 4] of 64 bytes, but I64 [8] of 64 bytes in the original header"
    );
}

/// Sizes that no stream of this length can have: buffers are made and sums are formed by them before a stream is opened.
#[test]
fn an_original_far_larger_than_its_streams_is_refused() {
    // Eight tensors of almost 2^61 bytes and one that ends at 2^64 - 1, each with an empty stream.
    let len = (1_u64 << 61) - 2;
    let mut entries = Vec::from_iter((0..8).map(|index| (format!("t{index}"), "BF16", len / 2, len)));
    entries.push(("last".into(), "BF16", 7, 14));
    let mut end = 0;
    let entries = entries.into_iter().map(|(name, dtype, count, len)| {
        let start = end;
        end += len;
        format!(r#""{name}":{{"dtype":"{dtype}","shape":[{count}],"data_offsets":[{start},{end}]}}"#)
    });
    let text = format!("{{{}}}", Vec::from_iter(entries).join(","));
    let original = Header::from_text(text).unwrap();
    assert!(original.data_start().checked_add(original.data_len()).is_none());
    let container = header_text(&original, &[Placement::Stream(0); 9]).unwrap();
    assert!(matches!(open(&container), Err(ContainerError::StreamShort { .. })));
    // Half is what the byte plane alone takes of BF16.
    let with_stream = |len: u64| {
        let placements = [vec![Placement::Stream(len)], placements()[1..].to_vec()].concat();
        open(&header_text(&self::original(), &placements).unwrap())
    };
    with_stream(4096).unwrap();
    assert_eq!(
        with_stream(4095).unwrap_err().to_string(),
        "tensor `w\n\"é\"`: a stream of 4095 bytes cannot hold the 8192 bytes of the original header"
    );
}

#[test]
fn a_container_inside_a_container_is_refused() {
    let inner = Header::from_text(container_text()).unwrap();
    let placements = vec![Placement::Carried(0); inner.tensors().len()];
    // The writer's caller refuses compressed input; the reader must not trust that.
    let outer = header_text(&inner, &placements).unwrap();
    assert_eq!(open(&outer), Err(ContainerError::Nested));
}

#[test]
fn an_original_header_that_is_none_is_refused_even_with_its_hash() {
    let bad = "{} x";
    let text = with(&original().text().replace('\\', r"\\").replace('"', "\\\""), bad);
    let (before, after) = text.split_once(r#""enec.header.xxh3":""#).unwrap();
    let hash = content_hash(bad.as_bytes());
    let text = format!(r#"{before}"enec.header.xxh3":"{hash:016x}{}"#, &after[16..]);
    assert!(matches!(open(&text), Err(ContainerError::Original(_))));
}

#[test]
fn a_flip_of_any_bit_of_the_header_is_caught() {
    let text = container_text();
    for bit in 0..8 * text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(flipped) = String::from_utf8(bytes) else { continue };
        let Ok(header) = Header::from_text(flipped) else { continue };
        // A length of the data section that the file does not have is caught by `Header::parse`.
        if header.data_len() != 5891 {
            continue;
        }
        // What is left are hashes of carried tensors, which then disagree with the data.
        if let Ok(container) = Container::open(&header) {
            assert_ne!(container.tensors(), open(&text).unwrap().tensors(), "bit {bit}: {}", header.text());
        }
    }
}
