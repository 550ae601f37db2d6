//! fakeroot(1), fakechroot(1) and pseudo(1) make up owners, modes, devices and paths in a library that
//! stands before libc. Our system calls do not go through libc: what is made up would be lost in
//! silence, in source and target.
//!
//! There is no copy that is right all the same: without owners, modes and attributes a device that
//! was made there would still be copied as the empty file that it is to the kernel.

use std::ffi::{OsStr, OsString};

use flatout_sys::caller;

/// Says why nothing can be copied here.
pub fn obstacle() -> Option<String> {
    let name = named(|name| std::env::var_os(name));
    let name = name.or_else(|| caller::is_disguised().then_some("a preloaded library"))?;
    Some(format!(
        "cannot copy: {name} makes up owners, modes and devices that flatout, which calls the kernel \
         itself, does not see; use cp -a here, or run flatout outside (env -u LD_PRELOAD \
         -u FAKEROOTKEY flatout copy ... copies what is really there)"
    ))
}

/// Who made up the surroundings, as far as variables tell: as root nothing else does.
fn named(variable: impl Fn(&str) -> Option<OsString>) -> Option<&'static str> {
    let preloaded = variable("LD_PRELOAD").unwrap_or_default();
    let is_preloaded = |library: &[u8]| {
        let bytes = preloaded.as_encoded_bytes();
        bytes.windows(library.len()).any(|part| part == library)
    };
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    if is_set("FAKEROOTKEY") || is_preloaded(b"libfakeroot") {
        return Some("fakeroot");
    }
    if is_preloaded(b"libfakechroot") {
        return Some("fakechroot");
    }
    let is_off = variable("PSEUDO_DISABLED").is_some_and(|value| value == OsStr::new("1"));
    (is_preloaded(b"libpseudo") && !is_off).then_some("pseudo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_things_up_is_called_by_its_name() {
        let with = |pairs: &[(&str, &str)]| {
            named(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into()))
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("FAKEROOTKEY", "17")]), Some("fakeroot"));
        assert_eq!(with(&[("LD_PRELOAD", "/usr/lib/libfakeroot-sysv.so")]), Some("fakeroot"));
        assert_eq!(with(&[("LD_PRELOAD", "libfakechroot.so")]), Some("fakechroot"));
        assert_eq!(with(&[("LD_PRELOAD", "libpseudo.so")]), Some("pseudo"));
        let off = [("LD_PRELOAD", "libpseudo.so"), ("PSEUDO_DISABLED", "1")];
        assert_eq!(with(&off), None);
        assert_eq!(with(&[("LD_PRELOAD", "libfaketime.so.1 libjemalloc.so")]), None);
    }
}
