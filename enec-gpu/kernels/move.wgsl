// Moves bytes from any offset to any offset, one word of the target with each invocation. The words at both ends may have neighbours that
// other moves write at the same time, so their bytes are exchanged by themselves.

struct Move {
    // Byte offsets into the bound memory.
    source_start: u32,
    target_start: u32,
    // Bytes.
    length: u32,
}

@group(0) @binding(0) var<storage, read> order: Move;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> target_words: array<atomic<u32>>;

@compute @workgroup_size(INVOCATIONS)
fn move_bytes(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) invocation: u32,
) {
    let index = (workgroup.y * workgroups.x + workgroup.x) * INVOCATIONS + invocation;
    let end = order.target_start + order.length;
    let at = order.target_start / 4u + index;
    if at * 4u >= end {
        return;
    }
    // The bytes of this word that are moved, and where the first of them comes from.
    let first = max(at * 4u, order.target_start);
    let last = min(at * 4u + 4u, end);
    let from_byte = order.source_start + (first - order.target_start);
    let shift = (from_byte & 3u) * 8u;
    var bytes = source[from_byte / 4u] >> shift;
    if (from_byte & 3u) + (last - first) > 4u {
        bytes |= source[from_byte / 4u + 1u] << (32u - shift);
    }
    if last - first == 4u {
        atomicStore(&target_words[at], bytes);
        return;
    }
    let mask = ((1u << ((last - first) * 8u)) - 1u) << ((first & 3u) * 8u);
    atomicAnd(&target_words[at], ~mask);
    atomicOr(&target_words[at], (bytes << ((first & 3u) * 8u)) & mask);
}
