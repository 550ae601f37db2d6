#!/usr/bin/env python3
"""Copiers of many small files, or of one, side by side.

    copy_race.py ROUNDS FILESxSIZE[/DIRECTORIES] NAME=COMMAND...     e.g. 20000x4K/20, 1x10M

`{s}` and `{d}` in a command are source and target. A round runs everybody once, in random order, as a
whole process. Trees: each round has an ext4 of its own on a loop device over a file in /dev/shm, into which
the source is copied once; targets stay. One file (`1x...`): one such filesystem for all rounds, and a new
target each time; large ones are removed. Prints medians, and of the ratios to the first command, round by
round, median and range; of one file, quartiles instead of ranges. Needs root."""
import os, random, re, statistics, subprocess, sys, time

IMAGE, MOUNT = "/dev/shm/copy-race.img", "/dev/shm/copy-race"
LARGE = 512 << 10


def sh(line, check=True):
    subprocess.run(line, shell=True, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def mount(gib):
    sh(f"umount {MOUNT}; rm -f {IMAGE}", check=False)
    options = "-q -F -E lazy_itable_init=0,lazy_journal_init=0"
    sh(f"mkdir -p {MOUNT} && truncate -s {gib}G {IMAGE} && mkfs.ext4 {options} {IMAGE}")
    sh(f"mount -o loop {IMAGE} {MOUNT}")


def timed(command, source, target):
    argv = command.replace("{s}", source).replace("{d}", target).split()
    null = os.open("/dev/null", os.O_RDWR)
    begun = time.perf_counter()
    process = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, null, number) for number in range(3)])
    status = os.waitpid(process, 0)[1]
    elapsed = time.perf_counter() - begun
    os.close(null)
    if status:
        print("FAILED:", *argv)
    return elapsed


def make(root, files, size, directories):
    for index in range(files):
        folder = root if directories == 1 else f"{root}/d{index % directories:03}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/f{index:06}", "wb") as file:
            file.write(os.urandom(size))


def main():
    rounds = int(sys.argv[1])
    shape = re.fullmatch(r"(\d+)x(\d+)([KM])(?:/(\d+))?", sys.argv[2])
    files, size = int(shape[1]), int(shape[2]) << {"K": 10, "M": 20}[shape[3]]
    rivals = [word.split("=", 1) for word in sys.argv[3:]]
    times = {name: [] for name, _ in rivals}
    trees = len(rivals) + 2
    gib = 2 + max(files * trees // 60000, files * max(size, 4096) * trees * 13 // 10 >> 30)
    source, kept = MOUNT + "/src", "/dev/shm/copy-race-source"
    sh(f"rm -rf {kept}; mkdir {kept}")
    make(kept, files, size, int(shape[4] or 1))
    if files == 1:
        mount(4)
        sh(f"cp {kept}/f000000 {source}; mkdir {MOUNT}/to; sync")
    for number in range(rounds):
        if files > 1:
            mount(gib)
            sh(f"cp -a {kept} {source}; sync")
        for name, command in random.sample(rivals, len(rivals)):
            target = f"{MOUNT}/to/{name}-{number}" if files == 1 else f"{MOUNT}/to-{name}"
            if files > 1:
                sh(f"sync -f {MOUNT}")
            times[name].append(timed(command, source, target))
            if files == 1 and size > LARGE:
                os.unlink(target)
    sh(f"umount {MOUNT}; rm -rf {IMAGE} {kept}", check=False)
    print(sys.argv[2], "rounds", rounds)
    for name, _ in rivals:
        ratios = sorted(a / b for a, b in zip(times[name], times[rivals[0][0]]))
        quarter = len(ratios) // 4 if files == 1 else 0
        low, high = ratios[quarter], ratios[-1 - quarter]
        all_ms = sorted(one * 1e3 for one in times[name])
        print(f"{name:10} {statistics.median(all_ms):9.3f} ms ({all_ms[quarter]:.3f}-{all_ms[-1 - quarter]:.3f})"
              f"  ÷ first {statistics.median(ratios):.2f} ({low:.2f}-{high:.2f})")


main()
