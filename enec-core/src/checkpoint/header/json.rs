//! The JSON of a safetensors header: entries in their order, names that occur twice seen.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use super::HeaderError;

/// The key of the entry that is no tensor.
const METADATA: &str = "__metadata__";

/// The entries of a header in their order, nothing about the data checked.
pub(super) struct RawHeader {
    pub(super) metadata: Option<BTreeMap<String, String>>,
    pub(super) tensors: Vec<(String, RawTensor)>,
}

/// What a header says about one tensor.
pub(super) struct RawTensor {
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    pub(super) data_offsets: (u64, u64),
}

impl RawHeader {
    pub(super) fn parse(text: &str) -> Result<Self, HeaderError> {
        serde_json::from_str(text).map_err(|error| {
            let position = format!(" at line {} column {}", error.line(), error.column());
            let reason = error.to_string();
            let reason = reason.strip_suffix(&position).unwrap_or(&reason).to_owned();
            // Columns are bytes, counted from 1; 0 stands for the line break before.
            let lines: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
            HeaderError::Json { offset: (lines + error.column()).saturating_sub(1) as u64, reason }
        })
    }
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = RawHeader;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with an entry for each tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawHeader, A::Error> {
        let mut metadata = None;
        let mut tensors = Vec::new();
        while let Some(name) = entries.next_key::<String>()? {
            if name == METADATA {
                if metadata.is_some() {
                    return Err(Error::duplicate_field(METADATA));
                }
                metadata = Some(entries.next_value::<Option<UniqueMap>>()?);
            } else {
                let tensor = entries.next_value_seed(TensorVisitor { name: &name })?;
                tensors.push((name, tensor));
            }
        }
        Ok(RawHeader { metadata: metadata.flatten().map(|UniqueMap(map)| map), tensors })
    }
}

/// A map from text to text in which no key occurs twice.
pub(crate) struct UniqueMap(pub(crate) BTreeMap<String, String>);

impl<'de> Deserialize<'de> for UniqueMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueMapVisitor)
    }
}

struct UniqueMapVisitor;

impl<'de> Visitor<'de> for UniqueMapVisitor {
    type Value = UniqueMap;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with a text for each key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UniqueMap, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = entries.next_key::<String>()? {
            match map.entry(key) {
                Entry::Vacant(entry) => entry.insert(entries.next_value()?),
                Entry::Occupied(entry) => return Err(Error::custom(format_args!("duplicate key `{}`", entry.key()))),
            };
        }
        Ok(UniqueMap(map))
    }
}

/// Reads the entry of the tensor `name`, which errors then name.
struct TensorVisitor<'name> {
    name: &'name str,
}

impl<'de> DeserializeSeed<'de> for TensorVisitor<'_> {
    type Value = RawTensor;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawTensor, D::Error> {
        let name = self.name;
        // As a struct, not as a map: serde then takes an array of the three fields too, and so does the safetensors crate.
        deserializer
            .deserialize_struct("TensorInfo", &["dtype", "shape", "data_offsets"], self)
            .map_err(|error| Error::custom(format_args!("tensor `{name}`: {error}")))
    }
}

impl<'de> Visitor<'de> for TensorVisitor<'_> {
    type Value = RawTensor;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with `dtype`, `shape` and `data_offsets`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<RawTensor, A::Error> {
        let missing = |index| Error::invalid_length(index, &self);
        Ok(RawTensor {
            dtype: fields.next_element()?.ok_or_else(|| missing(0))?,
            shape: fields.next_element()?.ok_or_else(|| missing(1))?,
            data_offsets: fields.next_element()?.ok_or_else(|| missing(2))?,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<RawTensor, A::Error> {
        let mut dtype = None;
        let mut shape = None;
        let mut data_offsets = None;
        while let Some(key) = fields.next_key::<String>()? {
            match key.as_str() {
                "dtype" => set_once(&mut dtype, "dtype", &mut fields)?,
                "shape" => set_once(&mut shape, "shape", &mut fields)?,
                "data_offsets" => set_once(&mut data_offsets, "data_offsets", &mut fields)?,
                // Parsed and dropped, not skipped: skipping passes numbers and nesting that the safetensors crate refuses.
                _ => drop(fields.next_value::<serde_json::Value>()?),
            }
        }
        Ok(RawTensor {
            dtype: dtype.ok_or_else(|| Error::missing_field("dtype"))?,
            shape: shape.ok_or_else(|| Error::missing_field("shape"))?,
            data_offsets: data_offsets.ok_or_else(|| Error::missing_field("data_offsets"))?,
        })
    }
}

fn set_once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    field: &mut Option<T>,
    name: &'static str,
    fields: &mut A,
) -> Result<(), A::Error> {
    if field.is_some() {
        return Err(de::Error::duplicate_field(name));
    }
    *field = Some(fields.next_value()?);
    Ok(())
}
