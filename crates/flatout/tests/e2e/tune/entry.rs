//! Whose settings an entry of the profile holds, and that none is lost.

use std::fs;
use std::io::Read;

use serde_json::json;

use super::{PROFILE, SHORT, WithProfile, entries, profile, save, tuned};
use crate::filesystem::{Kind, Mounted, needs_kernel};
use crate::skip::needs;

#[test]
fn two_runs_change_the_profile_one_after_the_other() {
    let (folder, ran) = tuned();
    ran.exits(0);
    let held = fs::File::open(folder.path()).unwrap();
    held.lock().unwrap();
    let path = folder.join(PROFILE);
    let mut running = folder.flatout(SHORT.split(' ')).with_profile(&path).start();
    let own = format!(" {} ", running.child.id());
    let waits = || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains("->") && line.contains(&own))
    };
    running.wait_until("status", |_| waits());
    let mut profile = profile(&folder);
    profile["entries"].as_array_mut().unwrap()[0]["key"]["machine"] = json!("another");
    save(&folder, &profile);
    drop(held);
    // Beside others a file may not leave the page cache; its settings are not measured then.
    let ran = running.wait();
    assert!(ran.stderr.contains(" saved in"), "{ran}");
    let entries = super::profile(&folder)["entries"].clone();
    let others = entries.as_array().unwrap().iter().filter(|it| it["key"]["machine"] == "another");
    assert_eq!(others.count(), 1, "{entries:#}");
}

#[test]
fn settings_on_xfs_go_by_its_uuid_and_not_by_its_device() {
    needs!(needs_kernel((6, 9), "the kernel tells a UUID"));
    let mounted = needs!(Mounted::new(Kind::Xfs));
    let (folder, ran) = tuned();
    ran.exits(0);
    let file = mounted.path().join("large");
    fs::write(&file, vec![7; 5 << 20]).unwrap();
    let mut superblock = [0; 48];
    fs::File::open(mounted.node()).unwrap().read_exact(&mut superblock).unwrap();
    let uuid: String = superblock[32..].iter().map(|byte| format!("{byte:02x}")).collect();
    let facts = rustix::fs::statvfs(mounted.path()).unwrap();
    let reason = |source: String| {
        let mut profile = profile(&folder);
        for entry in entries(&mut profile, "read", "large") {
            entry["key"]["source"] = json!(source);
        }
        save(&folder, &profile);
        let run = folder.flatout(["read", file.to_str().unwrap(), "--format", "json"]);
        let result = run.with_profile(&folder.join(PROFILE)).run().exits(0).result();
        result["audit"]["engine_reason"].as_str().unwrap().to_owned()
    };
    assert!(reason(format!("xfs {uuid}")).starts_with("the best here by flatout tune of"));
    assert!(!reason(format!("xfs {:016x}", facts.f_fsid)).contains("flatout tune"));
    mounted.finish();
}
