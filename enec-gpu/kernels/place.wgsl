// Puts each block's segment where it belongs and its end into the table: one workgroup per block. Behind common.wgsl and encode_part.wgsl.

@group(0) @binding(1) var<storage, read> scratch: array<u32>;
@group(0) @binding(2) var<storage, read_write> encoded: array<u32>;

@compute @workgroup_size(COLUMNS)
fn place(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) invocation: u32,
) {
    let number = workgroup_number(workgroup, workgroups);
    if number >= parts.blocks {
        return;
    }
    let part = part_of(number);
    let block = number - parts.list[part].first_block;
    let part_start = scratch[parts.list[part].result];
    let ends = parts.list[part].ends;
    let end = scratch[ends + block];
    var start = part_start;
    if block > 0u {
        start = scratch[ends + block - 1u];
    }
    // Beyond the limit the job ends as stored, and its target has no place for the segment.
    if end > parts.list[part].limit {
        return;
    }
    if invocation == 0u {
        let low = parts.list[part].first_segment_low + end;
        let carry = select(0u, 1u, low < end);
        let high = parts.list[part].first_segment_high + carry;
        let entry = parts.list[part].table + 2u * block;
        encoded[entry] = (encoded[entry] & 0xFFFFu) | (high << 16u);
        encoded[entry + 1u] = low;
    }
    var to = parts.list[part].high + start * UNIT_WORDS;
    if parts.list[part].is_whole == 0u {
        to -= part_start * UNIT_WORDS;
    }
    let high_width = exponent_bits() - width_of(part);
    let from_word = parts.list[part].segments + block * high_width * SEGMENT_WORDS;
    let words = (end - start) * UNIT_WORDS;
    for (var word = invocation; word < words; word += COLUMNS) {
        encoded[to + word] = scratch[from_word + word];
    }
}
