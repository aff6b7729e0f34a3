//! Whole checkpoints: safetensors files and folders of them.

pub mod container;
pub mod header;
