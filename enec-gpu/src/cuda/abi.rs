//! The tables that kernels read and write: `kernels/abi.cuh` in Rust, field by field; a test compares the two.

/// Tiles of a thread block that encodes or decodes.
pub(crate) const WARPS: usize = 8;
/// Bytes of a thread block that copies.
pub(crate) const COPY_BYTES: usize = 65_536;
/// Most bytes of zeros behind a copy.
pub(crate) const COPY_ZEROS: usize = 64;

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
            pub(crate) struct $name {
                $($(#[$field_doc])* pub(crate) $field: $type,)*
            }

            impl $name {
                /// Bytes in a table.
                pub(crate) const BYTES: usize = 0 $(+ size_of::<$type>())*;
                /// Names and types of the fields, in order.
                #[cfg(test)]
                pub(crate) const FIELDS: &[(&str, &str)] = &[$((stringify!($field), stringify!($type))),*];

                /// The little-endian bytes of a table's entry.
                #[allow(dead_code, reason = "results are only read, jobs only written")]
                pub(crate) fn write(&self, mut bytes: &mut [u8]) {
                    $(
                        let (field, rest) = bytes.split_at_mut(size_of::<$type>());
                        field.copy_from_slice(&self.$field.to_le_bytes());
                        bytes = rest;
                    )*
                    debug_assert!(bytes.is_empty(), "a table's entry has exactly its length");
                }

                /// Reads a table's entry.
                #[allow(dead_code, reason = "results are only read, jobs only written")]
                pub(crate) fn read(mut bytes: &[u8]) -> Self {
                    $(
                        let $field;
                        ($field, bytes) = bytes.split_at(size_of::<$type>());
                        let mut word = [0; size_of::<$type>()];
                        word.copy_from_slice($field);
                        let $field = <$type>::from_le_bytes(word);
                    )*
                    debug_assert!(bytes.is_empty(), "a table's entry has exactly its length");
                    Self { $($field),* }
                }
            }
        )*
    };
}

tables! {
    /// A range of tiles of a validated stream.
    DecodeJob {
        first_cta: u64,
        stream: u64,
        elements: u64,
        first_tile: u64,
        tiles: u64,
        tensor_tiles: u64,
        table: u64,
        mask: u64,
        byte_plane: u64,
        extra_plane: u64,
        low_plane: u64,
        variable: u64,
        variable_len: u64,
        tail: u64,
        tail_len: u64,
        common_base: u32,
        common_width: u32,
    }

    /// A tensor, or a window of whole blocks of one, with at least one tile.
    EncodeJob {
        first_cta: u64,
        elements: u64,
        stream: u64,
        tiles: u64,
        tail_len: u64,
        table: u64,
        mask: u64,
        byte_plane: u64,
        extra_plane: u64,
        low_plane: u64,
        variable: u64,
        variable_limit: u64,
        first_segment: u64,
        blocks: u64,
        result: u64,
        common_base: u32,
        common_width: u32,
    }

    /// What became of an encode job.
    EncodeResult {
        variable_len: u64,
        coded: u64,
    }

    /// Bytes copied verbatim, with zeros behind them.
    CopyJob {
        first_cta: u64,
        from: u64,
        to: u64,
        len: u64,
        zeros: u64,
    }
}

impl DecodeJob {
    /// Thread blocks.
    pub(crate) fn ctas(&self) -> u64 {
        self.tiles.div_ceil(WARPS as u64) + u64::from(self.tail_len > 0)
    }
}

impl EncodeJob {
    /// Thread blocks.
    pub(crate) fn ctas(&self) -> u64 {
        self.tiles.div_ceil(WARPS as u64) + 1
    }
}

impl CopyJob {
    /// Thread blocks.
    pub(crate) fn ctas(&self) -> u64 {
        self.len.div_ceil(COPY_BYTES as u64).max(u64::from(self.zeros > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../kernels/abi.cuh");

    /// Names and types of a structure's fields in the header.
    fn fields(name: &str) -> Vec<(String, String)> {
        let (_, rest) = HEADER.split_once(&format!("struct {name} {{")).unwrap();
        let (body, _) = rest.split_once("};").unwrap();
        let lines = body.lines().map(|line| line.split("//").next().unwrap());
        let text: String = lines.collect();
        let fields = text.split(';').map(str::trim).filter(|field| !field.is_empty());
        fields.map(|field| field.split_once(' ').unwrap()).map(|(kind, name)| (name.into(), kind.into())).collect()
    }

    fn define(name: &str) -> usize {
        let (_, rest) = HEADER.split_once(&format!("#define {name} ")).unwrap();
        rest.lines().next().unwrap().trim_end_matches('u').parse().unwrap()
    }

    #[test]
    fn tables_are_those_of_the_header() {
        for (name, found) in [
            ("DecodeJob", DecodeJob::FIELDS),
            ("EncodeJob", EncodeJob::FIELDS),
            ("EncodeResult", EncodeResult::FIELDS),
            ("CopyJob", CopyJob::FIELDS),
        ] {
            let found: Vec<_> = found.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect();
            assert_eq!(found, fields(name), "{name}");
        }
        // Without padding, in C too: words of 64 bits come first, and those of 32 in pairs.
        assert!([DecodeJob::BYTES, EncodeJob::BYTES, EncodeResult::BYTES, CopyJob::BYTES].iter().all(|n| n % 8 == 0));
        assert_eq!((define("WARPS"), define("COPY_BYTES")), (WARPS, COPY_BYTES));
    }

    #[test]
    fn entries_come_back() {
        let job = DecodeJob {
            first_cta: 1,
            stream: u64::MAX,
            tail_len: 7,
            common_base: 8,
            common_width: 9,
            ..Default::default()
        };
        let mut bytes = [0xAA; DecodeJob::BYTES];
        job.write(&mut bytes);
        assert_eq!(DecodeJob::read(&bytes), job);
        assert_eq!(bytes[8..16], [0xFF; 8]);
    }
}
