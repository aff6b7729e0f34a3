//! Tensors that stay in device memory, encoded and decoded there.

use enec::format::{DecodePlan, EncodeOutcome, EncodePlan};
use enec::{Backend, DeviceBuf};
use enec_core::{DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, Source, Target};

use crate::Result;
use crate::case::Case;

/// A case in device memory: its elements, what they are encoded to, and what that is decoded to. Tensor after tensor, each in
/// buffers of its own, so that all are aligned as the device likes it.
pub(crate) struct Resident<'a> {
    backend: &'a dyn Backend,
    case: &'a Case,
    encode_plans: &'a [EncodePlan],
    decode_plans: Vec<DecodePlan>,
    elements: Vec<DeviceBuf>,
    encoded: Vec<DeviceBuf>,
    decoded: Vec<DeviceBuf>,
}

impl<'a> Resident<'a> {
    /// Uploads the elements, encodes them, and compares what they are decoded to.
    pub(crate) fn new(backend: &'a dyn Backend, case: &'a Case, encode_plans: &'a [EncodePlan]) -> Result<Self> {
        let buffers = |length: fn(&EncodePlan) -> usize| -> enec::Result<Vec<DeviceBuf>> {
            encode_plans.iter().map(|plan| backend.alloc(length(plan))).collect()
        };
        let mut resident = Self {
            backend,
            case,
            encode_plans,
            decode_plans: Vec::new(),
            elements: buffers(EncodePlan::source_len)?,
            encoded: buffers(EncodePlan::target_len)?,
            decoded: buffers(EncodePlan::source_len)?,
        };
        for (elements, buffer) in case.tensors().zip(&resident.elements) {
            backend.upload(elements, &buffer.full())?;
        }
        for (plan, outcome) in encode_plans.iter().zip(resident.encode()?) {
            resident.decode_plans.push(DecodePlan::of_layout(plan.written(outcome)?));
        }
        resident.decode()?;
        resident.compare()?;
        Ok(resident)
    }

    /// Encodes all tensors in one batch.
    pub(crate) fn encode(&self) -> Result<Vec<EncodeOutcome>> {
        let mut batch = EncodeBatch::new(self.backend.info());
        for ((plan, elements), encoded) in self.encode_plans.iter().zip(&self.elements).zip(&self.encoded) {
            let (source, target) = (Source::Device(elements.full()), Target::Device(encoded.full()));
            batch.push(EncodeJob::new(plan.clone(), source, target))?;
        }
        self.backend.encode(&mut batch)?;
        Ok(batch.into_results().collect::<enec::Result<_>>()?)
    }

    /// Decodes all tensors in one batch.
    pub(crate) fn decode(&self) -> Result<()> {
        let mut batch = DecodeBatch::new(self.backend.info());
        for ((plan, encoded), decoded) in self.decode_plans.iter().zip(&self.encoded).zip(&self.decoded) {
            let source = Source::Device(encoded.slice(0..plan.source_len())?);
            batch.push(DecodeJob::new(plan.clone(), source, Target::Device(decoded.full())))?;
        }
        self.backend.decode(&mut batch)?;
        Ok(batch.into_results().collect::<enec::Result<_>>()?)
    }

    /// Copies the largest tensor, as the device copies; returns its bytes.
    pub(crate) fn copy(&self) -> Result<usize> {
        let buffers = self.elements.iter().zip(&self.decoded);
        let (elements, decoded) = buffers.max_by_key(|(elements, _)| elements.len()).ok_or("a case without tensors")?;
        self.backend.copy(&elements.full(), &decoded.full())?;
        Ok(elements.len())
    }

    fn compare(&self) -> Result<()> {
        for (elements, buffer) in self.case.tensors().zip(&self.decoded) {
            let mut decoded = vec![0; buffer.len()];
            self.backend.download(&buffer.full(), &mut decoded)?;
            if decoded != elements {
                return Err(format!("the device did not give back the input of {}", self.case.name).into());
            }
        }
        Ok(())
    }
}
