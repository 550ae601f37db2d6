//! A control group that may move only so many bytes a second to and from one device, or have only so
//! much of the CPUs or of the memory.
//!
//! The first version of control groups has `blkio.throttle.*`, `cpu.cfs_quota_us` and
//! `memory.limit_in_bytes`, the second `io.max`, `cpu.max` and `memory.max`; whichever the machine has is used. A run is put inside by a shell that writes its own number there first.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::filesystem::needs_root;

/// How long a group may keep a process that has ended.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two groups made at once by two tests need two names.
const PREFIX: &str = "flatout-e2e-";

/// The most that may be moved in a second; none for no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub read_bytes_per_s: Option<u64>,
    pub write_bytes_per_s: Option<u64>,
}

/// A group with limits, removed on dropping.
pub struct Throttle {
    group: PathBuf,
}

impl Throttle {
    /// Makes a group with limits for the device below a directory, or says why there can be none.
    pub fn new(directory: &Path, limits: Limits) -> Result<Self, String> {
        needs_root("makes a control group")?;
        let device = device_of(directory)?;
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let group = first_version(&mounts, &device, limits).or_else(|why| {
            second_version(&mounts, &device, limits).map_err(|also| format!("{why}; {also}"))
        })?;
        Ok(Self { group })
    }

    /// Makes a group that has half of one CPU.
    pub fn half_a_cpu() -> Result<Self, String> {
        const PERIOD_US: u32 = 100_000;
        needs_root("makes a control group")?;
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        if let Some(root) = hierarchy(&mounts, "cgroup", "cpu") {
            let group = make(&root)?;
            set(&group, "cpu.cfs_period_us", &PERIOD_US.to_string())?;
            set(&group, "cpu.cfs_quota_us", &(PERIOD_US / 2).to_string())?;
            return Ok(Self { group });
        }
        let group = make(&second_root(&mounts, "cpu")?)?;
        set(&group, "cpu.max", &format!("{} {PERIOD_US}", PERIOD_US / 2))?;
        Ok(Self { group })
    }

    /// Makes a group that has so much memory, swap included.
    pub fn memory(bytes: u64) -> Result<Self, String> {
        needs_root("makes a control group")?;
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let (group, limit, swap, no_swap) = match hierarchy(&mounts, "cgroup", "memory") {
            Some(root) => {
                let swap = "memory.memsw.limit_in_bytes";
                (make(&root)?, "memory.limit_in_bytes", swap, bytes.to_string())
            }
            None => {
                let root = second_root(&mounts, "memory")?;
                (make(&root)?, "memory.max", "memory.swap.max", "0".to_owned())
            }
        };
        set(&group, limit, &bytes.to_string())?;
        // Kernels that do not count swap have no such file.
        if group.join(swap).exists() {
            set(&group, swap, &no_swap)?;
        }
        Ok(Self { group })
    }

    /// The words to put before a program and its arguments, so that it runs inside.
    pub fn wrapper(&self) -> [String; 4] {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.group.display());
        ["sh".into(), "-c".into(), script, "sh".into()]
    }

    /// The name of the group, as a path from the root of its hierarchy.
    pub fn name(&self) -> String {
        format!("/{}", self.group.file_name().unwrap().to_str().unwrap())
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let begun = Instant::now();
        while fs::remove_dir(&self.group).is_err() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The number of the disk below a directory; of the whole disk where it is a partition.
fn device_of(directory: &Path) -> Result<String, String> {
    let number = fs::metadata(directory).unwrap().dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let own = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let disk = if own.join("partition").exists() { own.join("..") } else { own };
    let text = fs::read_to_string(disk.join("dev"));
    text.map(|text| text.trim().to_owned())
        .map_err(|_| format!("{} lies on no block device", directory.display()))
}

/// The first mount of this type whose options hold all of these words.
fn hierarchy(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let is_it = fields[2] == kind && fields[3].split(',').any(|word| word == option);
        is_it.then(|| fields[1].into())
    })
}

fn make(parent: &Path) -> Result<PathBuf, String> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let group = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
    fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    Ok(group)
}

fn set(group: &Path, file: &str, text: &str) -> Result<(), String> {
    let path = group.join(file);
    let done = fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    if done.is_err() {
        let _ = fs::remove_dir(group);
    }
    done
}

fn first_version(mounts: &str, device: &str, limits: Limits) -> Result<PathBuf, String> {
    let root = hierarchy(mounts, "cgroup", "blkio").ok_or("no control groups with blkio")?;
    let group = make(&root)?;
    let Limits { read_bytes_per_s, write_bytes_per_s } = limits;
    for (limit, file) in [(read_bytes_per_s, "read"), (write_bytes_per_s, "write")] {
        if let Some(limit) = limit {
            let file = format!("blkio.throttle.{file}_bps_device");
            set(&group, &file, &format!("{device} {limit}"))?;
        }
    }
    Ok(group)
}

fn second_version(mounts: &str, device: &str, limits: Limits) -> Result<PathBuf, String> {
    let group = make(&second_root(mounts, "io")?)?;
    let word = |limit: Option<u64>| limit.map_or("max".to_owned(), |limit| limit.to_string());
    let Limits { read_bytes_per_s, write_bytes_per_s } = limits;
    let text = format!("{device} rbps={} wbps={}", word(read_bytes_per_s), word(write_bytes_per_s));
    set(&group, "io.max", &text)?;
    Ok(group)
}

/// The root of control groups of version 2, which hands this controller on.
fn second_root(mounts: &str, controller: &str) -> Result<PathBuf, String> {
    let root = hierarchy(mounts, "cgroup2", "rw").ok_or("no control groups of version 2")?;
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if !controllers.split_whitespace().any(|name| name == controller) {
        return Err(format!("the control groups of version 2 have no {controller}"));
    }
    fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"))
        .map_err(|error| format!("{controller} cannot be handed to control groups: {error}"))?;
    Ok(root)
}

#[test]
fn a_throttled_program_finds_itself_in_its_group() {
    use crate::bin::Folder;
    use crate::skip::needs;
    let folder = Folder::new();
    let limits = Limits { read_bytes_per_s: Some(1 << 30), ..Limits::default() };
    let throttle = needs!(Throttle::new(folder.path(), limits));
    let wrapper = throttle.wrapper();
    let words = ["-c", &wrapper[2], "sh", "cat", "/proc/self/cgroup"].map(Into::into).to_vec();
    let ran = folder.program("sh".as_ref(), words).run();
    let inside = ran.exits(0).stdout.lines().any(|line| line.ends_with(&throttle.name()));
    assert!(inside, "{ran}");
}
