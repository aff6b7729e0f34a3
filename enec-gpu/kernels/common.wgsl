// What all kernels on tiles share. The words of a stream are little-endian, and so are the words here: two 16-bit lanes to a
// word, the even lane in the low half. The constants are written by the host from the format's own.

// Fixed when the pipeline is made, so that the compiler folds what depends on them.
override DTYPE: u32;
// The common width, or GENERIC: then it is read from the part.
override COMMON_WIDTH: u32;

struct Parts {
    count: u32,
    // Blocks of all parts together; one workgroup each.
    blocks: u32,
    list: array<Part>,
}

@group(0) @binding(0) var<storage, read> parts: Parts;

// Number of this workgroup. Dispatches have two dimensions, because one ends at 65,535.
fn workgroup_number(workgroup: vec3<u32>, workgroups: vec3<u32>) -> u32 {
    return workgroup.y * workgroups.x + workgroup.x;
}

// The part that block `block` of the dispatch belongs to: the last one that does not begin behind it.
fn part_of(block: u32) -> u32 {
    var first = 0u;
    var end = parts.count;
    while end - first > 1u {
        let middle = (first + end) / 2u;
        if parts.list[middle].first_block <= block {
            first = middle;
        } else {
            end = middle;
        }
    }
    return first;
}

fn width_of(part: u32) -> u32 {
    if COMMON_WIDTH != GENERIC {
        return COMMON_WIDTH;
    }
    return parts.list[part].common_width;
}

fn exponent_bits() -> u32 {
    if DTYPE == F16 {
        return 5u;
    }
    return 8u;
}

// Words of a decoded row, and of the extra plane of a tile.
fn row_words() -> u32 {
    if DTYPE == F32 {
        return LANES;
    }
    return COLUMNS;
}

fn extra_words() -> u32 {
    if DTYPE == F32 {
        return ROWS * COLUMNS;
    }
    if DTYPE == F16 {
        return 3u * COLUMNS;
    }
    return 0u;
}

// The lowest `width` bits of both halves of a word; `width` is at most 15.
fn low_bits(width: u32) -> u32 {
    return ((1u << width) - 1u) * 0x00010001u;
}

// The same value in both halves.
fn both(value: u32) -> u32 {
    return value * 0x00010001u;
}
