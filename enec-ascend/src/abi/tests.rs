//! The header that the kernels are compiled with, against what the host passes.

use super::*;

const HEADER: &str = include_str!("../../kernels/abi.h");

/// Names and types of a structure's members, in order.
fn members(structure: &str) -> Vec<(&'static str, &'static str)> {
    let (_, body) = HEADER.split_once(&format!("struct {structure} {{")).expect("the header has the structure");
    let (body, _) = body.split_once("\n};").expect("the structure ends");
    let lines = body.lines().filter_map(|line| line.split(';').next()?.trim().split_once(' '));
    lines.collect()
}

fn names(structure: &str) -> Vec<&'static str> {
    let members = members(structure);
    assert!(members.iter().all(|(kind, _)| *kind == "uint64_t"), "{structure} has words only");
    members.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn records_have_the_members_of_the_header_in_its_order() {
    let common = ["first_item", "tiles", "dtype", "common_base", "common_width", "first_segment"];
    let planes = ["table", "mask", "byte_plane", "extra_plane", "low_plane", "variable", "variable_len"];
    let encode = [&common[..], &["source", "summary"], &planes, &["reserved"]].concat();
    let decode = [&common[..], &["first_tile", "end_tile"], &planes, &["target"]].concat();
    assert_eq!(names("EncodeJob"), encode);
    assert_eq!(names("DecodeJob"), decode);
    assert_eq!((encode.len(), decode.len()), (JOB_WORDS, JOB_WORDS));
    let summary: Vec<_> = members("BlockSummary").into_iter().map(|(kind, name)| (kind, name.trim())).collect();
    let word = |name| ("uint32_t", name);
    assert_eq!(summary, [word("wide_base"), word("wide_width"), word("wide_lanes"), word("reserved[5]")]);
    for (structure, bytes) in [("EncodeJob", JOB_BYTES), ("DecodeJob", JOB_BYTES), ("BlockSummary", SUMMARY_BYTES)] {
        assert!(HEADER.contains(&format!("sizeof({structure}) == {bytes}")), "{structure}");
    }
}

#[test]
fn element_types_have_the_numbers_of_the_header() {
    for (name, number) in [("Bf16", dtype(Dtype::Bf16)), ("F16", dtype(Dtype::F16)), ("F32", dtype(Dtype::F32))] {
        assert!(HEADER.contains(&format!("constexpr uint32_t kDtype{name} = {number};")), "{name} is {number}");
    }
}

#[test]
fn kernels_have_the_names_of_the_header() {
    for kernel in [ANALYSE, ENCODE, DECODE] {
        assert!(HEADER.contains(&format!("//   {} ", kernel.to_str().unwrap())), "{kernel:?}");
    }
}

#[test]
fn summaries_that_cannot_be_are_refused() {
    let mut bytes = [0; SUMMARY_BYTES];
    bytes[0] = 130;
    bytes[4] = 5;
    bytes[8..12].copy_from_slice(&1024_u32.to_le_bytes());
    let expected = BlockSummary { wide_base: 130, wide_width: 5, wide_lanes: 1024 };
    assert_eq!(BlockSummary::from_bytes(&bytes), Some(expected));
    bytes[1] = 1;
    assert_eq!(BlockSummary::from_bytes(&bytes), None, "a base beyond a byte");
    assert_eq!(BlockSummary::from_bytes(&bytes[..4]), None);
}
