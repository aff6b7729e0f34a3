// Decodes: one workgroup per block, one invocation per column (two lanes) of a tile. Behind common.wgsl.

struct Part {
    // Number of its first block among those of the dispatch.
    first_block: u32,
    // Tiles count from the first tile of the part's first block. These are decoded, and the planes begin with the first of them.
    first_tile: u32,
    end_tile: u32,
    // Tiles that have masks: those of whole blocks, whatever is decoded.
    tiles: u32,
    // Where the sections begin, in words. The table begins one entry early if there is one.
    table: u32,
    has_entry_before: u32,
    mask: u32,
    byte_plane: u32,
    extra_plane: u32,
    low_plane: u32,
    // The high segments, and how many units of 32 bytes may be read there; the first is unit `high_origin` of the stream's section.
    high: u32,
    high_units: u32,
    high_origin_low: u32,
    high_origin_high: u32,
    target_start: u32,
    common_base: u32,
    common_width: u32,
}

@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> decoded: array<u32>;

// Wide lanes in each tile of the block.
var<workgroup> tile_wide: array<u32, BLOCK_TILES>;

// The high segment as an invocation reads it: 16-bit words from `start`, of which those before `end` exist.
struct Segment {
    start: u32,
    end: u32,
    // Words of a row.
    stride: u32,
    width: u32,
}

// What one column needs to know of its wide lanes.
struct Column {
    is_wide: vec2<bool>,
    // Rank of the even lane in the block, or of the odd one if only that is wide.
    rank: u32,
}

// End of a segment relative to the words that are bound; all ones if it is not among them.
fn relative_end(entry: u32, part: u32) -> u32 {
    let low = source[entry + 1u];
    let high = source[entry] >> 16u;
    let origin = parts.list[part].high_origin_low;
    let borrow = select(0u, 1u, low < origin);
    return select(0xFFFFFFFFu, low - origin, high == parts.list[part].high_origin_high + borrow);
}

fn segment_word(segment: Segment, index: u32, rank: u32) -> u32 {
    let at = segment.start + index * segment.stride + rank;
    if at >= segment.end {
        return 0u;
    }
    return (source[at >> 1u] >> ((at & 1u) * 16u)) & 0xFFFFu;
}

// Word `index` of both lanes; zero for a lane that is not wide.
fn segment_pair(segment: Segment, column: Column, index: u32) -> u32 {
    var pair = 0u;
    var rank = column.rank;
    if column.is_wide.x {
        pair = segment_word(segment, index, rank);
        rank += 1u;
    }
    if column.is_wide.y {
        pair |= segment_word(segment, index, rank) << 16u;
    }
    return pair;
}

// Row `row` of a plane of `width` bits that begins at `at`, in both lanes. Rows are taken one after the other; `word` holds the word that the
// last one left off in.
fn take(at: u32, width: u32, row: u32, word: ptr<function, u32>) -> u32 {
    if width == 0u {
        return 0u;
    }
    let shift = (row * width) & 15u;
    let index = (row * width) >> 4u;
    if shift == 0u {
        *word = source[at + index * COLUMNS];
    }
    if shift + width <= 16u {
        return (*word >> shift) & low_bits(width);
    }
    let taken = 16u - shift;
    let first = (*word >> shift) & low_bits(taken);
    *word = source[at + (index + 1u) * COLUMNS];
    return first | ((*word & low_bits(width - taken)) << taken);
}

// The same for the high segment.
fn take_high(segment: Segment, column: Column, row: u32, word: ptr<function, u32>) -> u32 {
    let width = segment.width;
    let shift = (row * width) & 15u;
    let index = (row * width) >> 4u;
    if shift == 0u {
        *word = segment_pair(segment, column, index);
    }
    if shift + width <= 16u {
        return (*word >> shift) & low_bits(width);
    }
    let taken = 16u - shift;
    let first = (*word >> shift) & low_bits(taken);
    *word = segment_pair(segment, column, index + 1u);
    return first | ((*word & low_bits(width - taken)) << taken);
}

// Where a column of a tile is read and written, and the words that the planes' rows were left off in. Rows `t` and `t + 8` share a word of the
// byte plane, so both are decoded together, each half of a lane's string of bits read for itself.
struct Cursor {
    byte_plane: u32,
    extra_plane: u32,
    low_plane: u32,
    output: u32,
    width: u32,
    // Base of each lane with bit 8 set, so that no half borrows from the other.
    base: u32,
    low: vec2<u32>,
    extra: vec2<u32>,
    high: vec2<u32>,
}

fn write(cursor: Cursor, row: u32, q: u32, byte: u32, extra: u32) {
    let exponent = (cursor.base - q) & both((1u << exponent_bits()) - 1u);
    let at = cursor.output + row * row_words();
    if DTYPE == F16 {
        let value = exponent | (extra << 5u) | (byte << 8u);
        decoded[at] = ((value >> 6u) & 0x03FF03FFu) | ((value << 10u) & 0xFC00FC00u);
        return;
    }
    let value = exponent | (byte << 8u);
    let rotated = ((value >> 9u) & 0x007F007Fu) | ((value << 7u) & 0xFF80FF80u);
    if DTYPE == F32 {
        decoded[at] = (rotated << 16u) | (extra & 0xFFFFu);
        decoded[at + 1u] = (rotated & 0xFFFF0000u) | (extra >> 16u);
    } else {
        decoded[at] = rotated;
    }
}

// Rows `step` and `step + 8`. `q` is what the high segment adds to them.
fn rows(cursor: ptr<function, Cursor>, step: u32, high: vec2<u32>) {
    let width = (*cursor).width;
    var low = (*cursor).low;
    var first = low.x;
    var second = low.y;
    let q = vec2<u32>(
        take((*cursor).low_plane, width, step, &first),
        take((*cursor).low_plane, width, step + 8u, &second),
    ) | (high << vec2<u32>(width));
    (*cursor).low = vec2<u32>(first, second);
    var extra = vec2<u32>(0u);
    if DTYPE == F16 {
        first = (*cursor).extra.x;
        second = (*cursor).extra.y;
        extra = vec2<u32>(
            take((*cursor).extra_plane, 3u, step, &first),
            take((*cursor).extra_plane, 3u, step + 8u, &second),
        );
        (*cursor).extra = vec2<u32>(first, second);
    } else if DTYPE == F32 {
        let at = (*cursor).extra_plane + step * COLUMNS;
        extra = vec2<u32>(source[at], source[at + 8u * COLUMNS]);
    }
    let bytes = source[(*cursor).byte_plane + step * COLUMNS];
    write(*cursor, step, q.x, bytes & 0x00FF00FFu, extra.x);
    write(*cursor, step + 8u, q.y, (bytes >> 8u) & 0x00FF00FFu, extra.y);
}

fn high_rows(cursor: ptr<function, Cursor>, segment: Segment, column: Column, step: u32) {
    var first = (*cursor).high.x;
    var second = (*cursor).high.y;
    let high = vec2<u32>(
        take_high(segment, column, step, &first),
        take_high(segment, column, step + 8u, &second),
    );
    (*cursor).high = vec2<u32>(first, second);
    rows(cursor, step, high);
}

fn decode_column(cursor: ptr<function, Cursor>, segment: Segment, column: Column) {
    // The second half of a string of bits begins within a word if the width is odd.
    if ((*cursor).width & 1u) == 1u {
        (*cursor).low.y = source[(*cursor).low_plane + ((*cursor).width >> 1u) * COLUMNS];
    }
    if DTYPE == F16 {
        (*cursor).extra.y = source[(*cursor).extra_plane + COLUMNS];
    }
    if segment.width > 0u && any(column.is_wide) {
        if (segment.width & 1u) == 1u {
            (*cursor).high.y = segment_pair(segment, column, segment.width >> 1u);
        }
        high_rows(cursor, segment, column, 0u);
        high_rows(cursor, segment, column, 1u);
        high_rows(cursor, segment, column, 2u);
        high_rows(cursor, segment, column, 3u);
        high_rows(cursor, segment, column, 4u);
        high_rows(cursor, segment, column, 5u);
        high_rows(cursor, segment, column, 6u);
        high_rows(cursor, segment, column, 7u);
    } else {
        let none = vec2<u32>(0u);
        rows(cursor, 0u, none);
        rows(cursor, 1u, none);
        rows(cursor, 2u, none);
        rows(cursor, 3u, none);
        rows(cursor, 4u, none);
        rows(cursor, 5u, none);
        rows(cursor, 6u, none);
        rows(cursor, 7u, none);
    }
}

@compute @workgroup_size(INVOCATIONS)
fn decode(
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
    let block_tiles = min(parts.list[part].tiles - block * BLOCK_TILES, BLOCK_TILES);
    let mask = parts.list[part].mask + block * BLOCK_TILES * MASK_WORDS;
    if invocation < BLOCK_TILES {
        var wide = 0u;
        if invocation < block_tiles {
            for (var word = 0u; word < MASK_WORDS; word++) {
                wide += countOneBits(source[mask + invocation * MASK_WORDS + word]);
            }
        }
        tile_wide[invocation] = wide;
    }
    workgroupBarrier();

    let width = width_of(part);
    let has_entry_before = parts.list[part].has_entry_before;
    let entry = parts.list[part].table + 2u * (block + has_entry_before);
    let head = source[entry];
    // What bounds the segment does so for a stream that was rewritten after its validation, too.
    let end = relative_end(entry, part);
    var start = 0u;
    if block + has_entry_before > 0u {
        start = relative_end(entry - 2u, part);
    }
    if start > end || end > parts.list[part].high_units {
        start = 0u;
    }
    let is_bound = start <= end && end <= parts.list[part].high_units;
    var all_wide = 0u;
    for (var tile = 0u; tile < BLOCK_TILES; tile++) {
        all_wide += tile_wide[tile];
    }
    let wide_width = (head >> 8u) & 0xFFu;
    let first_word = parts.list[part].high * 2u;
    let segment = Segment(
        first_word + start * UNIT_WORDS * 2u,
        select(0u, first_word + end * UNIT_WORDS * 2u, is_bound),
        (all_wide + 15u) & 0xFFFFFFF0u,
        min(wide_width - min(wide_width, width), exponent_bits() - width),
    );
    let wide_base = head & ((1u << exponent_bits()) - 1u);

    let column = invocation % COLUMNS;
    for (var tile = invocation / COLUMNS; tile < block_tiles; tile += INVOCATIONS / COLUMNS) {
        let index = block * BLOCK_TILES + tile;
        if index < parts.list[part].first_tile || index >= parts.list[part].end_tile {
            continue;
        }
        var rank = 0u;
        for (var before = 0u; before < tile; before++) {
            rank += tile_wide[before];
        }
        var lanes = 0u;
        for (var word = 0u; word < MASK_WORDS; word++) {
            let bits = source[mask + tile * MASK_WORDS + word];
            if word < column / 16u {
                rank += countOneBits(bits);
            } else if word == column / 16u {
                let bit = 2u * (column % 16u);
                rank += countOneBits(bits & ((1u << bit) - 1u));
                lanes = (bits >> bit) & 3u;
            }
        }
        let is_wide = vec2<bool>((lanes & 1u) != 0u, (lanes & 2u) != 0u);
        let base = select(vec2<u32>(parts.list[part].common_base), vec2<u32>(wide_base), is_wide);
        let plane_tile = index - parts.list[part].first_tile;
        var cursor = Cursor(
            parts.list[part].byte_plane + plane_tile * (ROWS / 2u) * COLUMNS + column,
            parts.list[part].extra_plane + plane_tile * extra_words() + column,
            parts.list[part].low_plane + plane_tile * width * COLUMNS + column,
            parts.list[part].target_start + plane_tile * ROWS * row_words() + column * (row_words() / COLUMNS),
            width,
            base.x | (base.y << 16u) | 0x01000100u,
            vec2<u32>(0u),
            vec2<u32>(0u),
            vec2<u32>(0u),
        );
        decode_column(&cursor, segment, Column(is_wide, rank));
    }
}
