//! Races without their programs: who takes part, what is called, what is left.

use std::path::Path;

use flatout_io::Caching;
use flatout_sys::CancelToken;

use super::*;
use crate::disk::Pattern;
use crate::versus::commands::Commands;
use crate::versus::rival;

fn ground(directory: &Path, names: &[&str]) -> Ground {
    let found = names.iter().map(|name| Found {
        rival: rival::ALL.iter().find(|rival| rival.name == *name).unwrap(),
        path: Path::new("/opt").join(name),
        version: format!("{name} 1.0"),
    });
    Ground {
        found: found.collect(),
        directory: directory.to_owned(),
        flatout: "/opt/flatout".into(),
        extent: Extent::Quick,
        states: Vec::new(),
        trees: crate::versus::Trees::default(),
        orders: Vec::new(),
        commands: Commands::default(),
        room_bytes: 1 << 40,
        tree_part: 1,
        tried: crate::tried::Tried::USUAL,
        keeps: false,
        seed: 1,
        cancel: CancelToken::manual(),
    }
}

fn words(invocation: &Argv) -> Vec<&str> {
    invocation.iter().map(|word| word.to_str().unwrap()).collect()
}

#[test]
fn each_pattern_is_raced_or_said_to_be_incomparable() {
    for rival in Rival::ALL {
        for pattern in Pattern::asked() {
            let is_raced = rival.known().0.iter().any(|work| work.pattern == pattern);
            let is_told = rival.known().1.iter().any(|(row, _)| row.contains(pattern.name()));
            assert!(is_raced != is_told, "{rival:?}: {pattern:?}");
        }
    }
}

#[test]
fn both_are_asked_for_the_same() {
    let directory = Path::new("/data");
    let ground = ground(directory, &["fio", "dd", "iozone"]);
    let (mut races, rows) = (races(&ground).unwrap(), incomparable(&ground));
    assert_eq!(races.len(), fio::WORKS.len() + iozone::WORKS.len());
    assert_eq!(rows.len(), fio::INCOMPARABLE.len() + iozone::INCOMPARABLE.len());
    let mut seen = Vec::new();
    for race in &mut races {
        let key = (race.test, race.parameters.clone());
        assert!(!seen.contains(&key), "{key:?} twice");
        seen.push(key);
        let [own, other] = &race.contestants[..] else { panic!("two take part") };
        assert_eq!(own.name, "flatout");
        let block = race.parameters.to_json()["block_bytes"].to_string();
        let contestants = race.contestants.clone();
        for (index, contestant) in contestants.iter().enumerate() {
            let run = Run { contestant, index, round: 0, ends_ns: u64::MAX };
            let invocation = race.workload.invocation(&run).unwrap();
            let words = words(&invocation);
            assert_eq!(words[0], format!("/opt/{}", contestant.name));
            let kib = format!("{}k", block.parse::<u64>().unwrap() / 1024);
            let (bs, all) = (format!("--bs={block}"), words.join(" "));
            assert!([&block, &kib, &bs].iter().any(|word| words.contains(&word.as_str())), "{all}");
            assert!(all.contains("/data/.flatout-versus/"), "{all}");
            let may_write = ["--overwrite", "--allow_file_create=0", "--unlink=1", "-i"];
            let is_read = race.parameters.value("until").is_none();
            let writes = may_write.iter().any(|word| words.contains(word));
            assert!(!is_read || !writes || other.name == "iozone", "{all}");
        }
    }
}

#[test]
fn rows_that_cannot_be_raced_say_why() {
    let rows = incomparable(&ground(Path::new("/data"), &["fio"]));
    let row = &rows[0];
    assert_eq!((row.id.as_str(), row.status), ("versus/incomparable", Status::Unsupported));
    assert_eq!(row.parameters["against"], "fio");
    assert_eq!(row.warnings[0].code, warning::CANNOT_COMPARE);
    let unnamed = ground(Path::new("/a#b"), &["fio"]);
    assert_eq!(races(&unnamed).unwrap().len(), 0, "fio would cut the name");
    assert_eq!(incomparable(&unnamed).len(), fio::INCOMPARABLE.len() + 1);
}

#[test]
fn nobody_there_means_no_room_is_needed() {
    let mut ground = ground(Path::new("/data"), &["dd"]);
    ground.room_bytes = 0;
    assert_eq!(room_bytes(&ground).unwrap(), 0);
    assert!(races(&ground).unwrap().is_empty());
    let mut ground = self::ground(Path::new("/data"), &["fio"]);
    assert_eq!(room_bytes(&ground).unwrap(), 256 * MIB);
    ground.room_bytes = 256 * MIB - 1;
    let error = races(&ground).err().unwrap().to_string();
    assert!(error.contains("256 MiB of room"), "{error}");
}

#[test]
fn a_workload_prepares_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut ground = ground(directory.path(), &["iozone"]);
    ground.room_bytes = 4 * LEAST_BYTES;
    let mut races = races(&ground).unwrap();
    let race = races
        .iter_mut()
        .find(|race| race.parameters.value("caching") == Some(&"direct".into()))
        .unwrap();
    let contestant = race.contestants[1].clone();
    let run = Run { contestant: &contestant, index: 1, round: 0, ends_ns: u64::MAX };
    race.workload.prepare(&run).unwrap();
    assert_eq!(fs::read_dir(ground.targets()).unwrap().count(), 0);
    let kept = fs::metadata(ground.corpora().join(FILE_NAME).join("file-000000")).unwrap();
    assert_eq!(kept.len(), 128 * MIB);
}

#[test]
fn what_is_cold_is_buffered() {
    assert_eq!(fio::COLD.caching, Caching::Buffered);
    assert!(fio::WORKS.contains(&fio::COLD));
}

/// A script that takes IOzone's options and prints a table of its form.
const FAKE_IOZONE: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        -s) size=${2%k}; shift ;;
        -r) record=${2%k}; shift ;;
        -i) test=$2; shift ;;
        -f) file=$2; shift ;;
    esac
    shift
done
[ -d "$(dirname "$file")" ] || { echo "cannot open $file" >&2; exit 3; }
[ "$test" = 3 ] && { exit 1; }
echo "        Iozone: Performance Test of File I/O"
echo "              kB  reclen    write  rewrite    read    reread    read     write"
printf '%16s%8s%9s%9s' "$size" "$record" 1000000 1100000
[ "$test" = 1 ] && printf '%9s%9s' 2000000 2100000
[ "$test" = 2 ] && printf '%18s%9s%9s' '' 640000 320000
[ "$test" = 5 ] && printf '%54s%9s' '' 1500000
printf '\n\niozone test complete.\n'
"#;

#[test]
fn a_script_that_prints_like_iozone_takes_part() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("iozone");
    flatout_sys::launcher::write_program(&script, FAKE_IOZONE);
    let mut ground = ground(directory.path(), &["iozone"]);
    ground.found[0].path = script;
    fs::create_dir_all(ground.targets()).unwrap();
    let mut races = races(&ground).unwrap();
    let figures: Vec<Result<f64, String>> = races
        .iter_mut()
        .map(|race| {
            let contestant = race.contestants[1].clone();
            let run = Run { contestant: &contestant, index: 1, round: 0, ends_ns: u64::MAX };
            let called = race.workload.invocation(&run).unwrap();
            let mut command = std::process::Command::new("/bin/sh");
            let output = command.args(&called).output().unwrap();
            let account = Account { stdout: output.stdout, ..Account::default() };
            let checked = race.workload.check(&run, &account).map_err(|error| error.to_string())?;
            assert_eq!(checked.warnings[0].code, warning::DONE_OTHERWISE);
            Ok(checked.figure.unwrap())
        })
        .collect();
    let kib = |number: f64| Ok(number * 1024.0);
    let failed = Err("iozone printed no table".to_owned());
    let of_64_kib = |number: f64| Ok(number / 64.0);
    assert_eq!(
        figures,
        [
            kib(1e6),
            kib(1.1e6),
            kib(2e6),
            of_64_kib(640e3),
            of_64_kib(320e3),
            failed,
            kib(1.5e6),
            kib(1e6),
            kib(1.1e6),
            kib(2.1e6)
        ]
    );
}
