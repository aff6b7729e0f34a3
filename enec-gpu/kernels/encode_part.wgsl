// A part of an encode job, as the kernels that encode see it. Behind common.wgsl.

struct Part {
    // Number of its first block among those of the dispatch.
    first_block: u32,
    tiles: u32,
    // Where source and sections begin, in words.
    source_start: u32,
    table: u32,
    mask: u32,
    byte_plane: u32,
    extra_plane: u32,
    low_plane: u32,
    // Where the high segments go. The first of them is the part's first, or the job's first if `is_whole`.
    high: u32,
    is_whole: u32,
    // In the scratch memory: start and end of the part's segments, the ends of its blocks' segments, and the segments themselves with
    // room for the longest.
    result: u32,
    ends: u32,
    segments: u32,
    // Which job's count goes on, and how many units of 32 bytes the job may have.
    job: u32,
    limit: u32,
    // Added to the ends in the table.
    first_segment_low: u32,
    first_segment_high: u32,
    common_base: u32,
    common_width: u32,
}
