//! The worked examples of `docs/format.md`, compared with the reference encoder.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use enec_format::{Cascade, Coding, Dtype, TwoWindows, reference};

/// Ones, but for some elements.
fn encoded(coding: impl Into<Coding>, others: &[(usize, u16)]) -> Vec<u8> {
    let mut words = vec![0x3F80_u16; 2048];
    others.iter().for_each(|&(index, word)| words[index] = word);
    let elements: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    reference::encode_stream(Dtype::Bf16, coding.into(), &elements).unwrap()
}

/// Sixteen bytes a line; a run of equal lines is one line and `*`, as `hexdump` prints it.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut previous: &[u8] = &[];
    let mut starred = false;
    for (index, line) in bytes.chunks(16).enumerate() {
        if line == previous {
            if !starred {
                text += "*\n";
            }
            starred = true;
            continue;
        }
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02X}")).collect();
        text += &format!("{:04X}  {}\n", index * 16, hex.join(" "));
        (previous, starred) = (line, false);
    }
    text + &format!("{:04X}\n", bytes.len())
}

#[test]
fn document_shows_what_the_encoder_writes() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/format.md")).unwrap();
    let windows = TwoWindows::new(Dtype::Bf16, 127, 0).unwrap();
    let cascade = Cascade::new(Dtype::Bf16, &[127, 126, 125, 128, 124, 123]).unwrap();
    for (codec, example) in
        [(1, encoded(windows, &[(130, 0x4000)])), (2, encoded(cascade, &[(130, 0x4000), (131, 0x4080)]))]
    {
        let (_, section) = text.split_once(&format!("<!-- worked example of codec {codec}")).unwrap();
        let (_, block) = section.split_once("```text\n").unwrap();
        let (block, _) = block.split_once("```").unwrap();
        assert_eq!(block, dump(&example), "codec {codec}");
    }
}
