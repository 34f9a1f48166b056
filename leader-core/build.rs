//! `links` in the manifest needs a build script: it keeps two versions of this crate out of one build.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
