//! How the program is linked, so that it starts in the time of dd(1): docs/decisions.md, "Building".

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| std::env::var(key).unwrap_or_default();
    if (target("CARGO_CFG_TARGET_OS").as_str(), target("CARGO_CFG_TARGET_ENV").as_str())
        == ("linux", "gnu")
    {
        // At a fixed address nothing has to be relocated; functions are bound at their first call.
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-Wl,-z,lazy");
    }
}
