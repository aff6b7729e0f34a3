// Copies 16 bytes with each invocation: what decoding is compared with, and what `copy` does with aligned memory.

@group(0) @binding(1) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> target_words: array<vec4<u32>>;

@compute @workgroup_size(INVOCATIONS)
fn copy(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) invocation: u32,
) {
    let at = (workgroup.y * workgroups.x + workgroup.x) * INVOCATIONS + invocation;
    if at < arrayLength(&source) {
        target_words[at] = source[at];
    }
}
