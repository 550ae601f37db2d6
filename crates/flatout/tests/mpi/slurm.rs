//! A real Slurm of Debian's packages, with its controller and one node on this machine, started here
//! and ended here. `srun` starts processes of Open MPI by PMIx, those of MPICH by PMI-2.

use std::os::unix::process::CommandExt;

use super::*;

/// Its programs, which end when this is dropped.
struct Slurm {
    place: TempDir,
    programs: Vec<Child>,
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            signal(program.id(), "TERM");
            let begun = Instant::now();
            while program.try_wait().unwrap().is_none() && begun.elapsed().as_secs() < 10 {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _it_is_gone = program.kill();
            let _status = program.wait();
        }
    }
}

impl Slurm {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut slurm = Self { place, programs: Vec::new() };
        let at = |name: &str| slurm.place.path().join(name).to_str().unwrap().to_owned();
        for name in ["state", "spool", "run"] {
            fs::create_dir(at(name)).unwrap();
        }
        let mut key = vec![0; 1024];
        let mut random = fs::File::open("/dev/urandom").unwrap();
        std::io::Read::read_exact(&mut random, &mut key).unwrap();
        fs::write(at("key"), key).unwrap();
        fs::set_permissions(at("key"), fs::Permissions::from_mode(0o600)).unwrap();
        let name = Command::new("hostname").arg("-s").output().unwrap().stdout;
        let name = String::from_utf8(name).unwrap().trim().to_owned();
        let port = 20_000 + std::process::id() % 10_000 * 2;
        let configuration = format!(
            "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={port}\n\
             SlurmdPort={}\nAuthType=auth/munge\nAuthInfo=socket={}\nSlurmUser=root\n\
             SlurmdUser=root\nStateSaveLocation={}\nSlurmdSpoolDir={}\nSlurmctldPidFile={}\n\
             SlurmdPidFile={}\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\n\
             SlurmdParameters=config_overrides\nSlurmctldLogFile={}\nSlurmdLogFile={}\n\
             NodeName={name} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN\n\
             PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE\n",
            port + 1,
            at("run/munge"),
            at("state"),
            at("spool"),
            at("run/controller"),
            at("run/node"),
            at("controller.log"),
            at("node.log"),
        );
        fs::write(at("conf"), configuration).unwrap();
        let munge: Vec<String> = [("key", "key"), ("socket", "run/munge"), ("pid", "run/pid")]
            .iter()
            .map(|(option, name)| {
                let option = if *option == "pid" { "pid-file" } else { option };
                let option = if option == "key" { "key-file" } else { option };
                format!("--{option}={}", at(name))
            })
            .chain([
                format!("--log-file={}", at("munge.log")),
                format!("--seed-file={}", at("seed")),
            ])
            .collect();
        let munge: Vec<&str> = ["--foreground", "--force"]
            .into_iter()
            .chain(munge.iter().map(String::as_str))
            .collect();
        slurm.program("munged", &munge);
        slurm.wait_until(|slurm| slurm.place.path().join("run/munge").exists());
        let conf = slurm.conf();
        slurm.program("slurmctld", &["-D", "-f", &conf]);
        slurm.program("slurmd", &["-D", "-f", &conf]);
        slurm.wait_until(|slurm| {
            let sinfo = slurm.command("sinfo", &["-h", "-o", "%T"]).output().unwrap();
            String::from_utf8_lossy(&sinfo.stdout).trim() == "idle"
        });
        slurm
    }

    fn conf(&self) -> String {
        self.place.path().join("conf").to_str().unwrap().to_owned()
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.conf()).args(words).stdin(Stdio::null());
        command.env("FLATOUT_RESUME", "").env("FLATOUT_PROFILE", "");
        command
    }

    fn program(&mut self, program: &str, words: &[&str]) {
        let mut command = self.command(program, words);
        // An interrupt of the tests is not theirs.
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        self.programs.push(command.spawn().unwrap());
    }

    #[track_caller]
    fn wait_until(&self, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < LIMIT, "it does not come up");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn srun_makes_one_copy() {
    if !is_full() {
        return;
    }
    let has = |program: &&str| {
        ["/usr/sbin", "/usr/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
    };
    if !is_root() || !["munged", "slurmctld", "slurmd", "srun"].iter().all(has) {
        return skip("srun_makes_one_copy", "needs root, slurm-wlm and munge");
    }
    let slurm = Slurm::start();
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 30);
    let mpi = match std::env::var_os("FLATOUT_TEST_MPIRUN") {
        Some(_) => "--mpi=pmi2",
        None => "--mpi=pmix",
    };
    let words = [mpi, "-n", "4", FLATOUT, "copy", "-v", "source", "target"];
    let mut srun = slurm.command("srun", &words);
    let output = run(srun.current_dir(place.path()));
    assert!(output.status.success(), "{output:?}");
    assert_same(&source, &place.path().join("target"));
    assert_eq!(said(&output).matches("files").count(), 1, "one closing line: {output:?}");
    the_script_of_the_documentation_runs(&slurm, place.path(), mpi);
    // Without an MPI that srun knows each would be alone. Open MPI says so itself.
    let none = |words: &[&str]| {
        let words = [&["--mpi=none", "-n", "3", FLATOUT], words].concat();
        run(slurm.command("srun", &words).current_dir(place.path()))
    };
    let output = none(&["sum", "source/large"]);
    assert_eq!(said(&output).matches("started this 3 times").count(), 1, "{output:?}");
    assert!(!none(&["copy", "source", "other"]).status.success());
    assert!(!place.path().join("other").exists());
}

/// Submits the script for sbatch of docs/cluster.md, for one host and these directories.
fn the_script_of_the_documentation_runs(slurm: &Slurm, place: &Path, mpi: &str) {
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster.md");
    let text = fs::read_to_string(text).unwrap();
    let begin = text.find("#!/bin/sh\n#SBATCH").unwrap();
    let script = &text[begin..begin + text[begin..].find("```").unwrap()];
    let mut here = script.to_owned();
    for (there, word) in [
        ("--nodes 8", "--nodes 1"),
        ("--mpi=pmix", mpi),
        (" flatout ", &format!(" {FLATOUT} ")),
        ("/scratch/run7/.", "source/."),
        ("/project/run7/.", "by-sbatch/."),
    ] {
        assert_eq!(here.matches(there).count(), 1, "{here}");
        here = here.replace(there, word);
    }
    fs::write(place.join("script"), here).unwrap();
    fs::create_dir(place.join("by-sbatch")).unwrap();
    let mut sbatch = slurm.command("sbatch", &["--wait", "--output", "said", "script"]);
    let output = run(sbatch.current_dir(place));
    let said = || fs::read_to_string(place.join("said"));
    assert!(output.status.success(), "{output:?} {:?}", said());
    assert_same(&place.join("source"), &place.join("by-sbatch"));
}
