//! Two network namespaces as two hosts: names, processes and links of their own, one filesystem. The launcher
//! reaches the other one by an agent instead of ssh, and messages go by TCP.

use std::ffi::OsStr;

use serde_json::Value;
use tempfile::TempDir;

use super::bench::{bench, document, rows};
use super::*;

const NAMES: [&str; 2] = ["alpha", "beta"];
const ADDRESSES: [&str; 2] = ["10.211.0.1", "10.211.0.2"];

/// Both hosts; gone when dropped.
struct Hosts {
    place: TempDir,
    spaces: [String; 2],
}

impl Hosts {
    /// `None`, and it is said why: they cannot be made here.
    fn make(test: &str) -> Option<Self> {
        let why = if is_root() {
            let place = tempfile::tempdir().unwrap();
            let number = place.path().file_name().unwrap().to_str().unwrap().replace('.', "");
            let spaces = NAMES.map(|name| format!("flatout-{number}-{name}"));
            let hosts = Self { place, spaces };
            match hosts.set_up() {
                true => return Some(hosts),
                false => "ip cannot make network namespaces",
            }
        } else {
            "needs root for network namespaces"
        };
        skip(test, why);
        None
    }

    fn set_up(&self) -> bool {
        let [alpha, beta] = &self.spaces;
        let mut lines = vec![format!("netns add {alpha}"), format!("netns add {beta}")];
        lines.push(format!("-n {alpha} link add wire type veth peer name wire netns {beta}"));
        for (address, space) in ADDRESSES.into_iter().zip(&self.spaces) {
            lines.push(format!("-n {space} addr add {address}/24 dev wire"));
            lines.extend(["lo", "wire"].map(|link| format!("-n {space} link set {link} up")));
        }
        let prefix = self.spaces[0].strip_suffix(NAMES[0]).unwrap();
        let mut agent =
            "#!/bin/sh\nwhile case $1 in -*) ;; *) false; esac do shift; done\n".to_owned();
        for (address, name) in ADDRESSES.into_iter().zip(NAMES) {
            agent.push_str(&format!("[ $1 != {address} ] || host={name}\n"));
        }
        agent.push_str(&format!(
            "shift\nexec ip netns exec {prefix}$host unshare -u sh -c 'echo \"$0\" > /proc/sys/kernel/hostname; eval \"$@\"' $host \"$@\"\n"
        ));
        let file = self.place.path().join("agent");
        flatout_sys::launcher::write_program(&file, &agent);
        lines.iter().all(|line| ip(line))
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    /// mpirun on the first of them, with so many processes on each.
    fn mpirun(&self, each: u32, words: &[&str]) -> Command {
        let usual = mpirun(2 * each, self.path(), words);
        let mut command = Command::new("ip");
        let name = format!("echo {} > /proc/sys/kernel/hostname; exec \"$@\"", NAMES[0]);
        command.args(["netns", "exec", &self.spaces[0], "unshare", "-u", "sh", "-c", &name, "sh"]);
        command.arg(usual.get_program());
        let hosts = ADDRESSES.map(|address| format!("{address}:{each}")).join(",");
        let agent = self.path().join("agent");
        match is_mpich() {
            true => {
                command.args(["-localhost", ADDRESSES[0], "-launcher", "ssh", "-launcher-exec"]);
                command.arg(&agent).args(["-hosts", &hosts])
            }
            false => command.args(["--host", &hosts]),
        };
        command.args(usual.get_args()).current_dir(self.path()).stdin(Stdio::null());
        let variables = usual.get_envs().filter_map(|(key, value)| Some((key, value?)));
        command.envs(variables.map(|(key, value)| (key.to_owned(), value.to_owned())));
        command.env("OMPI_MCA_plm_rsh_agent", agent);
        command
    }

    /// Bytes that have left the first one.
    fn sent_bytes(&self) -> u64 {
        let file = "/sys/class/net/wire/statistics/tx_bytes";
        let words = ["netns", "exec", &self.spaces[0], "cat", file];
        let output = Command::new("ip").args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.spaces.iter().for_each(|space| {
            ip(&format!("netns delete {space}"));
        });
    }
}

fn ip(line: &str) -> bool {
    let mut ip = Command::new("ip");
    ip.args(line.split(' ')).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

const RANK_3: [&[u8]; 2] = [b"OMPI_COMM_WORLD_RANK=3", b"PMI_RANK=3"];

fn texts(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn two_hosts_make_one_copy() {
    let Some(hosts) = Hosts::make("two_hosts_make_one_copy") else { return };
    let source = hosts.path().join("source");
    plant(&source, 60);
    let words = [FLATOUT, "copy", "-v", "source", "target"];
    let output = run(&mut hosts.mpirun(2, &words));
    assert!(output.status.success(), "{output:?}");
    assert_same(&source, &hosts.path().join("target"));
    assert!((0..4).all(|rank| said(&output).contains(&format!("process {rank}: "))), "{output:?}");
    assert!(is_mpich() || hosts.sent_bytes() > 10_000, "messages went by the link");
}

#[test]
fn a_way_between_hosts_is_measured_by_tcp() {
    let Some(hosts) = Hosts::make("a_way_between_hosts_is_measured_by_tcp") else { return };
    let words = bench(&["network", "--time", "1ms", "-n", "1"]);
    let output = run(&mut hosts.mpirun(2, &texts(&words)));
    assert!(output.status.success(), "{output:?}");
    let document = document(&output);
    assert_eq!(rows(&document, "network/pair-one-way", "to").len(), 12, "{document}");
    assert_eq!(rows(&document, "network/pair-latency", "to").len(), 6);
    let to_one = rows(&document, "network/all-to-one", "process");
    let named = |host: &str| {
        let process =
            |row: &&&Value| row["parameters"]["process"].as_str().unwrap().ends_with(host);
        to_one.iter().filter(process).count()
    };
    assert_eq!(NAMES.map(named), [2, 2], "{to_one:?}");
    assert!(is_mpich() || hosts.sent_bytes() > 1 << 20, "messages went by the link");
}

#[test]
fn each_host_reads_what_the_other_one_wrote() {
    let Some(hosts) = Hosts::make("each_host_reads_what_the_other_one_wrote") else { return };
    fs::create_dir(hosts.path().join("here")).unwrap();
    let words = bench(&["disk", "here", "--time", "10ms", "-n", "1", "--max-write", "64M"]);
    let output = run(&mut hosts.mpirun(1, &texts(&words)));
    assert!(output.status.success(), "{output:?}");
    let document = document(&output);
    let read = rows(&document, "disk/own-file-read", "process");
    assert_eq!(read.len(), 2, "{document}");
    assert!(read.iter().all(|row| row["parameters"]["hosts"] == 2), "{read:?}");
    let names = read.iter().map(|row| row["parameters"]["process"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["0 alpha", "1 beta"]);
    assert_eq!(fs::read_dir(hosts.path().join("here")).unwrap().count(), 0);
}

#[test]
fn a_host_that_sees_another_target_or_has_another_program_is_named() {
    let name = "a_host_that_sees_another_target_or_has_another_program_is_named";
    let Some(hosts) = Hosts::make(name) else { return };
    fs::create_dir_all(hosts.path().join("s/d")).unwrap();
    fs::create_dir(hosts.path().join("there")).unwrap();
    let other = hosts.path().join("other");
    fs::copy(FLATOUT, &other).unwrap();
    fs::OpenOptions::new().append(true).open(&other).unwrap().write_all(b"newer").unwrap();
    let on_beta = |what: &str| {
        format!(
            "[ $(cat /proc/sys/kernel/hostname) = alpha ] || {what}; exec $FLATOUT copy s there/t"
        )
    };
    // The roots of both have the same inode number.
    let on_each = |what: &str| format!("mount -t tmpfs none there; exec $FLATOUT {what}");
    for (script, message) in [
        (on_beta("mount -t tmpfs none there"), "on beta does not find \"there\" as this one does"),
        (on_each("copy s/. there"), "on beta does not find \"there/.\" as this one does"),
        (on_each("sum -r there"), "on beta does not find \"there\" as this one does"),
        (on_beta("FLATOUT=$OTHER"), "different versions"),
    ] {
        let mut command = hosts.mpirun(1, &["unshare", "-m", "sh", "-c", &script]);
        let output = run(command.env("FLATOUT", FLATOUT).env("OTHER", &other));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(said(&output).matches(message).count(), 1, "{output:?}");
        assert!(said(&output).contains("on beta"), "{output:?}");
        assert!(!hosts.path().join("there/t").exists());
    }
}

#[test]
fn a_process_killed_on_the_other_host_ends_the_copy_and_a_rerun_finishes() {
    let name = "a_process_killed_on_the_other_host_ends_the_copy_and_a_rerun_finishes";
    // A killed process of the same host ends the copy in a test that always runs.
    if !is_full() {
        return;
    }
    let Some(hosts) = Hosts::make(name) else { return };
    let (source, target) = (hosts.path().join("source"), hosts.path().join("target"));
    plant(&source, 150);
    let words = [FLATOUT, "copy", "source", target.to_str().unwrap()];
    let mut command = hosts.mpirun(2, &words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !target.join("0").exists() && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    let on_beta = |pid: &&u32| {
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = variables.split(|&byte| byte == 0);
        variables.any(|variable| RANK_3.contains(&variable))
    };
    // It may have been done already.
    let all = processes(&target);
    all.iter().find(on_beta).into_iter().for_each(|&pid| signal(pid, "KILL"));
    wait(&mut child);
    let begun = Instant::now();
    while !processes(&target).is_empty() && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(processes(&target).is_empty(), "all are gone");
    fs::create_dir_all(&target).unwrap();
    let output = run(&mut hosts.mpirun(2, &[FLATOUT, "copy", "source/.", "target"]));
    assert!(output.status.success(), "{output:?}");
    assert_same(&source, &target);
}

/// Whether the launcher is MPICH's, whose messages (UCX) go through memory where it sees one machine.
fn is_mpich() -> bool {
    let program = std::env::var_os("FLATOUT_TEST_MPIRUN");
    program.is_some_and(|program| program.as_os_str() != OsStr::new("mpirun"))
}
