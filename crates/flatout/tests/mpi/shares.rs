//! What several processes do together is what one does: reruns, mirrors, verified copies, large files.

use super::*;

/// Lines of standard output, in order, without their figures of time.
fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_rerun_copies_nothing_again() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 9);
    fs::create_dir(place.path().join("target")).unwrap();
    // What was written a moment ago could be written again without a sign of it.
    std::thread::sleep(Duration::from_millis(40));
    let words = [FLATOUT, "copy", "--resume", "always", "--format", "json", "source/.", "target/."];
    let mut counts = Vec::new();
    for processes in [2, 4, 1] {
        let mut command = mpirun(processes, place.path(), &words);
        let output = run(command.env("FLATOUT_RESUME", place.path().join("state")));
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = |key: &str| {
            let rest = text.split(&format!("\"{key}\":")).nth(1).unwrap();
            let digits: String = rest.trim().chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        };
        counts.push((count("files"), count("unchanged")));
        assert_same(&source, &place.path().join("target"));
    }
    // The one with many names is not noted.
    assert_eq!(counts[0].0, 9 * 30 + 1);
    assert!(counts[1..].iter().all(|&(copied, _)| copied <= 1), "{counts:?}");
}

#[test]
fn mirrors_and_verified_copies_say_what_one_process_says() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 9);
    let mut said = Vec::new();
    for (processes, target) in [(1, "one"), (3, "three")] {
        let more = place.path().join(target).join("0/0/more");
        fs::create_dir_all(&more).unwrap();
        fs::write(more.join("file"), "x").unwrap();
        fs::write(place.path().join(target).join("besides"), "x").unwrap();
        let options = ["copy", "-v", "--delete", "--verify", "source/.", target];
        let words: Vec<&str> = [FLATOUT].into_iter().chain(options).collect();
        let output = run(&mut mpirun(processes, place.path(), &words));
        assert!(output.status.success(), "{output:?}");
        assert_same(&source, &place.path().join(target));
        let lines = lines(&output).join("\n");
        said.push(lines.replace(&format!("'{target}/"), "'TARGET/"));
    }
    assert!(said[0].contains("besides"), "{said:?}");
    assert_eq!(said[0], said[1]);
}

#[test]
fn a_dry_run_says_it_once_and_a_rate_is_shared() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    plant(&source, 2);
    let words = [FLATOUT, "copy", "-v", "--dry-run", "source", "target"];
    let output = run(&mut mpirun(3, place.path(), &words));
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(lines.matches("source/large'").count(), 1, "{lines}");
    assert!(!place.path().join("target").exists());
    let words = [FLATOUT, "copy", "--bwlimit", "1G", "--background", "source", "target"];
    let output = run(&mut mpirun(3, place.path(), &words));
    assert!(output.status.success(), "{output:?}");
    assert_same(&source, &place.path().join("target"));
}

#[test]
fn a_huge_file_is_whole_whoever_copies_its_parts() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("source")).unwrap();
    let mut bytes = vec![0; 64 << 20];
    bytes.chunks_mut(4099).enumerate().for_each(|(part, bytes)| bytes.fill(part as u8));
    fs::write(place.path().join("source/huge"), bytes).unwrap();
    let words = [FLATOUT, "copy", "source/huge", "target"];
    let output = run(&mut mpirun(4, place.path(), &words));
    assert!(output.status.success(), "{output:?}");
    let mut cmp = Command::new("cmp");
    let same = cmp.args(["source/huge", "target"]).current_dir(place.path()).status().unwrap();
    assert!(same.success());
}

#[test]
fn files_with_several_names_get_the_names_that_they_are_to_have() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("d")).unwrap();
    let mut words = vec![FLATOUT.to_owned(), "copy".into(), "d".into()];
    for number in 0..6 {
        let name = |name: &str| place.path().join(format!("{name}{number}"));
        fs::write(name(""), "x").unwrap();
        fs::hard_link(name(""), name("d/")).unwrap();
        words.push(number.to_string());
    }
    // One under another name, and all of them beside the directory in which they lie, too.
    let output = run(&mut mpirun(3, place.path(), &[FLATOUT, "copy", "3", "other"]));
    assert!(output.status.success(), "{output:?}");
    fs::create_dir(place.path().join("target")).unwrap();
    words.push("target".into());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = run(&mut mpirun(3, place.path(), &words));
    assert!(output.status.success(), "{output:?}");
    for number in 0..6 {
        let inode = |name: &str| {
            fs::metadata(place.path().join(format!("target/{name}{number}"))).unwrap().ino()
        };
        assert_eq!(inode(""), inode("d/"));
    }
    assert_eq!(fs::metadata(place.path().join("other")).unwrap().nlink(), 1);
}

#[test]
fn each_host_is_measured_and_their_rows_put_together() {
    let place = tempfile::tempdir().unwrap();
    let words = ["bench", "memory", "--quick", "--max-time", "1s", "--format", "json"];
    let words = [&[FLATOUT], &words[..]].concat();
    let output = run(&mut mpirun(2, place.path(), &words));
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    // Beside many others a second is not enough for one figure.
    let is_late = said(&output).contains("nothing was measured");
    let across = ["\"across\":\"slowest\""].into_iter().filter(|_| !is_late);
    for word in across.chain(["\"process\":\"0 ", "\"process\":\"1 "]) {
        let spaced = word.replace(':', ": ");
        assert!(document.contains(word) || document.contains(&spaced), "{word}: {document}");
    }
    assert_eq!(said(&output).matches("measuring memory").count(), 1, "{output:?}");
}

#[test]
fn digests_of_a_tree_stand_in_the_order_of_one_process() {
    let place = tempfile::tempdir().unwrap();
    plant(&place.path().join("source"), 40);
    let file = |number: usize| place.path().join(format!("source/{}/{number}/3", number % 9));
    // One cannot be opened, and one is no file any more.
    fs::remove_file(file(7)).unwrap();
    symlink("loop", file(7)).unwrap();
    let mut said = Vec::new();
    for processes in [1, 2, 4] {
        let words = [FLATOUT, "sum", "-r", "source", "nowhere"];
        let output = run(&mut mpirun(processes, place.path(), &words));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(self::said(&output).matches("No such file").count(), 1, "{output:?}");
        said.push(String::from_utf8(output.stdout).unwrap());
    }
    assert!(said[0].lines().count() > 40 * 30);
    assert!(said[0] == said[1] && said[0] == said[2], "{said:?}");
}

#[test]
fn operands_that_lie_in_each_other_keep_their_links() {
    let place = tempfile::tempdir().unwrap();
    for directory in ["source/a", "source/b", "1", "4"] {
        fs::create_dir_all(place.path().join(directory)).unwrap();
    }
    for number in 0..20 {
        let name = |directory: &str| place.path().join(format!("source/{directory}/{number}"));
        fs::write(name("a"), "x").unwrap();
        fs::hard_link(name("a"), name("b")).unwrap();
    }
    for processes in [1, 4] {
        let target = processes.to_string();
        let words = [FLATOUT, "copy", "source", "source/a", "source/b", &target];
        let output = run(&mut mpirun(processes, place.path(), &words));
        assert!(output.status.success(), "{output:?}");
    }
    for made in ["source", "a", "b"] {
        assert_same(&place.path().join("1").join(made), &place.path().join("4").join(made));
    }
}
