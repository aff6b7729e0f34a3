// Turns the lengths of a part's segments into their ends: one workgroup per part, going on from where the job's last part ended. Behind
// common.wgsl and encode_part.wgsl.

@group(0) @binding(1) var<storage, read_write> scratch: array<u32>;
@group(0) @binding(2) var<storage, read_write> jobs: array<u32>;

// Blocks that an invocation adds up by itself.
const RUN: u32 = 16u;

var<workgroup> sums: array<u32, SCAN_INVOCATIONS>;

@compute @workgroup_size(SCAN_INVOCATIONS)
fn scan(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) invocation: u32,
) {
    let part = workgroup_number(workgroup, workgroups);
    if part >= parts.count {
        return;
    }
    let blocks = (parts.list[part].tiles + BLOCK_TILES - 1u) / BLOCK_TILES;
    let ends = parts.list[part].ends;
    let start = jobs[parts.list[part].job];
    var total = start;
    for (var chunk = 0u; chunk < blocks; chunk += SCAN_INVOCATIONS * RUN) {
        let first = min(chunk + invocation * RUN, blocks);
        let end = min(first + RUN, blocks);
        var sum = 0u;
        for (var block = first; block < end; block++) {
            sum += scratch[ends + block];
        }
        sums[invocation] = sum;
        workgroupBarrier();
        for (var distance = 1u; distance < SCAN_INVOCATIONS; distance *= 2u) {
            var earlier = 0u;
            if invocation >= distance {
                earlier = sums[invocation - distance];
            }
            workgroupBarrier();
            sums[invocation] += earlier;
            workgroupBarrier();
        }
        var running = total + sums[invocation] - sum;
        for (var block = first; block < end; block++) {
            running += scratch[ends + block];
            scratch[ends + block] = running;
        }
        total += sums[SCAN_INVOCATIONS - 1u];
        workgroupBarrier();
    }
    if invocation == 0u {
        jobs[parts.list[part].job] = total;
        scratch[parts.list[part].result] = start;
        scratch[parts.list[part].result + 1u] = total;
    }
}
