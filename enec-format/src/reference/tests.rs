//! Tests of the reference codec.
