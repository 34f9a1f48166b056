//! What the fuzz targets check: the same as the tests of the workspace.

#[path = "../../tests/src/foreign/mod.rs"]
pub mod foreign;
