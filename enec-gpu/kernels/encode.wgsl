// Encodes everything but the place of the high segments: one workgroup per block. Behind common.wgsl and encode_part.wgsl.

@group(0) @binding(1) var<storage, read> elements: array<u32>;
@group(0) @binding(2) var<storage, read_write> encoded: array<u32>;
@group(0) @binding(3) var<storage, read_write> scratch: array<u32>;

const NO_LANE: u32 = 0xFFFFFFFFu;

// Over the wide lanes of the block: their masks, their largest exponent, and how far the smallest is below 255.
var<workgroup> masks: array<atomic<u32>, MASK_WORDS * BLOCK_TILES>;
var<workgroup> largest: atomic<u32>;
var<workgroup> below: atomic<u32>;
// The same once it does not change any more.
var<workgroup> mask_words: array<u32, MASK_WORDS * BLOCK_TILES>;
var<workgroup> window: vec2<u32>;
// The lane of each rank.
var<workgroup> lane_of: array<u32, LANES * BLOCK_TILES>;

// Both lanes of a column as 16-bit words in the upper half of whose elements the exponents lie.
fn upper(at: u32) -> u32 {
    if DTYPE == F32 {
        return (elements[at] >> 16u) | (elements[at + 1u] & 0xFFFF0000u);
    }
    return elements[at];
}

fn exponents(pair: u32) -> u32 {
    if DTYPE == F16 {
        return (pair >> 10u) & 0x001F001Fu;
    }
    return (pair >> 7u) & 0x00FF00FFu;
}

fn bit_length(value: u32) -> u32 {
    return 32u - countLeadingZeros(value);
}

// The rows of one column on their way into a plane. Rows `t` and `t + 8` come together, so each half of a lane's string of bits has an
// accumulator of its own, and with an odd width the word in the middle is made of both.
struct Packer {
    at: u32,
    width: u32,
    first: u32,
    second: u32,
    middle: u32,
}

fn pack(packer: ptr<function, Packer>, row: u32, value: u32) {
    let width = (*packer).width;
    if width == 0u {
        return;
    }
    let shift = (row * width) & 15u;
    let index = (row * width) >> 4u;
    var bits = (*packer).first;
    if row >= ROWS / 2u {
        bits = (*packer).second;
    }
    if shift + width < 16u {
        bits |= value << shift;
    } else {
        let fitting = 16u - shift;
        let word = bits | ((value & low_bits(fitting)) << shift);
        bits = (value >> fitting) & low_bits(width - fitting);
        if (width & 1u) == 1u && index == width >> 1u {
            (*packer).middle = word;
        } else {
            encoded[(*packer).at + index * COLUMNS] = word;
        }
    }
    if row >= ROWS / 2u {
        (*packer).second = bits;
    } else {
        (*packer).first = bits;
    }
}

fn finish(packer: Packer) {
    if (packer.width & 1u) == 1u {
        encoded[packer.at + (packer.width >> 1u) * COLUMNS] = packer.middle | packer.first;
    }
}

// Byte, extra bits and exponents of a row in both lanes.
struct Split {
    byte: u32,
    extra: u32,
    exponents: u32,
}

fn split(pair: u32) -> Split {
    if DTYPE == F16 {
        let value = ((pair << 6u) & 0xFFC0FFC0u) | ((pair >> 10u) & 0x003F003Fu);
        return Split((value >> 8u) & 0x00FF00FFu, (value >> 5u) & 0x00070007u, value & 0x001F001Fu);
    }
    return Split(((pair << 1u) & 0x00FE00FEu) | ((pair >> 15u) & 0x00010001u), 0u, exponents(pair));
}

struct Column {
    source_start: u32,
    byte_plane: u32,
    extra_plane: u32,
    // Base of each lane.
    base: u32,
}

fn rows(column: Column, low: ptr<function, Packer>, extra: ptr<function, Packer>, step: u32) {
    let first_at = column.source_start + step * row_words();
    let second_at = first_at + 8u * row_words();
    let first = split(upper(first_at));
    let second = split(upper(second_at));
    encoded[column.byte_plane + step * COLUMNS] = first.byte | (second.byte << 8u);
    let mask = low_bits((*low).width);
    pack(low, step, (column.base - first.exponents) & mask);
    pack(low, step + 8u, (column.base - second.exponents) & mask);
    if DTYPE == F16 {
        pack(extra, step, first.extra);
        pack(extra, step + 8u, second.extra);
    } else if DTYPE == F32 {
        let at = column.extra_plane + step * COLUMNS;
        encoded[at] = (elements[first_at] & 0xFFFFu) | (elements[first_at + 1u] << 16u);
        encoded[at + 8u * COLUMNS] = (elements[second_at] & 0xFFFFu) | (elements[second_at + 1u] << 16u);
    }
}

fn encode_column(column: Column, width: u32, low_plane: u32) {
    var low = Packer(low_plane, width, 0u, 0u, 0u);
    var extra = Packer(column.extra_plane, 3u, 0u, 0u, 0u);
    rows(column, &low, &extra, 0u);
    rows(column, &low, &extra, 1u);
    rows(column, &low, &extra, 2u);
    rows(column, &low, &extra, 3u);
    rows(column, &low, &extra, 4u);
    rows(column, &low, &extra, 5u);
    rows(column, &low, &extra, 6u);
    rows(column, &low, &extra, 7u);
    finish(low);
    if DTYPE == F16 {
        finish(extra);
    }
}

// Exponent of one element of a lane of the block; the largest, which gives no bits, where there is no lane.
fn lane_exponent(source_start: u32, lane: u32, row: u32, none: u32) -> u32 {
    if lane == NO_LANE {
        return none;
    }
    let tile = lane / LANES;
    let at = source_start + (tile * ROWS + row) * row_words();
    if DTYPE == F32 {
        return (elements[at + lane % LANES] >> 23u) & 0xFFu;
    }
    let pair = exponents(elements[at + (lane % LANES) / 2u]);
    return (pair >> ((lane & 1u) * 16u)) & 0xFFu;
}

// Compacts the high bits of the block's wide lanes: an invocation takes the lanes of two ranks, which make whole words.
fn write_segment(at: u32, source_start: u32, lanes: u32, wide_base: u32, width: u32, high_width: u32, invocation: u32) {
    let stride = ((lanes + 15u) & 0xFFFFFFF0u) / 2u;
    for (var pair = invocation; pair < stride; pair += INVOCATIONS) {
        var lane = vec2<u32>(NO_LANE);
        if 2u * pair < lanes {
            lane.x = lane_of[2u * pair];
        }
        if 2u * pair + 1u < lanes {
            lane.y = lane_of[2u * pair + 1u];
        }
        var bits = 0u;
        for (var row = 0u; row < ROWS; row++) {
            let exponent = vec2<u32>(
                lane_exponent(source_start, lane.x, row, wide_base),
                lane_exponent(source_start, lane.y, row, wide_base),
            );
            let q = (vec2<u32>(wide_base) - exponent) >> vec2<u32>(width);
            let value = q.x | (q.y << 16u);
            let shift = (row * high_width) & 15u;
            if shift + high_width < 16u {
                bits |= value << shift;
            } else {
                let fitting = 16u - shift;
                scratch[at + ((row * high_width) >> 4u) * stride + pair] = bits | ((value & low_bits(fitting)) << shift);
                bits = (value >> fitting) & low_bits(high_width - fitting);
            }
        }
    }
}

@compute @workgroup_size(INVOCATIONS)
fn encode(
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
    let first_tile = block * BLOCK_TILES;
    let block_tiles = min(parts.list[part].tiles - first_tile, BLOCK_TILES);
    let width = width_of(part);
    let common_base = parts.list[part].common_base;
    let source_start = parts.list[part].source_start + first_tile * ROWS * row_words();
    let column = invocation % COLUMNS;

    if invocation < MASK_WORDS * BLOCK_TILES {
        atomicStore(&masks[invocation], 0u);
    }
    if invocation == 0u {
        atomicStore(&largest, 0u);
        atomicStore(&below, 0u);
    }
    workgroupBarrier();

    for (var tile = invocation / COLUMNS; tile < block_tiles; tile += INVOCATIONS / COLUMNS) {
        let at = source_start + tile * ROWS * row_words() + column * (row_words() / COLUMNS);
        var low = vec2<u32>(255u);
        var high = vec2<u32>(0u);
        for (var row = 0u; row < ROWS; row++) {
            let pair = exponents(upper(at + row * row_words()));
            let exponent = vec2<u32>(pair & 0xFFu, pair >> 16u);
            low = min(low, exponent);
            high = max(high, exponent);
        }
        let base = vec2<u32>(common_base);
        let is_wide = (high > base) | (((base - low) >> vec2<u32>(width)) != vec2<u32>(0u));
        var lanes = 0u;
        if is_wide.x {
            lanes = 1u;
            atomicMax(&largest, high.x);
            atomicMax(&below, 255u - low.x);
        }
        if is_wide.y {
            lanes |= 2u;
            atomicMax(&largest, high.y);
            atomicMax(&below, 255u - low.y);
        }
        if lanes != 0u {
            atomicOr(&masks[tile * MASK_WORDS + column / 16u], lanes << (2u * (column % 16u)));
        }
    }
    workgroupBarrier();

    if invocation < MASK_WORDS * BLOCK_TILES {
        mask_words[invocation] = atomicLoad(&masks[invocation]);
    }
    if invocation == 0u {
        window = vec2<u32>(atomicLoad(&largest), 255u - atomicLoad(&below));
    }
    workgroupBarrier();

    let wide_base = window.x;
    let smallest = window.y;
    var lanes = 0u;
    for (var word = 0u; word < MASK_WORDS * BLOCK_TILES; word++) {
        lanes += countOneBits(mask_words[word]);
    }
    var wide_width = width;
    if lanes > 0u {
        wide_width = max(width, bit_length(wide_base - smallest));
    }
    if invocation < MASK_WORDS * block_tiles {
        encoded[parts.list[part].mask + first_tile * MASK_WORDS + invocation] = mask_words[invocation];
    }
    if invocation == 0u {
        encoded[parts.list[part].table + 2u * block] = wide_base | (wide_width << 8u);
        scratch[parts.list[part].ends + block] = (wide_width - width) * ((lanes + 15u) / 16u);
    }

    for (var tile = invocation / COLUMNS; tile < block_tiles; tile += INVOCATIONS / COLUMNS) {
        let word = tile * MASK_WORDS + column / 16u;
        let bit = 2u * (column % 16u);
        let bits = mask_words[word];
        let is_wide = vec2<bool>(((bits >> bit) & 1u) != 0u, ((bits >> bit) & 2u) != 0u);
        if any(is_wide) {
            var rank = countOneBits(bits & ((1u << bit) - 1u));
            for (var before = 0u; before < word; before++) {
                rank += countOneBits(mask_words[before]);
            }
            let lane = tile * LANES + 2u * column;
            if is_wide.x {
                lane_of[rank] = lane;
                rank += 1u;
            }
            if is_wide.y {
                lane_of[rank] = lane + 1u;
            }
        }
        let index = first_tile + tile;
        let base = select(vec2<u32>(common_base), vec2<u32>(wide_base), is_wide);
        encode_column(
            Column(
                source_start + tile * ROWS * row_words() + column * (row_words() / COLUMNS),
                parts.list[part].byte_plane + index * (ROWS / 2u) * COLUMNS + column,
                parts.list[part].extra_plane + index * extra_words() + column,
                base.x | (base.y << 16u),
            ),
            width,
            parts.list[part].low_plane + index * width * COLUMNS + column,
        );
    }
    workgroupBarrier();

    if wide_width > width {
        let at = parts.list[part].segments + block * (exponent_bits() - width) * SEGMENT_WORDS;
        write_segment(at, source_start, lanes, wide_base, width, wide_width - width, invocation);
    }
}
