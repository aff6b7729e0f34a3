//! Faults that a backend may have, each with the family of cases that must catch it.

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident => $family:literal,)*) => {
        /// A fault of the pretend backend.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            /// Every fault.
            pub const ALL: &[Fault] = &[$(Fault::$fault),*];

            /// The start of the names of the cases that are there to catch it.
            #[must_use]
            pub const fn family(self) -> &'static str {
                match self {
                    $(Fault::$fault => $family,)*
                }
            }
        }
    };
}

faults! {
    /// A device that does not exist can be opened.
    AnyDeviceOpens => "info",
    /// A variant that does not exist can be opened.
    AnyVariantOpens => "info",
    /// Other kernels are used than were asked for.
    VariantIgnored => "info",
    /// The fingerprint is another each time.
    FingerprintChanges => "info",
    /// Fresh memory is not zero.
    AllocNotZeroed => "memory",
    /// Memory that was used before is not zero.
    ReuseNotZeroed => "memory",
    /// An allocation beyond all memory panics.
    HugeAllocPanics => "memory",
    /// Transfers of different lengths are cut to the shorter.
    TransferLengthsUnchecked => "memory",
    /// Transfers with another backend's memory are done.
    ForeignMemoryAccepted => "memory",
    /// Uploads go to the start of the buffer.
    TransferOffsetIgnored => "memory",
    /// Copies go to the start of the buffer.
    CopyOffsetIgnored => "memory",
    /// The first two wide lanes of a segment are exchanged in encoding.
    EncodedRankWrong => "parity",
    /// The first two wide lanes of a segment are exchanged in decoding.
    DecodedRankWrong => "parity",
    /// The last bit of the mask is flipped.
    MaskBitFlipped => "parity",
    /// Padding after sections is not zeroed.
    SectionPaddingLeft => "parity",
    /// Padding inside segments is not zeroed.
    RowPaddingLeft => "parity",
    /// The padding of stored streams is not zeroed.
    StoredPaddingLeft => "parity",
    /// The tail is not encoded.
    EncodedTailOmitted => "parity",
    /// The tail is not decoded.
    DecodedTailOmitted => "parity",
    /// Subnormal elements become zeros.
    SubnormalsFlushed => "parity",
    /// Signalling NaNs become quiet ones.
    NansQuieted => "parity",
    /// The length of the variable section is that of the last block.
    OutcomeLengthWrong => "parity",
    /// Wide lanes whose segment is empty are decoded as common ones.
    EmptySegmentTakenAsCommon => "windows",
    /// Table entries count from the window's own start.
    FirstSegmentIgnored => "windows",
    /// Table entries have 32 bits.
    EntryEndCutTo32Bits => "windows",
    /// A stream that gains the least possible is stored.
    StoredTooEarly => "stored",
    /// A stream that gains nothing is not stored.
    StoredTooLate => "stored",
    /// A job's source starts at the start of its buffer.
    SourceOffsetIgnored => "placement",
    /// A job's target starts at the start of its buffer.
    TargetOffsetIgnored => "placement",
    /// One byte behind the target is written.
    BytePastEndWritten => "placement",
    /// One byte before the target is written.
    ByteBeforeStartWritten => "placement",
    /// The last word is written whole.
    WholeWordsWritten => "placement",
    /// Bytes between the plan's end and the target's are written.
    SpareTouched => "placement",
    /// The header's bytes are written.
    HeaderTouched => "placement",
    /// The source is written.
    SourceTouched => "placement",
    /// A range that does not start at 0 is decoded one tile too early.
    RangeOffByTile => "ranges",
    /// A range of tiles takes the tail with it, or not, as the whole stream does.
    RangeTailIgnored => "ranges",
    /// The subtraction from the wide base saturates.
    WideBaseSaturates => "corrupt",
    /// The subtraction from the common base saturates.
    CommonBaseSaturates => "corrupt",
    /// A stream that changed after its validation panics.
    ChangedStreamPanics => "corrupt",
    /// A stream that changed after its validation leads to a write behind the target.
    ChangedStreamWritesBeyond => "corrupt",
    /// A stream that changed after its validation makes later jobs fail.
    BadJobSpoilsBatch => "batch/one_bad_job",
    /// The last job of a batch gets no status.
    StatusForgotten => "batch",
    /// A job without work gets no status.
    EmptyJobForgotten => "batch/every_job_has_a_status",
    /// A batch without jobs is an error.
    EmptyBatchFails => "batch",
    /// Only the thread that ran the first batch may run others.
    OtherThreadsFail => "batch/several_threads",
    /// Several threads write other bytes than one.
    ThreadsChangeBytes => "geometry",
    /// Content pieces are reported as those of the block before.
    ContentOfWrongBlock => "pieces",
    /// Payload pieces are reported as those of the block before.
    PayloadOfWrongBlock => "pieces",
    /// The last content piece ends before the tail.
    ContentWithoutTail => "pieces",
    /// Pieces are reported twice.
    PiecesReportedTwice => "pieces",
    /// Blocks that a range only touches are reported.
    PartialBlocksReported => "pieces",
    /// Payload pieces lack the segment.
    PayloadWithoutSegment => "pieces",
    /// Pieces of stored streams are reported.
    StoredPiecesReported => "pieces",
    /// Bytes change when pieces are reported.
    ReportingChangesBytes => "pieces",
    /// What is decoded from device memory is shifted by one element.
    DeviceDecodeShifted => "codec",
    /// Encoding from device memory ignores the outcome and leaves zeros.
    DeviceEncodeEmpty => "codec",
}
