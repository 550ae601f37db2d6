#!/usr/bin/env python3
"""Copiers of many small files, or of one, side by side.

    copy_race.py [--state STATE] [--fs FS] [--image FILE | --on DIRECTORY] ROUNDS SHAPE NAME=COMMAND...

Shapes: FILESxSIZE[/DIRECTORIES] (20000x4K/20, 1x10M, 1x1G), or a directory that is there. `{s}`, `{d}` and `{m}` in a command are source, target and mount point, `{o}` a copy of the source
that is there already; one with `&&` is run by sh. A round runs everybody once, in random order, as a whole process. States: `hot`; `cold`
(all caches dropped before each); `refresh` (each on a filesystem of its own, where the same tree was just
made and removed); `unchanged` and `unchanged-cold` (each has a copy of the source at its target). What is durable is said by the commands: `cp {s} {d} && sync -f {m}`. The commands `device-read`
and `device-write` are the time that fio takes for as many bytes: direct, 1 MiB, 16 in flight.

Trees: each round has a filesystem of its own (ext4, ext4 without a journal, xfs, btrfs) on a loop device, with
direct I/O where the image lies on a disk, into which the source is copied once; targets stay. One file (`1x...`): one filesystem
for all rounds, and a new target each time; large ones are removed. `--on`: in a directory that is there.
Prints medians, and of the ratios to the first command, round by round, median and range; of small files
alone, quartiles instead of ranges. Needs root."""
import argparse, json, os, random, re, shutil, statistics, subprocess, sys, time

MOUNT = "/dev/shm/copy-race"
KEPT = "/dev/shm/copy-race-source"
LARGE = 512 << 10
MKFS = {
    "ext4": "mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0",
    "ext4-nojournal": "mkfs.ext4 -q -F -O ^has_journal -E nodiscard,lazy_itable_init=0",
    "xfs": "mkfs.xfs -q -f -K",
    "btrfs": "mkfs.btrfs -q -f -K",
}


def sh(line, check=True):
    subprocess.run(line, shell=True, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def mount(image, gib, kind):
    sh(f"umount {MOUNT}", check=False)
    sh(f"mkdir -p {MOUNT}")
    in_memory = image.startswith("/dev/shm/")
    if in_memory:
        sh(f"rm -f {image}")
        sh(f"truncate -s {gib}G {image}")
    elif not os.path.exists(image) or os.path.getsize(image) != gib << 30:
        # Written once, so that no extent of the image is given out while others are measured.
        sh(f"dd if=/dev/zero of={image} bs=1M count={gib << 10} oflag=direct")
    sh(f"{MKFS[kind]} {image}")
    device = subprocess.check_output(
        ["losetup", "-f", "--show", f"--direct-io={'off' if in_memory else 'on'}", image], text=True).strip()
    sh(f"mount {device} {MOUNT}; losetup -d {device}")


def by_fio(way, source, file):
    size = os.path.getsize(source)
    out = subprocess.check_output(
        ["fio", "--name=r", f"--filename={file}", f"--rw={way}", "--bs=1M", "--direct=1", "--ioengine=io_uring",
         "--iodepth=16", f"--size={size}", "--output-format=json"], text=True)
    return size / json.loads(out)["jobs"][0][way]["bw_bytes"]


def processors():
    """Seconds that the CPUs had: busy, idle, stolen by the host."""
    with open("/proc/stat") as file:
        user, nice, system, idle, wait, hard, soft, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + hard + soft) / 100, (idle + wait) / 100, steal / 100


def timed(command, source, target, top):
    if command.startswith("device-"):
        way = command.split("-")[1]
        return by_fio(way, source, source if way == "read" else target), 0
    line = command.replace("{s}", source).replace("{d}", target).replace("{m}", top).replace("{o}", f"{top}/old")
    argv = ["sh", "-c", line] if "&&" in line else line.split()
    null = os.open("/dev/null", os.O_RDWR)
    begun = time.perf_counter()
    process = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, null, number) for number in range(3)])
    _, status, used = os.wait4(process, 0)
    elapsed = time.perf_counter() - begun
    os.close(null)
    if status:
        print("FAILED:", *argv)
    return elapsed, used.ru_utime + used.ru_stime


def make(root, files, size, directories):
    for index in range(files):
        folder = root if directories == 1 else f"{root}/d{index % directories:03}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/f{index:06}", "wb") as file:
            left = size
            while left > 0:
                left -= file.write(os.urandom(min(left, 1 << 20)))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", default="hot", choices=["hot", "cold", "refresh", "unchanged", "unchanged-cold"])
    parser.add_argument("--fs", default="ext4", choices=list(MKFS))
    parser.add_argument("--image", default="/dev/shm/copy-race.img")
    parser.add_argument("--gib", type=int)
    parser.add_argument("--on")
    parser.add_argument("rounds", type=int)
    parser.add_argument("shape")
    parser.add_argument("rivals", nargs="+")
    return parser.parse_args()


def main():
    asked = arguments()
    shape = re.fullmatch(r"(\d+)x(\d+)([KMG]?)(?:/(\d+))?", asked.shape)
    if shape:
        files, size = int(shape[1]), int(shape[2]) << {"": 0, "K": 10, "M": 20, "G": 30}[shape[3]]
    else:
        sizes = [os.lstat(f"{root}/{name}").st_size for root, _, names in os.walk(asked.shape) for name in names]
        files, size = len(sizes), sum(max(size, 4096) for size in sizes) // len(sizes)
    rivals = [word.split("=", 1) for word in asked.rivals]
    times = {name: [] for name, _ in rivals}
    cpu = {name: [] for name, _ in rivals}
    trees = 3 if asked.state == "refresh" else len(rivals) + 2
    is_there = asked.state.startswith("unchanged")
    has_old = any("{o}" in command for _, command in rivals)
    gib = asked.gib or 2 + max(files * trees // 60000, files * max(size, 4096) * trees * 13 // 10 >> 30)
    if files == 1:
        gib = asked.gib or 4
    top = asked.on or MOUNT
    source = f"{top}/src"
    original = f"{KEPT}/f000000" if files == 1 else KEPT
    sh(f"rm -rf {KEPT}; mkdir {KEPT}")
    if shape:
        make(KEPT, files, size, int(shape[4] or 1))
    else:
        sh(f"cp -a {asked.shape}/. {KEPT}")

    def fresh():
        if not asked.on:
            mount(asked.image, gib, asked.fs)
        sh(f"rm -rf {source}; cp -a {original} {source}; mkdir -p {top}/to; sync -f {top}")
        if has_old:
            sh(f"rm -rf {top}/old; cp -a {original} {top}/old; sync -f {top}")

    if files == 1:
        fresh()
    for number in range(asked.rounds):
        if files > 1 and asked.state != "refresh":
            fresh()
        for name, command in random.sample(rivals, len(rivals)):
            target = f"{top}/to/{name}-{number}"
            if asked.state == "refresh":
                fresh()
                sh(f"cp -a {source} {target}; sync -f {top}; rm -rf {target}")
            if is_there:
                sh(f"cp -a {source} {target}")
            if files > 1 or size > LARGE or asked.state == "cold":
                sh(f"sync -f {top}")
            if asked.state.endswith("cold"):
                sh("echo 3 > /proc/sys/vm/drop_caches")
            elapsed, used = timed(command, source, target, top)
            times[name].append(elapsed)
            cpu[name].append(used)
            if files == 1 and size > LARGE and os.path.exists(target):
                os.unlink(target)
            elif asked.on and os.path.exists(target):
                shutil.rmtree(target) if files > 1 else os.unlink(target)
    if asked.on:
        sh(f"rm -rf {top}/to {source}")
    sh(f"umount {MOUNT}; rm -rf {KEPT} /dev/shm/copy-race.img", check=False)
    print(asked.shape, asked.state, asked.fs, "rounds", asked.rounds)
    ratios_of = lambda all_of, name: sorted(a / max(b, 1e-9) for a, b in zip(all_of[name], all_of[rivals[0][0]]))
    for name, _ in rivals:
        ratios = ratios_of(times, name)
        quarter = len(ratios) // 4 if files == 1 and size <= LARGE else 0
        low, high = ratios[quarter], ratios[-1 - quarter]
        all_ms = sorted(one * 1e3 for one in times[name])
        print(f"{name:10} {statistics.median(all_ms):9.3f} ms ({all_ms[quarter]:.3f}-{all_ms[-1 - quarter]:.3f})"
              f"  ÷ first {statistics.median(ratios):.2f} ({low:.2f}-{high:.2f})"
              f"  CPU {statistics.median(cpu[name]) * 1e3:.1f} ms, ÷ first {statistics.median(ratios_of(cpu, name)):.3f}")


main()
