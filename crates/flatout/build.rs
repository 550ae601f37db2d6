//! How the program is linked, so that it starts in the time of dd(1): docs/decisions.md, "Building".

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=without_unwinding.ld");
    let target = |key: &str| std::env::var(key).unwrap_or_default();
    if (target("CARGO_CFG_TARGET_OS").as_str(), target("CARGO_CFG_TARGET_ENV").as_str())
        == ("linux", "gnu")
    {
        // At a fixed address nothing has to be relocated; functions are bound at their first call.
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-Wl,-z,lazy");
        link_unwinder();
        // The profile's name is in the path alone. Other builds can show where they are.
        if target("OUT_DIR").contains("/dist/build/") {
            let script = target("CARGO_MANIFEST_DIR") + "/without_unwinding.ld";
            println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
            println!("cargo::rustc-link-arg-bins=-T{script}");
        }
    }
}

/// Takes the unwinder out of the compiler's archive, where there is one, instead of loading
/// libgcc_s.so, whose first act is to ask the CPU what it is: slow in a virtual machine.
fn link_unwinder() {
    let is_native = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    let found = std::process::Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let Ok(found) = found.map(|found| String::from_utf8_lossy(&found.stdout).into_owned()) else {
        return;
    };
    if let Some(folder) = std::path::Path::new(found.trim()).parent()
        && is_native
        && folder.is_absolute()
    {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static=gcc_eh");
    }
}
