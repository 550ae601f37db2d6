//! What the scripts try that GNU cp is tested with (coreutils, `tests/cp`), in our words: a few lines
//! of a shell each, run with both programs. Trees, exit codes and all that is said must be equal.
//!
//! Others of them stand elsewhere: `acl` in [`super::special`] and in the tests of lists, `capability`
//! there, too; `file-perm-race`, `parent-perm-race` and `existing-perm-race` where copies are looked at
//! while they are made; `link-heap` where memory is bounded; `sparse-extents` and `sparse-perf` where
//! holes are. `cross-dev-symlink` needs another filesystem: [`links_are_made_from_another_filesystem`].

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use super::{NOBODY, Pair, Trial};
use crate::fixture::is_full;
use crate::skip::skip;

/// The name of the script, and its steps. `$CP` is the program; the folder is empty.
const SCRIPTS: &[(&str, &str)] = &[
    (
        "abuse",
        "mkdir a b c; ln -s ../t a/1; echo payload > b/1; $CP -dR a/1 b/1 c; ls t; rm c/1; echo i > t
         $CP -dR a/1 b/1 c; cat t",
    ),
    (
        "attr-existing",
        "printf 1 > f1; printf 2 > f2; $CP --attributes-only f1 f2; cat f2; ln f2 l2
         $CP -a --attributes-only f1 f2; cat f2; ln -s f1 s1; $CP -a --attributes-only s1 f2; cat f2
         $CP -a --remove-destination --attributes-only s1 f2",
    ),
    (
        "backup-1",
        "echo a > a; echo b > b; for i in none off numbered t nil existing never simple; do
         $CP --b=$i a b; done; $CP -b -S .o a b; $CP -S '' -b a b; SIMPLE_BACKUP_SUFFIX=.v $CP -b a b",
    ),
    ("backup-dir", "mkdir x y; $CP -a x y; $CP -ab x y"),
    ("backup-is-src", "echo a > a; echo t > a~; $CP --b=simple a~ a; $CP --b=numbered a~ a"),
    (
        "backup-numbers",
        "for n in 9 099 18446744073709551615 99999999999999999999; do mkdir $n; cd $n; echo a > a; echo b > b
         echo kept > b.~$n~; $CP --b=numbered a b; $CP -b a b; head *; cd ..; done",
    ),
    (
        "copy-FMR",
        "for i in 1 3 5 7; do dd if=/proc/self/exe of=j bs=1k count=1 seek=$((i * 5)) conv=notrunc \
         status=none; done; $CP --reflink=never j j2; cmp j j2",
    ),
    (
        "cp-HL",
        "mkdir s d; echo f > f; ln -s ../f s/link; ln -s f slink; $CP -RH slink s d; echo $?
         $CP -RL s d2; $CP -RP slink d3",
    ),
    ("cp-deref", "mkdir a b c d; ln -s ../c a/l; ln -s ../c b/l; $CP -L a/l b/l d; $CP -rL a b d"),
    (
        "cp-i",
        "mkdir a; touch a/b c d; for o in -i '-fi' -in -ni -if; do echo n | $CP $o c d; echo $?
         done; echo y | $CP -iR a/b c; $CP -n c nowhere; $CP -Rn a/. a2; $CP -Rn a/. a2",
    ),
    (
        "cp-mv-backup",
        "for o in '' --backup=none --backup=existing --backup=numbered --backup=simple; do
         for s in '' -S.x; do mkdir d; cd d; echo 1 > x; echo 2 > y; for i in 1 2; do $CP $o $s x y
         done; touch x~ y.~4~; $CP $o $s x y; ls; cd ..; mv d d$o$s; done; done",
    ),
    (
        "cp-parents",
        "mkdir foo bar d; ln -s foo sym; touch foo/f; $CP -R --parents $PWD/foo d/gone; mkdir -p a/b/c
         chmod 711 a; echo 1 > a/b/c/f; $CP --parents a/b/c/f d; $CP -p --parents a/b/c/f bar
         $CP --parents sym/f bar; $CP -R --parents a/b/. bar; rm -r d",
    ),
    ("deref-slink", "touch f t; ln -s t slink; $CP -d f slink"),
    (
        "dir-rm-dest",
        "mkdir d e; $CP -R --remove-destination d e; $CP -R --remove-destination d e; ln -s loop loop
         touch file; $CP --remove-destination file loop",
    ),
    ("dir-slash", "mkdir d1 d2; touch d1/f; $CP -R d1/ d2"),
    ("dir-vs-file", "mkdir dir; touch file; $CP -R dir file; $CP file dir/gone/; $CP -R dir file new"),
    (
        "what lies in a directory that is missing",
        "mkdir d; ln -s d l; mkfifo p; touch f; ln -s loop loop; for t in no/x no/ f/x f/ loop/x; do
         for o in -P -a; do $CP $o l $t; done; $CP -r d $t; rm -rf no; $CP -r p $t; $CP f $t
         $CP -l f $t; $CP -s /etc/passwd $t; done",
    ),
    (
        "existing-perm-dir",
        "umask 002; mkdir -p -m 775 src/dir; mkdir -p -m 700 dst/dir; chmod g-s src/dir dst/dir
         $CP -r src/. dst/",
    ),
    (
        "fail-perm",
        "mkdir D D/D; touch D/a; chmod 0 D/a; chmod 500 D; $CP -pR D DD; chmod 0 D; ln -s D/D symlink
         touch F; $CP F symlink; $CP --no-target-directory F symlink; $CP -t symlink F; chmod 700 D DD",
    ),
    (
        "into-self",
        "mkdir a dir; $CP -R dir dir; rm -rf dir/dir; $CP -rl dir dir; rm -rf dir/dir
         $CP -rl a dir dir; rm -rf dir/*; touch a/f; $CP -rl dir/../a dir",
    ),
    (
        "link, link-deref, link-no-deref",
        "mkdir dir dst; touch file; ln -s dir dl; ln -s file fl; ln -s nowhere gl; $CP -l file fl2
         for s in dl fl gl; do for o in '' -L -H -P; do for r in '' -R; do $CP --link $o $r $s x$s$o$r
         stat -c %F x$s$o$r; done; done; done 2>&1 | sed 's/: .*stat.*//'; mkdir d; $CP -lR dir d/e",
    ),
    (
        "link-preserve",
        "touch a; ln a b; mkdir c c2 d; $CP -d a b c; ln -s a l; $CP --preserve=links -R -H a l c2
         (cd d; touch a; ln -s a b; ln a c); $CP --preserve=links -R -L d c3; $CP -dR --no-preserve=links d c4
         $CP -a a b c; $CP -a --preserve=links a b c2",
    ),
    (
        "names without quotes, and what is named twice",
        "mkdir s d x; touch a~ b:c '#d' '~e' 'f]g' 'h=i' '{x}'; ln -s ../x s/l; $CP -a s/l s/l d; rm d/l
         $CP -rH s/l s/l d; $CP -s a~ b:c '#d' '~e' 'f]g' 'h=i' '{x}' d; cd d; $CP -s ../a~ '#' ../'~e' .",
    ),
    ("link-symlink", "touch file; ln -s file l; touch -h -d 2011-01-01 l; $CP -al l l2"),
    (
        "no-deref-link1 to 3",
        "mkdir a b; echo bar > a/foo; ln -s ../a/foo b; $CP -d a/foo b; cat a/foo; echo x > x
         ln -s ../x b; $CP -d x b; ln -s x y; $CP -d x y; cat x",
    ),
    (
        "parent-perm",
        "mkdir -p a/b/c a/b/d e; touch a/b/c/foo a/b/d/foo; chmod 750 a; $CP -p --parent a/b/c/foo e
         chmod g-rx e/a e/a/b; $CP -p --parent a/b/d/foo e",
    ),
    (
        "perm",
        "for u in 31 37 2; do umask $u; for c in '' -p; do for f in '' -f; do for e in 000 645 712; do
         touch src; chmod 450 src; n=d$u$c$f$e; test $e = 000 || { touch $n; chmod $e $n; }
         $CP $c $f src $n; rm -f src; done; done; done; done",
    ),
    ("preserve-2", "touch f; $CP --preserve=mode,links f g; $CP --preserve=links,mode f h"),
    (
        "preserve-gid",
        "for o in 0:0 1000:0 0:1000 1000:1001 1:2; do echo $o > f; chown $o f; for c in '' -p -a \
         --preserve=ownership; do $CP $c f g$o$c; done; rm f; done",
    ),
    (
        "preserve-link",
        "mkdir s; touch s/f; for n in m e o u; do ln s/f s/$n; done; touch -d 2001-01-02 s/f
         for f in f m; do rm -rf t; mkdir -p t/s; touch t/s/$f; ln t/s/$f t/s/e
         touch -d 2001-01-01 t/s/o t/s/$f; touch -d 2001-01-03 t/s/u; $CP -au s t; stat -c %h t/s/u; done",
    ),
    (
        "preserve-mode",
        "umask 022; touch a; mkdir d; chmod 777 a d; for o in --preserve=mode --no-preserve=mode -p \
         '-p --no-preserve=mode' '--no-preserve=mode -p' '--preserve=mode --attributes-only'; do
         $CP $o a \"x$o\"; $CP -r $o d \"y$o\"; touch z; chmod 640 z; $CP $o a z; stat -c %a z; rm z; done",
    ),
    ("preserve-slink-time", "ln -s no-such dangle; touch -h -d 2001-01-01 dangle; $CP -Pp dangle d2"),
    ("proc-short-read", "$CP /proc/kallsyms 1; head -c 100000 1 | wc -c; rm 1"),
    ("proc-zero-len", "$CP /proc/version v; cat v; $CP -r /proc/sys/kernel/random/poolsize p; ls -s p"),
    ("r-vs-symlink", "echo a > foo; ln -s foo l; ln -s no n; $CP -r n junk; $CP -r l bar"),
    (
        "reflink-perm",
        "touch file; touch -d 2009-08-28 file; chmod 777 file; umask 077; $CP --reflink=auto --preserve file copy
         echo > f2; $CP --reflink=auto --preserve --attributes-only f2 e
         $CP --reflink=always --preserve --attributes-only f2 e",
    ),
    (
        "no script: names that are too long",
        "mkdir d e; echo f > f; n=$(printf %256s | tr ' ' n); for s in d f; do for t in $n ./$n e/$n $n/x; do
         for o in -r -rT -rl -rs; do $CP $o $s $t; echo $?; done; done; done",
    ),
    (
        "no script: what is no file shares no extents",
        "echo f > f; mkdir d; for o in --reflink=always '--reflink=always -R --copy-contents'; do
         for l in '/dev/null n' 'f /dev/null' '/dev/null f' '/dev/null d'; do $CP $o $l; echo $?
         rm -rf n d/null; echo f > f; done; done",
    ),
    (
        "no script: paths that are one, and are named twice",
        "mkdir s t; echo f > s/f; for l in 's//f s/f' 's/f s//f s/./f' 's s/ s//' './s/f s/f'; do
         for o in --parents -r '-r --parents'; do $CP $o $l t; echo $?; rm -rf t/*; done; done",
    ),
    (
        // No script of its own.
        "what lies in nothing",
        "mkdir d; echo f > f; $CP -r d n/x/y/; $CP f n/x/y/; $CP -rT d n/x/y//; mkdir n; $CP f n/y/; $CP -r d n/y/; ls n",
    ),
    (
        "slink-2-slink",
        "touch file; ln -s file a; ln -s file b; ln -s gone c; ln -s gone d; $CP --update --no-dereference a b
         $CP --update --no-dereference c d",
    ),
    (
        "sparse, sparse-2",
        "printf x > k; truncate -s 128k k; for i in always never auto; do $CP --reflink=never --sparse=$i k k$i
         cmp k k$i; printf y >> k; done; dd if=/dev/zero of=z bs=1M count=1 status=none
         $CP --reflink=never --sparse=always z z2; stat -c %b z2",
    ),
    (
        "sparse-to-pipe",
        "mkfifo pipe; timeout 60 cat pipe > copy & truncate -s 1M s; $CP s pipe; wait; cmp s copy; rm pipe",
    ),
    (
        "special-bits",
        "touch a b c; chmod u+sx,go= a; chmod u=rwx,g=sx,o= b; chmod a=r,ug+sx c; for f in a b c; do $CP -p $f 2$f
         $CP $f 3$f; $CP -a $f 4$f; done",
    ),
    ("special-f", "mkfifo fifo; touch e; for f in '' -f; do timeout 60 $CP -R $f fifo e; done"),
    (
        "src-base-dot, and other directories over themselves",
        "mkdir x y; cd y; $CP --verbose -ab ../x/. .; echo f > f; for o in -n -l -an -avl -u -f; do
         for p in '. .' '../y ..' '-T . ../y' 'f f/' 'f f/x' '../x f/'; do $CP -r $o $p; echo $?; done; done",
    ),
    ("symbolic links elsewhere", "mkdir s t; echo f > s/f; $CP -sv s/f t; $CP -rsv s t"),
    ("symlink-slash", "mkdir dir; ln -s dir symlink; $CP -dR symlink/ s; $CP -dR symlink t"),
    (
        "targets with slashes",
        "mkdir s; echo f > s/f; for t in t t/ t// t/. t/./; do for l in 'mkdir t' 'ln -s u t'; do mkdir u; $l
         for o in -rTv -rv; do $CP $o s $t; echo $?; $CP $o s/. $t; echo $?; done; rm -r t u; done; done",
    ),
    (
        "thru-dangling",
        "ln -s no-such dangle; echo hi > f; for o in '' -f; do $CP $o f dangle; done; ls no-such
         POSIXLY_CORRECT=1 $CP f dangle; cat no-such; ln -s loop loop; $CP -f f loop; cat loop
         for m in 640 444 711; do chmod $m f; for o in '' -p --no-preserve=mode '-p --no-preserve=mode' \
         --preserve=ownership; do i=$((i + 1)); ln -s n$i d$i; POSIXLY_CORRECT=1 $CP $o f d$i; done; done",
    ),
];

/// `same-file`: all ways in which source and target may be one file, with these options.
const SAME_FILE_OPTIONS: &[&str] =
    &["", "-b", "-d", "-f", "-bd", "-bf", "-bdf", "-l", "-fl", "-bl", "-dbl", "-s", "-sb"];
const MORE_OPTIONS: &[&str] = &[
    "-df",
    "--rem",
    "-b --rem",
    "-d --rem",
    "-bd --rem",
    "-dl",
    "-dfl",
    "-bfl",
    "-dbfl",
    "-rl",
    "-sf",
    "-R",
];
const SAME_FILE: &str = "echo XYZ > foo; ln -s foo symlink; ln -s foo sl2; ln foo hardlink; ln symlink hlsl
     for p in 'foo symlink' 'symlink foo' 'foo foo' 'symlink sl2' 'foo hardlink' 'hlsl sl2' 'symlink hlsl'; do
     $CP OPTIONS $p; echo $?; cat foo; done";

/// Runs the steps with both programs and says what differs.
fn differences(pair: &Pair, steps: &str) -> Option<String> {
    let cp = format!("{} cp", pair.program.display());
    let [cp, flatout] = [("cp", "cp"), ("flatout", &cp)].map(|(side, program)| {
        let folder = pair.folder(side);
        let environment = [("CP", program)];
        let (program, first) = (Path::new("sh"), ["-c", steps]);
        Trial {
            program,
            first: &first,
            folder: &folder,
            user: pair.user,
            input: None,
            environment: &environment,
        }
        .run(&[])
    });
    let trees = pair.differences();
    let [said, other] = [&cp, &flatout].map(|output| {
        let [out, err] = [&output.stdout, &output.stderr].map(|all| String::from_utf8_lossy(all));
        let mut lines: Vec<String> =
            out.lines().chain(err.lines()).map(|line| line.replace("flatout cp", "cp")).collect();
        lines.sort();
        (output.status.code(), lines)
    });
    (said != other || !trees.is_empty()).then(|| format!("{said:?}\n{other:?}\n{trees:?}"))
}

#[test]
fn what_the_scripts_of_gnu_cp_try_comes_to_the_same() {
    let mut pair = Pair::new(|_| {});
    let is_root = rustix::process::geteuid().is_root();
    let mut all: Vec<(String, String)> =
        SCRIPTS.iter().map(|(name, steps)| (name.to_string(), steps.to_string())).collect();
    let more = if is_full() { MORE_OPTIONS } else { &[] };
    for options in SAME_FILE_OPTIONS.iter().chain(more) {
        all.push((format!("same-file {options}"), SAME_FILE.replace("OPTIONS", options)));
    }
    let mut different = Vec::new();
    for (name, steps) in all {
        pair.user = None;
        if is_root && name == "fail-perm" {
            pair.as_nobody();
        }
        pair.plant(|folder| {
            if pair.user.is_some() {
                chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        });
        if let Some(found) = differences(&pair, &steps) {
            different.push(format!("{name}: {found}"));
        }
    }
    assert!(different.is_empty(), "{} differ\n{}", different.len(), different.join("\n\n"));
}

/// `cross-dev-symlink`, `reflink-auto`: between two filesystems, where there are two.
#[test]
fn links_are_made_from_another_filesystem() {
    let pair = Pair::new(|_| {});
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { skip!("there is no /dev/shm") };
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    if device(other.path()) == device(&pair.folder("cp")) {
        skip!("temporary files lie in /dev/shm");
    }
    std::fs::write(other.path().join("file"), "not empty").unwrap();
    let steps = format!(
        "mkdir path2; cd path2; o={}; ln -s $o/file .; $CP -dsf $o/file .; $CP --reflink $o/file b; $CP -l $o/file l
         rm -f b; $CP --reflink=auto $o/file b; $CP --reflink=auto --sparse=always $o/file b
         $CP --reflink=auto --reflink=never $o/file b",
        other.path().display()
    );
    let found = differences(&pair, &steps);
    assert!(found.is_none(), "{}", found.unwrap());
}
