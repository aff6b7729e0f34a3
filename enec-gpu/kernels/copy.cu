// Copying what is stored verbatim.
#include "memory.cuh"

ENTRY(enec_copy, 3)(const CopyJob *jobs, u32 count) {
    const CopyJob &job = find_job(jobs, count);
    const u64 start = (blockIdx.x - job.first_cta) * COPY_BYTES;
    const u64 end = min(job.len, start + COPY_BYTES);
    if (start < end) {
        copy(job.to + start, job.from + start, end - start);
    }
    if (start + COPY_BYTES >= job.len) {
        zero(job.to + job.len, job.zeros);
    }
}
