//! The copies that throughput is compared with.

use rayon::ThreadPool;

/// Copies with the C library's `memcpy`, which picks its own kind of stores.
pub(crate) fn memcpy(pool: Option<&ThreadPool>, source: &[u8], target: &mut [u8]) {
    in_parts(pool, source, target, |source, target| target.copy_from_slice(source));
}

/// Copies with streaming stores, which do not read the target's cache lines first.
pub(crate) fn nt_copy(pool: Option<&ThreadPool>, source: &[u8], target: &mut [u8]) {
    in_parts(pool, source, target, streaming_copy);
}

fn in_parts(pool: Option<&ThreadPool>, source: &[u8], target: &mut [u8], copy: impl Fn(&[u8], &mut [u8]) + Sync) {
    let Some(pool) = pool else { return copy(source, target) };
    // The caller is one of the threads, as in the CPU backend.
    let part = source.len().div_ceil(pool.current_num_threads() + 1).next_multiple_of(4096).max(4096);
    let mut parts = source.chunks(part).zip(target.chunks_mut(part));
    let Some((first_source, first_target)) = parts.next() else { return };
    pool.in_place_scope(|scope| {
        for (source, target) in parts {
            scope.spawn(|_| copy(source, target));
        }
        copy(first_source, first_target);
    });
}

/// Whether [`nt_copy`] really streams on this machine.
pub(crate) const STREAMS: bool = cfg!(target_arch = "x86_64");

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "streaming stores have no safe form")]
fn streaming_copy(source: &[u8], target: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    let (source, target) = (source.as_chunks::<64>(), target.as_chunks_mut::<64>());
    assert!(target.0.as_ptr().addr().is_multiple_of(64), "a benchmark's buffers are aligned");
    for (source, target) in source.0.iter().zip(target.0) {
        let (source, target) = (source.as_ptr().cast::<__m128i>(), target.as_mut_ptr().cast::<__m128i>());
        for i in 0..4 {
            // SAFETY: both point to 64 bytes, of which this is the i-th quarter; the target is aligned to 64 bytes, as asserted, and
            // SSE2 is part of x86-64.
            unsafe { _mm_stream_si128(target.add(i), _mm_loadu_si128(source.add(i))) };
        }
    }
    target.1.copy_from_slice(source.1);
    // Streaming stores are not ordered with what follows unless something orders them.
    // SAFETY: SSE is part of x86-64.
    unsafe { _mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn streaming_copy(source: &[u8], target: &mut [u8]) {
    target.copy_from_slice(source);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;

    #[test]
    fn copies_copy() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for len in [0, 1, 63, 64, 4096, 100_001] {
            let source: Vec<u8> = (0..=250).cycle().take(len).collect();
            for pool in [None, Some(&pool)] {
                for copy in [memcpy, nt_copy] {
                    let mut target = Buffer::new(len);
                    copy(pool, &source, target.bytes_mut());
                    assert_eq!(target.bytes(), source);
                }
            }
        }
    }
}
