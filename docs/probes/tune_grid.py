#!/usr/bin/env python3
"""Whether what `flatout tune` takes is within 5 % of the best of a grid of settings.

    tune_grid.py tune FLATOUT DIRECTORY RUNS KEPT [OPTION…]   runs `tune OPTION…`, keeps what it took (KEPT, KEPT.0 …)
    tune_grid.py grid FLATOUT DIRECTORY ROUNDS KEPT           runs the grid, judges what was kept

DIRECTORY lies on the filesystem in question and is empty; an ext4 is to be made with lazy_itable_init=0, and some
million inodes. The grid is every engine with every block, depth and number of threads below, for copying and reading
256 MiB and copying 2,000 files of 4 KiB, all cached, as whole commands, one kind of work after the other (what one
leaves to be written back slows the next), in rounds of random order, for 200 s at most. What counts is the lower
tenth: the kernel's own writing back and other guests slow half of the rounds, whatever the settings. The best is found
in the odd rounds and held against what tune took, by its profile, in the even ones, so that luck is not taken for
speed; so are the defaults. Prints, for each kind of work, what was taken, how often, and its time ÷ that of
the best; and in how many runs all is within 5 %."""
import collections, itertools, json, os, random, shutil, statistics, subprocess, sys, time

MIB, NUMBERS = 1 << 20, itertools.count()
THREADS = (1, 2, 4)
GRID = {
    "copy": [("sync", block, 1, threads) for block in (64 << 10, 256 << 10, MIB) for threads in THREADS]
    + [("mmap", block, 1, threads) for block in (512 << 10, 2 * MIB) for threads in THREADS[:2]]
    + [("uring", block, depth, 1) for block, depth in ((128 << 10, 16), (512 << 10, 8))],
    "read": [(engine, block, 1, threads) for engine in ("sync", "mmap") for block in (64 << 10, 256 << 10, MIB)
             for threads in THREADS],
    "small": [("sync", 64 << 10, 1, threads) for threads in (1, 2, 3, 4, 8)],
}
MOST_S = {"copy": 90, "read": 50, "small": 60}


def kinds(profile):
    """The settings of a profile, by kind of work."""
    for entry in json.load(open(profile))["entries"]:
        key, tuning = entry["key"], entry["tuning"]
        if key["cached"] and key["work"] in ("copy", "read"):
            kind = "small" if key["size"] == "tiny" else key["work"]
            yield kind, [tuning[name] for name in ("engine", "block_bytes", "depth", "threads")]


def tune(flatout, directory, runs, kept, *options):
    all_taken = []
    for run in range(runs):
        profile = f"{directory}/profile-{run}.json"
        subprocess.run([flatout, "tune", *options, "--seed", str(run), directory], check=True,
                       env={**os.environ, "FLATOUT_PROFILE": profile}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        all_taken.append(dict(kinds(profile)))
        os.replace(profile, f"{kept}.{run}")
        json.dump(all_taken, open(kept, "w"))


def command(flatout, directory, kind, setting):
    """What is run; settings that end with a profile are those of it, for nothing else is given."""
    is_given = len(setting) == 4
    engine, block, depth, threads = setting if is_given else ("", 0, 0, 0)
    words = [] if not is_given else ["--threads", threads] + ([] if kind == "small" else ["--engine", engine, "--block-size", block])
    if kind == "copy" and (engine, block) == ("sync", 256 << 10):
        words = ["--threads", threads, "--engine", engine]  # The usual block is none that is asked for.
    words += ["--iodepth", depth] if engine == "uring" else []
    target = f"{directory}/to/{next(NUMBERS)}"
    rest = {"read": ["read", f"{directory}/large"], "copy": ["copy", "--reflink=never", f"{directory}/large", target],
            "small": ["copy", "--reflink=never", "--resume=never", f"{directory}/small", target]}[kind]
    return [flatout, *rest, *map(str, words)], target


def tenth(times):
    """The lower tenth: half of the copies meet the kernel's own writing back, and take 1.5 to 2 times as long."""
    return statistics.quantiles(times, n=10)[0]


def grid(flatout, directory, rounds, kept):
    all_taken = json.load(open(kept))
    for run, taken in enumerate(all_taken):
        for kind, setting in taken.items():
            # The first run that took it stands for all that did.
            first = next(at for at, other in enumerate(all_taken) if other.get(kind) == setting)
            taken[kind] = (*setting, f"{os.path.abspath(kept)}.{first}")
    os.makedirs(f"{directory}/to")
    with open(f"{directory}/large", "wb") as file:
        for _ in range(256):
            file.write(os.urandom(MIB))
    for index in range(2000):
        os.makedirs(f"{directory}/small/{index % 20}", exist_ok=True)
        with open(f"{directory}/small/{index % 20}/{index}", "wb") as file:
            file.write(os.urandom(4096))
    cases = [(kind, tuple(setting)) for kind in GRID
             for setting in {(), *GRID[kind], *(tuple(taken[kind]) for taken in all_taken if kind in taken)}]
    times = collections.defaultdict(list)
    for kind in GRID:
        first, these = time.monotonic(), [case for case in cases if case[0] == kind]
        for done in range(rounds):
            if done >= 4 and time.monotonic() - first > MOST_S[kind]:
                print(f"{kind}: {done} rounds of {rounds}")
                break
            for case in random.sample(these, len(these)):
                words, target = command(flatout, directory, *case)
                if case[0] != "read":
                    subprocess.run(["sync", "-f", directory], check=True)
                begun = time.perf_counter()
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "FLATOUT_PROFILE": case[1][4] if len(case[1]) > 4 else ""})
                times[case].append(time.perf_counter() - begun)
                if case[0] == "copy":
                    os.unlink(target)
    within = [True] * len(all_taken)
    for kind in GRID:
        best = min((case for case in times if case[0] == kind and len(case[1]) == 4), key=lambda case: tenth(times[case][::2]))
        even = lambda case: tenth(times[case][1::2])
        ratio = {case: even(case) / even(best) for case in times if case[0] == kind}
        print(f"{kind}: best {best[1]}, {even(best) * 1e3:.2f} ms; by default ÷ best {ratio[kind, ()]:.3f}")
        taken = collections.Counter(tuple(one[kind]) for one in all_taken if kind in one)
        for setting, count in taken.most_common():
            print(f"  taken {count} times: {setting}, time ÷ best {ratio[kind, setting]:.3f}")
        print("  all:", ", ".join(f"{case[1]} {one:.2f}" for case, one in sorted(ratio.items(), key=lambda at: at[1])))
        good = [kind not in one or ratio[kind, tuple(one[kind])] <= 1.05 for one in all_taken]
        within = [a and b for a, b in zip(within, good)]
        print(f"  within 5 % in {sum(good)} of {len(good)} runs")
    print(f"all within 5 % in {sum(within)} of {len(within)} runs")
    for name in ("to", "small"):
        shutil.rmtree(f"{directory}/{name}")
    os.unlink(f"{directory}/large")


{"tune": tune, "grid": grid}[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
