//! `links` in the manifest needs a build script: it keeps two versions of this crate out of one build.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|families| families.split(',').any(|family| family == "wasm"))
    {
        println!(
            "cargo::error=leader-core does not run on WebAssembly: its driver needs a thread and a clock of the host. Elect in \
             the process that runs the module and pass the answer in; or leave the dependency out there: \
             [target.'cfg(not(target_family = \"wasm\"))'.dependencies]"
        );
    }
}
