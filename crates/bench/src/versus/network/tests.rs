//! What is asked of both sides, and how what they print is read.

use super::*;
use crate::versus::rival;

fn workload(rival: &'static str, at: usize) -> NetworkWorkload {
    let work = WORKS.into_iter().filter(|work| work.rival == rival).nth(at).unwrap();
    NetworkWorkload { work, seconds: 1, cpus: [4, 5] }
}

fn text(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_work_is_the_same_for_both() {
    assert!(WORKS.iter().all(|work| rival::named(work.rival).is_ok()));
    let udp = workload("iperf3", 2);
    let [flatout, rival] = ["flatout", "/bin/rival"].map(Path::new);
    let (ours, theirs) = (text(&udp.ours(flatout)), text(&udp.theirs(rival, 7)));
    assert!(ours.contains("--protocol udp --streams 1 --block-size 1460"), "{ours}");
    assert!(theirs.ends_with("-p 7 -t 1 -l 1460 -J -A 4,5 -u -b 0"), "{theirs}");
    assert!(ours.contains("--placement apart"), "{ours}");
    let tcp = workload("sockperf", 0);
    let theirs = text(&tcp.theirs(rival, 7));
    let far = "server -i 127.0.0.1 -p 7 --cpu-affinity 5 --tcp /bin/rival ping-pong";
    assert!(theirs.contains(far), "{theirs}");
    let near = "-m 64 --full-rtt --sender-affinity 4 --receiver-affinity 4 --tcp";
    assert!(theirs.ends_with(near), "{theirs}");
    assert!(text(&tcp.ours(flatout)).contains("--measure latency"));
    assert!(free_port().unwrap() > 0);
}

#[test]
fn what_a_rival_prints_is_read() {
    let tcp = r#"{"end": {"sum_sent": {"bytes": 9, "seconds": 1}, "sum_received": {"bytes": 2e9, "seconds": 2}}}"#;
    assert_eq!(of_iperf3(tcp), Some(1e9));
    let udp = r#"{"end": {"sum": {"bytes": 1000, "seconds": 2, "lost_percent": 50}}}"#;
    assert_eq!(of_iperf3(udp), Some(250.0));
    assert_eq!(of_iperf3(r#"{"end": {}}"#), None);
    assert_eq!(of_iperf3("Connection refused"), None);
    let lines =
        "sockperf: ---> percentile 75.000 =   14.4\nsockperf: ---> percentile 50.000 =   13.5";
    assert_eq!(of_sockperf(lines), Some(13_500.0));
    assert_eq!(of_sockperf("sockperf: ERROR"), None);
    let nonsense = Account { stdout: b"nonsense".to_vec(), ..Account::default() };
    assert!(printed::row(&nonsense, |_| true).unwrap_err().to_string().contains("no record"));
}

/// Runs the script with a far end and a near one.
fn shell(far: &str, near: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", SCRIPT, "sh", far]).args(near).output().unwrap()
}

#[test]
fn the_far_end_ends_where_flatout_and_the_shell_were_killed() {
    let place = tempfile::tempdir().unwrap();
    let (file, both) = (place.path().join("numbers"), place.path().join("both"));
    // The shell is the far end's grandparent.
    let body = "#!/bin/sh\ncase $1 in\nfar) read -r _ _ _ shell _ </proc/$PPID/stat\n\
                echo $shell $$ >$2; exec tail -f /dev/null ;;\n*) exec sleep 3 ;;\nesac\n";
    flatout_sys::launcher::write_program(&both, body);
    let far = format!("far {}", file.to_str().unwrap());
    // Flatout is a shell here.
    let mut flatout = std::process::Command::new("sh")
        .args(["-c", "\"$@\"; :", "sh", "sh", "-c", SCRIPT, "sh", &far, both.to_str().unwrap()])
        .spawn()
        .unwrap();
    let pause = std::time::Duration::from_millis(20);
    let numbers = || {
        std::thread::sleep(pause);
        std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'))
    };
    let text = std::iter::repeat_with(numbers).take(5000).flatten().next().unwrap();
    let [shell, far] = [0, 1].map(|at| text.split_whitespace().nth(at).unwrap().to_owned());
    let shell = rustix::process::Pid::from_raw(shell.parse().unwrap()).unwrap();
    flatout.kill().unwrap();
    rustix::process::kill_process(shell, rustix::process::Signal::KILL).unwrap();
    flatout.wait().unwrap();
    let begun = std::time::Instant::now();
    let is_there = || Path::new("/proc").join(&far).join("exe").read_link().is_ok();
    while is_there() && begun.elapsed().as_secs() < 100 {
        std::thread::sleep(pause);
    }
    assert!(!is_there());
}

#[test]
fn the_far_end_is_waited_for_and_ended() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("answers");
    let file = file.to_str().unwrap();
    // Both ends are this program: the far one makes a file, the near one answers when it is there.
    let both = place.path().join("both");
    let body = "#!/bin/sh\ncase $1 in\nfar) : >$2; exec tail -f /dev/null ;;\n*) test -e $2 && \
                { echo a remark >&2; echo 42; } || { echo '{\"error\":\t\"why\"\n}'; exit 3; } ;;\nesac\n";
    flatout_sys::launcher::write_program(&both, body);
    let both = both.to_str().unwrap();
    let ran = shell(&format!("far {file}"), &[both, "near", file]);
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), b"42\n".as_slice()));
    let ran = shell("near /nowhere", &[both, "near", "/nowhere"]);
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!((ran.status.code(), said.trim()), (Some(1), "\"why\""), "and no brace");
}
