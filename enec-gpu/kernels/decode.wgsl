// Decodes: one workgroup per block, 16 bytes of each row (a mask byte's 8 lanes, as 4 words of 2) with each turn of an invocation, and nothing
// between invocations: a barrier makes a software device set each of them aside and take it up again. Behind common.wgsl.
//
// Nearly all is loads, shifts and stores that every invocation does: devices run both sides of a branch that their lanes disagree on, and software
// devices run both sides of any.

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

// The stream twice: by words and by rows' pieces of 16 bytes, which planes and masks are multiples of.
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read> pieces: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> decoded: array<vec4<u32>>;

// Pieces of a row.
const PIECES: u32 = COLUMNS / 4u;

// Invocations that share half a row of a tile, and halves of tiles for each invocation.
const HALF_ROW: u32 = PIECES / 2u;
const TURNS: u32 = 2u * BLOCK_TILES * HALF_ROW / DECODE_INVOCATIONS;

// A piece of all rows of a tile.
alias Rows = array<vec4<u32>, ROWS>;

// End of a segment relative to the words that are bound; all ones if it is not among them.
fn relative_end(entry: u32, part: u32) -> u32 {
    let low = words[entry + 1u];
    let high = words[entry] >> 16u;
    let origin = parts.list[part].high_origin_low;
    let borrow = select(0u, 1u, low < origin);
    return select(0xFFFFFFFFu, low - origin, high == parts.list[part].high_origin_high + borrow);
}

fn ones(bits: vec4<u32>) -> u32 {
    return sum(countOneBits(bits));
}

// Wide lanes of a tile of the block, none behind its last.
fn wide_in(mask: u32, tile: u32, tiles: u32) -> u32 {
    return select(0u, ones(pieces[mask + tile]), tile < tiles);
}

// The same of four tiles.
fn wide_in_four(mask: u32, tile: u32, tiles: u32) -> vec4<u32> {
    return vec4<u32>(
        wide_in(mask, tile, tiles),
        wide_in(mask, tile + 1u, tiles),
        wide_in(mask, tile + 2u, tiles),
        wide_in(mask, tile + 3u, tiles),
    );
}

fn sum(numbers: vec4<u32>) -> u32 {
    return numbers.x + numbers.y + numbers.z + numbers.w;
}

// Adds to a row what word `index` of strings of `width` bits per row holds of it, `lift` bits further up.
fn add_to_row(rows: ptr<function, Rows>, row: u32, word: vec4<u32>, index: u32, width: u32, lift: u32) {
    // The row's first bit, counted from the word's.
    let first = i32(row * width) - i32(index * 16u);
    let down = u32(max(first, 0));
    // Bits that lie in words before this one.
    let before = u32(max(-first, 0));
    let here = min(width - min(before, width), 16u - min(down, 16u));
    let bits = (word >> vec4<u32>(down & 31u)) & vec4<u32>(low_bits(here));
    (*rows)[row] |= bits << vec4<u32>((before + lift) & 31u);
}

fn add(rows: ptr<function, Rows>, word: vec4<u32>, index: u32, width: u32, lift: u32) {
    add_to_row(rows, 0u, word, index, width, lift);
    add_to_row(rows, 1u, word, index, width, lift);
    add_to_row(rows, 2u, word, index, width, lift);
    add_to_row(rows, 3u, word, index, width, lift);
    add_to_row(rows, 4u, word, index, width, lift);
    add_to_row(rows, 5u, word, index, width, lift);
    add_to_row(rows, 6u, word, index, width, lift);
    add_to_row(rows, 7u, word, index, width, lift);
    add_to_row(rows, 8u, word, index, width, lift);
    add_to_row(rows, 9u, word, index, width, lift);
    add_to_row(rows, 10u, word, index, width, lift);
    add_to_row(rows, 11u, word, index, width, lift);
    add_to_row(rows, 12u, word, index, width, lift);
    add_to_row(rows, 13u, word, index, width, lift);
    add_to_row(rows, 14u, word, index, width, lift);
    add_to_row(rows, 15u, word, index, width, lift);
}

// The same with the common width of the pipeline, nothing if it has no such word.
fn add_known(rows: ptr<function, Rows>, at: u32, index: u32) {
    if index < COMMON_WIDTH {
        add(rows, pieces[at + index * PIECES], index, COMMON_WIDTH, 0u);
    }
}

// The 16-bit word of a wide lane, zero if the lane is not wide or the segment ends before.
fn segment_word(at: u32, end: u32, is_wide: bool) -> u32 {
    // Loaded in any case: on software devices a branch costs more.
    let word = (words[at >> 1u] >> ((at & 1u) * 16u)) & 0xFFFFu;
    return select(0u, word, is_wide && at < end);
}

// Adds to rows `first` to `first + 3` what their string holds of them, to the lane that `component` and `lift` tell.
fn add_four(rows: ptr<function, Rows>, first: u32, string: u32, width: u32, lift: u32, component: vec4<u32>) {
    let field = low_bits(width) & 0xFFu;
    (*rows)[first] |= vec4<u32>((string & field) << lift) & component;
    (*rows)[first + 1u] |= vec4<u32>(((string >> width) & field) << lift) & component;
    (*rows)[first + 2u] |= vec4<u32>(((string >> (2u * width)) & field) << lift) & component;
    (*rows)[first + 3u] |= vec4<u32>(((string >> (3u * width)) & field) << lift) & component;
}

// Adds the high bits of the wide lanes among 8, one lane after the other: few are wide. `at` is the place of the first one's first word.
fn add_high(rows: ptr<function, Rows>, at: u32, stride: u32, end: u32, lanes: u32, width: u32, lift: u32) {
    // The loops test at their ends, which spares a software device a whole turn; without a lane or with a width of 0 they add nothing.
    var left = lanes;
    var first = at;
    loop {
        // Four rows in each, of 8 bits at most.
        var strings = vec4<u32>(0u);
        var index = 0u;
        loop {
            let word = vec4<u32>(segment_word(first + index * stride, end, left != 0u));
            // Where the word's bits belong in each string.
            let up = vec4<i32>(i32(index * 16u)) - vec4<i32>(0, 4, 8, 12) * i32(width);
            let down = vec4<u32>(clamp(-up, vec4<i32>(0), vec4<i32>(16)));
            let moved = (word << vec4<u32>(max(up, vec4<i32>(0)) & vec4<i32>(31))) >> down;
            strings |= select(moved, vec4<u32>(0u), up >= vec4<i32>(32));
            index++;
            continuing {
                break if index >= width;
            }
        }
        let lane = firstTrailingBit(left) & 7u;
        let component = select(vec4<u32>(0u), vec4<u32>(0xFFFFFFFFu), vec4<u32>(0u, 1u, 2u, 3u) == vec4<u32>(lane >> 1u));
        let place = lift + (lane & 1u) * 16u;
        add_four(rows, 0u, strings.x, width, place, component);
        add_four(rows, 4u, strings.y, width, place, component);
        add_four(rows, 8u, strings.z, width, place, component);
        add_four(rows, 12u, strings.w, width, place, component);
        first++;
        left &= left - 1u;
        continuing {
            break if left == 0u;
        }
    }
}

// Joins a row and writes it. `extra` are the rows of the extra plane, of F32 the piece itself.
fn write(at: u32, q: vec4<u32>, base: vec4<u32>, byte: vec4<u32>, extra: vec4<u32>) {
    let exponent = (base - q) & vec4<u32>(both((1u << exponent_bits()) - 1u));
    let shifted = byte << vec4<u32>(8u);
    if DTYPE == F16 {
        let value = exponent | (extra << vec4<u32>(5u)) | shifted;
        decoded[at] = ((value >> vec4<u32>(6u)) & vec4<u32>(0x03FF03FFu)) | ((value << vec4<u32>(10u)) & vec4<u32>(0xFC00FC00u));
        return;
    }
    let value = exponent | shifted;
    let rotated = ((value >> vec4<u32>(9u)) & vec4<u32>(0x007F007Fu)) | ((value << vec4<u32>(7u)) & vec4<u32>(0xFF80FF80u));
    if DTYPE == F32 {
        let even = (rotated << vec4<u32>(16u)) | (extra & vec4<u32>(0xFFFFu));
        let odd = (rotated & vec4<u32>(0xFFFF0000u)) | (extra >> vec4<u32>(16u));
        decoded[at] = vec4<u32>(even.x, odd.x, even.y, odd.y);
        decoded[at + 1u] = vec4<u32>(even.z, odd.z, even.w, odd.w);
    } else {
        decoded[at] = rotated;
    }
}

// Rows `step` and `step + 8`, which share a piece of the byte plane.
fn write_rows(at: u32, byte_plane: u32, extra_plane: u32, q: ptr<function, Rows>, extra: ptr<function, Rows>, base: vec4<u32>, step: u32) {
    let bytes = pieces[byte_plane + step * PIECES];
    var first = (*extra)[step];
    var second = (*extra)[step + 8u];
    if DTYPE == F32 {
        first = pieces[extra_plane + step * PIECES];
        second = pieces[extra_plane + (step + 8u) * PIECES];
    }
    let mask = vec4<u32>(0x00FF00FFu);
    let row = row_words() / 4u;
    write(at + step * row, (*q)[step], base, bytes & mask, first);
    write(at + (step + 8u) * row, (*q)[step + 8u], base, (bytes >> vec4<u32>(8u)) & mask, second);
}

@compute @workgroup_size(DECODE_INVOCATIONS)
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
    let mask = parts.list[part].mask / 4u + block * BLOCK_TILES;
    let width = width_of(part);
    let has_entry_before = parts.list[part].has_entry_before;
    let entry = parts.list[part].table + 2u * (block + has_entry_before);
    let head = words[entry];
    // What bounds the segment does so for a stream that was rewritten after its validation, too.
    var end = relative_end(entry, part);
    var start = 0u;
    if block + has_entry_before > 0u {
        start = relative_end(entry - 2u, part);
    }
    if start > end || end > parts.list[part].high_units {
        start = 0u;
        end = 0u;
    }
    // From here on in 16-bit words.
    let high = parts.list[part].high * 2u;
    start = high + start * UNIT_WORDS * 2u;
    end = high + end * UNIT_WORDS * 2u;
    let wide_low = wide_in_four(mask, 0u, block_tiles);
    let wide_high = wide_in_four(mask, 4u, block_tiles);
    let stride = (sum(wide_low + wide_high) + 15u) & 0xFFFFFFF0u;
    let wide_width = (head >> 8u) & 0xFFu;
    let high_width = min(wide_width - min(wide_width, width), exponent_bits() - width);
    let wide_base = head & ((1u << exponent_bits()) - 1u);
    let common_base = parts.list[part].common_base;
    let part_first = parts.list[part].first_tile;
    let first_tile = max(part_first, block * BLOCK_TILES) - block * BLOCK_TILES;
    let end_tile = min(parts.list[part].end_tile - block * BLOCK_TILES, block_tiles);
    let byte_plane = parts.list[part].byte_plane / 4u;
    let extra_plane = parts.list[part].extra_plane / 4u;
    let low_plane = parts.list[part].low_plane / 4u;
    let target_start = parts.list[part].target_start / 4u;

    // Both halves of a tile one after the other: a software device runs few invocations at once and all their turns before others, and so writes
    // whole tiles.
    let first_turn = TURNS * (invocation / HALF_ROW);
    let end_turn = min(2u * end_tile, first_turn + TURNS);
    for (var turn = max(2u * first_tile, first_turn); turn < end_turn; turn++) {
        let tile = turn / 2u;
        let piece = (turn & 1u) * HALF_ROW + invocation % HALF_ROW;
        // The lanes' bits in the mask, and those before them.
        let bits = pieces[mask + tile];
        let bit = vec4<i32>(i32(piece * 8u)) - vec4<i32>(0, 32, 64, 96);
        let below = (vec4<u32>(1u) << vec4<u32>(clamp(bit, vec4<i32>(0), vec4<i32>(31)))) - vec4<u32>(1u);
        var rank = ones(bits & select(below, vec4<u32>(0xFFFFFFFFu), bit >= vec4<i32>(32)));
        let before = vec4<u32>(0u, 1u, 2u, 3u);
        rank += sum(select(vec4<u32>(0u), wide_low, before < vec4<u32>(tile)));
        rank += sum(select(vec4<u32>(0u), wide_high, before + vec4<u32>(4u) < vec4<u32>(tile)));
        let lane_words = select(vec2<u32>(bits.x, bits.z), vec2<u32>(bits.y, bits.w), vec2<bool>((piece & 4u) != 0u));
        let lanes = (select(lane_words.x, lane_words.y, piece >= 8u) >> ((piece & 3u) * 8u)) & 0xFFu;
        let base_bits = vec4<u32>(lanes, lanes >> 2u, lanes >> 4u, lanes >> 6u);
        let even = (base_bits & vec4<u32>(1u)) != vec4<u32>(0u);
        let odd = (base_bits & vec4<u32>(2u)) != vec4<u32>(0u);
        // With bit 8 set, so that no half borrows from the other.
        let base = (select(vec4<u32>(common_base), vec4<u32>(wide_base), even)
            | (select(vec4<u32>(common_base), vec4<u32>(wide_base), odd) << vec4<u32>(16u)))
            | vec4<u32>(0x01000100u);

        let plane_tile = block * BLOCK_TILES + tile - part_first;
        var q = Rows();
        let low = low_plane + plane_tile * width * PIECES + piece;
        // The loops test at their ends, which spares a software device a whole turn; what a width of 0 adds is nothing.
        if COMMON_WIDTH == GENERIC {
            var index = 0u;
            loop {
                add(&q, pieces[low + index * PIECES], index, width, 0u);
                index++;
                continuing {
                    break if index >= width;
                }
            }
        } else {
            // With the width known all shifts are, too; but compilers do not unroll loops of this size.
            add_known(&q, low, 0u);
            add_known(&q, low, 1u);
            add_known(&q, low, 2u);
            add_known(&q, low, 3u);
            add_known(&q, low, 4u);
            add_known(&q, low, 5u);
            add_known(&q, low, 6u);
            add_known(&q, low, 7u);
        }
        add_high(&q, start + rank, stride, end, lanes, high_width, width);
        var extra = Rows();
        let extra_at = extra_plane + plane_tile * (extra_words() / 4u) + piece;
        if DTYPE == F16 {
            add(&extra, pieces[extra_at], 0u, 3u, 0u);
            add(&extra, pieces[extra_at + PIECES], 1u, 3u, 0u);
            add(&extra, pieces[extra_at + 2u * PIECES], 2u, 3u, 0u);
        }
        let bytes_at = byte_plane + plane_tile * (ROWS / 2u) * PIECES + piece;
        let at = target_start + plane_tile * ROWS * (row_words() / 4u) + piece * (row_words() / COLUMNS);
        write_rows(at, bytes_at, extra_at, &q, &extra, base, 0u);
        write_rows(at, bytes_at, extra_at, &q, &extra, base, 1u);
        write_rows(at, bytes_at, extra_at, &q, &extra, base, 2u);
        write_rows(at, bytes_at, extra_at, &q, &extra, base, 3u);
        write_rows(at, bytes_at, extra_at, &q, &extra, base, 4u);
        write_rows(at, bytes_at, extra_at, &q, &extra, base, 5u);
        write_rows(at, bytes_at, extra_at, &q, &extra, base, 6u);
        write_rows(at, bytes_at, extra_at, &q, &extra, base, 7u);
    }
}
